/* SPDX-License-Identifier: Apache-2.0 */

/* What has to be known to judge the verdict. */

#include <inttypes.h>
#include <stdio.h>

#include "cli/replay/replay-output.h"
#include "cli/replay/replay-walk.h"

/* Counts, each with the sentence that says what it means. */
static bool replay_note_count(uint64_t count, const char *text, char ret_note[REPLAY_NOTE])
{
	(void)snprintf(ret_note, REPLAY_NOTE, "%" PRIu64 " %s", count, text);
	return count > 0;
}

bool replay_note(const struct replay_walk *walk, unsigned int number, char ret_note[REPLAY_NOTE])
{
	const struct refit_counts *counts = &walk->counts;
	const struct {
		uint64_t count;
		const char *text;
	} notes[] = {
		{walk->missed,
		 "events are not in the recording: what they changed was made up for, "
		 "in the order of birth"},
		{walk->missed ? 0 : walk->from_table,
		 "buffers were there before the recording: they are placed in the order of birth"},
		{counts->guessed,
		 "buffers do not tell their pages: their share of a bank is a guess"},
		{walk->is_same ? counts->taken - counts->same : 0,
		 "buffers do not lie where they were recorded: their allocator had other limits, "
		 "or another way"},
		{walk->assumed,
		 "devices: L1 has the banks of that card with fast dispatch, slow dispatch has "
		 "more (--banks L1=N)"},
		{counts->unjudged, "buffers are in a memory of which nothing is known: not judged"},
		{counts->spaces,
		 "allocators of sub-devices or meshes: each is replayed as if it had "
		 "the whole memory"},
		{walk->would_fail,
		 "allocations that failed when they were recorded would fail here too"},
		{walk->would_fit,
		 "allocations that failed when they were recorded would have found room here"},
	};

	if (number == 0) {
		(void)snprintf(ret_note, REPLAY_NOTE,
			       "open loop: what the program asked for is taken as it was recorded; "
			       "on another card it might have asked for something else");
		return true;
	}
	if (walk->verdict == REPLAY_NOT_KNOWN && counts->unjudged == 0 && --number == 0) {
		(void)snprintf(ret_note, REPLAY_NOTE, "nothing was allocated in the recording");
		return true;
	}
	for (size_t i = 0; i < sizeof(notes) / sizeof(notes[0]); i++) {
		if (notes[i].count > 0 && --number == 0)
			return replay_note_count(notes[i].count, notes[i].text, ret_note);
	}
	return false;
}
