/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A monitoring system keeps every process and device as a time series forever. So only the largest
 * processes have rows of their own; the others are added up by device and type, and the sum over
 * all rows stays right.
 */

#include "web/export/metrics-process.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/bits.h"
#include "base/quota.h"
#include "model/merge.h"
#include "model/snapshot.h"
#include "model/types.h"
#include "web/export/exposition.h"
#include "web/export/metrics-headroom.h"
#include "web/export/metrics.h"

struct metrics_process {
	uint32_t index;
	uint64_t bytes;
	uint64_t read; /* buffers, for its headroom */
};

struct metrics_other {
	uint64_t used[BOOK_TYPES];
	uint64_t buffers[BOOK_TYPES];
};

struct metrics_processes {
	const struct snapshot *snapshot;
	struct metrics_process *list; /* live ones, largest first */
	size_t count, shown;
	struct metrics_other *others; /* one for each device of the snapshot */
};

static int metrics_process_compare(const void *left, const void *right)
{
	const struct metrics_process *a = left, *b = right;

	if (a->bytes != b->bytes)
		return bits_compare(b->bytes, a->bytes);
	return bits_compare(a->index, b->index);
}

static void metrics_process_list(struct metrics_processes *all)
{
	for (uint32_t i = 0; i < all->snapshot->process_count; i++) {
		const struct snapshot_process *process = &all->snapshot->processes[i];
		struct metrics_process entry = {.index = i};

		if (!process->alive || process->untracked)
			continue;
		for (size_t k = 0; k < process->part_count; k++) {
			for (uint32_t type = 0; type < BOOK_TYPES; type++)
				entry.bytes =
					merge_add(entry.bytes, process->parts[k].memory[type].used);
		}
		all->list[all->count++] = entry;
	}
	qsort(all->list, all->count, sizeof(*all->list), metrics_process_compare);
}

/*
 * Two processes with the same pid (the exit of the first was not seen yet) would give two samples
 * with the same labels.
 */
static bool metrics_process_is_second(const struct metrics_processes *all, size_t at)
{
	const struct snapshot_process *processes = all->snapshot->processes;

	for (size_t i = 0; i < all->shown; i++) {
		if (processes[all->list[i].index].id.pid == processes[all->list[at].index].id.pid)
			return true;
	}
	return false;
}

static void metrics_process_add_other(struct metrics_processes *all,
				      const struct snapshot_part *part)
{
	struct metrics_other *other = &all->others[part->row];

	for (uint32_t type = 0; type < BOOK_TYPES; type++) {
		other->used[type] = merge_add(other->used[type], part->memory[type].used);
		other->buffers[type] = merge_add(other->buffers[type], part->memory[type].buffers);
	}
}

/* Adds up the processes that get no rows of their own. */
static void metrics_process_divide(struct metrics_processes *all, uint32_t wanted)
{
	for (size_t i = 0; i < all->count; i++) {
		const struct snapshot_process *process =
			&all->snapshot->processes[all->list[i].index];
		size_t own = 0;

		if (all->shown < wanted && !metrics_process_is_second(all, i)) {
			own = bits_min(process->part_count, METRICS_PROCESS_ROWS_MAX);
			all->list[all->shown++] = all->list[i];
		}
		for (size_t k = own; k < process->part_count; k++)
			metrics_process_add_other(all, &process->parts[k]);
	}
}

static void metrics_process_device(struct exposition *to, uint32_t device, uint64_t unique_id)
{
	char uid[24] = "";

	if (unique_id)
		snprintf(uid, sizeof(uid), "0x%" PRIx64, unique_id);
	exposition_label_u64(to, "device", device);
	exposition_label(to, "uid", uid);
}

static void metrics_process_labels(struct exposition *to, const struct snapshot *snapshot,
				   const struct snapshot_process *process,
				   const struct snapshot_part *part)
{
	exposition_begin(to);
	exposition_label_u64(to, "pid", process->id.pid);
	exposition_label(to, "comm", process->comm);
	exposition_label(to, "user", process->user);
	metrics_process_device(to, snapshot->devices[part->row].device, part->facts.unique_id);
}

static void metrics_process_row(struct exposition *to, const struct snapshot *snapshot,
				const struct snapshot_process *process,
				const struct snapshot_part *part, bool buffers)
{
	for (uint32_t type = 0; type < BOOK_TYPES; type++) {
		const struct snapshot_memory *memory = &part->memory[type];

		if (!memory->allocs && !memory->used)
			continue; /* most processes use two or three types */
		metrics_process_labels(to, snapshot, process, part);
		exposition_label(to, "type", types_name(type));
		exposition_u64(to, buffers ? memory->buffers : memory->used);
	}
}

static void metrics_process_rows(struct exposition *to, const struct metrics_processes *all,
				 bool buffers)
{
	const struct snapshot *snapshot = all->snapshot;

	for (size_t i = 0; i < all->shown; i++) {
		const struct snapshot_process *process = &snapshot->processes[all->list[i].index];
		size_t rows = bits_min(process->part_count, METRICS_PROCESS_ROWS_MAX);

		for (size_t k = 0; k < rows; k++)
			metrics_process_row(to, snapshot, process, &process->parts[k], buffers);
	}
	for (size_t i = 0; i < snapshot->device_count; i++) {
		for (uint32_t type = 0; type < BOOK_TYPES; type++) {
			const struct metrics_other *other = &all->others[i];

			if (!other->used[type] && !other->buffers[type])
				continue;
			exposition_begin(to);
			exposition_label(to, "pid", "other");
			exposition_label(to, "comm", "other");
			exposition_label(to, "user", "");
			metrics_process_device(to, snapshot->devices[i].device,
					       snapshot->devices[i].unique_id);
			exposition_label(to, "type", types_name(type));
			exposition_u64(to, buffers ? other->buffers[type] : other->used[type]);
		}
	}
}

/* What may still be read for a process: its user leaves something to all others. */
static uint64_t metrics_process_room(const struct metrics_processes *all, size_t at)
{
	const struct snapshot_process *processes = all->snapshot->processes;
	uint64_t used = 0, own = 0;

	for (size_t i = 0; i < at; i++) {
		used += all->list[i].read;
		if (processes[all->list[i].index].user_id == processes[all->list[at].index].user_id)
			own += all->list[i].read;
	}
	return quota_rest(METRICS_HEADROOM_BUFFERS_MAX, used, own);
}

/* Return: false if it should have a headroom, and too much would have to be read. */
static bool metrics_process_headroom(struct exposition *to, struct metrics_processes *all,
				     size_t at, const struct web_provider *provider)
{
	const struct snapshot_process *process = &all->snapshot->processes[all->list[at].index];
	size_t count = bits_min(process->part_count, METRICS_PROCESS_ROWS_MAX);
	uint64_t cost = metrics_headroom_cost(process), bytes;
	struct snapshot *rows;

	if (cost == 0)
		return true;
	rows = cost <= metrics_process_room(all, at) ? metrics_headroom_read(provider, process)
						     : NULL;
	if (!rows)
		return false;
	all->list[at].read = cost;
	for (size_t i = 0; i < count; i++) {
		const struct snapshot_part *part = &process->parts[i];

		if (!metrics_headroom_of(rows, process, part->device, &bytes))
			continue;
		metrics_process_labels(to, all->snapshot, process, part);
		exposition_u64(to, bytes);
	}
	snapshot_free(rows);
	return true;
}

static void metrics_process_headrooms(struct exposition *to, struct metrics_processes *all,
				      const struct web_provider *provider)
{
	uint64_t left_out = 0;

	exposition_family(to, "ttmem_l1_headroom_bytes", EXPOSITION_GAUGE, "bytes",
			  "On each core, from the farthest circular buffer to the lowest buffer of "
			  "L1, where it is known.");
	for (size_t i = 0; i < all->shown; i++)
		left_out += !metrics_process_headroom(to, all, i, provider);
	exposition_one(to, "ttmem_l1_headroom_left_out", EXPOSITION_GAUGE, left_out,
		       "Of the largest processes, those with circular buffers whose headroom is "
		       "not looked for: they have too many buffers.");
}

void metrics_process_write(struct exposition *to, const struct metrics_input *input)
{
	const struct snapshot *snapshot = input->snapshot;
	struct metrics_processes all = {
		.snapshot = snapshot,
		.list = calloc(snapshot->process_count + 1, sizeof(*all.list)),
		.others = calloc(snapshot->device_count + 1, sizeof(*all.others)),
	};

	if (all.list && all.others) {
		metrics_process_list(&all);
		metrics_process_divide(&all,
				       (uint32_t)bits_min(input->processes, METRICS_PROCESSES_MAX));
		exposition_family(to, "ttmem_process_bytes", EXPOSITION_GAUGE, "bytes",
				  "Memory in use, of the largest processes and of all others.");
		metrics_process_rows(to, &all, false);
		exposition_family(to, "ttmem_process_buffers", EXPOSITION_GAUGE, NULL,
				  "Live buffers, of the largest processes and of all others.");
		metrics_process_rows(to, &all, true);
		if (input->provider)
			metrics_process_headrooms(to, &all, input->provider);
	}
	free(all.list);
	free(all.others);
}
