/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Documents from other machines, over HTTP. All are requested at once, so that a hanging server
 * delays only its own answer.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HTTP_FETCH_SECONDS 5L

/* What the answers may take. */
struct http_fetch_limits {
	size_t text_max;  /* bytes of one */
	size_t texts_max; /* of all together */
	const bool *stop; /* atomic: set by another thread to end it early; NULL = never */
};

struct http_fetch {
	char *url;
	const char *token;   /* for "Authorization: Bearer"; NULL = none. Not owned */
	char *text;          /* the answer, NUL-terminated; NULL on failure */
	size_t length, most; /* of the answer: bytes so far, and the limit */
	char problem[160];   /* on failure: the reason, for people */
	bool is_done;        /* private */
};

/* 0, or a negative errno if no request could be made at all. From one thread at a time. */
int http_fetch_all(struct http_fetch *fetches, size_t count,
		   const struct http_fetch_limits *limits);
void http_fetch_deinit(struct http_fetch *fetch);
