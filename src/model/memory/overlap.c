/* SPDX-License-Identifier: Apache-2.0 */

/*
 * All ranges are sorted by device, memory and address. In one pass over them it is enough to know,
 * for each process, how far its ranges before have reached: whatever begins before that overlaps.
 */

#include "model/memory/overlap.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/hash.h"
#include "base/map.h"
#include "model/merge.h"
#include "model/snapshot.h"
#include "model/types.h"

/* TTMEM_FLAG_PREALLOCATED and TTMEM_FLAG_ALIAS: the memory is another buffer's. */
#define OVERLAP_FLAGS_SHARED (0x02u | SNAPSHOT_FLAG_ALIAS)

struct overlap_range {
	uint32_t row, memory;
	uint64_t start, end;
	const struct snapshot_buffer *buffer;
};

/* The range of a process that reaches furthest. */
struct overlap_reach {
	uint64_t end;
	const struct snapshot_buffer *buffer;
};

struct overlap_search {
	struct overlaps *overlaps;
	struct map pairs; /* of processes */
	struct overlap_reach reaches[OVERLAP_PROCESSES_MAX];
	size_t reach_count;
};

void overlap_deinit(struct overlaps *overlaps)
{
	free(overlaps->list);
	*overlaps = OVERLAPS_NULL;
}

bool overlap_has_type(uint32_t type)
{
	return types_has_banks(type) && type != TYPES_SYSTEM_MEMORY;
}

static bool overlap_counts(const struct snapshot_process *process)
{
	return process->alive && process->books > 0;
}

static uint64_t overlap_buffers(const struct snapshot_part *part)
{
	uint64_t buffers = 0;

	for (uint32_t type = 0; type < BOOK_TYPES; type++) {
		if (overlap_has_type(type))
			buffers = merge_add(buffers, part->memory[type].buffers);
	}
	return buffers;
}

bool *overlap_shared_rows(const struct snapshot *snapshot, bool *ret_any)
{
	CLEANUP_FREE uint32_t *last = calloc(snapshot->device_count + 1, sizeof(*last));
	bool *shared = calloc(snapshot->device_count + 1, sizeof(*shared));

	*ret_any = false;
	for (uint32_t i = 0; last && shared && i < snapshot->process_count; i++) {
		const struct snapshot_process *process = &snapshot->processes[i];

		for (size_t k = 0; overlap_counts(process) && k < process->part_count; k++) {
			uint32_t row = process->parts[k].row;

			/* Devices with the same number may be different chips; a sum is of many. */
			if (snapshot->devices[row].by_number || snapshot->devices[row].summed ||
			    overlap_buffers(&process->parts[k]) == 0)
				continue;
			if (last[row] && last[row] != i + 1)
				shared[row] = *ret_any = true;
			last[row] = i + 1; /* so that 0 is nobody */
		}
	}
	if (last)
		return shared;
	free(shared);
	return NULL;
}

uint64_t overlap_count(const struct snapshot *snapshot, uint64_t *ret_signature)
{
	CLEANUP_FREE bool *shared = NULL;
	uint64_t count = 0, signature = 0;
	bool any;

	*ret_signature = 0;
	shared = overlap_shared_rows(snapshot, &any);
	for (size_t i = 0; shared && any && i < snapshot->process_count; i++) {
		const struct snapshot_process *process = &snapshot->processes[i];

		for (size_t k = 0; overlap_counts(process) && k < process->part_count; k++) {
			const struct snapshot_part *part = &process->parts[k];

			if (!shared[part->row])
				continue;
			count = merge_add(count, overlap_buffers(part));
			for (uint32_t type = 0; type < BOOK_TYPES; type++) {
				const uint64_t key[] = {
					signature, process->id.pid, process->id.start_ticks,
					part->memory[type].allocs, part->memory[type].frees};

				signature = overlap_has_type(type) ? hash_bytes(key, sizeof(key))
								   : signature;
			}
		}
	}
	*ret_signature = signature;
	return count;
}

/*
 * The addresses that a buffer certainly takes in every bank. False: none, or it is shared on
 * purpose.
 */
static bool overlap_range(const struct snapshot *snapshot, const struct snapshot_buffer *buffer,
			  uint32_t row, struct overlap_range *ret_range)
{
	uint32_t memory = types_folded(buffer->type);
	uint32_t banks = snapshot->devices[row].memory[memory].window.banks;
	uint64_t length = buffer->size_per_bank, end;

	if (!overlap_has_type(buffer->type) || buffer->flags & OVERLAP_FLAGS_SHARED ||
	    buffer->size == 0)
		return false;
	if (buffer->banks && (!banks || buffer->banks < banks))
		return false; /* the other one's may be in other banks */
	if (!length)
		length = banks ? bits_max(buffer->size / banks, 1) : 1;
	if (__builtin_add_overflow(buffer->address, length, &end))
		end = UINT64_MAX;
	*ret_range = (struct overlap_range){row, memory, buffer->address, end, buffer};
	return true;
}

/* All ranges on shared devices; NULL: no memory. */
static struct overlap_range *overlap_ranges(const struct snapshot *snapshot, const bool *shared,
					    size_t *ret_count)
{
	struct overlap_range *ranges = calloc(snapshot->buffer_count + 1, sizeof(*ranges));
	const struct snapshot_buffer *last = NULL;
	const struct snapshot_part *part = NULL;
	size_t count = 0;

	for (size_t i = 0; ranges && i < snapshot->buffer_count; i++) {
		const struct snapshot_buffer *buffer = &snapshot->buffers[i];

		if (!overlap_counts(&snapshot->processes[buffer->process]))
			continue;
		/* Most buffers follow another one of the same device. */
		if (!last || last->process != buffer->process || last->device != buffer->device)
			part = snapshot_find_part(snapshot, buffer->process, buffer->device);
		last = buffer;
		if (part && shared[part->row] &&
		    overlap_range(snapshot, buffer, part->row, &ranges[count]))
			count++;
	}
	*ret_count = count;
	return ranges;
}

static int overlap_compare(const void *left, const void *right)
{
	const struct overlap_range *a = left, *b = right;

	if (a->row != b->row)
		return bits_compare(a->row, b->row);
	if (a->memory != b->memory)
		return bits_compare(a->memory, b->memory);
	if (a->start != b->start)
		return bits_compare(a->start, b->start);
	return (a->buffer > b->buffer) - (a->buffer < b->buffer);
}

/* Remembers a pair of processes unless it is known. */
static void overlap_add(struct overlap_search *search, const struct overlap_range *range,
			const struct snapshot_buffer *other)
{
	const struct snapshot_buffer *buffer = range->buffer;
	struct overlaps *overlaps = search->overlaps;
	uint64_t low = bits_min(buffer->process, other->process);
	uint64_t high = bits_max(buffer->process, other->process);
	bool is_younger = buffer->born_ns >= other->born_ns;
	uint32_t number;

	if (map_find(&search->pairs, low, high))
		return;
	if (overlaps->count == OVERLAP_PAIRS_MAX ||
	    map_add(&search->pairs, low, high, &number) < 0) {
		overlaps->is_cut = true;
		return;
	}
	overlaps->list[overlaps->count++] = (struct overlap){
		.row = range->row,
		.address = range->start,
		.first = is_younger ? other : buffer,
		.second = is_younger ? buffer : other,
	};
}

/* Compares a range with those before it, and remembers how far it reaches. */
static void overlap_step(struct overlap_search *search, const struct overlap_range *range)
{
	struct overlap_reach *own = NULL;
	size_t kept = 0;

	for (size_t i = 0; i < search->reach_count; i++) {
		const struct overlap_reach *reach = &search->reaches[i];

		if (reach->end <= range->start)
			continue; /* nothing that comes can overlap it */
		search->reaches[kept] = *reach;
		reach = &search->reaches[kept++];
		if (reach->buffer->process == range->buffer->process)
			own = &search->reaches[kept - 1];
		else
			overlap_add(search, range, reach->buffer);
	}
	search->reach_count = kept;
	if (!own && kept == OVERLAP_PROCESSES_MAX) {
		search->overlaps->is_cut = true;
		return;
	}
	if (!own) {
		own = &search->reaches[search->reach_count++];
		*own = (struct overlap_reach){0};
	}
	if (range->end > own->end)
		*own = (struct overlap_reach){range->end, range->buffer};
}

int overlap_find(const struct snapshot *snapshot, struct overlaps *ret_overlaps)
{
	CLEANUP_FREE struct overlap_search *search = calloc(1, sizeof(*search));
	CLEANUP_FREE struct overlap_range *ranges = NULL;
	CLEANUP_FREE bool *shared = NULL;
	struct overlaps overlaps = OVERLAPS_NULL;
	size_t count = 0;
	bool any;

	shared = overlap_shared_rows(snapshot, &any);
	if (search && shared && (!any || snapshot->buffer_count > OVERLAP_BUFFERS_MAX)) {
		overlaps.is_cut = any;
		*ret_overlaps = overlaps;
		return 0;
	}
	if (shared)
		ranges = overlap_ranges(snapshot, shared, &count);
	overlaps.list = calloc(OVERLAP_PAIRS_MAX, sizeof(*overlaps.list));
	if (!search || !shared || !ranges || !overlaps.list) {
		overlap_deinit(&overlaps);
		return -ENOMEM;
	}
	qsort(ranges, count, sizeof(*ranges), overlap_compare);
	search->overlaps = &overlaps;
	for (size_t i = 0; i < count; i++) {
		if (i > 0 && (ranges[i].row != ranges[i - 1].row ||
			      ranges[i].memory != ranges[i - 1].memory))
			search->reach_count = 0;
		overlap_step(search, &ranges[i]);
	}
	map_deinit(&search->pairs);
	*ret_overlaps = overlaps;
	return 0;
}

void overlap_note(struct snapshot *snapshot, uint32_t device, uint32_t first_pid,
		  uint32_t second_pid)
{
	snapshot_note(snapshot,
		      "device %" PRIu32 ": pid %" PRIu32 " and pid %" PRIu32
		      " hold overlapping memory",
		      device, first_pid, second_pid);
}

void overlap_note_rest(struct snapshot *snapshot, size_t pairs, bool is_cut)
{
	if (pairs)
		snapshot_note(snapshot, "%zu more pair%s of processes hold overlapping memory",
			      pairs, pairs == 1 ? "" : "s");
	if (is_cut)
		snapshot_note(snapshot, "too many buffers to compare the addresses of all "
					"processes that share a device");
}

int overlap_note_all(struct snapshot *snapshot)
{
	CLEANUP(overlap_deinit) struct overlaps overlaps = OVERLAPS_NULL;
	int r = overlap_find(snapshot, &overlaps);
	size_t noted = bits_min(overlaps.count, OVERLAP_NOTES_MAX);

	if (r < 0)
		return r;
	for (size_t i = 0; i < noted; i++) {
		const struct overlap *overlap = &overlaps.list[i];

		overlap_note(snapshot, snapshot->devices[overlap->row].device,
			     snapshot->processes[overlap->first->process].id.pid,
			     snapshot->processes[overlap->second->process].id.pid);
	}
	overlap_note_rest(snapshot, overlaps.count - noted, overlaps.is_cut);
	return 0;
}
