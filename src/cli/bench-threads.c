/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Two threads at once, on a device each and on the same one, and one call for a mesh of 32 devices.
 * What is told of two threads is what an event costs each of them; together they are twice as fast.
 */

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "cli/bench-load.h"
#include "cli/bench-measure.h"

#define BENCH_THREADS_LIVE 1000u
#define BENCH_THREADS_PAIRS 32768u
#define BENCH_THREADS_MESH_PAIRS 2048u

/* One of the two. */
struct bench_threads_side {
	const struct bench *bench;
	struct bench_load load;
	size_t pairs;
	bool is_sampling;
	unsigned int *arrived; /* of both */
	double mean;
	struct bench_series samples;
};

/* Both rows: two devices, one device. */
struct bench_threads_pair {
	struct bench_row *row;
	struct bench_threads_side sides[2];
};

static const uint32_t bench_threads_devices[3] = {BENCH_DEVICE_PAIR, BENCH_DEVICE_PAIR + 1,
						  BENCH_DEVICE_SHARED};
static struct bench_threads_pair bench_threads_pairs[2];

static uint32_t bench_threads_mesh_devices[BENCH_MESH];
static struct bench_load bench_threads_mesh_load;
static struct bench_row *bench_threads_mesh_row;

/* Waits until the other is there too, so that they run together from the first event on. */
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
	size_t warm = side->pairs / 4;
	uint64_t from;

	bench_threads_meet(side->arrived);
	for (size_t i = 0; i < warm; i++)
		bench_threads_step(side, i);
	from = bench_measure_ns();
	for (size_t i = warm; i < side->pairs; i++)
		bench_threads_step(side, i);
	side->mean = (double)(bench_measure_ns() - from) / (double)(2 * (side->pairs - warm));
	return NULL;
}

static void bench_threads_collect(struct bench_row *row, struct bench_series *samples)
{
	for (size_t i = 0; i < samples->count; i++)
		bench_measure_add(&row->samples, samples->values[i]);
	samples->count = 0;
}

static void bench_threads_batch(struct bench *bench, struct bench_threads_pair *pair, size_t pairs,
				bool is_sampling)
{
	unsigned int arrived = 0;
	pthread_t other;

	for (int i = 0; i < 2; i++) {
		struct bench_threads_side *side = &pair->sides[i];

		side->bench = bench;
		side->pairs = pairs;
		side->is_sampling = is_sampling;
		side->arrived = &arrived;
		bench_load_draw(&side->load, pairs, 1);
	}
	if (pthread_create(&other, NULL, bench_threads_run, &pair->sides[1])) {
		bench_note(bench, "%s: a thread could not be started", pair->row->name);
		pair->row = NULL;
		return;
	}
	(void)bench_threads_run(&pair->sides[0]); /* NULL */
	(void)pthread_join(other, NULL);          /* ours, and not yet joined */
	if (!is_sampling)
		bench_measure_add(&pair->row->means,
				  (pair->sides[0].mean + pair->sides[1].mean) / 2);
	for (int i = 0; i < 2; i++)
		bench_threads_collect(pair->row, &pair->sides[i].samples);
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
	size_t warm = pairs / 4;
	uint64_t from = 0;

	bench_load_draw(load, pairs, 1);
	for (size_t i = 0; i < pairs; i++) {
		if (i == warm)
			from = bench_measure_ns();
		bench_threads_mesh_free(load, load->script[i].freed);
		bench_threads_mesh_alloc(load, load->script[i].allocated);
	}
	bench_measure_add(&bench_threads_mesh_row->means,
			  (double)(bench_measure_ns() - from) /
				  (double)(2 * BENCH_MESH * (pairs - warm)));
}

/* A call is 32 events: one timed call in two is one timed event in 64. */
static void bench_threads_mesh_sample(struct bench *bench, size_t pairs)
{
	struct bench_load *load = &bench_threads_mesh_load;

	bench_load_draw(load, pairs, 1);
	for (size_t i = 0; i < pairs; i++) {
		uint64_t from = 0, to = 0;

		if (i % 2)
			from = bench_measure_ticks();
		bench_threads_mesh_free(load, load->script[i].freed);
		if (i % 2)
			to = bench_measure_ticks();
		else
			from = bench_measure_ticks();
		bench_threads_mesh_alloc(load, load->script[i].allocated);
		if (i % 2 == 0)
			to = bench_measure_ticks();
		if (i >= pairs / 4)
			bench_measure_add(&bench_threads_mesh_row->samples,
					  bench_measure_span(bench, from, to) / BENCH_MESH);
	}
}

static void bench_threads_open_pair(struct bench *bench, uint32_t which, const char *name)
{
	struct bench_threads_pair *pair = &bench_threads_pairs[which];
	uint32_t live = which == 0 ? BENCH_THREADS_LIVE : BENCH_THREADS_LIVE / 2;

	for (uint32_t i = 0; i < 2; i++) {
		const uint32_t *device = &bench_threads_devices[which == 0 ? i : 2];

		if (bench_load_init(&pair->sides[i].load, device, 1, i * 2 * live, live,
				    BENCH_THREADS_PAIRS) < 0) {
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
			    BENCH_THREADS_LIVE, BENCH_THREADS_MESH_PAIRS) < 0)
		bench_note(bench, "mesh32_per_device is missing: no room");
	else
		bench_threads_mesh_row =
			bench_row_add(bench, "mesh32_per_device", BENCH_THREADS_LIVE);
}

static void bench_threads_round(struct bench *bench)
{
	size_t share = bench->is_quick ? 4 : 1;

	for (uint32_t i = 0; i < 2; i++) {
		if (bench_threads_pairs[i].row)
			bench_threads_batch(bench, &bench_threads_pairs[i],
					    BENCH_THREADS_PAIRS / share, false);
		if (bench_threads_pairs[i].row)
			bench_threads_batch(bench, &bench_threads_pairs[i],
					    BENCH_THREADS_PAIRS / share, true);
	}
	if (bench_threads_mesh_row) {
		bench_threads_mesh_batch(BENCH_THREADS_MESH_PAIRS / share);
		bench_threads_mesh_sample(bench, BENCH_THREADS_MESH_PAIRS / share);
	}
}

static void bench_threads_close(void)
{
	for (uint32_t i = 0; i < 2; i++) {
		for (uint32_t k = 0; k < 2; k++) {
			struct bench_threads_side *side = &bench_threads_pairs[i].sides[k];

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
