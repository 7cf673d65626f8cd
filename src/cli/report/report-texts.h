/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Numbers for what occurs often, so that a document has it once: stacks, and their frames as text.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "base/pool.h"

struct emit;
struct stack;

#define REPORT_TEXTS_NONE UINT32_MAX

struct report_texts {
	struct pool pool;
	struct map numbers; /* by the pool's addresses; from 1 on */
	const void **list;  /* owned; by number: texts, or stacks */
	size_t capacity;
};

#define REPORT_TEXTS_NULL     \
	(struct report_texts) \
	{                     \
		0             \
	}

void report_texts_deinit(struct report_texts *texts);

/* From 0 on, as they come. REPORT_TEXTS_NONE for NULL. */
uint32_t report_texts_number(struct report_texts *texts, const char *text);

/* The stacks of a report: a list of numbers of frames for each, and the frames. */
struct report_stacks {
	struct report_texts stacks;
	struct report_texts frames; /* as JSON */
};

void report_stacks_deinit(struct report_stacks *stacks);

/* A member that names a stack: its number, or null. */
void report_stacks_put(struct report_stacks *stacks, struct emit *json, const struct stack *stack);

/* The members "stacks" and "frames", after everything that names one. */
void report_stacks_emit(struct report_stacks *stacks, struct emit *json);
