/* SPDX-License-Identifier: Apache-2.0 */

/* What a flight recorder writes can be opened, and is what the books were. */

#include "recording/flight/flight.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/testing/unit.h"
#include "book/read/view.h"
#include "book/testing/book-testing.h"
#include "recording/read/recording.h"
#include "recording/testing/testing-chunks.h"
#include "recording/testing/testing-recording.h"
#include "source/books/scan.h"

#define TEST_STATES 1000u
#define TEST_DEVICES 2u

/* What a device was after an event. */
struct test_state {
	uint32_t device;
	uint64_t number;
	uint64_t digest;
};

/* A user with one book. */
struct test_user {
	struct testing_recording recording; /* for its book */
	struct test_state states[TEST_STATES];
	size_t count;
	struct view view;
};

struct test {
	struct flight *flight;
	uint64_t now_ns;
};

static void test_init(struct test *test, uint64_t size_max)
{
	const struct flight_options options = {.time_ns = 600 * NS_PER_S, .size_max = size_max};

	*test = (struct test){.now_ns = clock_ns(CLOCK_MONOTONIC)};
	assert(flight_new(&test->flight, &options) == 0);
}

static void test_user_init(struct test *test, struct test_user *user, uint32_t number,
			   uint32_t ring_events)
{
	char name[32];

	*user = (struct test_user){.count = 0};
	(void)snprintf(name, sizeof(name), "unused-%u", number);
	testing_recording_start(&user->recording, unit_path(name), ring_events, true);
	assert(flight_add(test->flight, number, user->recording.scan) == 0);
}

static void test_user_deinit(struct test *test, struct test_user *user)
{
	flight_remove(test->flight, user->recording.scan);
	testing_recording_deinit(&user->recording);
	view_deinit(&user->view);
}

/* Time passes for the flight recorder alone: all users have their turns. */
static void test_round(struct test *test)
{
	test->now_ns += NS_PER_S;
	(void)flight_round(test->flight, test->now_ns);
}

static void test_note(struct test_user *user)
{
	for (uint32_t device = 0; device < TEST_DEVICES; device++) {
		struct test_state *state = &user->states[user->count++ % TEST_STATES];

		assert(view_read(&user->view, &user->recording.book.reader, device, VIEW_DEAD) ==
		       0);
		*state = (struct test_state){.device = device,
					     .number = user->view.number,
					     .digest = testing_digest(&user->view)};
	}
}

static int test_write(struct test *test, struct test_user *user, const char *path,
		      const struct ending *ended)
{
	CLEANUP_CLOSE int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	const struct flight_file file = {.reason = "test", .ending = ended};

	assert(fd >= 0);
	return flight_write(test->flight, user->recording.scan, fd, &file);
}

static struct recording *test_open(const char *path)
{
	char why[RECORDING_WHY_SIZE] = "";
	struct recording *recording = NULL;

	assert(recording_open(&recording, path, why) == 0);
	assert(recording_facts(recording)->is_complete && recording_facts(recording)->books == 1);
	return recording;
}

/* The first event of a device that can be restored, or UINT64_MAX. */
static uint64_t test_first(const struct testing_chunks *chunks, uint32_t device)
{
	const struct testing_chunk *chunk;

	for (size_t n = 0; (chunk = testing_chunks_find(chunks, RECORDING_KEYFRAME, n)); n++) {
		if (chunk->head.entry.device == device)
			return chunk->head.entry.last;
	}
	return UINT64_MAX;
}

static bool test_is_in_gap(const struct testing_chunks *chunks, const struct test_state *state)
{
	const struct testing_chunk *chunk;

	for (size_t n = 0; (chunk = testing_chunks_find(chunks, RECORDING_GAP, n)); n++) {
		const struct recording_entry *entry = &chunk->head.entry;

		if (entry->device == state->device && entry->first <= state->number &&
		    entry->last > state->number)
			return true;
	}
	return false;
}

/* Compares all states that the file has. Return: how many these are. */
static uint32_t test_compare(struct test_user *user, const char *path)
{
	CLEANUP(recording_cleanup) struct recording *recording = test_open(path);
	struct testing_chunks chunks;
	uint32_t same = 0;

	testing_chunks_read(&chunks, path);
	assert(chunks.torn == 0);
	for (size_t i = 0; i < user->count && i < TEST_STATES; i++) {
		const struct test_state *state = &user->states[i];
		const struct recording_moment moment = {
			.time_ns = recording_facts(recording)->end_ns,
			.device = state->device,
			.number = state->number,
		};
		struct scan_book *book = NULL;

		if (state->number < test_first(&chunks, state->device) ||
		    test_is_in_gap(&chunks, state))
			continue;
		assert(recording_restore(recording, 0, &moment, &book) == 0);
		assert(view_read(&user->view, &book->reader, state->device, VIEW_DEAD) == 0);
		assert(user->view.number == state->number && user->view.adds_up);
		assert(testing_digest(&user->view) == state->digest);
		scan_book_free(book);
		same++;
	}
	testing_chunks_deinit(&chunks);
	return same;
}

UNIT(a_file_of_a_living_owner_is_what_its_book_was)
{
	static struct test_user user;
	struct test test;

	test_init(&test, UINT64_C(64) << 20);
	test_user_init(&test, &user, 1000, 16384);
	for (uint32_t i = 0; i < 40; i++) {
		testing_recording_act(&user.recording, 1000);
		test_note(&user);
		test_round(&test);
	}
	/* What happened since the last round is in it too; and it goes on after that. */
	testing_recording_act(&user.recording, 500);
	test_note(&user);
	assert(test_write(&test, &user, unit_path("one"), NULL) == 0);
	assert(test_compare(&user, unit_path("one")) == user.count);
	testing_recording_act(&user.recording, 500);
	test_note(&user);
	assert(test_write(&test, &user, unit_path("two"), NULL) == 0);
	assert(test_compare(&user, unit_path("two")) == user.count);
	test_user_deinit(&test, &user);
	flight_free(test.flight);
}

UNIT(a_file_of_a_dead_owner_says_how_it_ended)
{
	const struct ending ended = {.ended_ns = 5, .status = 9, .has_status = true};
	CLEANUP(recording_cleanup) struct recording *recording = NULL;
	static struct test_user user;
	struct test test;

	test_init(&test, UINT64_C(64) << 20);
	test_user_init(&test, &user, 1000, 16384);
	for (uint32_t i = 0; i < 50; i++) {
		testing_recording_act(&user.recording, 500);
		test_note(&user);
		test_round(&test);
	}
	user.recording.scan->alive = false;
	assert(test_write(&test, &user, unit_path("file"), &ended) == 0);
	assert(test_compare(&user, unit_path("file")) == user.count);
	recording = test_open(unit_path("file"));
	assert(recording_owner(recording, 0)->has_ended);
	assert(recording_owner(recording, 0)->ending.status == 9);
	assert(recording_owner(recording, 0)->book.pid == 1234);
	test_user_deinit(&test, &user);
	flight_free(test.flight);
}

/* The ring is overrun between two rounds. */
UNIT(who_is_too_fast_has_gaps_and_keyframes)
{
	static struct test_user user;
	struct flight_counts counts;
	bool was_late = false;
	struct test test;

	test_init(&test, UINT64_C(64) << 20);
	test_user_init(&test, &user, 1000, BOOK_RING_MIN);
	for (uint32_t i = 0; i < 60; i++) {
		testing_recording_act(&user.recording, i % 3 ? 300 : 4 * BOOK_RING_MIN);
		test_note(&user);
		test_round(&test);
		flight_counts(test.flight, &counts);
		was_late |= counts.late == 1;
	}
	assert(test_write(&test, &user, unit_path("file"), NULL) == 0);
	assert(test_compare(&user, unit_path("file")) > 60);
	assert(counts.missed > 0 && was_late && counts.books == 1);
	test_user_deinit(&test, &user);
	flight_free(test.flight);
}

/* One who writes all the time, in little memory, and one who writes little. */
UNIT(a_loud_user_takes_nothing_from_a_quiet_one)
{
	static struct test_user loud, quiet;
	const uint64_t size = UINT64_C(8) << 20;
	struct flight_counts counts;
	struct test test;

	test_init(&test, size);
	test_user_init(&test, &loud, 1000, 16384);
	test_user_init(&test, &quiet, 1001, 16384);
	for (uint32_t i = 0; i < 400; i++) {
		testing_recording_act(&loud.recording, 10000);
		if (i % 4 == 0) {
			testing_recording_act(&quiet.recording, 100);
			test_note(&quiet);
		}
		test_round(&test);
		flight_counts(test.flight, &counts);
		assert(counts.size <= size);
	}
	test_note(&loud);
	assert(counts.dropped > 0);
	assert(test_write(&test, &quiet, unit_path("quiet"), NULL) == 0);
	assert(test_compare(&quiet, unit_path("quiet")) == quiet.count);
	assert(test_write(&test, &loud, unit_path("loud"), NULL) == 0);
	assert(test_compare(&loud, unit_path("loud")) == TEST_DEVICES);
	test_user_deinit(&test, &loud);
	test_user_deinit(&test, &quiet);
	flight_free(test.flight);
}

/* Each turn costs more than a user's share of one percent: they come later and later. */
UNIT(who_costs_more_than_its_share_has_to_wait)
{
	const struct flight_options options = {
		.time_ns = 600 * NS_PER_S, .size_max = UINT64_C(64) << 20, .percent = 1};
	static struct test_user user;
	uint64_t next, pause = 0;
	struct test test = {.now_ns = clock_ns(CLOCK_MONOTONIC)};

	assert(flight_new(&test.flight, &options) == 0);
	test_user_init(&test, &user, 1000, 16384);
	for (uint32_t i = 0; i < 2000 && pause < NS_PER_S; i++) {
		testing_recording_act(&user.recording, 10000);
		next = flight_round(test.flight, test.now_ns);
		assert(next > test.now_ns && next != CLOCK_NEVER);
		pause = next - test.now_ns;
		test.now_ns = next;
	}
	assert(pause >= NS_PER_S);
	/* Then it has paid: while no other user is active, all of our time is its own. */
	next = flight_round(test.flight, test.now_ns);
	assert(next - test.now_ns < pause / 2);
	test_user_deinit(&test, &user);
	flight_free(test.flight);
}

/* Books that are larger than all memory for it: the ring is all that there is. */
UNIT(a_book_that_is_too_large_has_what_its_ring_knows)
{
	CLEANUP(recording_cleanup) struct recording *recording = NULL;
	static struct test_user user;
	struct flight_counts counts;
	struct test test;

	test_init(&test, 65536);
	test_user_init(&test, &user, 1000, 4096);
	for (uint32_t i = 0; i < 40; i++) {
		testing_recording_act(&user.recording, 500);
		test_note(&user);
		test_round(&test);
	}
	flight_counts(test.flight, &counts);
	assert(counts.left_out == 1 && counts.size == 0);
	/* Peaks of the past are not in a ring, so only the last state is compared. */
	user.count = 0;
	test_note(&user);
	assert(test_write(&test, &user, unit_path("file"), NULL) == 0);
	assert(test_compare(&user, unit_path("file")) == TEST_DEVICES);
	recording = test_open(unit_path("file"));
	assert(recording_facts(recording)->events > 4096);
	test_user_deinit(&test, &user);
	flight_free(test.flight);
}

UNIT(a_file_may_have_a_largest_size)
{
	const struct flight_file file = {.reason = "test", .size_max = UINT64_C(1) << 20};
	static struct test_user user;
	struct test test;
	int fd;

	test_init(&test, UINT64_C(64) << 20);
	test_user_init(&test, &user, 1000, 16384);
	for (uint32_t i = 0; i < 200; i++) {
		testing_recording_act(&user.recording, 5000);
		test_round(&test);
	}
	fd = open(unit_path("file"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert(fd >= 0);
	assert(flight_write(test.flight, user.recording.scan, fd, &file) == -EFBIG);
	assert(lseek(fd, 0, SEEK_END) <= (off_t)file.size_max);
	assert(close(fd) == 0);
	recording_free(test_open(unit_path("file")));
	test_user_deinit(&test, &user);
	flight_free(test.flight);
}

/* A book of which much more is there than a file may have; memory counts as a file does. */
UNIT(a_file_takes_no_more_memory_than_its_size_allows)
{
	const struct flight_file file = {.reason = "test", .size_max = UINT64_C(1) << 20};
	const struct rlimit limit = {5 * file.size_max, 5 * file.size_max};
	static struct test_user user;
	struct test test;
	int fd;

	test_init(&test, UINT64_C(64) << 20);
	test_user_init(&test, &user, 1000, BOOK_RING_MIN);
	testing_recording_act(&user.recording, 1000);
	testing_recording_fill(&user.recording, 8 * file.size_max);
	fd = open(unit_path("file"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert(fd >= 0);
	assert(signal(SIGXFSZ, SIG_IGN) != SIG_ERR && setrlimit(RLIMIT_FSIZE, &limit) == 0);
	assert(flight_write(test.flight, user.recording.scan, fd, &file) == -EFBIG);
	assert(close(fd) == 0);
	recording_free(test_open(unit_path("file")));
	test_user_deinit(&test, &user);
	flight_free(test.flight);
}

/* More users than there are recorders for, and users who come and go. */
UNIT(there_are_so_many_recorders_and_not_more)
{
	static struct test_user users[FLIGHT_USERS_MAX + 1];
	struct flight_counts counts;
	struct test test;

	test_init(&test, UINT64_C(512) << 20);
	for (uint32_t i = 0; i <= FLIGHT_USERS_MAX; i++) {
		test_user_init(&test, &users[i], 1000 + i, BOOK_RING_MIN);
		testing_recording_act(&users[i].recording, 100);
		test_note(&users[i]);
	}
	test_round(&test);
	flight_counts(test.flight, &counts);
	assert(counts.users == FLIGHT_USERS_MAX && counts.left_out == 1);
	assert(test_write(&test, &users[FLIGHT_USERS_MAX], unit_path("file"), NULL) == 0);
	assert(test_compare(&users[FLIGHT_USERS_MAX], unit_path("file")) == TEST_DEVICES);
	for (uint32_t i = 0; i <= FLIGHT_USERS_MAX; i++)
		test_user_deinit(&test, &users[i]);
	flight_counts(test.flight, &counts);
	assert(counts.users == 0 && counts.size == 0);
	flight_free(test.flight);
}

static int refuse_read(struct book_file *file, uint64_t offset, void *buffer, size_t length)
{
	(void)file, (void)offset, (void)buffer, (void)length;
	assert(!"nothing is read");
	return -EIO;
}

/* Whoever starts and ends processes all the time would otherwise have all of our time. */
UNIT(a_book_that_goes_is_not_read_once_more)
{
	static const struct book_file_ops ops = {.read_at = refuse_read};
	struct book_file nothing = {.ops = &ops};
	static struct test_user user;
	struct test test;

	test_init(&test, UINT64_C(64) << 20);
	test_user_init(&test, &user, 1000, 16384);
	testing_recording_act(&user.recording, 1000);
	test_round(&test);
	testing_recording_act(&user.recording, 1000);
	nothing.size = user.recording.scan->file.file.size;
	user.recording.scan->reader.file = &nothing;
	test_user_deinit(&test, &user);
	flight_free(test.flight);
}

/* Publishes an allocation in a new slot, for which the owner has no memory. */
static void test_claim(struct test_user *user, uint32_t slot)
{
	uint8_t *base = user->recording.book.base;
	struct book_shard *page = (void *)(base + book_shard_offset(0));
	struct book_event *ring = (void *)(base + book_unit_offset(page->ring_unit));
	uint64_t number = page->head + 1;

	ring[number & (page->ring_events - 1)] = (struct book_event){
		.time = number,
		.op_slot = slot << 8 | BOOK_OP_ALLOC,
		.record = {.size = 32, .meta = book_meta(0, 0, 1)},
	};
	__atomic_store_n(&page->head, number, __ATOMIC_RELEASE);
}

UNIT(a_book_counts_with_what_its_recorder_takes)
{
	static struct test_user user;
	struct flight_counts counts;
	struct book_shard *page;
	struct stat st;
	struct test test;
	uint32_t slots;

	test_init(&test, UINT64_C(64) << 20);
	test_user_init(&test, &user, 1000, 16384);
	testing_recording_act(&user.recording, 100);
	test_round(&test);
	page = (void *)(user.recording.book.base + book_shard_offset(0));
	slots = (uint32_t)page->slots;
	for (uint32_t i = 0; i < (UINT32_C(72) << 20) / sizeof(struct book_record); i++) {
		test_claim(&user, slots + i);
		if (i % 8192 == 0)
			test_round(&test);
	}
	test_round(&test);
	test_round(&test);
	assert(fstat(user.recording.book.fd, &st) == 0 && st.st_blocks * 512 < 32 << 20);
	flight_counts(test.flight, &counts);
	assert(counts.left_out == 1);
	test_user_deinit(&test, &user);
	flight_free(test.flight);
}

UNIT(a_book_that_is_too_large_is_left_out_before_it_is_read)
{
	static const struct book_file_ops ops = {.read_at = refuse_read};
	struct book_file nothing = {.ops = &ops};
	static struct test_user user;
	struct flight_counts counts;
	struct test test;

	test_init(&test, 65536);
	test_round(&test);
	test_user_init(&test, &user, 1000, 4096);
	testing_recording_act(&user.recording, 1000);
	nothing.size = user.recording.scan->file.file.size;
	user.recording.scan->reader.file = &nothing;
	(void)flight_round(test.flight, test.now_ns + 1);
	flight_counts(test.flight, &counts);
	assert(counts.left_out == 1 && counts.events == 0);
	test_user_deinit(&test, &user);
	flight_free(test.flight);
}
