/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Between the parts of `ttmem demo`: the play (demo.c), what it tells (demo-story.c). */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct family;
struct snapshot;

/* What happened, in the words for people; each thing is told once. */
struct story {
	char lines[16][240];
	unsigned int count;
	uint64_t told[16]; /* what the lines are about */
};

/* Adds what @snapshot (of the living) and the ended say and was not told yet. */
void story_follow(struct story *story, const struct snapshot *living, const struct family *family,
		  uint32_t killed_pid);

void story_write(const struct story *story, FILE *out);
