/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Two threads at once, on a device each and on the same one, and one call for a mesh of 32 devices.
 * The figure for two threads is what an event costs each of them.
 *
 * On a busy machine two threads often run one after the other, and then two on the same device look
 * as fast as one: batches in which the two did not both have a CPU all the time count only if there
 * are no others.
 */

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "base/bits.h"
#include "cli/bench/bench-load.h"
#include "cli/bench/bench-measure.h"

#define BENCH_THREADS_LIVE 1000u
#define BENCH_THREADS_PAIRS 6144u /* short, so that both keep a CPU for that long */
#define BENCH_THREADS_WARM 2048u
#define BENCH_THREADS_MESH_PAIRS 1536u
#define BENCH_THREADS_MESH_WARM 1024u
#define BENCH_THREADS_TRIES 6u
#define BENCH_THREADS_SHARE 0.9 /* of the time: both must have run together this long */

/* One of the two threads. */
struct bench_threads_side {
	const struct bench *bench;
	struct bench_load load;
	size_t pairs;
	bool is_sampling;
	unsigned int *arrived; /* shared by both */
	uint64_t from, to;     /* when it ran, in ns */
	uint64_t processor;    /* ns of CPU time within that span */
	struct bench_series samples;
};

/* Both rows: two devices, one device. */
struct bench_threads_pair {
	struct bench_row *row;
	struct bench_row apart; /* batches that did not count */
	struct bench_threads_side sides[2];
};

static const uint32_t bench_threads_devices[3] = {BENCH_DEVICE_PAIR, BENCH_DEVICE_PAIR + 1,
						  BENCH_DEVICE_SHARED};
static struct bench_threads_pair bench_threads_pairs[2];

static uint32_t bench_threads_mesh_devices[BENCH_MESH];
static struct bench_load bench_threads_mesh_load;
static struct bench_row *bench_threads_mesh_row;

/* Waits for the other thread, so that they run together from the first event on. */
static void bench_threads_meet(unsigned int *arrived)
{
	__atomic_fetch_add(arrived, 1, __ATOMIC_ACQ_REL);
	while (__atomic_load_n(arrived, __ATOMIC_ACQUIRE) < 2)
		(void)sched_yield(); /* cannot fail on Linux */
}

static void bench_threads_step(struct bench_threads_side *side, size_t i)
{
	const struct bench_load_pair *pair = &side->load.script[i];
	uint64_t from;

	bench_load_free(&side->load, pair->freed);
	if (!side->is_sampling || i % BENCH_SAMPLE_EVERY) {
		bench_load_alloc(&side->load, pair->allocated, NULL);
		return;
	}
	from = bench_measure_ticks();
	bench_load_alloc(&side->load, pair->allocated, NULL);
	bench_measure_add(&side->samples,
			  bench_measure_span(side->bench, from, bench_measure_ticks()));
}

static void *bench_threads_run(void *argument)
{
	struct bench_threads_side *side = argument;
	uint64_t before;

	bench_threads_meet(side->arrived);
	for (size_t i = 0; i < BENCH_THREADS_WARM; i++)
		bench_threads_step(side, i);
	side->samples.count = 0;
	before = bench_measure_busy_ns();
	side->from = bench_measure_ns();
	for (size_t i = BENCH_THREADS_WARM; i < BENCH_THREADS_WARM + side->pairs; i++)
		bench_threads_step(side, i);
	side->to = bench_measure_ns();
	side->processor = bench_measure_busy_ns() - before;
	return NULL;
}

/* Whether both had a CPU, at the same time, nearly throughout. */
static bool bench_threads_were_together(const struct bench_threads_pair *pair)
{
	const struct bench_threads_side *a = &pair->sides[0], *b = &pair->sides[1];
	uint64_t both = bits_min(a->to, b->to) - bits_max(a->from, b->from);
	double least = BENCH_THREADS_SHARE;

	if (bits_min(a->to, b->to) < bits_max(a->from, b->from))
		return false;
	return (double)a->processor >= least * (double)(a->to - a->from) &&
	       (double)b->processor >= least * (double)(b->to - b->from) &&
	       (double)both >= least * (double)bits_max(a->to - a->from, b->to - b->from);
}

static void bench_threads_collect(struct bench_threads_pair *pair, bool together)
{
	struct bench_row *row = together ? pair->row : &pair->apart;
	double spent = 0, events = 0;

	for (int i = 0; i < 2; i++) {
		const struct bench_threads_side *side = &pair->sides[i];

		for (size_t k = 0; k < side->samples.count; k++)
			bench_measure_add(&row->samples, side->samples.values[k]);
		spent += (double)(together ? side->to - side->from : side->processor);
		events += (double)(2 * side->pairs);
	}
	if (!pair->sides[0].is_sampling)
		bench_measure_add(&row->means, spent / events);
}

/* Return: whether the batch counted. */
static bool bench_threads_batch(struct bench *bench, struct bench_threads_pair *pair, size_t pairs,
				bool is_sampling)
{
	unsigned int arrived = 0;
	pthread_t other;
	bool together;

	for (int i = 0; i < 2; i++) {
		struct bench_threads_side *side = &pair->sides[i];

		side->bench = bench;
		side->pairs = pairs;
		side->is_sampling = is_sampling;
		side->arrived = &arrived;
		bench_load_draw(&side->load, BENCH_THREADS_WARM + pairs, 1);
	}
	if (pthread_create(&other, NULL, bench_threads_run, &pair->sides[1]))
		return false;
	(void)bench_threads_run(&pair->sides[0]); /* returns NULL */
	(void)pthread_join(other, NULL);          /* ours, and not yet joined */
	together = bench_threads_were_together(pair);
	bench_threads_collect(pair, together);
	return together;
}

static void bench_threads_try(struct bench *bench, struct bench_threads_pair *pair, size_t pairs,
			      bool is_sampling)
{
	for (unsigned int i = 0; i < BENCH_THREADS_TRIES; i++) {
		if (bench_threads_batch(bench, pair, pairs, is_sampling))
			return;
	}
	bench_note(bench, "two threads did not always run at once: the machine is busy");
}

static void bench_threads_mesh_free(const struct bench_load *load, uint32_t number)
{
	ttmem_free_mesh(load->devices, BENCH_MESH, bench_load_type(number),
			bench_load_address(number));
}

static void bench_threads_mesh_alloc(const struct bench_load *load, uint32_t number)
{
	ttmem_alloc_mesh(load->devices, BENCH_MESH, bench_load_type(number),
			 bench_load_address(number), bench_load_size(number), NULL);
}

static void bench_threads_mesh_batch(size_t pairs)
{
	struct bench_load *load = &bench_threads_mesh_load;
	const size_t warm = BENCH_THREADS_MESH_WARM;
	uint64_t from = 0;

	bench_load_draw(load, warm + pairs, 1);
	for (size_t i = 0; i < warm + pairs; i++) {
		if (i == warm)
			from = bench_measure_busy_ns();
		bench_threads_mesh_free(load, load->script[i].freed);
		bench_threads_mesh_alloc(load, load->script[i].allocated);
	}
	bench_measure_add(&bench_threads_mesh_row->means, (double)(bench_measure_busy_ns() - from) /
								  (double)(2 * BENCH_MESH * pairs));
}

/* A call is 32 events: timing one call in two times one event in 64. */
static void bench_threads_mesh_sample(struct bench *bench, size_t pairs)
{
	struct bench_load *load = &bench_threads_mesh_load;

	bench_load_draw(load, pairs, 1);
	for (size_t i = 0; i < pairs; i++) {
		uint64_t start = bench_measure_ticks(), middle, end;

		bench_threads_mesh_free(load, load->script[i].freed);
		middle = bench_measure_ticks();
		bench_threads_mesh_alloc(load, load->script[i].allocated);
		end = bench_measure_ticks();
		/* The calls are long enough to time each of them; every other one counts. */
		bench_measure_add(
			&bench_threads_mesh_row->samples,
			bench_measure_span(bench, i % 2 ? start : middle, i % 2 ? middle : end) /
				BENCH_MESH);
	}
}

static void bench_threads_open_pair(struct bench *bench, uint32_t which, const char *name)
{
	struct bench_threads_pair *pair = &bench_threads_pairs[which];
	uint32_t live = which == 0 ? BENCH_THREADS_LIVE : BENCH_THREADS_LIVE / 2;

	for (uint32_t i = 0; i < 2; i++) {
		const uint32_t *device = &bench_threads_devices[which == 0 ? i : 2];

		if (bench_load_init(&pair->sides[i].load, device, 1, i * 2 * live, live,
				    BENCH_THREADS_WARM + BENCH_THREADS_PAIRS) < 0) {
			bench_note(bench, "%s is missing: no room", name);
			return;
		}
	}
	pair->row = bench_row_add(bench, name, BENCH_THREADS_LIVE);
}

static void bench_threads_open(struct bench *bench)
{
	bench_threads_open_pair(bench, 0, "event_2threads_two_devices");
	bench_threads_open_pair(bench, 1, "event_2threads_one_device");
	for (uint32_t i = 0; i < BENCH_MESH; i++)
		bench_threads_mesh_devices[i] = BENCH_DEVICE_MESH + i;
	if (bench_load_init(&bench_threads_mesh_load, bench_threads_mesh_devices, BENCH_MESH, 0,
			    BENCH_THREADS_LIVE,
			    BENCH_THREADS_MESH_WARM + BENCH_THREADS_MESH_PAIRS) < 0)
		bench_note(bench, "mesh32_per_device is missing: no room");
	else
		bench_threads_mesh_row =
			bench_row_add(bench, "mesh32_per_device", BENCH_THREADS_LIVE);
}

static void bench_threads_round(struct bench *bench)
{
	size_t share = bench->is_quick ? 4 : 1;

	for (uint32_t i = 0; i < 2; i++) {
		struct bench_threads_pair *pair = &bench_threads_pairs[i];

		if (!pair->row)
			continue;
		bench_threads_try(bench, pair, BENCH_THREADS_PAIRS, false);
		bench_threads_try(bench, pair, BENCH_THREADS_PAIRS, true);
	}
	if (bench_threads_mesh_row) {
		bench_threads_mesh_batch(BENCH_THREADS_MESH_PAIRS / share);
		bench_threads_mesh_sample(bench, BENCH_THREADS_MESH_PAIRS / share);
	}
}

static void bench_threads_fall_back(struct bench_series *series, struct bench_series *apart)
{
	if (series->count) {
		free(apart->values);
	} else {
		free(series->values);
		*series = *apart;
	}
	*apart = (struct bench_series){0};
}

static void bench_threads_close(void)
{
	for (uint32_t i = 0; i < 2; i++) {
		struct bench_threads_pair *pair = &bench_threads_pairs[i];

		if (pair->row) {
			bench_threads_fall_back(&pair->row->means, &pair->apart.means);
			bench_threads_fall_back(&pair->row->samples, &pair->apart.samples);
		}
		for (uint32_t k = 0; k < 2; k++) {
			struct bench_threads_side *side = &pair->sides[k];

			bench_load_deinit(&side->load);
			free(side->samples.values);
		}
	}
	bench_load_deinit(&bench_threads_mesh_load);
}

const struct bench_part bench_threads = {
	.open = bench_threads_open,
	.round = bench_threads_round,
	.close = bench_threads_close,
};
