/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Operations, in which reports of other tools are divided, made of what a live process tells: its
 * phases and its marks. A mark begins an operation, and every phase in which a live buffer was born
 * after it is one more, up to the next mark. So their number depends on how an application names its
 * work, not on how many events it has.
 *
 * What is live now was live from its birth on: a buffer is listed in the operation in which it was
 * born and in each later one. What was freed since is not known, nor is when a phase began or ended: an
 * operation without a mark begins with the first of its live buffers.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/mark.h"

#define EXPORT_OPERATIONS_MAX 4096u

struct snapshot;
struct snapshot_buffer;

struct export_operation {
	const char *name;  /* of the mark, else the phase; NULL = neither */
	const char *phase; /* NULL = none */
	bool is_mark;
	uint64_t begin_ns; /* CLOCK_REALTIME */
	uint64_t born;     /* buffers that were born in it and live now */
	uint64_t live;     /* those and the ones of earlier operations */
	size_t merged;     /* operations that it stands for, itself included; 0 = only itself */
	const struct snapshot_buffer
		*largest; /* that was born in it and has a stack; NULL = none */
};

struct export_operations {
	struct export_operation *list; /* owned; in the order in which they began */
	size_t count;
	const struct snapshot_buffer **buffers; /* owned; in the order of their operations */
	size_t buffer_count;
	uint64_t other; /* buffers of types that tt-metal does not have: CB, KERNEL */
};

#define EXPORT_OPERATIONS_NULL ((struct export_operations){0})

/*
 * Of the buffers that process @process has in @snapshot, which must outlive the result. There is at least
 * one.
 */
struct export_operations export_operations_find(const struct snapshot *snapshot, uint32_t process,
						const struct mark_list *marks);
void export_operations_deinit(struct export_operations *operations);

/* Rows of a list that has each live buffer of each operation. */
uint64_t export_operations_rows(const struct export_operations *operations);

/*
 * Merges the oldest operations into one, so that there are at most EXPORT_OPERATIONS_MAX, and @rows_max
 * rows. 0, or -E2BIG if all live buffers are already more.
 */
int export_operations_limit(struct export_operations *operations, uint64_t rows_max);
