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

static void replay_text_failed(const struct replay_failed *failed)
{
	char size[TEXT_NUMBER_SIZE];

	printf("device %" PRIu32 " of %" PRIu32 " ", failed->owner->device, failed->owner->pid);
	text_put(stdout, failed->owner->comm);
	printf(", %s, at %.3f s, event %" PRIu64 "%s\n  %s of %s",
	       types_name(failed->failure.memory), (double)failed->at_ns / (double)NS_PER_S,
	       failed->number, failed->is_from_table ? " (allocated before it)" : "",
	       text_size(failed->buffer.size, size), types_name(failed->buffer.type));
	if (failed->name) {
		printf(", ");
		text_put(stdout, failed->name);
	}
	if (failed->phase) {
		printf(" in ");
		text_put(stdout, failed->phase);
	}
	printf("\n  ");
	replay_put_reason(&failed->failure);
	session_print_stack(stdout, failed->stack, "    at ");
}

static void replay_text_title(const struct replay_walk *walk)
{
	const char *fit = walk->fit == FREE_LIST_BEST ? "best fit" : "first fit";

	text_put(stdout, walk->facts->path);
	if (walk->card_name)
		printf(" on %s, %s: ", walk->card_name, fit);
	else
		printf(" on the same card, %s: ", fit);
	switch (walk->verdict) {
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
		replay_text_failed(&walk->failed);
		break;
	case REPLAY_NOT_KNOWN:
		printf("not known\n");
		break;
	}
}

static void replay_text_margins(const struct replay_walk *walk)
{
	struct fields_room room;
	const void *margin;
	struct fields_view view;
	struct table table;

	if (walk->counts.taken == 0)
		return;
	printf("\n%s, in each bank:\n",
	       walk->has_failed ? "How tight it was until then" : "How tight it was");
	fields_choose(&view, replay_margin_fields, REPLAY_MARGIN_TABLE);
	table_begin(&table, stdout, view.columns, view.count, output_width());
	for (size_t i = 0; i < walk->count; i++) {
		for (size_t at = 0; (margin = replay_each_margin(&walk->devices[i], &at, &room));)
			fields_table_row(&table, &view, margin);
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
