/* SPDX-License-Identifier: Apache-2.0 */

/* Whatever is added by whomever: what is kept fits, can be restored, and is shared fairly. */

#include "recording/flight/retention.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/clock.h"
#include "base/testing/unit.h"
#include "book/testing/book-testing.h"

#define TEST_USERS 4u
#define TEST_BOOKS 3u
#define TEST_DEVICES 3u
#define TEST_SIZE (UINT64_C(1) << 20)

/* A device, as a recorder would write it. */
struct test_stream {
	uint64_t number;
	bool has_begun;
};

struct test {
	struct testing_rng rng;
	struct retention *retention;
	struct test_stream streams[TEST_USERS][TEST_BOOKS][TEST_DEVICES];
	uint64_t now_ns;
	uint8_t contents[65536];
};

static void test_init(struct test *test, uint64_t size, uint64_t time_ns)
{
	const struct retention_limits limits = {.size_max = size, .time_ns = time_ns};

	memset(test, 0, sizeof(*test));
	test->rng = testing_rng_new();
	test->now_ns = 1000 * NS_PER_S;
	assert(retention_new(&test->retention, &limits) == 0);
}

/* A chunk of a device; its contents say which one it is. */
static void test_add(struct test *test, uint32_t user, uint32_t book, uint32_t device,
		     uint32_t kind, uint32_t length)
{
	struct test_stream *stream = &test->streams[user][book][device];
	struct recording_entry entry = {
		.kind = stream->has_begun ? kind : RECORDING_KEYFRAME,
		.book = book,
		.device = kind == RECORDING_BYTES ? RECORDING_NONE : device,
		.length = length,
		.realtime_now = test->now_ns,
		.first = stream->number,
		.last = stream->number,
	};

	if (kind == RECORDING_BYTES)
		entry.kind = kind;
	else
		stream->has_begun = true;
	if (entry.kind == RECORDING_EVENTS || entry.kind == RECORDING_GAP) {
		entry.first = stream->number + 1;
		stream->number += 1 + testing_below(&test->rng, 1000);
		entry.last = stream->number;
		entry.count = (uint32_t)(entry.last - entry.first + 1);
	}
	memcpy(test->contents, &entry, sizeof(entry));
	assert(retention_add(test->retention, user, &entry, test->contents) == 0);
	/* As a recorder does it. */
	if (entry.kind == RECORDING_GAP)
		test_add(test, user, book, device, RECORDING_KEYFRAME, length);
}

struct test_walk {
	uint64_t last[TEST_DEVICES];
	bool has_begun[TEST_DEVICES];
	uint64_t begun_ns[TEST_DEVICES];
	uint64_t size;
	uint64_t time_ns;
};

/* From a keyframe on without holes, in order, and with the contents that were added. */
static int test_see(void *context, const struct recording_entry *entry, const void *contents)
{
	struct test_walk *walk = context;
	bool is_first;

	assert(memcmp(contents, entry, bits_min(sizeof(*entry), entry->length)) == 0);
	assert(entry->realtime_now >= walk->time_ns);
	walk->time_ns = entry->realtime_now;
	walk->size += entry->length + RETENTION_CHUNK_COST;
	if (entry->kind == RECORDING_BYTES)
		return 0;
	assert(entry->device < TEST_DEVICES);
	is_first = !walk->has_begun[entry->device];
	if (is_first) {
		assert(entry->kind == RECORDING_KEYFRAME);
		walk->begun_ns[entry->device] = entry->realtime_now;
	} else if (entry->kind == RECORDING_EVENTS || entry->kind == RECORDING_GAP) {
		assert(entry->first == walk->last[entry->device] + 1);
	} else {
		assert(entry->last == walk->last[entry->device]);
	}
	walk->has_begun[entry->device] = true;
	walk->last[entry->device] = entry->last;
	return 0;
}

static struct test_walk test_look(struct test *test, uint32_t user, uint32_t book, uint64_t since)
{
	struct test_walk walk = {0};
	int r = retention_walk(test->retention, user, book, since, test_see, &walk);

	assert(r == 0 || (r == -ENOENT && walk.size == 0));
	for (uint32_t device = 0; device < TEST_DEVICES; device++) {
		if (walk.has_begun[device])
			assert(walk.last[device] == test->streams[user][book][device].number);
	}
	return walk;
}

static void test_look_at_all(struct test *test)
{
	uint64_t size = 0;

	for (uint32_t user = 0; user < TEST_USERS; user++) {
		uint64_t own = 0;

		for (uint32_t book = 0; book < TEST_BOOKS; book++) {
			own += test_look(test, user, book, 0).size;
			test_look(test, user, book, test->now_ns - 5 * NS_PER_S);
		}
		assert(own == retention_user_size(test->retention, user));
		size += own;
	}
	assert(size == retention_size(test->retention));
}

UNIT(is_never_more_than_it_may_be_and_always_restorable)
{
	static const uint32_t kinds[] = {
		RECORDING_EVENTS, RECORDING_EVENTS, RECORDING_EVENTS,   RECORDING_EVENTS,
		RECORDING_BYTES,  RECORDING_SITES,  RECORDING_KEYFRAME, RECORDING_GAP,
	};
	static struct test test;

	test_init(&test, TEST_SIZE, 60 * NS_PER_S);
	for (uint32_t i = 0; i < 20000; i++) {
		struct testing_rng *rng = &test.rng;
		/* The first users have far more than the others; some chunks are large. */
		uint32_t user = testing_below(rng, 1 + testing_below(rng, TEST_USERS));
		uint32_t length = testing_below(rng, 100) == 0 ? testing_below(rng, 65536)
							       : testing_below(rng, 4096);

		test.now_ns += testing_below(rng, 20000000);
		test_add(&test, user, testing_below(rng, TEST_BOOKS),
			 testing_below(rng, TEST_DEVICES),
			 kinds[testing_below(rng, ARRAY_SIZE(kinds))],
			 (uint32_t)bits_max(length, sizeof(struct recording_entry)));
		assert(retention_size(test.retention) <= TEST_SIZE);
		if (i % 50 == 0)
			retention_expire(test.retention, test.now_ns);
		if (i % 1000 == 0)
			retention_drop_book(test.retention, user, testing_below(rng, TEST_BOOKS));
		if (i % 100 == 0)
			test_look_at_all(&test);
	}
	assert(retention_dropped(test.retention) > 100);
	retention_free(test.retention);
}

/* A second of the quiet user is 10 KiB, one of the loud user is 600 KiB. */
UNIT(a_loud_user_does_not_push_out_the_minute_of_a_quiet_one)
{
	static struct test test;
	struct test_walk walk;

	test_init(&test, 4 * TEST_SIZE, 600 * NS_PER_S);
	for (uint32_t second = 0; second < 120; second++) {
		test.now_ns += NS_PER_S;
		test_add(&test, 1, 0, 0, second % 20 ? RECORDING_EVENTS : RECORDING_KEYFRAME,
			 10240);
		for (uint32_t i = 0; i < 60; i++)
			test_add(&test, 0, i % TEST_BOOKS, i % TEST_DEVICES,
				 i % 10 < 3 ? RECORDING_KEYFRAME : RECORDING_EVENTS, 10240);
		assert(retention_size(test.retention) <= 4 * TEST_SIZE);
	}
	walk = test_look(&test, 1, 0, 0);
	assert(walk.has_begun[0] && walk.begun_ns[0] <= test.now_ns - 119 * NS_PER_S);
	walk = test_look(&test, 0, 0, 0);
	assert(walk.has_begun[0] && walk.begun_ns[0] > test.now_ns - 60 * NS_PER_S);
	assert(retention_user_size(test.retention, 0) > TEST_SIZE);
	retention_free(test.retention);
}

/* The loud one alone has it all, and gives it up when others come. */
UNIT(what_nobody_else_needs_is_for_who_needs_it)
{
	static struct test test;

	test_init(&test, TEST_SIZE, 600 * NS_PER_S);
	for (uint32_t i = 0; i < 1000; i++)
		test_add(&test, 0, 0, 0, i % 4 ? RECORDING_EVENTS : RECORDING_KEYFRAME, 4096);
	assert(retention_user_size(test.retention, 0) > TEST_SIZE * 9 / 10);
	for (uint32_t i = 0; i < 1000; i++)
		test_add(&test, 1, 0, 0, i % 4 ? RECORDING_EVENTS : RECORDING_KEYFRAME, 4096);
	assert(retention_user_size(test.retention, 0) > TEST_SIZE * 4 / 10);
	assert(retention_user_size(test.retention, 1) > TEST_SIZE * 4 / 10);
	retention_drop_user(test.retention, 0);
	assert(retention_size(test.retention) == retention_user_size(test.retention, 1));
	retention_free(test.retention);
}

UNIT(what_is_too_old_goes_but_the_time_stays_covered)
{
	static struct test test;
	struct test_walk walk;

	test_init(&test, 64 * TEST_SIZE, 10 * NS_PER_S);
	for (uint32_t second = 0; second < 100; second++) {
		test.now_ns += NS_PER_S;
		test_add(&test, 0, 0, 0, second % 4 ? RECORDING_EVENTS : RECORDING_KEYFRAME, 512);
		/* A quiet device has one keyframe, however old. */
		if (second < 3)
			test_add(&test, 0, 0, 1, RECORDING_EVENTS, 512);
		retention_expire(test.retention, test.now_ns);
	}
	walk = test_look(&test, 0, 0, 0);
	assert(walk.begun_ns[0] <= test.now_ns - 10 * NS_PER_S);
	assert(walk.begun_ns[0] > test.now_ns - 15 * NS_PER_S);
	assert(walk.has_begun[1] && walk.begun_ns[1] < test.now_ns - 90 * NS_PER_S);
	/* Of this a part. */
	walk = test_look(&test, 0, 0, test.now_ns - 5 * NS_PER_S);
	assert(walk.begun_ns[0] <= test.now_ns - 5 * NS_PER_S);
	assert(walk.begun_ns[0] > test.now_ns - 10 * NS_PER_S);
	retention_free(test.retention);
}

UNIT(a_chunk_that_cannot_fit_is_not_kept_and_pushes_nobody_out)
{
	static struct test test;

	test_init(&test, 32768, 600 * NS_PER_S);
	test_add(&test, 1, 0, 0, RECORDING_KEYFRAME, 8192);
	test_add(&test, 0, 0, 0, RECORDING_KEYFRAME, 65536);
	assert(retention_user_size(test.retention, 0) == 0);
	test_add(&test, 0, 0, 0, RECORDING_EVENTS, 512); /* without its keyframe it means nothing */
	assert(retention_user_size(test.retention, 0) == 0);
	assert(retention_user_size(test.retention, 1) == 8192 + RETENTION_CHUNK_COST);
	retention_free(test.retention);
}

/* A chunk that costs 4096, a second after the last one. */
static void test_step(struct test *test, uint32_t device, uint32_t kind)
{
	test->now_ns += NS_PER_S;
	test_add(test, 0, 0, device, kind, 4096 - RETENTION_CHUNK_COST);
}

/* In seconds after the beginning; 0 = there is nothing of it. */
static bool test_begins(struct test *test, uint64_t a, uint64_t b, uint64_t c)
{
	const uint64_t expected[TEST_DEVICES] = {a, b, c};
	const struct test_walk walk = test_look(test, 0, 0, 0);

	for (uint32_t i = 0; i < TEST_DEVICES; i++) {
		if (walk.has_begun[i] != (expected[i] > 0) ||
		    (expected[i] && walk.begun_ns[i] != (1000 + expected[i]) * NS_PER_S))
			return false;
	}
	return true;
}

UNIT(the_oldest_interval_goes_first_but_not_the_last_one_of_a_device)
{
	static struct test test;

	test_init(&test, UINT64_C(4) * 4096, 600 * NS_PER_S);
	test_step(&test, 0, RECORDING_KEYFRAME);
	test_step(&test, 1, RECORDING_KEYFRAME);
	test_step(&test, 1, RECORDING_KEYFRAME);
	test_step(&test, 2, RECORDING_KEYFRAME);
	assert(test_begins(&test, 1, 2, 4));
	test_step(&test, 2, RECORDING_KEYFRAME);
	assert(test_begins(&test, 1, 3, 4));
	test_step(&test, 0, RECORDING_KEYFRAME);
	assert(test_begins(&test, 1, 3, 5));
	test_step(&test, 1, RECORDING_KEYFRAME);
	assert(test_begins(&test, 6, 3, 5));
	test_step(&test, 1, RECORDING_KEYFRAME);
	assert(test_begins(&test, 6, 7, 5));
	assert(retention_dropped(test.retention) == 4);
	retention_free(test.retention);
}

UNIT(of_two_devices_with_older_intervals_the_older_one_goes)
{
	static struct test test;

	for (uint32_t first = 0; first < 2; first++) {
		test_init(&test, UINT64_C(4) * 4096, 600 * NS_PER_S);
		for (uint32_t i = 0; i < 4; i++)
			test_step(&test, i < 2 ? first : 1 - first, RECORDING_KEYFRAME);
		test_step(&test, 2, RECORDING_KEYFRAME);
		assert(first == 0 ? test_begins(&test, 2, 3, 5) : test_begins(&test, 3, 2, 5));
		retention_free(test.retention);
	}
}

UNIT(of_last_intervals_the_largest_goes)
{
	static struct test test;

	for (uint32_t large = 0; large < TEST_DEVICES; large++) {
		const uint32_t small = (large + 1) % TEST_DEVICES;
		uint64_t begins[TEST_DEVICES] = {1, 2, 3};

		test_init(&test, UINT64_C(5) * 4096, 600 * NS_PER_S);
		for (uint32_t i = 0; i < TEST_DEVICES; i++)
			test_step(&test, i, RECORDING_KEYFRAME);
		test_step(&test, large, RECORDING_EVENTS);
		test_step(&test, large, RECORDING_EVENTS);
		test_step(&test, small, RECORDING_EVENTS);
		begins[large] = 0;
		assert(test_begins(&test, begins[0], begins[1], begins[2]));
		retention_free(test.retention);
	}
}
