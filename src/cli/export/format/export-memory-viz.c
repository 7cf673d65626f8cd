/* SPDX-License-Identifier: Apache-2.0 */

/*
 * For PyTorch's memory_viz: a pickle of segments, which are the buffers of the moment, and of device_traces,
 * the events up to it. Its devices have one range of addresses each; ours have one for each type of memory
 * and each space, so each of these, a lane, has a range of its own in a segment of its own. An address
 * counts in every bank, so it is multiplied by the banks: a lane is as long as its memory is large.
 */

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/map.h"
#include "book/format/layout.h"
#include "cli/common/must.h"
#include "cli/export/format/export-form.h"
#include "cli/export/format/export-pickle.h"
#include "cli/export/visualizer/export-viz.h"
#include "model/memory/free-blocks.h"
#include "model/snapshot.h"
#include "model/types.h"

/* Its numbers are doubles, exact up to 2^53. */
#define VIZ_LANE_SIZE (UINT64_C(1) << 42)
#define VIZ_LANES_MAX 2048u /* on a device */
#define NS_PER_US 1000u

/* The same for words that are rare. */
static void viz_put_number(const struct viz *viz, const char *word, uint64_t value)
{
	export_pickle_text(viz->out, word);
	export_pickle_number(viz->out, value);
	export_pickle_set(viz->out);
}

static void *viz_begin(struct export_target *target)
{
	struct viz *viz = must_alloc(1, sizeof(*viz));
	viz->target = target;
	viz->out = target->out;
	export_pickle_begin(viz->out);
	export_pickle_dict(viz->out);
	viz_remember_words(viz);
	return viz;
}

/* The number of a device; a new one gets a list for its events. */
static uint32_t viz_find_device(struct viz *viz, uint32_t pid, uint32_t device)
{
	uint32_t before = viz->device_index.count;
	uint32_t number = must_number(&viz->device_index, pid, device);

	if (number <= before)
		return number;
	must_grow(viz->devices, &viz->device_capacity, number);
	viz->devices[before] = (struct viz_device){.pid = pid, .device = device};
	viz->has_processes = viz->has_processes || viz->devices[0].pid != pid;
	viz_word(viz, VIZ_TRACES);
	export_pickle_list(viz->out);
	export_pickle_remember(viz->out, number << VIZ_MEMO_SHIFT | VIZ_MEMO_TRACE);
	export_pickle_set(viz->out);
	return number;
}

/* What a process declared about its device; NULL = nothing. */
static const struct snapshot_part *viz_part(const struct viz *viz, uint32_t pid, uint32_t device)
{
	const struct snapshot *snapshot = viz->target->snapshot;
	const struct snapshot_part *part = NULL;

	for (size_t i = 0; !part && i < snapshot->process_count; i++) {
		if (snapshot->processes[i].id.pid == pid)
			part = snapshot_find_part(snapshot, (uint32_t)i, device);
	}
	return part;
}

/* The memory itself, if it is known, with what is free in it. A process may declare anything. */
static void viz_take_window(struct viz_lane *lane, const struct snapshot_window *window)
{
	uint64_t end;

	if (!window->size || lane->space != 0 ||
	    __builtin_add_overflow(window->base, window->size, &end) ||
	    __builtin_mul_overflow(end, lane->banks, &end) || end > VIZ_LANE_SIZE)
		return;
	lane->low = window->base * lane->banks;
	lane->high = end;
	lane->capacity = window->size * lane->banks;
}

static void viz_init_lane(struct viz *viz, struct viz_lane *lane)
{
	struct viz_device *device = &viz->devices[lane->device - 1];
	const struct snapshot_part *part = viz_part(viz, device->pid, device->device);
	const struct snapshot_window *window = part ? &part->facts.windows[lane->type] : NULL;

	lane->offset = (device->lanes++ % VIZ_LANES_MAX) * VIZ_LANE_SIZE;
	lane->banks = window && window->banks ? window->banks : 1;
	lane->low = UINT64_MAX;
	if (window)
		viz_take_window(lane, window);
}

static struct viz_lane *viz_find_lane(struct viz *viz, const struct viz_lane *key)
{
	uint32_t before = viz->lane_index.count;
	uint32_t number =
		must_number(&viz->lane_index, key->device, (uint64_t)key->space << 32 | key->type);

	if (number > before) {
		must_grow(viz->lanes, &viz->lane_capacity, number);
		viz->lanes[before] = *key;
		viz_init_lane(viz, &viz->lanes[before]);
	}
	return &viz->lanes[number - 1];
}

/* A place in a lane, within its own range whatever the process says. */
static uint64_t viz_place(const struct viz_lane *lane, uint64_t address)
{
	return address * lane->banks % VIZ_LANE_SIZE;
}

static uint64_t viz_reach(struct viz_lane *lane, uint64_t address, uint64_t size)
{
	uint64_t place = viz_place(lane, address);

	lane->low = bits_min(lane->low, place);
	size = bits_min(bits_max(size, 1), VIZ_LANE_SIZE - place);
	lane->high = bits_max(lane->high, place + size);
	return lane->offset + place;
}

static void viz_put_event(struct viz *viz, const struct export_event *event, const char *action,
			  const struct viz_lane *lane, uint32_t node)
{
	bool is_failure = event->op == BOOK_OP_FAILED;

	viz_word(viz, VIZ_TRACES);
	export_pickle_recall(viz->out, lane->device << VIZ_MEMO_SHIFT | VIZ_MEMO_TRACE);
	export_pickle_dict(viz->out);
	viz_set_text(viz, VIZ_ACTION, action);
	viz_set_number(viz, VIZ_ADDR,
		       is_failure ? 0 : lane->offset + viz_place(lane, event->address));
	viz_set_number(viz, VIZ_SIZE, is_failure ? event->size : event->bytes);
	viz_set_number(viz, VIZ_STREAM, event->type);
	viz_set_number(viz, VIZ_TIME, event->time_ns / NS_PER_US);
	if (is_failure)
		viz_put_number(viz, "device_free",
			       lane->capacity > event->used ? lane->capacity - event->used : 0);
	viz_word(viz, VIZ_FRAMES);
	viz_put_frames(viz, node);
	export_pickle_set(viz->out);
	export_pickle_append(viz->out);
	export_pickle_set(viz->out);
}

static void viz_event(void *state, const struct export_event *event)
{
	struct viz *viz = state;
	bool is_free = event->op == BOOK_OP_FREE, is_failure = event->op == BOOK_OP_FAILED;
	struct viz_lane key = {.type = event->type, .space = event->space}, *lane;
	uint32_t node;

	if (event->kind != EXPORT_CALL ||
	    (!is_failure && !(event->bytes && (is_free || event->op == BOOK_OP_ALLOC))))
		return;
	key.device = viz_find_device(viz, viz->target->owners[event->process].pid, event->device);
	lane = viz_find_lane(viz, &key);
	node = viz_find_frames(viz, event->type, event->name, event->stack);
	if (!is_failure)
		viz_reach(lane, event->address, event->bytes);
	if (is_free)
		viz_put_event(viz, event, "free_requested", lane, node);
	viz_put_event(viz, event,
		      is_free      ? "free_completed"
		      : is_failure ? "oom"
				   : "alloc",
		      lane, node);
}

/* A buffer of the moment, in its lane. */
struct viz_block {
	uint32_t lane; /* its number */
	uint32_t node; /* its frames */
	uint64_t place;
	uint64_t size; /* what it takes in all banks */
	uint64_t bytes;
};

static int viz_compare(const void *a, const void *b)
{
	const struct viz_block *x = a, *y = b;

	if (x->lane != y->lane)
		return bits_compare(x->lane, y->lane);
	return bits_compare(x->place, y->place);
}

static struct viz_block viz_find_block(struct viz *viz, const struct snapshot_buffer *buffer)
{
	const struct snapshot *snapshot = viz->target->snapshot;
	const struct snapshot_part *part =
		snapshot_find_part(snapshot, buffer->process, buffer->device);
	struct viz_lane key = {.type = buffer->type, .space = buffer->space}, *lane;
	struct viz_block block = {.bytes = snapshot_buffer_bytes(buffer)};
	uint64_t share = part ? free_blocks_share(snapshot, part, buffer) : 0;

	key.device =
		viz_find_device(viz, snapshot->processes[buffer->process].id.pid, buffer->device);
	lane = viz_find_lane(viz, &key);
	block.node = viz_find_frames(viz, buffer->type, buffer->name, buffer->stack);
	block.lane = (uint32_t)(lane - viz->lanes) + 1;
	block.size = share ? share * lane->banks : block.bytes;
	block.size = bits_min(bits_max(block.size, 1), VIZ_LANE_SIZE);
	block.place = viz_reach(lane, buffer->address, block.size);
	return block;
}

/* @block: NULL = free memory. */
static void viz_put_block(struct viz *viz, uint64_t place, uint64_t size,
			  const struct viz_block *block)
{
	export_pickle_dict(viz->out);
	viz_set_number(viz, VIZ_ADDRESS, place);
	viz_set_number(viz, VIZ_SIZE, size);
	viz_set_number(viz, VIZ_REQUESTED, block ? block->bytes : 0);
	viz_set_text(viz, VIZ_STATE, block ? "active_allocated" : "inactive");
	viz_word(viz, VIZ_FRAMES);
	if (block)
		viz_put_frames(viz, block->node);
	else
		export_pickle_list(viz->out);
	export_pickle_set(viz->out);
	export_pickle_append(viz->out);
}

/*
 * Blocks have no addresses of their own: each begins where the one before ends. So free memory is blocks
 * too, and one that reaches into the next is cut there.
 */
static void viz_put_blocks(struct viz *viz, const struct viz_lane *lane,
			   const struct viz_block *blocks, size_t count)
{
	uint64_t at = lane->offset + lane->low, end = lane->offset + lane->high;

	for (size_t i = 0; i < count; i++) {
		const struct viz_block *block = &blocks[i];
		uint64_t next = i + 1 < count ? block[1].place : end;

		if (block->place > at)
			viz_put_block(viz, at, block->place - at, NULL);
		at = bits_min(block->place + block->size, next);
		viz_put_block(viz, block->place, at - block->place, block);
	}
	if (at < end)
		viz_put_block(viz, at, end - at, NULL);
}

/* The number by which memory_viz calls a device: its own, if there is only one process. */
static uint64_t viz_number(const struct viz *viz, uint32_t device)
{
	return viz->has_processes ? device - 1 : viz->devices[device - 1].device;
}

static void viz_put_segment(struct viz *viz, const struct viz_lane *lane,
			    const struct viz_block *blocks, size_t count)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < count; i++)
		bytes += blocks[i].bytes;
	export_pickle_dict(viz->out);
	viz_put_number(viz, "device", viz_number(viz, lane->device));
	viz_set_number(viz, VIZ_ADDRESS, lane->offset + lane->low);
	viz_put_number(viz, "total_size", lane->high - lane->low);
	viz_set_number(viz, VIZ_STREAM, lane->type);
	viz_put_number(viz, "allocated_size", bytes);
	viz_put_number(viz, "active_size", bytes);
	viz_set_number(viz, VIZ_REQUESTED, bytes);
	export_pickle_text(viz->out, "segment_type");
	export_pickle_text(viz->out, types_name(lane->type));
	export_pickle_set(viz->out);
	viz_word(viz, VIZ_FRAMES);
	export_pickle_list(viz->out);
	export_pickle_set(viz->out);
	export_pickle_text(viz->out, "blocks");
	export_pickle_list(viz->out);
	viz_put_blocks(viz, lane, blocks, count);
	export_pickle_set(viz->out);
	export_pickle_append(viz->out);
}

/* @blocks: sorted. A lane without a block is there for the events in it. */
static void viz_put_segments(struct viz *viz, const struct viz_block *blocks, size_t count)
{
	size_t at = 0;

	export_pickle_text(viz->out, "segments");
	export_pickle_list(viz->out);
	for (uint32_t lane = 1; lane <= viz->lane_index.count; lane++) {
		size_t first = at;

		while (at < count && blocks[at].lane == lane)
			at++;
		if (viz->lanes[lane - 1].low < viz->lanes[lane - 1].high)
			viz_put_segment(viz, &viz->lanes[lane - 1], blocks + first, at - first);
	}
	export_pickle_set(viz->out);
}

/* A list of lists, in the order of their numbers. */
static void viz_put_traces(struct viz *viz)
{
	uint64_t numbers = 0;

	for (uint32_t i = 1; i <= viz->device_index.count; i++)
		numbers = bits_max(numbers, viz_number(viz, i) + 1);
	viz_word(viz, VIZ_TRACES);
	export_pickle_list(viz->out);
	for (uint64_t number = 0; number < numbers; number++) {
		uint32_t device = 1;

		while (device <= viz->device_index.count && viz_number(viz, device) != number)
			device++;
		if (device <= viz->device_index.count)
			export_pickle_recall(viz->out, device << VIZ_MEMO_SHIFT | VIZ_MEMO_TRACE);
		else
			export_pickle_list(viz->out);
		export_pickle_append(viz->out);
	}
	export_pickle_set(viz->out);
}

static void viz_finish(void *state)
{
	struct viz *viz = state;
	const struct snapshot *snapshot = viz->target->snapshot;
	CLEANUP_FREE struct viz_block *blocks =
		must_alloc(snapshot->buffer_count + 1, sizeof(*blocks));
	size_t count = 0;

	for (size_t i = 0; i < snapshot->buffer_count; i++) {
		if (snapshot_buffer_bytes(&snapshot->buffers[i]) > 0)
			blocks[count++] = viz_find_block(viz, &snapshot->buffers[i]);
	}
	qsort(blocks, count, sizeof(*blocks), viz_compare);
	viz_put_segments(viz, blocks, count);
	viz_put_traces(viz);
	export_pickle_end(viz->out);
}

static void viz_free(void *state)
{
	struct viz *viz = state;

	export_stacks_deinit(&viz->stacks);
	map_deinit(&viz->device_index);
	map_deinit(&viz->lane_index);
	free(viz->devices);
	free(viz->lanes);
	free(viz->is_known);
	free(viz);
}

const struct export_form export_memory_viz = {
	.name = "memory_viz",
	.is_binary = true,
	.begin = viz_begin,
	.event = viz_event,
	.finish = viz_finish,
	.free = viz_free,
};
