/* SPDX-License-Identifier: Apache-2.0 */

/* ttmem fit: would this many bytes fit, and if not, why not. */

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "answers/answers.h"
#include "base/bits.h"
#include "base/cleanup.h"
#include "base/emit.h"
#include "base/text.h"
#include "cli/common/asked-for.h"
#include "cli/common/command.h"
#include "cli/common/must.h"
#include "cli/common/options.h"
#include "cli/common/output.h"
#include "cli/common/session-maps.h"
#include "cli/common/session.h"
#include "model/query.h"
#include "model/snapshot.h"
#include "model/types.h"

/* Exit codes besides the usual ones; COMMAND_FAILED: it does not fit. */
#define FIT_UNKNOWN 3

#define FIT_SHOWN 10u       /* buffers listed that would have to be freed */
#define FIT_CORES_MAX 4096u /* more than any chip has */

static bool fit_is_others(const struct free_blocks_fit *fit)
{
	return fit->verdict == FREE_BLOCKS_HELD || fit->verdict == FREE_BLOCKS_TAKEN;
}

/* @snapshot: whose allocator would have to give. */
static void fit_print_gone(const struct snapshot *snapshot, const struct free_blocks_fit *fit)
{
	char number[TEXT_NUMBER_SIZE], all[TEXT_NUMBER_SIZE];

	if (fit->count == 0)
		return;
	if (fit->count == 1)
		(void)fputs("  would fit if this buffer were freed", stdout);
	else
		printf("  would fit if these %zu buffers were freed", fit->count);
	printf(", %s in each bank (%s over all banks):\n", text_size(fit->bytes, number),
	       text_size(fit->bytes * fit->of->banks, all));
	for (size_t i = 0; i < bits_min(fit->count, FIT_SHOWN); i++) {
		const struct free_blocks_block *block = &fit->of->blocks[fit->first + i];

		printf("    0x%-12" PRIx64 " %10s  %-8s ", block->address,
		       text_size(block->buffer->size, number), types_name(block->buffer->type));
		text_put(stdout, block->buffer->name ? block->buffer->name : "-");
		if (fit_is_others(fit))
			printf(", of pid %" PRIu32,
			       snapshot->processes[block->buffer->process].id.pid);
		putchar('\n');
	}
	if (fit->count > FIT_SHOWN)
		printf("    and %zu more\n", fit->count - FIT_SHOWN);
}

/* For which the number of banks is all that the text needs to know of the device. */
static void fit_print_others(const struct space *space, const struct free_blocks_fit *fit,
			     const char *need)
{
	char a[TEXT_NUMBER_SIZE], b[TEXT_NUMBER_SIZE];

	if (fit->verdict == FREE_BLOCKS_TAKEN) {
		printf(": no, taken\n  its allocator would place %s in each bank at 0x%" PRIx64
		       ", where another process has buffers\n",
		       need, fit->address);
		return;
	}
	printf(": no, held by other processes\n  needs %s in each bank; its own allocator has %s "
	       "free, the device %s\n",
	       need, text_size(space->free_blocks.free, a),
	       text_size(space->shared->all.free -
				 bits_min(space->shared->all.free, space->shared->unplaced),
			 b));
}

static void fit_print(const struct snapshot *snapshot, const struct space *space,
		      const struct free_blocks_fit *fit)
{
	const struct free_blocks *free_blocks = &space->free_blocks;
	char need[TEXT_NUMBER_SIZE], a[TEXT_NUMBER_SIZE], b[TEXT_NUMBER_SIZE];

	session_spaces_print_title(space);
	text_size(fit->need, need);
	switch (fit->verdict) {
	case FREE_BLOCKS_FITS:
		printf(": yes\n  takes %s in each of %" PRIu32 " banks, at 0x%" PRIx64
		       ", in a free block of %s\n",
		       need, free_blocks->banks, fit->address, text_size(fit->length, a));
		break;
	case FREE_BLOCKS_CUT:
		printf(": no, fragmented\n  needs %s in each bank; %s are free, but no free "
		       "block is larger than %s\n",
		       need, text_size(free_blocks->free, a), text_size(free_blocks->largest, b));
		break;
	case FREE_BLOCKS_FULL:
		printf(": no, full\n  needs %s in each bank; %s are free\n", need,
		       text_size(free_blocks->free, a));
		break;
	case FREE_BLOCKS_LARGE:
		printf(": no, too large\n  needs %s in each bank; a bank has %s\n",
		       fit->need == UINT64_MAX ? "more than can be counted" : need,
		       text_size(free_blocks->size, a));
		break;
	case FREE_BLOCKS_CORES:
		printf(": depends on its cores\n  only sharded buffers go there: spread over all "
		       "%" PRIu32 " cores it fits, on one core it does not; --cores N\n",
		       free_blocks->banks);
		break;
	case FREE_BLOCKS_HELD:
	case FREE_BLOCKS_TAKEN:
		fit_print_others(space, fit, need);
		break;
	}
	if (fit->verdict != FREE_BLOCKS_FITS)
		session_spaces_print_occupied(space);
	session_spaces_print_others(space);
	fit_print_gone(snapshot, fit);
	if (free_blocks->guessed)
		printf("  (a guess: %" PRIu64 " buffer%s not tell the share of each bank)\n",
		       free_blocks->guessed, free_blocks->guessed == 1 ? " does" : "s do");
}

struct fit {
	struct query query;
	struct options_from from;
	bool json;
};

static int fit_parse_cores(void *target, const char *text)
{
	uint32_t *cores = target;
	uint64_t number;

	if (text_parse_u64(text, &number) < 0 || number == 0 || number > FIT_CORES_MAX)
		return -EINVAL;
	*cores = (uint32_t)number;
	return 0;
}

static int fit_parse(struct fit *fit, int argc, char **argv)
{
	const struct options_item items[] = {
		{'d', "device", "DEV|UID", "on this device; may be given again"},
		{0, "type", "TYPE", "in this memory (DRAM)"},
		{0, "pid", "PID", "only of this process"},
		{0, "page", "SIZE", "size of its pages; without it they spread evenly"},
		{0, "cores", "N", "a sharded buffer, over so many cores (L1_SMALL has no others)",
		 &fit->query.cores, fit_parse_cores},
		OPTIONS_FROM(&fit->from),
		{0, "json", NULL, "as JSON", &fit->json, NULL},
	};
	const struct options options = {
		.command = "fit",
		.arguments = "SIZE",
		.summary = "Would SIZE bytes fit into the memory of a device, beside what all its "
			   "processes hold?\nExit code 0 if they do, 1 if not, 3 if it is not "
			   "known.",
		.items = items,
		.count = ARRAY_SIZE(items),
		.query = &fit->query,
		.answer = &answers[ANSWERS_FIT],
		.shows_sizes = true,
	};
	int count = 0, r = options_parse(&options, argc, argv, &count);

	if (r != 0)
		return r;
	if (count != 1)
		return options_count(&options, "one size such as 512, 64K or 1.5GiB", count);
	if (options_size(&fit->query.size, argv[0]) < 0)
		return options_mistake(
			"fit", "expects a size such as 512, 64K or 1.5GiB, got \"%s\"", argv[0]);
	if (!fit->query.filter.has_type) {
		fit->query.filter.has_type = true;
		fit->query.filter.type = TYPES_DRAM;
	}
	if (!types_has_banks(fit->query.filter.type))
		return options_mistake("fit",
				       "--type expects a memory of its own, got %s, which is "
				       "part of L1",
				       types_name(fit->query.filter.type));
	return 0;
}

static int fit_run(int argc, char **argv)
{
	CLEANUP(session_cleanup) struct session *session = NULL;
	CLEANUP(snapshot_cleanup) struct snapshot *snapshot = NULL;
	CLEANUP(memory_map_deinit) struct memory_map memory_map = MEMORY_MAP_NULL;
	CLEANUP_FREE struct free_blocks_fit *fits = NULL;
	struct fit fit = {0};
	size_t refused, unknown;
	int r = fit_parse(&fit, argc, argv);
	struct asked_for asked = {
		.command = "fit", .filter = &fit.query.filter, .is_json = fit.json, .rows = true};

	if (r != 0)
		return options_exit(r);
	output_start();
	fit.from.is_state = true;
	r = session_start(&session, "fit", &fit.from, &fit.query.filter);
	if (r != 0)
		return r;
	r = session_spaces_take(session, &fit.query.filter, &snapshot, &memory_map);
	if (r < 0)
		return output_fail("fit", "cannot look at processes", r);
	fits = must_alloc(memory_map.count + 1, sizeof(*fits));
	asked_for_check(&asked, session, snapshot);
	refused = memory_map_fit(&memory_map, &fit.query, fits, &unknown);
	if (fit.json) {
		struct emit document = EMIT_INIT(stdout);

		memory_map_document_fit(&document, &memory_map, snapshot, fits, fit.query.size);
	} else {
		session_print_moment(session);
		for (size_t i = 0; i < memory_map.count; i++)
			fit_print(snapshot, &memory_map.list[i], &fits[i]);
		if (memory_map.count == 0)
			printf("not known: no process tells of such a memory\n");
		session_print_notes(snapshot);
	}
	r = output_finish();
	if (r != COMMAND_OK || refused)
		return COMMAND_FAILED;
	return memory_map.count == 0 || unknown || asked.is_missing ? FIT_UNKNOWN : COMMAND_OK;
}

const struct command fit_command = {
	.name = "fit",
	.summary = "would so many bytes fit into a device's memory?",
	.run = fit_run,
};
