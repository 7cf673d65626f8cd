/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The proof of the rule for the living: while threads write, a reader takes snapshots, and each
 * complete one must be exactly what the book contained after the event that the snapshot names, in
 * all rows and counters. The number of complete ones is printed, and asserted only where the load
 * is paced.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/testing/unit.h"
#include "book/read/idle-counters.h"
#include "book/testing/book-testing.h"
#include "book/testing/testing-load.h"

/* Enough for a reader that is delayed by half a second at two million events per second. */
#define LIVE_NOTES (1u << 20)

/* Seconds. Ends a hang: what takes some 20 seconds alone passes with a tenth of a core. */
#define LIVE_LIMIT 600

struct live {
	struct testing_load load;
	uint32_t ring_events;
	uint32_t views;   /* to be taken of each device */
	uint32_t percent; /* that must be complete */
	bool early;       /* begin with the book, not once half of the keys are live */

	uint64_t attempted;
	uint64_t complete;
	uint64_t totals;  /* only counters could be read: also exact */
	uint64_t unnoted; /* complete, but the note had been overwritten */
	uint64_t retries;
	struct idle_counters known[TESTING_DEVICES]; /* as in a reader that reads repeatedly */
};

static void live_judge(struct live *live, const struct view *view)
{
	struct testing_note is, should;

	live->retries += view->retries;
	if (view->number == 0) {
		assert(live->early && view->live == 0);
		live->complete++;
		return;
	}
	if (!testing_load_note(&live->load, view->device, view->number, &should)) {
		live->unnoted++;
		return;
	}
	is = testing_load_of(view);
	if (view->rows_exact) {
		if (is.rows != should.rows || !view->adds_up || view->bad_rows)
			printf("rows differ at event %" PRIu64 ", adds up: %d\n", view->number,
			       view->adds_up);
		assert(is.rows == should.rows && view->adds_up && view->bad_rows == 0);
		live->complete++;
	} else {
		live->totals++;
	}
	if (is.counters != should.counters)
		printf("counters differ at event %" PRIu64 "\n", view->number);
	assert(is.counters == should.counters);
}

static void live_look(struct live *live, uint32_t device, struct view *view)
{
	int r = view_read(view, &live->load.book->reader, device, VIEW_LIVING);

	if (r == -ENOENT && live->early)
		return;
	live->attempted++;
	assert(r == 0 || r == -EAGAIN);
	if (r == 0)
		live_judge(live, view);
}

/* Counters alone. */
static void live_look_totals(struct live *live, uint32_t device, struct view *view,
			     struct idle_counters *known)
{
	struct testing_note is, should;
	int r = view_read_totals_since(view, &live->load.book->reader, device, known);

	assert(r == 0 || r == -EAGAIN || (r == -ENOENT && live->early));
	if (r < 0 || view->number == 0 ||
	    !testing_load_note(&live->load, device, view->number, &should))
		return;
	assert(!view->rows_exact);
	is = testing_load_of(view);
	assert(is.counters == should.counters);
}

static void live_run(struct live *live)
{
	uint64_t size =
		TESTING_SIZE +
		bits_align_up((uint64_t)live->load.keys * live->load.devices * 64, BOOK_UNIT);
	struct view *view = calloc(1, sizeof(*view));
	struct testing_rng rng = testing_rng_new();
	uint64_t start, events;
	struct testing_book book;

	assert(view);
	if (testing_soak())
		live->views *= 20;
	testing_book_init(&book, size, live->ring_events);
	live->load.book = &book;
	live->load.notes = LIVE_NOTES;
	live->load.seed = testing_random(&rng);
	testing_load_start(&live->load);
	if (!live->early)
		testing_load_wait(&live->load);
	assert(file_fd_init(&book.file, book.fd) == 0);
	while (reader_init(&book.reader, &book.file.file) == READER_NOT_YET)
		;
	testing_book_read(&book);
	events = testing_load_events(&live->load);
	start = clock_ns(CLOCK_MONOTONIC);
	for (uint32_t i = 0; i < live->views; i++) {
		for (uint32_t device = 0; device < live->load.devices; device++) {
			live_look(live, device, view);
			live_look_totals(live, device, view, &(struct idle_counters){0});
			live_look_totals(live, device, view, &live->known[device]);
		}
	}
	start = clock_ns(CLOCK_MONOTONIC) - start;
	events = testing_load_events(&live->load) - events;
	printf("%" PRIu64 " of %" PRIu64 " complete, all exact; totals %" PRIu64
	       ", without a note %" PRIu64 ", retries %" PRIu64 "; %.0f k events/s, %.2f ms each\n",
	       live->complete, live->attempted, live->totals, live->unnoted, live->retries,
	       (double)events * 1e6 / (double)start, (double)start / 1e6 / (double)live->attempted);
	testing_load_stop(&live->load);
	assert(live->complete * 100 >= live->attempted * live->percent);
	view_deinit(view);
	free(view);
	testing_load_deinit(&live->load);
	testing_book_deinit(&book);
}

UNIT_LONG(a_small_busy_table_is_read_exactly, LIVE_LIMIT)
{
	struct live live = {.load = {.devices = 1, .threads = 1, .keys = 1000},
			    .ring_events = 16384,
			    .views = 30000};

	live_run(&live);
}

UNIT_LONG(four_busy_devices_are_read_exactly, LIVE_LIMIT)
{
	struct live live = {.load = {.devices = 4, .threads = 4, .keys = 2000},
			    .ring_events = 16384,
			    .views = 5000};

	live_run(&live);
}

/* The shortest ring wraps all the time: complete views must be exact all the same. */
UNIT_LONG(the_shortest_ring_is_read_exactly, LIVE_LIMIT)
{
	struct live live = {.load = {.devices = 1, .threads = 2, .keys = 50000},
			    .ring_events = BOOK_RING_MIN,
			    .views = 2000};

	live_run(&live);
}

/* A reader that starts with the book sees it grow: new pages, units and segments of records. */
UNIT_LONG(a_growing_table_is_read_exactly, LIVE_LIMIT)
{
	for (uint32_t i = 0; i < 10; i++) {
		struct live live = {.load = {.devices = 2, .threads = 2, .keys = 200000},
				    .ring_events = 16384,
				    .views = 200,
				    .early = true};

		live_run(&live);
	}
}

UNIT_LONG(reads_100k_live_at_1m_events_per_second, LIVE_LIMIT)
{
	struct live live = {.load = {.devices = 1, .threads = 1, .keys = 200000, .rate = 1000000},
			    .ring_events = 16384,
			    .views = 2500,
			    .percent = 99};

	live_run(&live);
}

UNIT_LONG(reads_1m_live_at_100k_events_per_second, LIVE_LIMIT)
{
	struct live live = {.load = {.devices = 1, .threads = 1, .keys = 2000000, .rate = 100000},
			    .ring_events = 16384,
			    .views = 200,
			    .percent = 99};

	live_run(&live);
}

UNIT_LONG(reads_100k_live_at_full_speed, LIVE_LIMIT)
{
	struct live live = {.load = {.devices = 1, .threads = 1, .keys = 200000},
			    .ring_events = 16384,
			    .views = 1000};

	live_run(&live);
}
