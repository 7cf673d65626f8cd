/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Blocks and free blocks over HTTP: the documents of "ttmem map" and "ttmem fit", by the same code.
 * A map needs all buffers of a device at one moment, so the number of buffers per request is
 * limited.
 */

#include <stdint.h>
#include <stdio.h>

struct routes_ask;

/*
 * As many as the dashboard draws. An answer with a free block after each stays far below BODY_MAX.
 */
#define MAP_ANSWER_BUFFERS_MAX (UINT64_C(1) << 18)

int map_answer_answer(struct routes_ask *ask, FILE *out);
int map_answer_answer_fit(struct routes_ask *ask, FILE *out);
