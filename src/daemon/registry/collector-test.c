/* SPDX-License-Identifier: Apache-2.0 */

/* How often books are read, and how old an answer may be. */

#include "daemon/registry/collector.h"

#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/testing/unit.h"
#include "book/testing/book-testing.h"
#include "daemon/registry/access.h"
#include "daemon/registry/tracked.h"
#include "model/snapshot-request.h"
#include "model/snapshot.h"
#include "source/proc/proc.h"

#define ASKERS 8

struct world {
	struct collector *collector;
	struct proc proc;
	struct testing_book book;
	struct tracked *tracked;
	sem_t began; /* posted at the start of each reading */
};

static struct book_list *play_books(void *context)
{
	struct world *world = context;
	struct book_list *book_list = calloc(1, sizeof(*book_list) + sizeof(struct tracked *));

	assert(book_list);
	book_list->refs = 1;
	book_list->count = 1;
	book_list->list[0] = tracked_ref(world->tracked);
	assert(sem_post(&world->began) == 0);
	return book_list;
}

static void alloc(struct world *world, uint64_t address)
{
	struct testing_op op = {.kind = TESTING_ALLOC, .buffer = testing_buffer(0, address, 4096)};

	testing_op_do(world->book.writer, &op);
}

static void world_open(struct world *world)
{
	struct collector_config config = {.context = world, .book_list = play_books};
	struct scan_book *found;
	char path[64];

	assert(proc_open(&world->proc) == 0 && sem_init(&world->began, 0, 0) == 0);
	config.proc = &world->proc;
	assert(collector_new(&world->collector, &config) == 0);
	testing_book_init(&world->book, TESTING_SIZE, 1024);
	testing_book_write(&world->book);
	alloc(world, 0x1000);
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", world->book.fd);
	assert(scan_book_new_consume(&found, open(path, O_RDONLY | O_CLOEXEC)) == 0);
	found->uid = 5;
	found->alive = true;
	found->owner = (struct proc_facts){.id.pid = 77, .ns_pid = 77, .comm = "player"};
	world->tracked = tracked_new_consume(found, 0, "");
	assert(world->tracked);
}

static void world_close(struct world *world)
{
	collector_free(world->collector);
	tracked_unref(world->tracked);
	testing_book_deinit(&world->book);
	proc_close(&world->proc);
	assert(sem_destroy(&world->began) == 0);
}

static uint64_t now(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

static uint64_t used(const struct snapshot *snapshot)
{
	for (size_t i = 0; i < snapshot->process_count; i++) {
		if (snapshot->processes[i].id.pid == 77)
			return snapshot->processes[i].parts[0].memory[0].used;
	}
	return 0;
}

struct asker {
	struct world *world;
	uint64_t since_ns;
	uint64_t used;
	pthread_t thread;
};

static void *ask(void *context)
{
	struct asker *asker = context;
	struct snapshot *snapshot;

	assert(collector_totals(asker->world->collector, asker->since_ns, &snapshot) == 0);
	asker->used = used(snapshot);
	snapshot_free(snapshot);
	return NULL;
}

static void ask_aside(struct asker *asker, struct world *world)
{
	*asker = (struct asker){.world = world, .since_ns = now()};
	assert(pthread_create(&asker->thread, NULL, ask, asker) == 0);
}

UNIT(one_reading_answers_everybody_who_waited_for_it)
{
	struct asker first, others[ASKERS];
	struct world world;

	world_open(&world);
	/* A slow book. */
	pthread_mutex_lock(&world.tracked->book_lock);
	ask_aside(&first, &world);
	assert(sem_wait(&world.began) == 0);
	for (size_t i = 0; i < ASKERS; i++)
		ask_aside(&others[i], &world);
	alloc(&world, 0x3000); /* before any of these requests is answered */
	pthread_mutex_unlock(&world.tracked->book_lock);
	assert(pthread_join(first.thread, NULL) == 0);
	for (size_t i = 0; i < ASKERS; i++) {
		assert(pthread_join(others[i].thread, NULL) == 0);
		assert(others[i].used == 8192);
	}
	/* The others arrived during the first reading, so they share a second one. */
	assert(collector_readings(world.collector) == 2);
	world_close(&world);
}

UNIT(a_question_is_answered_by_a_reading_begun_after_it)
{
	struct snapshot *first, *same, *later;
	struct world world;
	uint64_t before = now();

	world_open(&world);
	assert(collector_totals(world.collector, before, &first) == 0 && used(first) == 4096);
	alloc(&world, 0x3000);
	/* This request also came before the reading, but got here late. */
	assert(collector_totals(world.collector, before, &same) == 0 && same == first);
	assert(collector_readings(world.collector) == 1);
	assert(collector_totals(world.collector, now(), &later) == 0 && used(later) == 8192);
	assert(collector_readings(world.collector) == 2);
	/* A snapshot that is still held stays unchanged. */
	assert(used(first) == 4096);
	snapshot_free(first);
	snapshot_free(same);
	snapshot_free(later);
	world_close(&world);
}

UNIT(readings_with_buffers_are_their_own)
{
	const struct access_peer stranger = {.uid = 6}, maker = {.uid = 5};
	const struct snapshot_request request = {.buffers = true};
	struct collector_wish wish = {.request = &request};
	struct snapshot *snapshot;
	struct world world;

	world_open(&world);
	assert(collector_read(world.collector, &wish, &snapshot) == 0);
	assert(snapshot->buffer_count == 1 && snapshot->refs == 1);
	snapshot_free(snapshot);
	wish.asker = &stranger;
	assert(collector_read(world.collector, &wish, &snapshot) == 0);
	assert(snapshot->buffer_count == 0 && used(snapshot) == 0);
	snapshot_free(snapshot);
	wish.asker = &maker;
	assert(collector_read(world.collector, &wish, &snapshot) == 0);
	assert(snapshot->buffer_count == 1);
	snapshot_free(snapshot);
	assert(collector_readings(world.collector) == 0);
	world_close(&world);
}
