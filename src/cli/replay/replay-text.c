/* SPDX-License-Identifier: Apache-2.0 */

/* The verdict for people: the first failure with its stack, or how tight it was. */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/bits.h"
#include "base/clock.h"
#include "base/table.h"
#include "base/text.h"
#include "cli/common/output.h"
#include "cli/common/session.h"
#include "cli/replay/replay-output.h"
#include "cli/replay/replay-walk.h"
#include "model/types.h"

#define REPLAY_TEXT TEXT_CLEAN_SIZE(256u) /* a name or a phase */

static double replay_seconds(const struct replay_walk *walk, uint64_t time_ns)
{
	uint64_t start = recording_facts(walk->recording)->start_ns;

	return time_ns > start ? (double)(time_ns - start) / (double)NS_PER_S : 0;
}

static void replay_put_who(const struct replay_walk *walk, const struct replay_device *device)
{
	const struct recording_owner *owner = recording_owner(walk->recording, device->book);
	char comm[sizeof(owner->book.comm) + 1] = "";

	memcpy(comm, owner->book.comm, sizeof(owner->book.comm));
	printf("device %" PRIu32 " of %" PRIu32 " ", device->device, owner->book.pid);
	text_put(stdout, comm);
}

static void replay_put_reason(const struct refit_failure *failure)
{
	char need[TEXT_NUMBER_SIZE], a[TEXT_NUMBER_SIZE], b[TEXT_NUMBER_SIZE];

	text_size(failure->need, need);
	switch (failure->why) {
	case REFIT_LARGE:
		printf("needs %s in each of %" PRIu32 " banks, which have %s",
		       failure->need == UINT64_MAX ? "more than can be counted" : need,
		       failure->banks, text_size(failure->size, a));
		break;
	case REFIT_FULL:
		printf("needs %s in each of %" PRIu32 " banks, of which %s are free", need,
		       failure->banks, text_size(failure->free, a));
		break;
	case REFIT_CUT:
		printf("needs %s in each of %" PRIu32
		       " banks, of which %s are free, but no free block is larger than %s",
		       need, failure->banks, text_size(failure->free, a),
		       text_size(failure->largest, b));
		break;
	case REFIT_SHARDS:
		printf("has %" PRIu32 " shards, and there are %" PRIu32 " banks", failure->shards,
		       failure->banks);
		break;
	case REFIT_CLASH:
		printf("circular buffers reach %s into L1, whose buffers begin at %s", need,
		       text_size(failure->largest, a));
		break;
	}
	putchar('\n');
}

static void replay_text_failed(const struct replay_walk *walk)
{
	const struct replay_failed *failed = &walk->failed;
	char text[REPLAY_TEXT], size[TEXT_NUMBER_SIZE];

	printf(", %s, at %.3f s, event %" PRIu64 "%s\n  %s of %s",
	       types_name(failed->failure.memory), replay_seconds(walk, failed->time_ns),
	       failed->number, failed->is_from_table ? " (allocated before it)" : "",
	       text_size(failed->buffer.size, size), types_name(failed->buffer.type));
	if (replay_walk_text(walk, failed->name, text, sizeof(text)) == 0) {
		printf(", ");
		text_put(stdout, text);
	}
	if (replay_walk_text(walk, failed->phase, text, sizeof(text)) == 0) {
		printf(" in ");
		text_put(stdout, text);
	}
	printf("\n  ");
	replay_put_reason(&failed->failure);
	session_print_stack(stdout, replay_walk_stack(walk), "    at ");
}

static void replay_text_title(const struct replay_walk *walk)
{
	const char *fit = walk->fit == FREE_LIST_BEST ? "best fit" : "first fit";

	text_put(stdout, recording_facts(walk->recording)->path);
	if (walk->card_name)
		printf(" on %s, %s: ", walk->card_name, fit);
	else
		printf(" on the same card, %s: ", fit);
	switch (replay_verdict(walk)) {
	case REPLAY_RUNS:
		if (walk->would_fail)
			printf("would have run as when it was recorded, with the same %" PRIu64
			       " failed allocation%s\n",
			       walk->would_fail, walk->would_fail == 1 ? "" : "s");
		else
			printf("would have run\n");
		break;
	case REPLAY_FAILS:
		printf("would have failed on ");
		replay_put_who(walk, &walk->devices[walk->failed.device]);
		replay_text_failed(walk);
		break;
	case REPLAY_NOT_KNOWN:
		printf("not known\n");
		break;
	}
}

static void replay_text_margin(struct table *table, const struct replay_walk *walk,
			       const struct replay_device *device, uint32_t type)
{
	const struct refit_margin *margin = &refit_margins(device->refit)[type];
	const struct recording_owner *owner = recording_owner(walk->recording, device->book);
	char number[TEXT_NUMBER_SIZE];

	table_format(table, "%" PRIu32, owner->book.pid);
	table_format(table, "%" PRIu32, device->device);
	table_text(table, types_name(type));
	table_format(table, "%" PRIu32, margin->banks);
	table_text(table, text_size(margin->size, number));
	table_text(table, text_size(margin->free, number));
	table_format(table, "%.1f %%",
		     margin->size ? 100 * (double)margin->free / (double)margin->size : 0);
	table_text(table, text_size(margin->largest, number));
	table_format(table, "%.3f s", replay_seconds(walk, margin->moment));
}

static void replay_text_margins(const struct replay_walk *walk)
{
	static const struct table_column columns[] = {
		{"PID", true},
		{"DEVICE", true},
		{"TYPE"},
		{"BANKS", true, .order = 2},
		{"BANK", true, .order = 3},
		{"LEAST FREE", true},
		{"", true},
		{"FREE BLOCK", true},
		{"AT", true, .order = 1},
	};
	struct table table;

	if (replay_walk_counts(walk).taken == 0)
		return;
	printf("\n%s, in each bank:\n",
	       walk->has_failed ? "How tight it was until then" : "How tight it was");
	table_begin(&table, stdout, columns, ARRAY_SIZE(columns), output_width());
	for (size_t i = 0; i < walk->count; i++) {
		for (uint32_t type = 0; type < REFIT_MARGINS; type++) {
			if (refit_margins(walk->devices[i].refit)[type].is_known)
				replay_text_margin(&table, walk, &walk->devices[i], type);
		}
	}
	table_end(&table);
}

void replay_text(const struct replay_walk *walk)
{
	char note[REPLAY_NOTE];

	replay_text_title(walk);
	replay_text_margins(walk);
	putchar('\n');
	for (unsigned int i = 0; replay_note(walk, i, note); i++) {
		output_put_wrapped(note, 0);
		putchar('\n');
	}
}
