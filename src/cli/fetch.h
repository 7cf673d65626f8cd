/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Documents of other machines, over HTTP: all asked at once, so that one that hangs costs its own time only. */

#include <stddef.h>

#define FETCH_SECONDS 5L
#define FETCH_TEXT_MAX (UINT32_C(64) << 20) /* of one answer */

struct fetch {
	char *url;
	char *text; /* what it answered, ended by NUL; NULL if it did not */
	size_t length;
	char problem[160]; /* then: why, for people */
};

/* 0, or a negative errno if nothing could be asked at all. */
int fetch_all(struct fetch *fetches, size_t count);
void fetch_deinit(struct fetch *fetch);
