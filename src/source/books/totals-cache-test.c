/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A reader with a cache sees what a new reader sees, whatever has happened in between; and where
 * nothing has, it reads next to nothing.
 */

#include "source/books/totals-cache.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/testing/unit.h"
#include "book/testing/book-testing.h"
#include "book/testing/testing-memory.h"
#include "model/snapshot-request.h"
#include "model/snapshot.h"
#include "source/books/book-source.h"
#include "source/books/scan.h"

#define TOTALS_CACHE_ROUNDS 2000u
#define TOTALS_CACHE_USED 12u /* devices of the random test */

struct totals_cache_test {
	struct testing_memory memory;
	struct scan_book again; /* reads repeatedly, with its cache */
	struct view view;
	uint32_t reads;
};

static void totals_cache_count(struct testing_memory *memory)
{
	struct totals_cache_test *test = memory->context;

	test->reads++;
}

static void totals_cache_reader(struct totals_cache_test *test, struct scan_book *ret_book)
{
	*ret_book = (struct scan_book){.owner = {.id.pid = 7, .comm = "memo"}, .alive = true};
	assert(reader_init(&ret_book->reader, &test->memory.file) == 0);
}

static struct totals_cache_test *totals_cache_begin(uint32_t units)
{
	struct totals_cache_test *test = calloc(1, sizeof(*test));

	assert(test);
	testing_memory_init(&test->memory, BOOK_POOL_OFFSET + (uint64_t)units * BOOK_UNIT);
	testing_memory_write(&test->memory, BOOK_RING_MIN);
	test->memory.context = test;
	test->memory.before_read = totals_cache_count;
	totals_cache_reader(test, &test->again);
	return test;
}

static void totals_cache_end(struct totals_cache_test *test)
{
	totals_cache_deinit(&test->again.totals_cache);
	reader_deinit(&test->again.reader);
	view_deinit(&test->view);
	testing_memory_deinit(&test->memory);
	free(test);
}

static struct snapshot *totals_cache_take(struct totals_cache_test *test, struct scan_book *book)
{
	const struct snapshot_request request = {0};
	struct snapshot *snapshot = snapshot_new(1);

	assert(snapshot && book_collect(book, &request, &test->view, snapshot) == 0);
	assert(snapshot->process_count == 1 && snapshot->note_count == 0);
	return snapshot;
}

static bool totals_cache_same_text(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

static void totals_cache_compare(const struct snapshot_part *a, const struct snapshot_part *b)
{
	assert(a->device == b->device);
	for (uint32_t type = 0; type < BOOK_TYPES; type++) {
		struct snapshot_memory left = a->memory[type], right = b->memory[type];

		/* Clocks are compared at each read: times differ by some nanoseconds. */
		assert(!left.last_ns == !right.last_ns);
		left.last_ns = right.last_ns = 0;
		assert(left.bound == right.bound);
		assert(memcmp(&left, &right, offsetof(struct snapshot_memory, bound)) == 0);
	}
	assert(a->facts.declared == b->facts.declared && a->facts.remote == b->facts.remote);
	assert(a->facts.unique_id == b->facts.unique_id);
	assert(!a->facts.closed_ns == !b->facts.closed_ns);
	assert(totals_cache_same_text(a->facts.arch, b->facts.arch));
	assert(memcmp(a->facts.capacity, b->facts.capacity, sizeof(a->facts.capacity)) == 0);
}

/* Returns how often the reader with the cache read. */
static uint32_t totals_cache_check(struct totals_cache_test *test)
{
	struct snapshot *mine, *fresh;
	struct scan_book first;
	uint32_t reads;

	totals_cache_reader(test, &first);
	fresh = totals_cache_take(test, &first);
	totals_cache_deinit(&first.totals_cache);
	reader_deinit(&first.reader);
	test->reads = 0;
	mine = totals_cache_take(test, &test->again);
	reads = test->reads;
	assert(mine->processes[0].part_count == fresh->processes[0].part_count);
	assert(mine->processes[0].exact == fresh->processes[0].exact);
	for (size_t i = 0; i < mine->processes[0].part_count; i++)
		totals_cache_compare(&mine->processes[0].parts[i], &fresh->processes[0].parts[i]);
	snapshot_free(mine);
	snapshot_free(fresh);
	return reads;
}

static void totals_cache_alloc(struct totals_cache_test *test, uint32_t device, uint64_t address)
{
	struct shard_buffer buffer = testing_buffer(0, address, 64);

	writer_alloc(test->memory.writer, device, &buffer, 0);
}

UNIT(unchanged_totals_are_read_from_the_cache)
{
	struct totals_cache_test *test = totals_cache_begin(400);

	for (uint32_t device = 0; device < 4; device++)
		totals_cache_alloc(test, device, 0x1000);
	totals_cache_check(test);
	assert(totals_cache_check(test) == 1 + 4); /* the header, and each shard once */
	totals_cache_alloc(test, 2, 0x2000);
	assert(totals_cache_check(test) == 1 + 4 + 2);
	assert(totals_cache_check(test) == 1 + 4);
	totals_cache_alloc(test, 9,
			   0x1000); /* a new one: all are searched again, and then cached */
	assert(totals_cache_check(test) > 1 + 5 + 2);
	assert(totals_cache_check(test) == 1 + 5);
	totals_cache_end(test);
}

static void totals_cache_step(struct totals_cache_test *test, struct testing_rng *rng)
{
	uint32_t device = testing_below(rng, TOTALS_CACHE_USED) * 5;
	uint64_t address = 0x1000 * (1 + testing_below(rng, 20));
	struct writer_device facts = {
		.unique_id = testing_random(rng) % 3,
		.arch = testing_below(rng, 2) ? "wormhole_b0" : "blackhole",
		.remote = testing_below(rng, 2),
		.memory[0].capacity = testing_random(rng) % 5 << 30,
	};
	struct shard_buffer who =
		testing_buffer(testing_below(rng, BOOK_TYPES), address, 64 + testing_below(rng, 3));

	switch (testing_below(rng, 16)) {
	case 0:
		writer_declare(test->memory.writer, device, &facts);
		break;
	case 1:
		writer_close_device(test->memory.writer, device);
		break;
	case 2:
		break; /* no change */
	default:
		if (testing_below(rng, 2))
			writer_alloc(test->memory.writer, device, &who, 0);
		else
			writer_free_buffer(test->memory.writer, device, &who);
	}
}

UNIT(every_change_invalidates_the_totals_cache)
{
	struct totals_cache_test *test = totals_cache_begin(29 * TOTALS_CACHE_USED + 16);
	struct testing_rng rng = testing_rng_new();
	uint32_t rounds = testing_quick() ? TOTALS_CACHE_ROUNDS / 20 : TOTALS_CACHE_ROUNDS;

	for (uint32_t i = 0; i < rounds; i++) {
		for (uint32_t n = testing_below(&rng, 4); n > 0; n--)
			totals_cache_step(test, &rng);
		if (testing_below(&rng, 200) == 0) /* more than a ring holds */
			for (uint32_t n = 0; n < 2 * BOOK_RING_MIN; n++)
				totals_cache_step(test, &rng);
		totals_cache_check(test);
	}
	totals_cache_end(test);
}

/* The book of an exited process is read by its own rule, and never from the cache. */
UNIT(totals_of_dead_processes_are_not_cached)
{
	struct totals_cache_test *test = totals_cache_begin(64);
	struct snapshot *snapshot;

	totals_cache_alloc(test, 1, 0x1000);
	totals_cache_check(test);
	totals_cache_alloc(test, 1, 0x2000);
	test->again.alive = false;
	snapshot = snapshot_new(1);
	assert(snapshot && book_collect(&test->again, &(struct snapshot_request){0}, &test->view,
					snapshot) == 0);
	assert(snapshot->processes[0].parts[0].memory[0].buffers == 2);
	snapshot_free(snapshot);
	totals_cache_end(test);
}

/*
 * A process's thousand devices are read each time, like those of a library that does not count
 * changes.
 */
UNIT(the_totals_cache_is_bounded)
{
	struct totals_cache_test *test =
		totals_cache_begin(29 * (TOTALS_CACHE_DEVICES_MAX + 2) + 16);
	struct writer_device facts = {.arch = "wormhole_b0"};

	for (uint32_t device = 0; device <= TOTALS_CACHE_DEVICES_MAX; device++)
		totals_cache_alloc(test, device, 0x1000);
	totals_cache_check(test);
	assert(totals_cache_check(test) > 3 * TOTALS_CACHE_DEVICES_MAX &&
	       test->again.totals_cache.bytes == 0);
	totals_cache_end(test);

	test = totals_cache_begin(64);
	for (uint32_t device = 0; device <= TOTALS_CACHE_DEVICES_MAX; device++)
		writer_declare(test->memory.writer, device, &facts);
	totals_cache_check(test);
	assert(totals_cache_check(test) > TOTALS_CACHE_DEVICES_MAX &&
	       test->again.totals_cache.bytes == 0);
	totals_cache_end(test);

	test = totals_cache_begin(64);
	totals_cache_alloc(test, 1, 0x1000);
	testing_memory_patch(&test->memory, offsetof(struct book_header, changes), &(uint64_t){0},
			     sizeof(uint64_t));
	totals_cache_check(test);
	assert(totals_cache_check(test) > 1 + 1);
	totals_cache_end(test);
}

/* The bound on all books together: later books do without a cache until memory is released. */
UNIT(all_totals_caches_together_are_bounded)
{
	enum {
		MANY = TOTALS_CACHE_BYTES_MAX /
			       (TOTALS_CACHE_DEVICES_MAX * sizeof(struct totals_cache_shard)) +
		       2
	};
	struct totals_cache *memos = calloc(MANY, sizeof(*memos));
	struct idle_counters known = {.number = 1};
	size_t kept = 0, bytes = 0;

	assert(memos);
	for (size_t i = 0; i < MANY; i++) {
		for (uint32_t device = 0; device < TOTALS_CACHE_DEVICES_MAX; device++)
			totals_cache_add_shard(&memos[i], device, &known);
		totals_cache_complete(&memos[i], 1);
		kept += totals_cache_is_current(&memos[i], 1, false);
		bytes += memos[i].bytes;
	}
	assert(kept > 0 && kept < MANY && bytes <= TOTALS_CACHE_BYTES_MAX);
	totals_cache_deinit(&memos[0]);
	for (uint32_t device = 0; device < TOTALS_CACHE_DEVICES_MAX; device++)
		totals_cache_add_shard(&memos[MANY - 1], device, &known);
	totals_cache_complete(&memos[MANY - 1], 1);
	assert(totals_cache_is_current(&memos[MANY - 1], 1, false));
	for (size_t i = 0; i < MANY; i++)
		totals_cache_deinit(&memos[i]);
	free(memos);
}
