/* SPDX-License-Identifier: Apache-2.0 */

/* ttmem map: each memory as a line of used and free blocks. */

#include <inttypes.h>

#include "answers/answers.h"
#include "base/bits.h"
#include "base/cleanup.h"
#include "base/emit.h"
#include "base/text.h"
#include "cli/common/asked-for.h"
#include "cli/common/command.h"
#include "cli/common/options.h"
#include "cli/common/output.h"
#include "cli/common/session-maps.h"
#include "cli/common/session.h"
#include "model/query.h"
#include "model/snapshot.h"
#include "model/types.h"

#define MAP_WIDTH_MAX 160u

/* The used fraction of each of @width equal pieces of the memory. */
static void map_measure(const struct free_blocks *free_blocks, unsigned int width, double *ret_used)
{
	double piece = (double)free_blocks->size / width;
	uint64_t reached = free_blocks->base;

	for (unsigned int i = 0; i < width; i++)
		ret_used[i] = 0;
	for (size_t i = 0; i < free_blocks->block_count; i++) {
		const struct free_blocks_block *block = &free_blocks->blocks[i];
		uint64_t from = bits_max(block->address, reached);
		uint64_t to = block->address + block->length;
		double begin = (double)(from - free_blocks->base) / piece;
		double end = (double)(to > from ? to - free_blocks->base : 0) / piece;

		reached = bits_max(reached, to);
		for (unsigned int k = (unsigned int)begin; k < width && k < end; k++) {
			double left = begin > k ? begin : k, right = end < k + 1 ? end : k + 1;

			ret_used[k] += right - left;
		}
	}
}

static void map_print_line(const struct free_blocks *free_blocks)
{
	static const char *const letters[2][3] = {{".", "+", "#"}, {"\u2591", "\u2592", "\u2588"}};
	unsigned int width = (unsigned int)bits_min(bits_max(output_columns(), 80), MAP_WIDTH_MAX);
	const char *const *letter = letters[output_is_utf8()];
	double used[MAP_WIDTH_MAX];

	width -= 4;
	map_measure(free_blocks, width, used);
	fputs("  ", stdout);
	for (unsigned int i = 0; i < width; i++)
		fputs(letter[used[i] <= 0.001 ? 0 : used[i] < 0.999 ? 1 : 2], stdout);
	putchar('\n');
}

static void map_print(const struct space *space)
{
	const struct free_blocks *free_blocks = &space->free_blocks;
	char a[TEXT_NUMBER_SIZE], b[TEXT_NUMBER_SIZE], c[TEXT_NUMBER_SIZE], d[TEXT_NUMBER_SIZE];
	uint64_t headroom;

	session_spaces_print_title(space);
	printf(": %" PRIu32 " bank%s of %s\n", free_blocks->banks,
	       free_blocks->banks == 1 ? "" : "s", text_size(free_blocks->size, a));
	map_print_line(free_blocks);
	printf("  0x%" PRIx64 " to 0x%" PRIx64 "; in each bank %zu block%s, %s (%.1f %%)\n",
	       free_blocks->base, free_blocks->base + free_blocks->size - 1,
	       free_blocks->block_count, free_blocks->block_count == 1 ? "" : "s",
	       text_size(free_blocks->used, a),
	       (double)free_blocks->used * 100 / (double)free_blocks->size);
	session_spaces_print_occupied(space);
	printf("  free: %s in %zu free block%s, largest %s (%s over all banks), fragmentation %.1f "
	       "%%\n",
	       text_size(free_blocks->free, b), free_blocks->hole_count,
	       free_blocks->hole_count == 1 ? "" : "s", text_size(free_blocks->largest, c),
	       text_size(free_blocks->largest * free_blocks->banks, d),
	       free_blocks_fragmentation(free_blocks) * 100);
	session_spaces_print_others(space);
	if (space->type == TYPES_L1 && free_blocks_headroom(free_blocks, &headroom))
		printf("  headroom: %s between circular buffers and the lowest buffer\n",
		       text_size(headroom, a));
	if (free_blocks->guessed)
		printf("  %" PRIu64 " buffer%s not tell the share of each bank: taken as spread "
		       "evenly\n",
		       free_blocks->guessed, free_blocks->guessed == 1 ? " does" : "s do");
	if (free_blocks->unplaced)
		printf("  %" PRIu64 " buffer%s outside of it\n", free_blocks->unplaced,
		       free_blocks->unplaced == 1 ? " lies" : "s lie");
}

static int map_run(int argc, char **argv)
{
	CLEANUP(session_cleanup) struct session *session = NULL;
	CLEANUP(snapshot_cleanup) struct snapshot *snapshot = NULL;
	CLEANUP(memory_map_deinit) struct memory_map memory_map = MEMORY_MAP_NULL;
	struct query query = {0};
	struct asked_for asked = {.command = "map", .filter = &query.filter, .rows = true};
	struct options_from from = {0};
	bool json = false;
	const struct options_item items[] = {
		{'d', "device", "DEV|UID", "only this device; may be given again"},
		{0, "type", "TYPE", "only this memory: " TYPES_MEMORIES},
		{0, "pid", "PID", "only of this process"},
		OPTIONS_FROM(&from),
		{0, "json", NULL, "as JSON, with every free block", &json, NULL},
	};
	const struct options options = {
		.command = "map",
		.summary = "Live buffers and free blocks of each device's memory.",
		.items = items,
		.count = ARRAY_SIZE(items),
		.query = &query,
		.answer = &answers[ANSWERS_MAP],
		.shows_sizes = true,
	};
	int r = options_parse_only(&options, argc, argv);

	if (r == 0 && query.filter.has_type && !types_has_banks(query.filter.type))
		r = options_mistake(
			"map", "--type expects a memory of its own, got %s, which is part of L1",
			types_name(query.filter.type));
	if (r != 0)
		return options_exit(r);
	output_start();
	from.is_state = true;
	r = session_start(&session, "map", &from, &query.filter);
	if (r != 0)
		return r;
	r = session_spaces_take(session, &query.filter, &snapshot, &memory_map);
	if (r < 0)
		return output_fail("map", "cannot look at processes", r);
	asked.is_json = json;
	asked_for_check(&asked, session, snapshot);
	if (json) {
		struct emit document = EMIT_INIT(stdout);

		memory_map_document_map(&document, &memory_map, snapshot);
	} else {
		session_print_moment(session);
		for (size_t i = 0; i < memory_map.count; i++)
			map_print(&memory_map.list[i]);
		if (memory_map.count == 0 && !asked.is_missing)
			puts("no live buffer: nothing to draw");
		session_print_notes(snapshot);
	}
	return asked_for_exit(&asked, output_finish());
}

const struct command map_command = {
	.name = "map",
	.summary = "live buffers and free blocks of each device's memory",
	.run = map_run,
};
