/* SPDX-License-Identifier: Apache-2.0 */

/* The memories at the peak: blocks and holes. */

#include <stdlib.h>

#include "answers/document.h"
#include "base/bits.h"
#include "base/cleanup.h"
#include "cli/common/must.h"
#include "cli/report/report.h"
#include "model/memory/memory-map.h"
#include "model/snapshot.h"
#include "model/types.h"

static int report_compare_lengths(const void *left, const void *right)
{
	const uint64_t *a = left, *b = right;

	return (*b > *a) - (*b < *a);
}

/* The length that the largest @max of them have at least; 0 if they are no more. */
static uint64_t report_maps_least(uint64_t *lengths, size_t count, size_t max)
{
	if (count <= max)
		return 0;
	qsort(lengths, count, sizeof(*lengths), report_compare_lengths);
	return lengths[max - 1];
}

struct report_block {
	const struct free_blocks_block *block;
	const struct snapshot_buffer *buffer;
	uint32_t type;
	struct report_index stack;
};

#define ROW struct report_block
#define BLOCK(...) FIELD_VIA(block, struct free_blocks_block, __VA_ARGS__)
#define BUFFER(...) FIELD_VIA(buffer, struct snapshot_buffer, __VA_ARGS__)

static const struct field report_block[] = {
	BLOCK("address", HEX, address),
	BLOCK("length", BYTES, length),
	BUFFER("size", BYTES, size),
	FIELD("type", NAME, type, .names = types_name),
	BUFFER("name", TEXT, name),
	BUFFER("phase", TEXT, phase),
	BUFFER("born_ns", TIME, born_ns),
	REPORT_STACK,
	FIELD_END,
};

#undef ROW
#define ROW struct space

static const struct field report_map[] = {
	FIELD_CODED("", memory_map_put_space, .fields = memory_map_space_fields),
	FIELD("hole_count", NUMBER, free_blocks.hole_count),
	FIELD_LISTED("holes", memory_map_hole_fields),
	FIELD_LISTED("buffers", report_block),
	FIELD_END,
};

static void report_put_block(struct report *report, const struct free_blocks_block *block)
{
	const struct snapshot_buffer *buffer = block->buffer;
	const struct report_block row = {block, buffer, buffer->type,
					 report_stacks_index(&report->stacks, buffer->stack)};

	fields_put_row(&report->json, report_block, &row);
}

static void report_put_blocks(struct report *report, const struct free_blocks *blocks, size_t max)
{
	CLEANUP_FREE uint64_t *lengths = must_alloc(blocks->block_count + 1, sizeof(*lengths));
	size_t put = 0;
	uint64_t least;
	for (size_t i = 0; i < blocks->block_count; i++)
		lengths[i] = blocks->blocks[i].length;
	least = report_maps_least(lengths, blocks->block_count, max);
	for (size_t i = 0; i < blocks->block_count && put < max; i++) {
		if (blocks->blocks[i].length < least)
			continue;
		report_put_block(report, &blocks->blocks[i]);
		put++;
	}
}

static void report_put_holes(struct report *report, const struct free_blocks *blocks, size_t max)
{
	CLEANUP_FREE uint64_t *lengths = must_alloc(blocks->hole_count + 1, sizeof(*lengths));
	size_t put = 0;
	uint64_t least;
	for (size_t i = 0; i < blocks->hole_count; i++)
		lengths[i] = blocks->holes[i].length;
	least = report_maps_least(lengths, blocks->hole_count, max);
	for (size_t i = 0; i < blocks->hole_count && put < max; i++) {
		if (blocks->holes[i].length < least)
			continue;
		fields_put_row(&report->json, memory_map_hole_fields, &blocks->holes[i]);
		put++;
	}
}

static void report_put_map(struct report *report, const struct space *space, size_t max)
{
	struct fields_part part = {.next = report_map};

	fields_put_part(&report->json, &part, space, "holes");
	report_put_holes(report, &space->free_blocks, max);
	fields_put_part(&report->json, &part, space, "buffers");
	report_put_blocks(report, &space->free_blocks, max);
	fields_put_part(&report->json, &part, space, NULL);
}

static int report_compare_maps(const void *left, const void *right)
{
	const struct space *a = left, *b = right;
	uint64_t x = a->free_blocks.used * a->free_blocks.banks;
	uint64_t y = b->free_blocks.used * b->free_blocks.banks;

	return bits_compare(y, x);
}

int report_put_maps(struct report *report)
{
	CLEANUP(memory_map_deinit) struct memory_map map = MEMORY_MAP_NULL;
	const struct filter filter = {0};
	size_t shown;
	int r = report->peak ? memory_map_find(report->peak, &filter, &map) : 0;

	if (r < 0)
		return r;
	if (map.count > 0)
		qsort(map.list, map.count, sizeof(*map.list), report_compare_maps);
	shown = bits_min(map.count, REPORT_MAPS_MAX);
	emit_u64(&report->json, "map_count", map.count);
	emit_open_array(&report->json, "maps");
	for (size_t i = 0; i < shown; i++)
		report_put_map(report, &map.list[i], REPORT_BLOCKS_MAX / shown);
	emit_close_array(&report->json);
	return 0;
}
