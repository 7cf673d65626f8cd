/* SPDX-License-Identifier: Apache-2.0 */

/* Buffers are sorted by mark and phase; each group is an operation; these are sorted by time. */

#include "cli/export/visualizer/export-operations.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "cli/common/must.h"
#include "model/snapshot.h"
#include "model/types.h"

/* A buffer or a mark, with what decides about its operation. */
struct export_birth {
	size_t mark;       /* the last one before it, counted from 1; 0 = none */
	const char *phase; /* NULL = none */
	uint64_t time;
	uint64_t time_ns;
	const struct snapshot_buffer *buffer; /* NULL = this is the mark */
};

/* A group of births, before it is an operation. */
struct export_group {
	uint64_t time;
	size_t first, count; /* of the births */
};

struct export_births {
	struct export_birth *list; /* owned */
	size_t count;
};

static int export_compare_phases(const char *a, const char *b)
{
	if (a == b)
		return 0;
	if (!a || !b)
		return a ? 1 : -1;
	return strcmp(a, b);
}

/* A mark comes before the buffers of its operation. */
static int export_compare_births(const void *left, const void *right)
{
	const struct export_birth *a = left, *b = right;
	int phases;

	if (a->mark != b->mark)
		return bits_compare(a->mark, b->mark);
	phases = export_compare_phases(a->phase, b->phase);
	if (phases)
		return phases;
	if (!a->buffer || !b->buffer)
		return (a->buffer != NULL) - (b->buffer != NULL);
	return bits_compare(a->time, b->time);
}

static int export_compare_groups(const void *left, const void *right)
{
	const struct export_group *a = left, *b = right;

	if (a->time != b->time)
		return bits_compare(a->time, b->time);
	return bits_compare(a->first, b->first);
}

static int export_compare_marks(const void *left, const void *right)
{
	const struct mark *a = left, *b = right;

	return bits_compare(a->time_ns, b->time_ns);
}

/*
 * The clock of a book is exact; the time of day is computed anew by each reading, and may differ by a
 * little. But books of one process may have different clocks.
 */
static bool export_has_one_book(const struct snapshot *snapshot, uint32_t process)
{
	return snapshot->processes[process].books <= 1;
}

/* How many of the marks are not later than @time. */
static size_t export_marks_before(const struct export_birth *marks, size_t count, uint64_t time)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (marks[middle].time <= time)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void export_add_marks(const struct mark_list *marks, bool by_stamp,
			     struct export_births *births)
{
	for (size_t i = 0; i < marks->count; i++) {
		const struct mark *mark = &marks->list[i];

		births->list[births->count++] = (struct export_birth){
			.mark = i + 1,
			.phase = mark->phase,
			.time = by_stamp ? mark->stamp : mark->time_ns,
			.time_ns = mark->time_ns,
		};
	}
}

static void export_add_buffers(const struct snapshot *snapshot, uint32_t process, bool by_stamp,
			       struct export_births *births, uint64_t *ret_other)
{
	size_t marks = births->count;

	*ret_other = 0;
	for (size_t i = 0; i < snapshot->buffer_count; i++) {
		const struct snapshot_buffer *buffer = &snapshot->buffers[i];
		uint64_t time = by_stamp ? buffer->birth : buffer->born_ns;

		if (buffer->process != process)
			continue;
		if (buffer->type > TYPES_TRACE) {
			++*ret_other;
			continue;
		}
		births->list[births->count++] = (struct export_birth){
			.mark = export_marks_before(births->list, marks, time),
			.phase = buffer->phase,
			.time = time,
			.time_ns = buffer->born_ns,
			.buffer = buffer,
		};
	}
}

/* The births as groups, in the order of time. */
static size_t export_group_births(const struct export_births *births, struct export_group *groups)
{
	size_t count = 0;

	for (size_t i = 0; i < births->count; i++) {
		const struct export_birth *birth = &births->list[i];

		if (i == 0 || birth->mark != birth[-1].mark ||
		    export_compare_phases(birth->phase, birth[-1].phase) != 0)
			groups[count++] = (struct export_group){.time = birth->time, .first = i};
		groups[count - 1].count++;
	}
	if (count)
		qsort(groups, count, sizeof(*groups), export_compare_groups);
	return count;
}

static void export_describe(const struct export_births *births, const struct export_group *group,
			    const struct mark_list *marks, struct export_operations *operations)
{
	const struct export_birth *birth = &births->list[group->first];
	struct export_operation *operation = &operations->list[operations->count++];

	*operation = (struct export_operation){
		.name = birth->phase,
		.phase = birth->phase,
		.begin_ns = birth->time_ns,
		.is_mark = !birth->buffer,
	};
	if (operation->is_mark && marks->list[birth->mark - 1].name)
		operation->name = marks->list[birth->mark - 1].name;
	for (size_t i = 0; i < group->count; i++) {
		const struct snapshot_buffer *buffer = birth[i].buffer;

		if (!buffer)
			continue;
		operation->born++;
		operations->buffers[operations->buffer_count++] = buffer;
		if (buffer->stack &&
		    (!operation->largest || buffer->size > operation->largest->size))
			operation->largest = buffer;
	}
	operation->live = operations->buffer_count;
}

struct export_operations export_operations_find(const struct snapshot *snapshot, uint32_t process,
						const struct mark_list *marks)
{
	struct export_operations operations = EXPORT_OPERATIONS_NULL;
	size_t most = marks->count + snapshot->buffer_count + 1;
	CLEANUP_FREE struct export_birth *list = must_alloc(most, sizeof(*list));
	CLEANUP_FREE struct export_group *groups = must_alloc(most, sizeof(*groups));
	struct export_births births = {.list = list};
	bool by_stamp = export_has_one_book(snapshot, process);
	size_t count;

	/* In one book they are in order already. */
	if (!by_stamp && marks->count)
		qsort(marks->list, marks->count, sizeof(*marks->list), export_compare_marks);
	export_add_marks(marks, by_stamp, &births);
	export_add_buffers(snapshot, process, by_stamp, &births, &operations.other);
	if (births.count)
		qsort(list, births.count, sizeof(*list), export_compare_births);
	count = export_group_births(&births, groups);
	operations.list = must_alloc(count + 1, sizeof(*operations.list));
	operations.buffers = must_alloc(most, sizeof(struct snapshot_buffer *));
	for (size_t i = 0; i < count; i++)
		export_describe(&births, &groups[i], marks, &operations);
	if (count == 0)
		operations.list[operations.count++] =
			(struct export_operation){.begin_ns = snapshot->time_ns};
	return operations;
}

void export_operations_deinit(struct export_operations *operations)
{
	free(operations->list);
	free(operations->buffers);
	*operations = EXPORT_OPERATIONS_NULL;
}

uint64_t export_operations_rows(const struct export_operations *operations)
{
	uint64_t rows = 0;

	for (size_t i = 0; i < operations->count; i++)
		rows += operations->list[i].live;
	return rows;
}

/* Makes one operation of the first @count. */
static void export_operations_merge(struct export_operations *operations, size_t count)
{
	struct export_operation *list = operations->list, all = list[count - 1];

	all.begin_ns = list[0].begin_ns;
	all.name = all.phase = NULL;
	all.is_mark = false;
	all.merged = count;
	all.born = all.live;
	for (size_t i = 0; i < count; i++) {
		const struct snapshot_buffer *largest = list[i].largest;

		if (largest && (!all.largest || largest->size > all.largest->size))
			all.largest = largest;
	}
	memmove(list + 1, list + count, (operations->count - count) * sizeof(*list));
	list[0] = all;
	operations->count -= count - 1;
}

int export_operations_limit(struct export_operations *operations, uint64_t rows_max)
{
	size_t first = operations->count;
	uint64_t rows = 0;

	while (first > 0 && operations->count - first < EXPORT_OPERATIONS_MAX &&
	       operations->list[first - 1].live <= rows_max - rows)
		rows += operations->list[--first].live;
	if (first == operations->count)
		return -E2BIG;
	if (first > 0)
		export_operations_merge(operations, first + 1);
	return 0;
}
