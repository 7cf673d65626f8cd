/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Reading an HTTP response as its bytes arrive, in pieces of any size. What is not understood is refused:
 * the other end may be somebody who wants to harm us. One response is read; bytes behind its end are a
 * mistake, because nothing else was asked for.
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
	HTTP_CHUNK_END,  /* the empty line behind it */
	HTTP_TRAILER,    /* headers behind the last chunk */
	HTTP_RESPONSE_END,
};

struct http_response {
	unsigned int status;
	char *body; /* owned; a NUL behind it that is not counted; NULL until there is one */
	size_t body_length;

	/* Of the reader: */
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

/* 0: more has to come. HTTP_COMPLETE; -EBADMSG; -EMSGSIZE for a body that is too long; -ENOMEM. */
int http_response_feed(struct http_response *response, const void *bytes, size_t length);
