/* SPDX-License-Identifier: Apache-2.0 */

/* Loads and their scripts. */

#include "cli/bench/bench-load.h"

#include <errno.h>
#include <stdlib.h>

static int bench_load_fill(const struct bench_load *load)
{
	struct ttmem_stats stats = {0};
	uint64_t before = 0;

	if (ttmem_stats(load->devices[0], TTMEM_ANY, &stats) == 0)
		before = stats.buffers;
	for (uint32_t i = 0; i < load->live; i++) {
		uint32_t number = load->pool[i];

		if (load->device_count == 1)
			bench_load_alloc(load, number, NULL);
		else
			ttmem_alloc_mesh(load->devices, load->device_count, bench_load_type(number),
					 bench_load_address(number), bench_load_size(number), NULL);
	}
	if (ttmem_stats(load->devices[0], TTMEM_ANY, &stats) < 0 ||
	    stats.buffers - before != load->live)
		return -ENOSPC;
	return 0;
}

int bench_load_init(struct bench_load *load, const uint32_t *devices, uint32_t device_count,
		    uint32_t first, uint32_t live, size_t pairs)
{
	int r = -ENOMEM;

	*load = (struct bench_load){
		.devices = devices,
		.device_count = device_count,
		.live = live,
		.pool = calloc(live, 2 * sizeof(*load->pool)),
		.script = calloc(pairs, sizeof(*load->script)),
		.pairs = pairs,
		.random = {.state = first + live},
	};
	if (load->pool && load->script) {
		for (uint32_t i = 0; i < 2 * live; i++)
			load->pool[i] = first + i;
		r = bench_load_fill(load);
	}
	if (r < 0)
		bench_load_deinit(load);
	return r;
}

void bench_load_deinit(struct bench_load *load)
{
	free(load->pool);
	free(load->script);
	*load = (struct bench_load){0};
}

static void bench_load_swap(uint32_t *pool, uint32_t a, uint32_t b)
{
	uint32_t kept = pool[a];

	pool[a] = pool[b];
	pool[b] = kept;
}

/*
 * Moves @count random entries of the half of the pool that begins at @start to the end of that
 * half.
 */
static void bench_load_shuffle(struct bench_load *load, uint32_t start, uint32_t count)
{
	for (uint32_t k = 0; k < count; k++) {
		uint32_t last = start + load->live - 1 - k;
		uint32_t drawn = (uint32_t)sim_random_between(&load->random, start, last);

		bench_load_swap(load->pool, drawn, last);
	}
}

void bench_load_draw(struct bench_load *load, size_t pairs, uint32_t block)
{
	for (size_t at = 0; at + block <= pairs && at + block <= load->pairs; at += block) {
		bench_load_shuffle(load, 0, block);
		bench_load_shuffle(load, load->live, block);
		for (uint32_t k = 0; k < block; k++) {
			uint32_t alive = load->live - 1 - k;
			uint32_t dead = 2 * load->live - 1 - k;

			load->script[at + k] = (struct bench_load_pair){
				.freed = load->pool[alive],
				.allocated = load->pool[dead],
			};
			bench_load_swap(load->pool, alive, dead);
		}
	}
}
