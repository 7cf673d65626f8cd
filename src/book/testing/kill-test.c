/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The proof of the rule for the dead, on real processors: a writer with several threads is killed
 * at a random instant, again and again, and each time every shard must be exactly what it was after
 * its last published event. Both rules must give the same result.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/bits.h"
#include "base/testing/unit.h"
#include "book/testing/book-testing.h"
#include "book/testing/testing-load.h"

/* Return: whether the device had a shard at all. */
static bool kill_check_device(const struct testing_load *load, uint32_t device, struct view *view)
{
	static const enum view_owner ways[] = {VIEW_DEAD, VIEW_LIVING};

	for (uint32_t way = 0; way < ARRAY_SIZE(ways); way++) {
		int r = view_read(view, &load->book->reader, device, ways[way]);
		struct testing_note is, should = {0};

		if (r == -ENOENT)
			return false;
		assert(r == 0 && view->rows_exact && view->adds_up && view->bad_rows == 0);
		is = testing_load_of(view);
		if (view->number == 0)
			assert(view->live == 0);
		else
			assert(testing_load_note(load, device, view->number, &should));
		if (view->number > 0 &&
		    (is.rows != should.rows || is.counters != should.counters)) {
			printf("device %u at event %" PRIu64 ": %s%sdiffer\n", device, view->number,
			       is.rows != should.rows ? "rows " : "",
			       is.counters != should.counters ? "counters " : "");
			abort();
		}
	}
	return true;
}

static void kill_once(struct testing_rng *rng, struct view *view, uint64_t *shards,
		      uint64_t *events)
{
	static const uint32_t keys[] = {16, 400, 3000, 40000};
	struct timespec pause = {.tv_nsec = testing_below(rng, 20000000)};
	struct testing_book book;
	struct testing_load load = {
		.book = &book,
		.devices = 1 + testing_below(rng, 4),
		.threads = 1 + testing_below(rng, 4),
		.keys = keys[testing_below(rng, ARRAY_SIZE(keys))],
		.notes = 1024,
		.seed = testing_random(rng),
	};

	testing_book_init(&book, TESTING_SIZE, testing_below(rng, 2) ? BOOK_RING_MIN : 16384);
	testing_load_start(&load);
	nanosleep(&pause, NULL);
	testing_load_kill(&load);
	*events += testing_load_events(&load);
	assert(file_fd_init(&book.file, book.fd) == 0);
	if (reader_init(&book.reader, &book.file.file) != READER_NOT_YET) {
		testing_book_read(&book);
		for (uint32_t device = 0; device < load.devices; device++)
			*shards += kill_check_device(&load, device, view);
	}
	testing_load_deinit(&load);
	testing_book_deinit(&book);
}

UNIT_LONG(a_writer_killed_at_any_instant_leaves_an_exact_book, 300)
{
	struct testing_rng rng = testing_rng_new();
	struct view *view = calloc(1, sizeof(*view));
	uint32_t rounds = testing_soak() ? 10000 : 400;
	uint64_t shards = 0, events = 0;

	assert(view);
	for (uint32_t i = 0; i < rounds; i++)
		kill_once(&rng, view, &shards, &events);
	printf("%u kills, %" PRIu64 " shards exact, %" PRIu64 " events\n", rounds, shards, events);
	assert(shards >= rounds); /* or they were killed before they wrote anything */
	view_deinit(view);
	free(view);
}
