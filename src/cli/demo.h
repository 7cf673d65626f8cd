/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Shared by the parts of `ttmem demo`: the processes (demo.c) and the story (demo-story.c). */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct family;
struct snapshot;

/* What happened, in words; each event is told once. */
struct story {
	char lines[16][240];
	unsigned int count;
	uint64_t told[16]; /* keys of the events told */
};

/* Adds the events of @living and of the ended processes that were not told yet. */
void story_follow(struct story *story, const struct snapshot *living, const struct family *family,
		  uint32_t killed_pid);

void story_write(const struct story *story, FILE *out);
