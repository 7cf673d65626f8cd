/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Numbers for what occurs often, so that a document has it once: stacks, and their frames.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "answers/fields.h"
#include "base/map.h"
#include "base/pool.h"

struct emit;
struct stack;

struct report_index {
	uint32_t number; /* from 0 on, as they come */
	bool is_known;
};

struct report_list {
	struct map numbers; /* by the pool's addresses; from 1 on */
	const void **list;  /* owned; by number */
	size_t capacity;
};

/* The stacks of a report: a list of numbers of frames for each, and the frames. */
struct report_stacks {
	struct pool pool;
	struct report_list stacks, frames;
	uint64_t *numbers; /* owned; of the stack that is being written */
	size_t capacity;
};

void report_stacks_deinit(struct report_stacks *stacks);

/* What a member that names a stack has: not known without one (NULL), or if there are too many. */
struct report_index report_stacks_index(struct report_stacks *stacks, const struct stack *stack);
#define REPORT_STACK FIELD_IF(stack.is_known, "stack", SHORT, stack.number)

/* Writes the members "stacks" and "frames", after everything that names one. */
void report_stacks_put(struct report_stacks *stacks, struct emit *json);
