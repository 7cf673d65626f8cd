/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Documents of other machines, over HTTP: all asked at once, so that one that hangs costs its own time only. */

#include <stddef.h>
#include <stdint.h>

#define HTTP_FETCH_SECONDS 5L
#define HTTP_FETCH_TEXT_MAX (UINT32_C(64) << 20)   /* of one answer */
#define HTTP_FETCH_TEXTS_MAX (UINT32_C(512) << 20) /* of all together */

struct http_fetch {
	char *url;
	const char *token;   /* for "Authorization: Bearer"; NULL = none. Lent */
	char *text;          /* what it answered, ended by NUL; NULL if it did not */
	size_t length, most; /* bytes of it: now, and at most */
	char problem[160];   /* then: why, for people */
};

/* 0, or a negative errno if nothing could be asked at all. */
int http_fetch_all(struct http_fetch *fetches, size_t count);
void http_fetch_deinit(struct http_fetch *fetch);
