/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A short made-up course of events and the moment after it, for tests of formats: two processes, three
 * types of memory, addresses that occur twice, stacks of both kinds and none, a mark, a failed allocation
 * and a gap.
 */

#include <stdio.h>

struct export_form;

#define STORY_START UINT64_C(1700000000000000000)

/* How much of it is told. */
enum story_part {
	STORY_MOMENT, /* as of the living */
	STORY_WHOLE,  /* as of a recording */
};

/* Writes it in a format. 0 or a negative errno. */
int story_write(const struct export_form *form, enum story_part part, FILE *out);
