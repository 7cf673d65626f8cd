/* SPDX-License-Identifier: Apache-2.0 */

/* How much one user, and all together, can make a reader take from the kernel module. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/testing/unit.h"
#include "book/format/layout.h"
#include "model/snapshot.h"
#include "source/host/kernel.h"
#include "source/proc/proc.h"

/* A fake machine: only the kernel knows these processes. */
static void kernel_make_machine(const char *totals)
{
	static const char *const folders[] = {"driver", "driver/ttmem"};
	char path[256];
	FILE *file;

	assert(setenv("TTMEM_PROC_ROOT", unit_dir(), 1) == 0); /* NOLINT(concurrency-mt-unsafe) */
	for (size_t i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s/%s", unit_dir(), folders[i]);
		assert(mkdir(path, 0755) == 0);
	}
	snprintf(path, sizeof(path), "%s/driver/ttmem/totals", unit_dir());
	file = fopen(path, "we");
	assert(file && fputs(totals, file) >= 0 && fclose(file) == 0);
}

static bool kernel_knows(const void *context, const struct kernel_holder *book)
{
	return false;
}

/* Generates the lines of one user's holders, with so many devices and types of memory each. */
struct kernel_flood {
	uint32_t uid;
	uint32_t pid; /* of the first; the others follow, or have the same */
	bool is_one_process;
	uint32_t holders, devices, types;
};

static void kernel_write_flood(FILE *file, const struct kernel_flood *flood)
{
	for (uint32_t i = 0; i < flood->holders; i++) {
		uint32_t pid = flood->pid + (flood->is_one_process ? 0 : i);

		fprintf(file, "holder %u plain 0 %u %u some\n", i, pid, flood->uid);
		for (uint32_t device = 0; device < flood->devices; device++) {
			for (uint32_t type = 0; type < flood->types; type++)
				fprintf(file, "memory %u %u 1024 1 1 1 0 0\n", device, type);
		}
	}
}

static struct snapshot *kernel_snapshot_of(const struct kernel_flood *floods, size_t count)
{
	struct snapshot *snapshot = snapshot_new(1);
	struct proc proc;
	size_t length;
	char *text;
	FILE *file = open_memstream(&text, &length);

	assert(snapshot && file && fputs("ttmem 1\n", file) >= 0);
	for (size_t i = 0; i < count; i++)
		kernel_write_flood(file, &floods[i]);
	assert(fclose(file) == 0);
	kernel_make_machine(text);
	free(text);
	assert(proc_open(&proc) == 0);
	assert(kernel_collect(&proc, kernel_knows, NULL, snapshot) == 0);
	assert(snapshot_finish(snapshot) == 0);
	proc_close(&proc);
	return snapshot;
}

/* Devices of a process; the model may have summed some up. */
static size_t kernel_devices(const struct snapshot_process *process)
{
	size_t count = process->part_count;

	for (size_t i = 0; i < process->part_count; i++)
		count += process->parts[i].summed ? process->parts[i].summed - 1 : 0;
	return count;
}

/* Notes about lines that were not read; @ret_note: the last of them. */
static size_t kernel_notes(const struct snapshot *snapshot, const char **ret_note)
{
	size_t count = 0;

	for (size_t i = 0; i < snapshot->note_count; i++) {
		if (!strstr(snapshot->notes[i], "more lines"))
			continue;
		*ret_note = snapshot->notes[i];
		count++;
	}
	return count;
}

/* The last process is complete, and has nothing else. */
static void kernel_check_last(const struct snapshot *snapshot, const struct kernel_flood *flood)
{
	const struct snapshot_process *process = &snapshot->processes[snapshot->process_count - 1];
	uint64_t bytes, buffers;

	snapshot_process_totals(process, &bytes, &buffers);
	assert(process->id.pid == flood->pid && process->user_id == flood->uid && process->exact);
	assert(process->part_count == flood->devices);
	assert(bytes == UINT64_C(1024) * flood->devices * flood->types * flood->holders);
}

UNIT_LONG(a_flood_costs_only_its_user, 120)
{
	static const struct kernel_flood floods[] = {
		{.uid = 3000001, .pid = 1000, .holders = 40, .devices = 1024, .types = 1},
		{.uid = 3000002, .pid = 2000, .holders = 1, .devices = 3, .types = 2},
	};
	struct snapshot *snapshot = kernel_snapshot_of(floods, 2);
	uint32_t full = KERNEL_USER_ROWS / 1025, left = 40 * 1025 - KERNEL_USER_ROWS;
	const char *note = NULL;
	char wanted[64];

	kernel_check_last(snapshot, &floods[1]);
	assert(snapshot->process_count == full + 2 && !snapshot->exact);
	/* A process that is shown in part is marked inexact. */
	assert(snapshot->processes[full - 1].exact && !snapshot->processes[full].exact);
	assert(kernel_devices(&snapshot->processes[full]) == KERNEL_USER_ROWS % 1025 - 1);
	snprintf(wanted, sizeof(wanted), "user 3000001: %u more lines", left);
	assert(kernel_notes(snapshot, &note) == 1 && strncmp(note, wanted, strlen(wanted)) == 0);
	assert(strstr(note, "with 8.0 MiB,")); /* 8224 KiB */
	snapshot_free(snapshot);
}

/* What an honest user may need; there is no note. */
UNIT_LONG(many_honest_kernel_rows_are_read, 120)
{
	static const struct kernel_flood flood = {
		.uid = 3000001, .pid = 1000, .holders = 500, .devices = 64, .types = BOOK_TYPES};
	struct snapshot *snapshot = kernel_snapshot_of(&flood, 1);
	const char *note;

	assert(snapshot->process_count == 500 && snapshot->exact);
	assert(kernel_notes(snapshot, &note) == 0);
	for (size_t i = 0; i < 500; i++)
		assert(kernel_devices(&snapshot->processes[i]) == 64);
	snapshot_free(snapshot);
}

/* A process that opens the node many times has few rows, but costs time. */
UNIT_LONG(lines_are_bounded_where_rows_are_few, 120)
{
	static const struct kernel_flood floods[] = {
		{.uid = 3000001,
		 .pid = 1000,
		 .is_one_process = true,
		 .holders = 40,
		 .devices = 1024,
		 .types = BOOK_TYPES},
		{.uid = 3000001, .pid = 2000, .holders = 1, .devices = 1, .types = 1},
		{.uid = 3000002, .pid = 3000, .holders = 1, .devices = 1, .types = 1},
	};
	struct snapshot *snapshot = kernel_snapshot_of(floods, 3);
	uint32_t lines = 40 * (1 + 1024 * BOOK_TYPES) + 2;
	char wanted[64];

	kernel_check_last(snapshot, &floods[2]);
	assert(snapshot->process_count == 2 && kernel_devices(&snapshot->processes[0]) == 1024);
	snprintf(wanted, sizeof(wanted), "user 3000001: %u more lines", lines - KERNEL_USER_LINES);
	assert(snapshot->note_count == 1 && strstr(snapshot->notes[0], wanted));
	snapshot_free(snapshot);
}

/* Several users who exhaust the common budget leave a little for the next. */
UNIT_LONG(all_users_together_are_bounded, 240)
{
	struct kernel_flood floods[4];
	struct snapshot *snapshot;
	const char *note;
	size_t rows = 0;

	for (uint32_t i = 0; i < 3; i++)
		floods[i] = (struct kernel_flood){.uid = 3000001 + i,
						  .pid = 1000 * (i + 1),
						  .holders = 32,
						  .devices = 1024,
						  .types = 1};
	floods[3] = (struct kernel_flood){
		.uid = 3000004, .pid = 9000, .holders = 1, .devices = 63, .types = 1};
	snapshot = kernel_snapshot_of(floods, 4);
	kernel_check_last(snapshot, &floods[3]);
	for (size_t i = 0; i < snapshot->process_count; i++)
		rows += 1 + kernel_devices(&snapshot->processes[i]);
	assert(rows == KERNEL_ROWS_MAX + 2 * KERNEL_USER_ROWS_KEPT);
	assert(kernel_notes(snapshot, &note) == 3);
	snapshot_free(snapshot);
}

/*
 * With more users than are counted separately, none is dropped for that alone, and notes stay few.
 */
UNIT_LONG(rows_of_many_users_are_kept, 120)
{
	size_t count = KERNEL_USERS_MAX + 10;
	struct kernel_flood *floods = calloc(count, sizeof(*floods));
	struct snapshot *snapshot;

	assert(floods);
	for (uint32_t i = 0; i < count; i++)
		floods[i] = (struct kernel_flood){.uid = 3000001 + i,
						  .pid = 1000 + i,
						  .holders = 1,
						  .devices = 1,
						  .types = 1};
	snapshot = kernel_snapshot_of(floods, count);
	kernel_check_last(snapshot, &floods[count - 1]);
	assert(snapshot->process_count == count && snapshot->note_count == 0);
	snapshot_free(snapshot);
	free(floods);
}
