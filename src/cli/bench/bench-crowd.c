/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Threads that do nothing but report events of one device: how many events per second they get
 * through in all, relative to one such thread, and how many events pass before another thread takes
 * the device over, which is what costs. The latter is counted in the device's ring, where each event
 * names its thread.
 *
 * With more threads than processors some do not run at all meanwhile.
 */

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "book/format/layout.h"
#include "cli/bench/bench-book.h"
#include "cli/bench/bench-load.h"
#include "cli/bench/bench-measure.h"

#define BENCH_CROWD_MAX 16u
#define BENCH_CROWD_LIVE 62u             /* buffers of each thread: 992 in all */
#define BENCH_CROWD_EVERY 64u            /* pairs between two looks at the clock */
#define BENCH_CROWD_NS UINT64_C(8000000) /* of events in a batch */
#define BENCH_CROWD_NS_QUICK UINT64_C(3000000)

static const uint32_t bench_crowd_device = BENCH_DEVICE_CROWD;

struct bench_crowd_size {
	uint32_t threads;
	const char *total;
	const char *tenure;
	struct bench_series rates;   /* events/s in all, relative to one thread */
	struct bench_series tenures; /* events from one hand-over to the next */
};

static struct bench_crowd_size bench_crowd_sizes[] = {
	{.threads = 2, .total = "threads_2_total", .tenure = "threads_2_tenure"},
	{.threads = 4, .total = "threads_4_total", .tenure = "threads_4_tenure"},
	{.threads = 8, .total = "threads_8_total", .tenure = "threads_8_tenure"},
	{.threads = 16, .total = "threads_16_total", .tenure = "threads_16_tenure"},
};

struct bench_crowd_thread {
	pthread_t id;
	pthread_barrier_t *barrier;
	uint32_t first; /* of its addresses */
	uint64_t duration;
	uint64_t from, to;
	uint64_t pairs;
};

static struct bench_crowd_thread bench_crowd_threads[BENCH_CROWD_MAX];
static struct bench *bench_crowd_bench;

static void bench_crowd_alloc(uint32_t number)
{
	ttmem_alloc(bench_crowd_device, bench_load_type(number), bench_load_address(number),
		    bench_load_size(number), NULL);
}

static void bench_crowd_free(uint32_t number)
{
	ttmem_free(bench_crowd_device, bench_load_type(number), bench_load_address(number));
}

/* Each of its addresses in turn; half of them are live. */
static void *bench_crowd_run(void *argument)
{
	struct bench_crowd_thread *self = argument;
	uint32_t next = 0;

	(void)pthread_barrier_wait(self->barrier); /* valid: cannot fail */
	self->from = self->to = bench_measure_ns();
	for (self->pairs = 0; self->to - self->from < self->duration;
	     self->pairs += BENCH_CROWD_EVERY) {
		for (uint32_t i = 0; i < BENCH_CROWD_EVERY; i++) {
			uint32_t other = (next + BENCH_CROWD_LIVE) % (2 * BENCH_CROWD_LIVE);

			bench_crowd_free(self->first + next);
			bench_crowd_alloc(self->first + other);
			next = (next + 1) % (2 * BENCH_CROWD_LIVE);
		}
		self->to = bench_measure_ns();
	}
	/* As it was before, for the next batch. */
	for (uint32_t i = 0; i < BENCH_CROWD_LIVE; i++)
		bench_crowd_free(self->first + (next + i) % (2 * BENCH_CROWD_LIVE));
	for (uint32_t i = 0; i < BENCH_CROWD_LIVE; i++)
		bench_crowd_alloc(self->first + i);
	return NULL;
}

/* Return: events/s of @count threads in all; 0 if they could not be started. */
static double bench_crowd_rate(uint32_t count, uint64_t duration)
{
	uint64_t from = UINT64_MAX, to = 0, pairs = 0;
	pthread_barrier_t barrier;
	uint32_t started = 0;

	if (pthread_barrier_init(&barrier, NULL, count))
		return 0;
	for (; started < count; started++) {
		struct bench_crowd_thread *thread = &bench_crowd_threads[started];

		thread->barrier = &barrier;
		thread->duration = duration;
		if (pthread_create(&thread->id, NULL, bench_crowd_run, thread))
			abort(); /* the others would wait for it for ever */
	}
	for (uint32_t i = 0; i < started; i++) {
		const struct bench_crowd_thread *thread = &bench_crowd_threads[i];

		(void)pthread_join(thread->id, NULL); /* ours, and not yet joined */
		from = bits_min(from, thread->from);
		to = bits_max(to, thread->to);
		pairs += thread->pairs;
	}
	(void)pthread_barrier_destroy(&barrier); /* nobody uses it any more */
	return 2 * (double)pairs * 1e9 / (double)(to - from);
}

/*
 * Events per hand-over in what the ring holds of the last batch, at most as many as it has; 0 if it
 * cannot be read.
 */
static double bench_crowd_tenure(void)
{
	CLEANUP_CLOSE int fd = bench_book_open();
	CLEANUP_FREE struct book_event *ring = NULL;
	struct book_shard page;
	uint64_t changes = 0;
	size_t size;

	if (fd < 0 || pread(fd, &page, sizeof(page),
			    (off_t)book_shard_offset(bench_crowd_device)) != (ssize_t)sizeof(page))
		return 0;
	size = page.ring_events * sizeof(*ring);
	ring = malloc(size);
	if (!ring || page.head < page.ring_events ||
	    pread(fd, ring, size, (off_t)book_unit_offset(page.ring_unit)) != (ssize_t)size)
		return 0;
	for (uint64_t n = page.head - page.ring_events + 1; n < page.head; n++) {
		uint32_t thread = ring[n % page.ring_events].record.thread_space;

		changes += thread != ring[(n + 1) % page.ring_events].record.thread_space;
	}
	return (double)page.ring_events / (double)bits_max(changes, 1);
}

static void bench_crowd_open(struct bench *bench)
{
	bench_crowd_bench = bench;
	for (uint32_t i = 0; i < BENCH_CROWD_MAX; i++) {
		bench_crowd_threads[i].first = i * 2 * BENCH_CROWD_LIVE;
		for (uint32_t k = 0; k < BENCH_CROWD_LIVE; k++)
			bench_crowd_alloc(bench_crowd_threads[i].first + k);
	}
	if (sysconf(_SC_NPROCESSORS_ONLN) < (long)BENCH_CROWD_MAX)
		bench_note(bench,
			   "fewer than %u processors: of more threads some never run at once",
			   BENCH_CROWD_MAX);
}

static void bench_crowd_round(struct bench *bench)
{
	uint64_t duration = bench->is_quick ? BENCH_CROWD_NS_QUICK : BENCH_CROWD_NS;
	double alone = bench_crowd_rate(1, duration);

	for (size_t i = 0; alone > 0 && i < ARRAY_SIZE(bench_crowd_sizes); i++) {
		struct bench_crowd_size *size = &bench_crowd_sizes[i];

		bench_measure_add(&size->rates, bench_crowd_rate(size->threads, duration) / alone);
		bench_measure_add(&size->tenures, bench_crowd_tenure());
	}
}

static void bench_crowd_close(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(bench_crowd_sizes); i++) {
		struct bench_crowd_size *size = &bench_crowd_sizes[i];

		bench_figure_add(bench_crowd_bench, size->total, 0,
				 bench_measure_quantile(&size->rates, 0.5), "x");
		bench_figure_add(bench_crowd_bench, size->tenure, 0,
				 bench_measure_quantile(&size->tenures, 0.5), "events");
		free(size->rates.values);
		free(size->tenures.values);
	}
}

const struct bench_part bench_crowd = {
	.open = bench_crowd_open,
	.round = bench_crowd_round,
	.close = bench_crowd_close,
};
