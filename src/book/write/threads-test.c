/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Threads on the same devices, with no lock but the writer's own: nothing is lost, and every buffer
 * that a thread left alive is there. Under a race detector this test checks the writer's locking.
 */

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/testing/unit.h"
#include "book/testing/book-testing.h"
#include "book/write/writer.h"

#define THREADS 4u
#define THREADS_DEVICES 3u
#define THREADS_KEYS 512u
#define THREADS_EVENTS 60000u

struct threads_one {
	struct testing_book *book;
	pthread_t id;
	uint32_t number;
	uint64_t seed;
	uint64_t allocs[THREADS_DEVICES];
	uint64_t frees[THREADS_DEVICES];
	uint8_t live[THREADS_DEVICES][THREADS_KEYS];
};

static uint64_t threads_address(const struct threads_one *one, uint32_t key)
{
	return (uint64_t)(one->number * THREADS_KEYS + key) * 64;
}

/* Keys of its own, on shared devices; with a name and an owner now and then. */
static void *threads_run(void *context)
{
	struct threads_one *one = context;
	struct writer *writer = one->book->writer;
	struct testing_rng rng = {one->seed};

	for (uint32_t i = 0; i < THREADS_EVENTS; i++) {
		uint32_t device = testing_below(&rng, THREADS_DEVICES);
		uint32_t key = testing_below(&rng, THREADS_KEYS);
		struct shard_buffer buffer = testing_buffer(0, threads_address(one, key), 64);
		struct book_hot hot;

		if (one->live[device][key]) {
			writer_free_buffer(writer, device, &buffer);
			one->frees[device]++;
		} else {
			buffer.name = intern_string(writer, testing_text(key % TESTING_TEXTS),
						    BOOK_NAME_MAX);
			writer_alloc(writer, device, &buffer, key % 50 ? 0 : 1);
			one->allocs[device]++;
		}
		one->live[device][key] ^= 1;
		if (i % 64 == 0)
			assert(writer_counters(writer, device, 0, 0, &hot) &&
			       hot.buffers <= hot.allocs);
		if (i % 500 == 0)
			writer_mark(writer, 1, one->number, 0);
	}
	return NULL;
}

static void threads_check(const struct threads_one *all, uint32_t device, const struct view *view)
{
	uint8_t *found = calloc(THREADS, THREADS_KEYS);
	uint64_t allocs = 0, frees = 0;
	struct view_iterator it = {0};

	assert(found && view->adds_up && view->inexact == 0);
	while (view_next(view, &it))
		found[it.record->address / 64] = 1;
	for (uint32_t t = 0; t < THREADS; t++) {
		allocs += all[t].allocs[device];
		frees += all[t].frees[device];
		assert(memcmp(found + (size_t)t * THREADS_KEYS, all[t].live[device],
			      THREADS_KEYS) == 0);
	}
	assert(view->hot[0].allocs == allocs && view->hot[0].frees == frees);
	assert(view->number == allocs + frees && view->live == allocs - frees);
	free(found);
}

UNIT(concurrent_writers_lose_no_event)
{
	struct threads_one *all = calloc(THREADS, sizeof(*all));
	struct view *view = calloc(1, sizeof(*view));
	struct testing_rng rng = testing_rng_new();
	struct testing_book book;

	assert(all && view);
	testing_book_open(&book);
	for (uint32_t t = 0; t < THREADS; t++) {
		all[t] = (struct threads_one){
			.book = &book, .number = t, .seed = testing_random(&rng)};
		assert(pthread_create(&all[t].id, NULL, threads_run, &all[t]) == 0);
	}
	for (uint32_t t = 0; t < THREADS; t++)
		pthread_join(all[t].id, NULL);
	for (uint32_t device = 0; device < THREADS_DEVICES; device++) {
		assert(view_read(view, &book.reader, device, VIEW_LIVING) == 0);
		threads_check(all, device, view);
		assert(view_read(view, &book.reader, device, VIEW_DEAD) == 0);
		threads_check(all, device, view);
	}
	assert(reader_refresh(&book.reader) == 0);
	assert(book.reader.header.rejected.lock == 0);
	assert(book.reader.header.mark_count == THREADS * (THREADS_EVENTS / 500));
	view_deinit(view);
	free(view);
	free(all);
	testing_book_deinit(&book);
}
