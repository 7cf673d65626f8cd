/* SPDX-License-Identifier: Apache-2.0 */

/* The memories at the peak: blocks and holes. */

#include <stdlib.h>

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

static void report_put_block(struct report *report, const struct free_blocks_block *block)
{
	struct emit *json = &report->json;

	emit_open_object(json, NULL);
	emit_hex(json, "address", block->address);
	emit_u64(json, "length", block->length);
	emit_u64(json, "size", block->buffer->size);
	emit_string(json, "type", types_name(block->buffer->type));
	emit_string(json, "name", block->buffer->name);
	emit_string(json, "phase", block->buffer->phase);
	emit_u64(json, "born_ns", block->buffer->born_ns);
	report_stacks_put(&report->stacks, json, block->buffer->stack);
	emit_close_object(json);
}

static void report_put_blocks(struct report *report, const struct free_blocks *blocks, size_t max)
{
	CLEANUP_FREE uint64_t *lengths = must_alloc(blocks->block_count + 1, sizeof(*lengths));
	size_t put = 0;
	uint64_t least;
	for (size_t i = 0; i < blocks->block_count; i++)
		lengths[i] = blocks->blocks[i].length;
	least = report_maps_least(lengths, blocks->block_count, max);
	emit_open_array(&report->json, "buffers");
	for (size_t i = 0; i < blocks->block_count && put < max; i++) {
		if (blocks->blocks[i].length < least)
			continue;
		report_put_block(report, &blocks->blocks[i]);
		put++;
	}
	emit_close_array(&report->json);
}

static void report_put_holes(struct report *report, const struct free_blocks *blocks, size_t max)
{
	CLEANUP_FREE uint64_t *lengths = must_alloc(blocks->hole_count + 1, sizeof(*lengths));
	size_t put = 0;
	uint64_t least;
	for (size_t i = 0; i < blocks->hole_count; i++)
		lengths[i] = blocks->holes[i].length;
	least = report_maps_least(lengths, blocks->hole_count, max);
	emit_u64(&report->json, "hole_count", blocks->hole_count);
	emit_open_array(&report->json, "holes");
	for (size_t i = 0; i < blocks->hole_count && put < max; i++) {
		if (blocks->holes[i].length < least)
			continue;
		emit_open_object(&report->json, NULL);
		emit_hex(&report->json, "address", blocks->holes[i].address);
		emit_u64(&report->json, "size", blocks->holes[i].length);
		emit_close_object(&report->json);
		put++;
	}
	emit_close_array(&report->json);
}

static void report_put_map(struct report *report, const struct space *space, size_t max)
{
	emit_open_object(&report->json, NULL);
	memory_map_document_space(&report->json, space);
	report_put_holes(report, &space->free_blocks, max);
	report_put_blocks(report, &space->free_blocks, max);
	emit_close_object(&report->json);
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
