/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Documents from other machines, over HTTP. All are requested at once, so that a hanging server
 * delays only its own answer.
 */

#include <stddef.h>
#include <stdint.h>

#define HTTP_FETCH_SECONDS 5L
#define HTTP_FETCH_TEXT_MAX (UINT32_C(64) << 20)   /* one answer */
#define HTTP_FETCH_TEXTS_MAX (UINT32_C(512) << 20) /* all answers together */

struct http_fetch {
	char *url;
	const char *token;   /* for "Authorization: Bearer"; NULL = none. Not owned */
	char *text;          /* the answer, NUL-terminated; NULL on failure */
	size_t length, most; /* of the answer: bytes so far, and the limit */
	char problem[160];   /* on failure: the reason, for people */
};

/* 0, or a negative errno if no request could be made at all. */
int http_fetch_all(struct http_fetch *fetches, size_t count);
void http_fetch_deinit(struct http_fetch *fetch);
