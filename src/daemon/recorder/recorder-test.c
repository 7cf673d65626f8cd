/* SPDX-License-Identifier: Apache-2.0 */

/* The past with real books: what it waits for, and what one book can make it remember. */

#include "daemon/recorder/recorder.h"
#include "model/types.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/testing/unit.h"
#include "base/threads/loop.h"
#include "base/threads/worker.h"
#include "book/testing/book-testing.h"
#include "daemon/daemon.h"
#include "daemon/notify/notice.h"
#include "daemon/recorder/recorder-private.h"
#include "daemon/registry/collector.h"
#include "daemon/registry/registry.h"
#include "daemon/registry/tracked.h"

#define RECORDER_TESTING_BOOKS 12u

struct recorder_testing {
	struct loop *loop;
	struct worker *work;
	struct registry *registry;
	struct collector *collector;
	struct recorder *recorder;
	struct testing_book book;
	struct tracked *tracked;
	uint64_t told;
	const struct tracked *judged[RECORDER_TESTING_BOOKS]; /* in that order */
	uint32_t judged_count, read;
};

static void play_tracked(void *context, struct tracked *tracked)
{
}

static void play_judged(void *context, struct tracked *tracked, bool is_read)
{
	struct recorder_testing *world = context;

	assert(world->judged_count < RECORDER_TESTING_BOOKS);
	world->judged[world->judged_count++] = tracked;
	world->read += is_read;
}

static struct book_list *play_books(void *context)
{
	return registry_books(context);
}

static void play_told(void *context, const struct notice *notice)
{
	((struct recorder_testing *)context)->told++;
}

/* A process with a book. */
static void recorder_testing_add(struct recorder_testing *world, struct testing_book *book,
				 uint32_t pid)
{
	struct scan_book *found;
	char path[64];

	testing_book_init(book, TESTING_SIZE, 1024);
	testing_book_write(book);
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", book->fd);
	assert(scan_book_new_consume(&found, open(path, O_RDONLY | O_CLOEXEC)) == 0);
	found->alive = true;
	found->owner = (struct proc_facts){.id.pid = pid, .ns_pid = pid, .comm = "player"};
	assert(registry_add_consume(world->registry, found, -1, NULL, &world->tracked) == 0);
}

/* One process with one book. */
static void recorder_testing_open(struct recorder_testing *world)
{
	struct registry_config registry = {.scan_s = 3600};
	struct recorder_config recorder = {
		.context = world, .told = play_told, .judged = play_judged};
	struct collector_config collector = {.book_list = play_books};

	*world = (struct recorder_testing){0};
	assert(loop_new(&world->loop) == 0 &&
	       worker_new(&world->work,
			  &(struct worker_config){.name = "recorder", .loop = world->loop}) == 0);
	registry.loop = recorder.loop = world->loop;
	registry.work = recorder.work = world->work;
	registry.hooks = (struct registry_hooks){
		.added = play_tracked, .notice = play_tracked, .ended = play_tracked};
	assert(registry_new(&world->registry, &registry) == 0);
	collector.context = world->registry;
	collector.proc = registry_proc(world->registry);
	assert(collector_new(&world->collector, &collector) == 0);
	recorder.registry = world->registry;
	recorder.collector = world->collector;
	assert(recorder_new_past(&world->recorder, &recorder) == 0);

	recorder_testing_add(world, &world->book, 77);
}

static void recorder_testing_close(struct recorder_testing *world)
{
	worker_free(world->work);
	registry_free(world->registry);
	recorder_free_past(world->recorder);
	collector_free(world->collector);
	loop_free(world->loop);
	testing_book_deinit(&world->book);
}

static void unknown_free(struct recorder_testing *world)
{
	struct testing_op op = {.kind = TESTING_FREE, .buffer = testing_buffer(0, 0x9000, 0)};

	testing_op_do(world->book.writer, &op);
}

static struct book_incident *entry_of(struct recorder_testing *world, uint32_t kind, uint32_t index)
{
	return (void *)(world->book.base + book_incident_offset(kind, index));
}

static void *look(void *context)
{
	recorder_look(((struct recorder_testing *)context)->recorder);
	return NULL;
}

UNIT(the_loop_does_not_wait_for_a_slow_reader)
{
	struct recorder_testing world;
	struct daemon daemon = {0};
	uint64_t counts[TYPES_INCIDENTS];
	pthread_t reader;

	recorder_testing_open(&world);
	unknown_free(&world);
	/* A book that takes long, and somebody who reads it. */
	pthread_mutex_lock(&world.tracked->book_lock);
	assert(pthread_create(&reader, NULL, look, &world) == 0);
	usleep(20000); /* mostly it waits by then */
	recorder_incidents(world.recorder, counts);
	recorder_hurry(world.recorder, world.tracked);
	daemon_keep_added(&daemon, world.tracked);
	daemon_keep_judged(&daemon, world.tracked, true);
	daemon_keep_close(&daemon);
	assert(counts[BOOK_INCIDENT_UNKNOWN_FREE] == 0);
	pthread_mutex_unlock(&world.tracked->book_lock);
	assert(pthread_join(reader, NULL) == 0);
	recorder_incidents(world.recorder, counts);
	assert(counts[BOOK_INCIDENT_UNKNOWN_FREE] == 1);
	recorder_testing_close(&world);
}

/* Who ends first keeps the others waiting: only then is it known in which order they are judged. */
UNIT(a_user_who_ends_many_processes_delays_nobody_elses_report)
{
	static struct testing_book books[RECORDER_TESTING_BOOKS];
	struct tracked *tracked[RECORDER_TESTING_BOOKS];
	struct recorder_testing world;
	struct recorder_exits exits;

	recorder_testing_open(&world);
	for (uint32_t i = 0; i < RECORDER_TESTING_BOOKS; i++) {
		recorder_testing_add(&world, &books[i], 100 + i);
		tracked[i] = world.tracked;
		tracked[i]->maker = 1000 + (i >= RECORDER_TESTING_BOOKS - 2);
	}
	pthread_mutex_lock(&tracked[0]->book_lock);
	for (uint32_t i = 0; i < RECORDER_TESTING_BOOKS; i++)
		recorder_judge(world.recorder, tracked[i]);
	pthread_mutex_unlock(&tracked[0]->book_lock);
	while (world.judged_count < RECORDER_TESTING_BOOKS)
		assert(loop_turn(world.loop, -1) == 0);
	assert(world.read == RECORDER_TESTING_BOOKS);
	assert(world.judged[0] == tracked[0]);
	assert(world.judged[1] == tracked[RECORDER_TESTING_BOOKS - 2]);
	assert(world.judged[2] == tracked[1]);
	assert(world.judged[3] == tracked[RECORDER_TESTING_BOOKS - 1]);
	assert(world.judged[4] == tracked[2]);
	/* All of them are held until somebody says that their reports are written. */
	recorder_exits(world.recorder, &exits);
	assert(exits.books == RECORDER_TESTING_BOOKS && exits.bytes > 0 &&
	       quota_counted(QUOTA_EXITS_UNREAD) == 0);
	for (uint32_t i = 0; i < RECORDER_TESTING_BOOKS; i++)
		recorder_let_go(world.recorder, tracked[i]);
	recorder_exits(world.recorder, &exits);
	assert(exits.books == 0 && exits.bytes == 0);
	recorder_testing_close(&world);
	for (uint32_t i = 0; i < RECORDER_TESTING_BOOKS; i++)
		testing_book_deinit(&books[i]);
}

UNIT(a_book_for_which_there_is_no_room_is_judged_by_its_totals_at_once)
{
	struct recorder_testing world;
	struct recorder_exits exits;
	struct exit_queue_book large = {.context = &world, .bytes = UINT64_C(1) << 40};
	struct testing_op op = {.kind = TESTING_ALLOC, .buffer = testing_buffer(0, 0x9000, 64)};

	recorder_testing_open(&world);
	testing_op_do(world.book.writer, &op);
	/* The user has one that waits, and is larger than all that may. */
	large.user = world.tracked->maker;
	assert(exit_queue_put(&world.recorder->exits, &large) == 0);
	assert(exit_queue_take(&world.recorder->exits) == &world);
	recorder_judge(world.recorder, world.tracked);
	while (world.judged_count == 0)
		assert(loop_turn(world.loop, -1) == 0);
	assert(world.judged[0] == world.tracked && world.read == 0);
	recorder_exits(world.recorder, &exits);
	assert(exits.books == 1 && quota_counted(QUOTA_EXITS_UNREAD) == 1 &&
	       quota_counted(QUOTA_EXITS_UNREAD_BYTES) == 64);
	assert(recorder_leaked(world.recorder) == 1);
	(void)exit_queue_remove(&world.recorder->exits, &world);
	recorder_testing_close(&world);
}

UNIT(a_book_has_only_so_many_incidents)
{
	struct recorder_testing world;
	uint64_t counts[TYPES_INCIDENTS];

	recorder_testing_open(&world);
	unknown_free(&world);
	for (uint64_t round = 0; round < 100; round++) {
		for (uint32_t i = 0; i < BOOK_INCIDENTS_PER_KIND; i++)
			*entry_of(&world, BOOK_INCIDENT_UNKNOWN_FREE, i) = (struct book_incident){
				.commit = 1, .count = 1, .address = round << 32 | i};
		world.book.writer->header->incident_count[BOOK_INCIDENT_UNKNOWN_FREE] =
			BOOK_INCIDENTS_PER_KIND;
		recorder_look(world.recorder);
	}
	recorder_incidents(world.recorder, counts);
	assert(counts[BOOK_INCIDENT_UNKNOWN_FREE] <= BOOK_INCIDENT_KINDS * BOOK_INCIDENTS_PER_KIND);
	assert(world.tracked->told_count <= BOOK_INCIDENT_KINDS * BOOK_INCIDENTS_PER_KIND);
	recorder_testing_close(&world);
}

UNIT(a_repeated_incident_is_counted_but_not_always_reported)
{
	struct recorder_testing world;
	uint64_t counts[TYPES_INCIDENTS];

	recorder_testing_open(&world);
	for (int i = 0; i < 1000; i++) {
		unknown_free(&world);
		recorder_look(world.recorder);
	}
	recorder_hurry(world.recorder, world.tracked);
	while (world.told == 0)
		assert(loop_turn(world.loop, -1) == 0);
	recorder_incidents(world.recorder, counts);
	assert(counts[BOOK_INCIDENT_UNKNOWN_FREE] == 1000);
	assert(world.told == 10); /* at 1, 2, 4, ... 512 */
	recorder_testing_close(&world);
}

#define REGION_BYTES 8576u

/* A region with a row of each process. */
static void write_region(const pid_t *pids, size_t count)
{
	static const uint32_t version = 4, ready = 0x52454459;
	unsigned char bytes[REGION_BYTES] = {0};
	const uint64_t id = 77, dram = 100, stamp = clock_ns(CLOCK_MONOTONIC);
	char path[512];
	int fd;

	memcpy(bytes, &version, sizeof(version));
	memcpy(bytes + 32, &id, sizeof(id));
	memcpy(bytes + 8536, &ready, sizeof(ready));
	for (size_t i = 0; i < count; i++) {
		memcpy(bytes + 856 + i * 120, &pids[i], sizeof(pids[i]));
		memcpy(bytes + 864 + i * 120, &dram, sizeof(dram));
		memcpy(bytes + 904 + i * 120, &stamp, sizeof(stamp));
	}
	assert(setenv("TTMEM_SHM_DIR", unit_dir(), 1) == 0);
	snprintf(path, sizeof(path), "%s/tt_device_77_memory", unit_dir());
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert(fd >= 0 && write(fd, bytes, sizeof(bytes)) == (ssize_t)sizeof(bytes));
	assert(close(fd) == 0);
}

/* For us and for all children from now on: a row counts only for processes that have it mapped. */
static void map_region(void)
{
	char path[512];
	int fd;

	write_region(NULL, 0);
	snprintf(path, sizeof(path), "%s/tt_device_77_memory", unit_dir());
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert(fd >= 0);
	assert(mmap(NULL, REGION_BYTES, PROT_READ, MAP_SHARED, fd, 0) != MAP_FAILED);
	assert(close(fd) == 0);
}

/* However long it takes: so many looks are allowed in that time. */
UNIT(ends_of_processes_in_regions_are_looked_for_ten_times_a_second)
{
	struct recorder_testing world;
	uint64_t since, before, most;
	pid_t pids[12];

	map_region();
	for (size_t i = 0; i < 12; i++) {
		pids[i] = fork();
		assert(pids[i] >= 0);
		if (pids[i] == 0) {
			for (;;)
				(void)pause(); /* until it is killed */
		}
	}
	write_region(pids, 12);
	recorder_testing_open(&world);
	/* At the second sample the first is over. */
	while (collector_readings(world.collector) < 2)
		assert(loop_turn(world.loop, 10) == 0);
	before = collector_readings(world.collector);
	since = clock_ns(CLOCK_MONOTONIC);
	for (size_t i = 0; i < 12; i++) {
		assert(kill(pids[i], SIGKILL) == 0 && waitpid(pids[i], NULL, 0) == pids[i]);
		while (recorder_leaked(world.recorder) <= i)
			assert(loop_turn(world.loop, 10) == 0);
	}
	/* One at once, one for each rest, and the samples of every second. */
	most = 3 + (clock_ns(CLOCK_MONOTONIC) - since) / (NS_PER_S / 10) * 11 / 10;
	assert(collector_readings(world.collector) - before <= most);
	recorder_testing_close(&world);
}

static void alloc(struct testing_book *book, uint64_t address)
{
	static const struct writer_device chip = {.unique_id = 0x1111};
	struct shard_buffer buffer = testing_buffer(TYPES_DRAM, address, 64);

	writer_declare(book->writer, 0, &chip);
	writer_alloc(book->writer, 0, &buffer, 0);
}

/* Searches once, when that is allowed again. How many overlaps were reported so far. */
static uint64_t search(struct recorder_testing *world)
{
	uint64_t counts[TYPES_INCIDENTS];
	struct snapshot *totals;

	while (clock_ns(CLOCK_MONOTONIC) < world->recorder->overlaps_after)
		continue;
	assert(collector_totals(world->collector, clock_ns(CLOCK_MONOTONIC), &totals) == 0);
	recorder_find_overlaps(world->recorder, totals);
	snapshot_free(totals);
	recorder_incidents(world->recorder, counts);
	return counts[TYPES_OVERLAP];
}

UNIT(an_overlap_is_reported_once_by_the_second_search)
{
	struct recorder_testing world;
	struct testing_book other;

	recorder_testing_open(&world);
	recorder_testing_add(&world, &other, 78);
	alloc(&world.book, 0x1000);
	alloc(&other, 0x1000);
	assert(search(&world) == 0);
	assert(search(&world) == 1); /* though nothing has changed */
	alloc(&world.book, 0x2000);
	alloc(&other, 0x2000);
	assert(search(&world) == 1);
	recorder_testing_close(&world);
	testing_book_deinit(&other);
}

/* Its books were read one after another, and it changed hands in between, perhaps. */
UNIT(an_overlap_that_one_search_shows_is_not_reported)
{
	struct shard_buffer freed = testing_buffer(TYPES_DRAM, 0x1000, 0);
	struct recorder_testing world;
	struct testing_book other;

	recorder_testing_open(&world);
	recorder_testing_add(&world, &other, 78);
	alloc(&world.book, 0x1000);
	alloc(&other, 0x1000);
	assert(search(&world) == 0);
	writer_free_buffer(world.book.writer, 0, &freed);
	alloc(&world.book, 0x9000);
	for (int i = 0; i < 2; i++)
		assert(search(&world) == 0);
	/* What comes later is seen for the first time again. */
	alloc(&other, 0x9000);
	assert(search(&world) == 0);
	assert(search(&world) == 1);
	recorder_testing_close(&world);
	testing_book_deinit(&other);
}

/* Nothing is read again as long as no counter changes. */
UNIT(what_was_compared_is_not_compared_again)
{
	struct recorder_testing world;
	struct testing_book other;
	uint64_t after;

	recorder_testing_open(&world);
	recorder_testing_add(&world, &other, 78);
	alloc(&world.book, 0x1000);
	alloc(&other, 0x8000);
	assert(search(&world) == 0);
	after = world.recorder->overlaps_after;
	assert(after > 0 && search(&world) == 0 && world.recorder->overlaps_after == after);
	alloc(&other, 0x9000);
	assert(search(&world) == 0 && world.recorder->overlaps_after > after);
	recorder_testing_close(&world);
	testing_book_deinit(&other);
}

/* Judges the book as one of @user's, who has all the time in the world. */
static void judge_peaks_of(struct recorder_testing *world, uint32_t user, struct view *view)
{
	struct recorder *recorder = world->recorder;

	world->tracked->maker = user;
	memset(recorder->peaks.users, 0, sizeof(recorder->peaks.users));
	memset(recorder->all_peaks.users, 0, sizeof(recorder->all_peaks.users));
	recorder_peaks_judge(recorder, world->tracked, view);
}

UNIT(many_ended_processes_of_one_user_leave_the_peaks_of_others_alone)
{
	const struct shard_buffer buffer = testing_buffer(0, 0x1000, 64);
	struct view *view = calloc(1, sizeof(*view));
	struct recorder_testing world;

	assert(view);
	recorder_testing_open(&world);
	writer_alloc(world.book.writer, 0, &buffer, 0);
	__atomic_store_n(&world.tracked->has_ended, true, __ATOMIC_RELAXED);
	judge_peaks_of(&world, 1001, view);
	for (uint32_t i = 0; i < RECORDER_PEAKS_MAX + 10; i++)
		judge_peaks_of(&world, 1002, view);
	assert(world.recorder->ended_count == RECORDER_PEAKS_MAX);
	assert(world.recorder->ended_peaks[0].maker == 1001);
	assert(world.recorder->ended_peaks[1].maker == 1002);
	view_deinit(view);
	free(view);
	recorder_testing_close(&world);
}

UNIT(who_has_used_up_the_time_for_peaks_waits_and_others_do_not)
{
	const struct shard_buffer buffer = testing_buffer(0, 0x1000, 64);
	struct view *view = calloc(1, sizeof(*view));
	struct recorder_testing world;

	assert(view);
	recorder_testing_open(&world);
	writer_alloc(world.book.writer, 0, &buffer, 0);
	__atomic_store_n(&world.tracked->has_ended, true, __ATOMIC_RELAXED);
	judge_peaks_of(&world, 1001, view);
	assert(world.recorder->ended_count == 1);
	/* Nothing left, for a long time. */
	quota_rate_pay(&world.recorder->peaks, 1001, UINT64_C(1) << 40, clock_ns(CLOCK_MONOTONIC));
	world.tracked->maker = 1001;
	recorder_peaks_judge(world.recorder, world.tracked, view);
	assert(world.recorder->ended_count == 1);
	judge_peaks_of(&world, 1002, view);
	assert(world.recorder->ended_count == 2);
	view_deinit(view);
	free(view);
	recorder_testing_close(&world);
}
