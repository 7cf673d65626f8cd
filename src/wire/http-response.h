/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Reading an HTTP response as its bytes arrive, in pieces of any size. Anything unexpected is
 * refused: the peer may be hostile. One response is read; bytes after its end are an error, because
 * nothing else was requested.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HTTP_LINE_MAX 1024u /* of the status line, a header, the size of a chunk */
#define HTTP_HEADERS_MAX 64u

enum http_outcome {
	HTTP_COMPLETE = 1, /* nothing more belongs to this response */
};

enum http_state {
	HTTP_STATUS_LINE,
	HTTP_HEADER,
	HTTP_BODY,       /* of known length */
	HTTP_CHUNK_SIZE, /* the line before a chunk */
	HTTP_CHUNK,      /* its bytes */
	HTTP_CHUNK_END,  /* the empty line after it */
	HTTP_TRAILER,    /* headers after the last chunk */
	HTTP_RESPONSE_END,
};

struct http_response {
	unsigned int status;
	char *body; /* owned; followed by a NUL that is not counted; NULL until there is one */
	size_t body_length;

	/* State of the parser: */
	enum http_state state;
	size_t body_max, body_capacity;
	uint64_t left; /* of the body, or of the chunk */
	bool has_length, is_chunked;
	unsigned int headers;
	size_t line_length;
	char line[HTTP_LINE_MAX];
};

/* @body_max: a longer body is refused before it is stored. */
void http_response_init(struct http_response *response, size_t body_max);
void http_response_deinit(struct http_response *response);

/* 0: more is needed. HTTP_COMPLETE; -EBADMSG; -EMSGSIZE for a body that is too long; -ENOMEM. */
int http_response_feed(struct http_response *response, const void *bytes, size_t length);
