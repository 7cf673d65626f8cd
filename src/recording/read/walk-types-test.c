/* SPDX-License-Identifier: Apache-2.0 */

/* A walk over events of some types: all of them, no others, and every gap. */

#include "base/bits.h"
#include "base/testing/unit.h"
#include "book/format/event.h"
#include "book/testing/book-testing.h"
#include "recording/read/recording.h"
#include "recording/testing/testing-recorder.h"

#define TYPES 3u
#define GAPS 3u

/* Rounds of events of all types, of which every second one is missed. */
static struct recording *record(struct testing_recorder *recorder)
{
	struct recording *recording;
	struct testing_recorded recorded;
	struct testing_book book;
	char why[RECORDING_WHY_SIZE] = "";

	testing_recorder_init(recorder);
	testing_book_open(&book);
	testing_recorded_init(&recorded, recorder, &book, 100);
	for (uint32_t round = 0; round < 2 * GAPS; round++) {
		for (uint32_t i = 0; i < 10; i++) {
			const struct testing_op op = {
				.kind = TESTING_ALLOC,
				.buffer = testing_buffer(
					i % TYPES, 0x1000 * (UINT64_C(1) + 10 * round + i), 64),
			};

			testing_op_do(book.writer, &op);
		}
		testing_recorded_bytes(&recorded);
		if (round % 2)
			testing_recorded_events(&recorded, 0, RECORDING_EVENTS_MAX);
		else
			testing_recorded_gap(&recorded, 0);
	}
	testing_recorder_end(recorder);
	assert(recording_open(&recording, recorder->path, why) == 0);
	testing_recorded_deinit(&recorded);
	testing_book_deinit(&book);
	return recording;
}

struct seen {
	uint64_t counts[BOOK_TYPES], gaps;
};

static int see(void *context, const struct recording_event *event)
{
	struct seen *seen = context;

	if (event->gap)
		seen->gaps++;
	if (event->event)
		seen->counts[book_meta_type(event->event->record.meta)]++;
	return 0;
}

UNIT(only_events_of_the_types_that_are_asked_for_are_told_but_every_gap)
{
	static const uint64_t counts[BOOK_TYPES] = {4 * GAPS, 3 * GAPS, 3 * GAPS};
	struct testing_recorder recorder;
	struct recording *recording = record(&recorder);

	for (uint32_t wanted = 0; wanted < 1u << TYPES; wanted++) {
		const struct recording_filter filter = {.device = RECORDING_NONE, .types = wanted};
		struct seen seen = {.gaps = 0};

		assert(recording_walk(recording, &filter, NULL, NULL, see, &seen) == 0);
		assert(seen.gaps == GAPS);
		for (uint32_t type = 0; type < BOOK_TYPES; type++)
			assert(seen.counts[type] ==
			       (!wanted || wanted >> type & 1 ? counts[type] : 0));
	}
	recording_free(recording);
	testing_recorder_deinit(&recorder);
}
