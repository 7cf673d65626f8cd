/* SPDX-License-Identifier: Apache-2.0 */

/* Which operation a buffer belongs to, and what becomes of too many operations. */

#include "cli/export/visualizer/export-operations.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/testing/unit.h"
#include "model/snapshot.h"
#include "model/testing/testing-stack.h"
#include "model/types.h"

static struct snapshot *snapshot;
static uint32_t process;

static void begin(void)
{
	struct snapshot_process who = {.id.pid = 1, .alive = true, .exact = true, .comm = "a"};

	snapshot = snapshot_new(1000);
	assert(snapshot && snapshot_add_process(snapshot, &who, &process) == 0);
	snapshot->processes[process].books = 1;
}

/* Born at @time by the book's clock, @time + 500 by ours. */
static void add(uint64_t time, uint32_t type, const char *phase, const char *stack)
{
	struct snapshot_buffer buffer = {
		.process = process,
		.address = time,
		.size = time,
		.birth = time,
		.born_ns = time + 500,
		.phase = phase,
		.stack = testing_stack(stack),
		.type = (uint8_t)type,
	};

	assert(snapshot_add_buffer(snapshot, &buffer) == 0);
}

static void check(const struct export_operations *operations, size_t i, const char *name,
		  uint64_t born, uint64_t live)
{
	const struct export_operation *operation = &operations->list[i];

	assert(i < operations->count);
	assert(name ? operation->name && strcmp(operation->name, name) == 0 : !operation->name);
	assert(operation->born == born && operation->live == live);
}

static void end(struct export_operations *operations)
{
	export_operations_deinit(operations);
	snapshot_free(snapshot);
}

UNIT(each_phase_is_an_operation_in_the_order_of_first_births)
{
	struct export_operations operations;
	struct mark_list none = MARK_LIST_NULL;

	begin();
	add(30, TYPES_L1, "late", NULL);
	add(10, TYPES_DRAM, "early", NULL);
	add(20, TYPES_TRACE, NULL, NULL);
	add(40, TYPES_DRAM, "early", NULL);
	add(50, TYPES_CB, "other", NULL);
	add(60, TYPES_KERNEL, "other", NULL);
	operations = export_operations_find(snapshot, process, &none);
	assert(operations.count == 3 && operations.other == 2 && operations.buffer_count == 4);
	check(&operations, 0, "early", 2, 2);
	check(&operations, 1, NULL, 1, 3);
	check(&operations, 2, "late", 1, 4);
	assert(operations.list[0].begin_ns == 510 && !operations.list[0].is_mark);
	assert(operations.buffers[0]->address == 10 && operations.buffers[1]->address == 40);
	assert(operations.buffers[3]->address == 30);
	assert(export_operations_rows(&operations) == 2 + 3 + 4);
	end(&operations);
}

UNIT(a_mark_begins_operations_anew)
{
	struct mark list[] = {
		{.stamp = 20, .time_ns = 520, .name = "one"},
		{.stamp = 40, .time_ns = 540, .name = "two", .phase = "loop"},
		{.stamp = 90, .time_ns = 590, .phase = "loop"},
	};
	struct mark_list marks = {.list = list, .count = 3};
	struct export_operations operations;

	begin();
	add(10, TYPES_DRAM, "loop", NULL);
	add(20, TYPES_DRAM, NULL, NULL); /* at the mark is after it */
	add(30, TYPES_DRAM, "loop", NULL);
	add(50, TYPES_DRAM, "loop", NULL);
	add(60, TYPES_DRAM, NULL, NULL);
	operations = export_operations_find(snapshot, process, &marks);
	assert(operations.count == 6);
	check(&operations, 0, "loop", 1, 1);
	check(&operations, 1, "one", 1, 2);
	check(&operations, 2, "loop", 1, 3);
	check(&operations, 3, "two", 1, 4);
	check(&operations, 4, NULL, 1, 5);
	check(&operations, 5, "loop", 0, 5); /* a mark without a name, and nothing born after it */
	assert(operations.list[3].is_mark && operations.list[3].begin_ns == 540);
	assert(!operations.list[4].is_mark && operations.list[5].is_mark);
	end(&operations);
}

UNIT(clocks_of_two_books_are_not_compared)
{
	struct mark list[] = {
		{.stamp = 1, .time_ns = 600, .name = "b"},
		{.stamp = 1000000, .time_ns = 505, .name = "a"},
	};
	struct mark_list marks = {.list = list, .count = 2};
	struct export_operations operations;

	begin();
	snapshot->processes[process].books = 2;
	add(10, TYPES_DRAM, NULL, NULL);
	operations = export_operations_find(snapshot, process, &marks);
	assert(operations.count == 2);
	check(&operations, 0, "a", 1, 1);
	check(&operations, 1, "b", 0, 1);
	end(&operations);
}

UNIT(other_processes_and_nothing_at_all)
{
	struct snapshot_process other = {.id.pid = 2, .alive = true, .exact = true, .comm = "b"};
	struct export_operations operations;
	struct mark_list none = MARK_LIST_NULL;
	uint32_t index;

	begin();
	add(10, TYPES_DRAM, "x", NULL);
	assert(snapshot_add_process(snapshot, &other, &index) == 0);
	operations = export_operations_find(snapshot, index, &none);
	assert(operations.count == 1 && operations.buffer_count == 0);
	check(&operations, 0, NULL, 0, 0);
	assert(operations.list[0].begin_ns == 1000);
	assert(export_operations_limit(&operations, 1) == 0 && operations.count == 1);
	end(&operations);
}

UNIT(the_largest_buffer_with_a_stack_stands_for_an_operation)
{
	struct export_operations operations;
	struct mark_list none = MARK_LIST_NULL;

	begin();
	add(10, TYPES_DRAM, "x", "a");
	add(30, TYPES_DRAM, "x", NULL);
	add(20, TYPES_DRAM, "x", "b");
	operations = export_operations_find(snapshot, process, &none);
	assert(operations.list[0].largest && operations.list[0].largest->size == 20);
	end(&operations);
}

UNIT(the_oldest_operations_are_merged_until_the_rows_are_few)
{
	struct export_operations operations;
	struct mark_list none = MARK_LIST_NULL;

	begin();
	add(10, TYPES_DRAM, "a", "s");
	add(20, TYPES_DRAM, "b", NULL);
	add(30, TYPES_DRAM, "c", NULL);
	add(40, TYPES_DRAM, "d", NULL);
	operations = export_operations_find(snapshot, process, &none);
	assert(export_operations_limit(&operations, 10) == 0 && operations.count == 4);
	assert(!operations.list[0].merged);
	assert(export_operations_limit(&operations, 9) == 0 && operations.count == 3);
	assert(operations.list[0].merged == 2 && operations.list[0].begin_ns == 510);
	check(&operations, 0, NULL, 2, 2);
	assert(operations.list[0].largest->size == 10);
	check(&operations, 1, "c", 1, 3);
	assert(export_operations_rows(&operations) == 9);
	assert(export_operations_limit(&operations, 3) == -E2BIG);
	assert(export_operations_limit(&operations, 4) == 0 && operations.count == 1);
	check(&operations, 0, NULL, 4, 4);
	end(&operations);
}

UNIT(there_are_never_more_operations_than_the_limit)
{
	struct mark *list = calloc(EXPORT_OPERATIONS_MAX + 5, sizeof(*list));
	struct mark_list marks = {.list = list, .count = EXPORT_OPERATIONS_MAX + 5};
	struct export_operations operations;

	assert(list);
	for (size_t i = 0; i < marks.count; i++)
		list[i] = (struct mark){.stamp = i + 1, .time_ns = i + 1, .name = "m"};
	begin();
	operations = export_operations_find(snapshot, process, &marks);
	assert(export_operations_limit(&operations, 1) == 0);
	assert(operations.count == EXPORT_OPERATIONS_MAX && operations.list[0].merged == 6);
	free(list);
	end(&operations);
}
