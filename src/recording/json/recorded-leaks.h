/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* ttmem.leaks/1 of a recording: what the processes that had ended by a moment left. */

#include <stddef.h>

#include "answers/ended.h"
#include "model/sites/group.h"

struct emit;
struct query;
struct recording;
struct scan;
struct snapshot;

struct recorded_leaks {
	const struct recording *recording;
	const struct scan *scan;   /* its books at that moment */
	struct snapshot *snapshot; /* of it, with buffers of ended processes; it is sorted */
	const struct query *query;

	/* Private. */
	struct group_list sites;
	struct site_row *rows; /* of one process */
	struct call_stack_room *stacks;
};

/* What is not private must be set. 0 or -ENOMEM; to be deinited in any case. */
int recorded_leaks_init(struct recorded_leaks *leaks);
void recorded_leaks_deinit(struct recorded_leaks *leaks);

struct recorded_leak {
	struct leaks_row row;
	struct ended_room ended;
};

/* The next process from @at on, at first 0: valid until the next call. NULL = the end. */
const struct leaks_row *recorded_leaks_next(const struct recorded_leaks *leaks, size_t *at,
					    struct recorded_leak *room);

/* The document. */
void recorded_leaks_put(struct emit *json, const struct recorded_leaks *leaks);
