/* SPDX-License-Identifier: Apache-2.0 */

/* Books of processes that have ended, and files of several books. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/testing/unit.h"
#include "book/read/view.h"
#include "recording/flight/flight.h"
#include "recording/read/recording.h"
#include "recording/testing/testing-recording.h"
#include "source/books/scan.h"

static struct flight *test_flight(void)
{
	const struct flight_options options = {.time_ns = 600 * NS_PER_S,
					       .size_max = UINT64_C(512) << 20};
	struct flight *flight = NULL;

	assert(flight_new(&flight, &options) == 0);
	return flight;
}

static void test_add(struct flight *flight, struct testing_recording *recording, uint32_t user)
{
	char name[32];

	(void)snprintf(name, sizeof(name), "unused-%u", user);
	testing_recording_start(recording, unit_path(name), BOOK_RING_MIN, true);
	assert(flight_add(flight, user, recording->scan) == 0);
}

/* Acts, and returns what device 0 is then. */
static uint64_t test_act(struct flight *flight, struct testing_recording *recording,
			 uint64_t *ret_number)
{
	static struct view view;
	uint64_t digest;

	testing_recording_act(recording, 500);
	assert(view_read(&view, &recording->book.reader, 0, VIEW_DEAD) == 0);
	*ret_number = view.number;
	digest = testing_digest(&view);
	view_deinit(&view);
	(void)flight_round(flight, clock_ns(CLOCK_MONOTONIC) + NS_PER_S);
	return digest;
}

static void test_compare(struct recording *recording, uint32_t number, uint64_t event,
			 uint64_t digest)
{
	const struct recording_moment moment = {
		.time_ns = recording_facts(recording)->end_ns,
		.book = number,
		.number = event,
	};
	static struct view view;
	struct scan_book *book = NULL;

	assert(recording_restore(recording, number, &moment, &book) == 0);
	assert(view_read(&view, &book->reader, 0, VIEW_DEAD) == 0);
	assert(view.number == event && testing_digest(&view) == digest);
	view_deinit(&view);
	scan_book_free(book);
}

/* From now on the book is not needed: nobody can read it. */
static bool test_end(struct flight *flight, struct testing_recording *recording,
		     const struct ending *ended)
{
	const struct flight_file file = {.reason = "ended", .ending = ended};
	bool is_kept = flight_end(flight, recording->scan, &file);

	(void)close(recording->scan->file.fd);
	recording->scan->file.fd = -1;
	return is_kept;
}

UNIT(what_an_ended_process_did_stays_and_is_in_one_file_with_the_living)
{
	const struct ending ended = {.ended_ns = clock_ns(CLOCK_REALTIME)};
	const struct flight_file file = {.reason = "test", .since_ns = 1};
	CLEANUP_CLOSE int fd =
		open(unit_path("file"), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	static struct testing_recording gone, lives;
	struct flight *flight = test_flight();
	struct flight_writing *writing = NULL;
	struct recording *recording = NULL;
	uint64_t numbers[4], digests[4];
	char why[RECORDING_WHY_SIZE];

	test_add(flight, &gone, 1000);
	test_add(flight, &lives, 1001);
	digests[0] = test_act(flight, &gone, &numbers[0]);
	digests[1] = test_act(flight, &lives, &numbers[1]);
	digests[2] = test_act(flight, &gone, &numbers[2]);
	assert(test_end(flight, &gone, &ended));
	digests[3] = test_act(flight, &lives, &numbers[3]);
	assert(flight_file_begin(flight, fd, &file, &writing) == 0);
	assert(flight_file_add(writing, gone.scan, &ended) == 0);
	assert(flight_file_add(writing, lives.scan, NULL) == 0);
	assert(flight_file_end(writing) == 0);
	assert(recording_open(&recording, unit_path("file"), why) == 0);
	assert(recording_facts(recording)->books == 2 && recording_facts(recording)->is_complete);
	assert(recording_owner(recording, 0)->has_ended);
	assert(!recording_owner(recording, 1)->has_ended);
	for (uint32_t i = 0; i < 4; i++)
		test_compare(recording, i % 2, numbers[i], digests[i]);
	/* Before it was made, a book was not there, and that is known. */
	assert(recording_knows(recording, 0, ended.ended_ns) && recording_knows(recording, 0, 1));
	recording_free(recording);
	assert(flight_keeps(flight, gone.scan));
	flight_remove(flight, gone.scan);
	assert(!flight_keeps(flight, gone.scan) && flight_keeps(flight, lives.scan));
	flight_remove(flight, lives.scan);
	testing_recording_deinit(&gone);
	testing_recording_deinit(&lives);
	flight_free(flight);
}

UNIT(what_is_copied_of_an_ended_process_has_to_fit_and_goes_first)
{
	const struct ending ended = {.ended_ns = clock_ns(CLOCK_REALTIME)};
	const struct flight_options options = {.time_ns = 600 * NS_PER_S, .size_max = 1u << 20};
	const struct flight_file file = {.reason = "test", .since_ns = 1};
	CLEANUP_CLOSE int fd =
		open(unit_path("file"), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	static struct testing_recording gone[32];
	struct flight_writing *writing = NULL;
	struct flight *flight = NULL;
	size_t kept = 0;
	uint64_t number;

	assert(flight_new(&flight, &options) == 0);
	for (size_t i = 0; i < 32; i++) {
		test_add(flight, &gone[i], 1000);
		for (int k = 0; k < 2; k++)
			(void)test_act(flight, &gone[i], &number);
		(void)test_end(flight, &gone[i], &ended);
		(void)flight_round(flight, clock_ns(CLOCK_MONOTONIC) + NS_PER_S);
	}
	for (size_t i = 0; i < 32; i++)
		kept += flight_keeps(flight, gone[i].scan);
	assert(kept > 0 && kept < 32);
	assert(flight_file_begin(flight, fd, &file, &writing) == 0);
	for (size_t i = 0; i < 32; i++) {
		int r = flight_file_add(writing, gone[i].scan, &ended);

		assert(r == (flight_keeps(flight, gone[i].scan) ? 0 : -ENOENT));
	}
	assert(flight_file_end(writing) == 0);
	for (size_t i = 0; i < 32; i++) {
		flight_remove(flight, gone[i].scan);
		testing_recording_deinit(&gone[i]);
	}
	flight_free(flight);
}

UNIT(a_user_whose_processes_have_ended_makes_room_for_another)
{
	const struct ending ended = {.ended_ns = 5};
	static struct testing_recording recordings[FLIGHT_USERS_MAX + 1];
	struct flight *flight = test_flight();
	struct flight_counts counts;
	uint64_t number;

	for (uint32_t i = 0; i < FLIGHT_USERS_MAX; i++)
		test_add(flight, &recordings[i], 1000 + i);
	(void)test_act(flight, &recordings[3], &number);
	assert(test_end(flight, &recordings[3], &ended));
	flight_counts(flight, &counts);
	assert(counts.users == FLIGHT_USERS_MAX && counts.books == FLIGHT_USERS_MAX - 1);
	test_add(flight, &recordings[FLIGHT_USERS_MAX], 2000);
	flight_counts(flight, &counts);
	assert(counts.users == FLIGHT_USERS_MAX && counts.left_out == 0);
	assert(!flight_keeps(flight, recordings[3].scan));
	for (uint32_t i = 0; i <= FLIGHT_USERS_MAX; i++) {
		flight_remove(flight, recordings[i].scan);
		testing_recording_deinit(&recordings[i]);
	}
	flight_counts(flight, &counts);
	assert(counts.users == 0 && counts.size == 0);
	flight_free(flight);
}
