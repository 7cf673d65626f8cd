/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The load. Each device has a table of keys in the writer's process, one lock of the test's own
 * around table, note and call, and a running hash: a row's hash is added when it begins and
 * subtracted when it ends. Hashes do not include times, because they are not known before the call.
 */

#include "book/testing/testing-load.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/hash.h"
#include "base/testing/unit.h"

#define LOAD_TYPES 3u
#define LOAD_BATCH 32u /* events between two reads of the clock */

struct testing_load_shared {
	uint32_t ready;
	uint32_t stop;
	uint64_t number[TESTING_DEVICES];
	struct testing_note notes[]; /* load->notes for each device */
};

struct load_key {
	uint64_t size;
	uint32_t meta; /* 0 = not alive */
	uint32_t thread;
};

/* What an event may change of one type, except for times. */
struct load_counters {
	uint64_t bytes, buffers, peak, allocs, frees;
	uint64_t nothing_freed; /* unknown or double: only the graveyard distinguishes them */
	uint64_t size_changes, realloc_live, hooked;
};

struct load_device {
	pthread_mutex_t lock;
	struct testing_load *load;
	uint32_t device;
	uint64_t number;
	uint64_t rows;
	uint64_t counters;
	struct load_counters of[LOAD_TYPES];
	struct load_key *keys;
};

static struct load_device load_devices[TESTING_DEVICES];

static uint64_t load_row_hash(const struct book_record *record)
{
	uint64_t hash = hash_fold(record->address ^ HASH_K0, record->size ^ HASH_K1);

	hash = hash_fold(hash ^ ((uint64_t)record->meta << 32 | record->thread_space), HASH_K0);
	return hash_fold(hash ^ ((uint64_t)record->name << 32 | record->stack),
			 HASH_K1 ^ ((uint64_t)record->phase << 32 | record->shape));
}

static uint64_t load_counters_hash(uint32_t type, const struct load_counters *counters)
{
	return hash_bytes(counters, sizeof(*counters)) * (2 * type + 1);
}

struct testing_note testing_load_of(const struct view *view)
{
	struct testing_note note = {.number = view->number};
	struct view_iterator it = {0};

	for (uint32_t type = 0; type < LOAD_TYPES; type++) {
		const struct book_hot *hot = &view->hot[type];
		const struct book_cold *cold = &view->cold[type];
		struct load_counters counters = {
			.bytes = hot->bytes,
			.buffers = hot->buffers,
			.peak = hot->peak,
			.allocs = hot->allocs,
			.frees = hot->frees,
			.nothing_freed = cold->unknown_frees + cold->double_frees,
			.size_changes = cold->size_changes,
			.realloc_live = cold->realloc_live,
			.hooked = cold->hooked,
		};

		note.counters += load_counters_hash(type, &counters);
	}
	if (view->rows_exact) {
		while (view_next(view, &it))
			note.rows += load_row_hash(it.record);
	}
	return note;
}

static struct book_record load_record(const struct load_device *device, uint32_t k)
{
	const struct load_key *key = &device->keys[k];

	return (struct book_record){
		.address = (uint64_t)k << 6,
		.size = key->size,
		.stack = k,
		.phase = 9,
		.thread_space = key->thread,
		.meta = key->meta,
		.shape = 4,
	};
}

static uint64_t load_key_hash(const struct load_device *device, uint32_t k)
{
	struct book_record record = load_record(device, k);

	return record.meta ? load_row_hash(&record) : 0;
}

/* Notes the state of the device after @events more. */
static void load_note(struct load_device *device, uint32_t events)
{
	const struct testing_load *load = device->load;
	struct testing_note *notes = load->shared->notes + (uint64_t)device->device * load->notes;
	struct testing_note *note;

	device->number += events;
	note = &notes[device->number & (load->notes - 1)];
	/* The old one is invalidated before the overwrite; the event's publish orders the rest. */
	__atomic_store_n(&note->number, 0, __ATOMIC_RELAXED);
	bits_store_barrier();
	note->rows = device->rows;
	note->counters = device->counters;
	__atomic_store_n(&note->number, device->number, __ATOMIC_RELEASE);
	__atomic_store_n(&load->shared->number[device->device], device->number, __ATOMIC_RELAXED);
}

static void load_begin(struct load_counters *counters, uint64_t size)
{
	counters->allocs++;
	counters->buffers++;
	counters->bytes += size;
	counters->peak = bits_max(counters->peak, counters->bytes);
}

static void load_end(struct load_counters *counters, uint64_t size)
{
	counters->frees++;
	counters->buffers--;
	counters->bytes -= size;
}

/* The effect on key @k of an allocation with @size (0: a free). Return: events. */
static uint32_t load_change(struct load_device *device, uint32_t k, uint64_t size, uint32_t thread)
{
	struct load_key *key = &device->keys[k];
	struct load_counters *counters = &device->of[k % LOAD_TYPES];
	uint64_t old = load_counters_hash(k % LOAD_TYPES, counters);
	uint32_t events = 1;

	device->rows -= load_key_hash(device, k);
	if (size == 0 && !key->meta) {
		counters->nothing_freed++;
	} else if (size == 0 && book_meta_refs(key->meta) > 1) {
		counters->frees++;
		key->meta--;
	} else if (size == 0) {
		load_end(counters, key->size);
		key->meta = 0;
	} else if (key->meta && key->size == size) {
		counters->allocs++;
		counters->realloc_live++;
		key->meta++;
	} else {
		if (key->meta) {
			counters->size_changes++;
			load_end(counters, key->size);
			events = 2;
		}
		load_begin(counters, size);
		*key = (struct load_key){size, book_meta(k % LOAD_TYPES, k % 4, 1), thread};
	}
	device->rows += load_key_hash(device, k);
	device->counters += load_counters_hash(k % LOAD_TYPES, counters) - old;
	return events;
}

static void load_do(struct load_device *device, uint32_t k, uint64_t size, uint32_t thread)
{
	struct writer *writer = device->load->book->writer;
	const struct shard_buffer buffer = {
		.address = (uint64_t)k << 6,
		.size = size,
		.type = k % LOAD_TYPES,
		.flags = k % 4,
		.phase = 9,
		.thread = thread,
		.stack = k,
		.shape = 4,
	};

	load_note(device, load_change(device, k, size, thread));
	if (size)
		writer_alloc(writer, device->device, &buffer, 0);
	else
		writer_free_buffer(writer, device->device, &buffer);
}

/* One event on a random device. Mostly the beginning or the end of a buffer. */
static void load_event(struct testing_load *load, struct testing_rng *rng, uint32_t thread)
{
	struct load_device *device = &load_devices[testing_below(rng, load->devices)];
	uint32_t k = testing_below(rng, load->keys);
	uint32_t dice = testing_below(rng, 16);
	uint64_t size = 1 + testing_below(rng, 4096);

	pthread_mutex_lock(&device->lock);
	if (device->keys[k].meta) {
		if (dice == 0)
			size = device->keys[k].size; /* one more reference */
		else if (dice > 1)
			size = 0; /* else its size changes */
	} else if (dice == 0) {
		size = 0; /* nothing there to free */
	}
	load_do(device, k, size, thread);
	pthread_mutex_unlock(&device->lock);
}

/* Waits until @events are due. Long waits sleep, because the reader may need the processor. */
static void load_pace(const struct testing_load *load, uint64_t start, uint64_t events)
{
	uint64_t due = start + events * 1000000000u / load->rate;

	for (;;) {
		uint64_t now = clock_ns(CLOCK_MONOTONIC);
		struct timespec rest = {.tv_nsec = (long)(due - now) / 2};

		if (now >= due)
			return;
		if (due - now > 200000)
			nanosleep(&rest, NULL);
	}
}

struct load_thread {
	struct testing_load *load;
	uint32_t number;
	pthread_t id;
};

static void *load_thread(void *context)
{
	struct load_thread *thread = context;
	struct testing_load *load = thread->load;
	struct testing_rng rng = {load->seed + thread->number * HASH_K1};
	uint64_t start = clock_ns(CLOCK_MONOTONIC);

	for (uint64_t events = 0; !__atomic_load_n(&load->shared->stop, __ATOMIC_RELAXED);
	     events += LOAD_BATCH) {
		for (uint32_t i = 0; i < LOAD_BATCH; i++)
			load_event(load, &rng, thread->number);
		if (load->rate)
			load_pace(load, start, events);
	}
	return NULL;
}

static _Noreturn void load_child(struct testing_load *load)
{
	struct load_thread threads[16];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	assert(load->threads <= ARRAY_SIZE(threads));
	testing_book_write(load->book);
	for (uint32_t d = 0; d < load->devices; d++) {
		struct load_device *device = &load_devices[d];

		*device = (struct load_device){.load = load, .device = d};
		pthread_mutex_init(&device->lock, NULL);
		device->keys = calloc(load->keys, sizeof(*device->keys));
		assert(device->keys);
		for (uint32_t type = 0; type < LOAD_TYPES; type++)
			device->counters += load_counters_hash(type, &device->of[type]);
		for (uint32_t k = 0; k < load->keys; k += 2)
			load_do(device, k, 1 + k % 4096, 0);
	}
	__atomic_store_n(&load->shared->ready, 1, __ATOMIC_RELEASE);
	for (uint32_t i = 0; i < load->threads; i++) {
		threads[i] = (struct load_thread){load, i, 0};
		assert(pthread_create(&threads[i].id, NULL, load_thread, &threads[i]) == 0);
	}
	for (uint32_t i = 0; i < load->threads; i++)
		pthread_join(threads[i].id, NULL);
	/* A test of the test itself: both have counted the same events. */
	for (uint32_t d = 0; d < load->devices; d++)
		assert(load_devices[d].number == load->book->writer->shards[d]->head);
	_exit(0);
}

static size_t load_shared_size(const struct testing_load *load)
{
	return sizeof(struct testing_load_shared) +
	       (size_t)load->devices * load->notes * sizeof(struct testing_note);
}

void testing_load_start(struct testing_load *load)
{
	load->shared = mmap(NULL, load_shared_size(load), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	assert(load->shared != MAP_FAILED);
	load->pid = fork();
	assert(load->pid >= 0);
	if (load->pid == 0)
		load_child(load);
}

void testing_load_wait(struct testing_load *load)
{
	const struct timespec pause = {.tv_nsec = 1000000};

	while (!__atomic_load_n(&load->shared->ready, __ATOMIC_ACQUIRE)) {
		assert(waitpid(load->pid, NULL, WNOHANG) == 0);
		nanosleep(&pause, NULL);
	}
}

void testing_load_kill(struct testing_load *load)
{
	int status;

	assert(kill(load->pid, SIGKILL) == 0);
	assert(waitpid(load->pid, &status, 0) == load->pid);
	assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

void testing_load_stop(struct testing_load *load)
{
	int status;

	__atomic_store_n(&load->shared->stop, 1, __ATOMIC_RELEASE);
	assert(waitpid(load->pid, &status, 0) == load->pid);
	assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

void testing_load_deinit(struct testing_load *load)
{
	munmap(load->shared, load_shared_size(load));
	load->shared = NULL;
}

uint64_t testing_load_events(const struct testing_load *load)
{
	uint64_t events = 0;

	for (uint32_t device = 0; device < load->devices; device++)
		events += __atomic_load_n(&load->shared->number[device], __ATOMIC_RELAXED);
	return events;
}

bool testing_load_note(const struct testing_load *load, uint32_t device, uint64_t number,
		       struct testing_note *ret_note)
{
	const struct testing_note *note =
		&load->shared->notes[(uint64_t)device * load->notes + (number & (load->notes - 1))];

	/* Pairs with load_note(): the same number before and after means that nothing changed. */
	if (__atomic_load_n(&note->number, __ATOMIC_ACQUIRE) != number)
		return false;
	*ret_note = *note;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return __atomic_load_n(&note->number, __ATOMIC_RELAXED) == number;
}
