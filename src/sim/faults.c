/* SPDX-License-Identifier: Apache-2.0 */

/* Three programs with one bug each, of the kinds that ttmem is meant to find. */

#include <stdio.h>
#include <ttmem/ttmem.h>

#include "sim/pile.h"
#include "sim/workload.h"

#define KIB UINT64_C(1024)
#define MIB (UINT64_C(1) << 20)
#define PAGE 2048u

#define LEAK_SHORT_ROUND 8u /* iterations, if run_ms is 0 */

/* An iteration: some work that is freed again, and one cache entry. */
static int serve_prompt(struct workload_context *context, struct sim_device *device)
{
	struct sim_pile pile = SIM_PILE_NULL;
	struct sim_request work = {
		.type = TTMEM_L1,
		.size = workload_size(context, 4 * MIB, PAGE),
		.page_size = PAGE,
		.name = "prompt.embedding",
	};
	struct sim_request entry = {
		.type = TTMEM_DRAM,
		.size = sim_random_between(&context->random, 16, 96) * 4 * KIB,
		.page_size = PAGE,
		.name = "prompt_cache.entry",
	};
	uint64_t address;
	int r;

	workload_phase("serve");
	r = sim_pile_alloc(&pile, device, &work, NULL);
	if (r == 0) {
		workload_phase("prompt_cache");
		r = sim_device_alloc(device, &entry, &address); /* never freed: the bug */
		ttmem_phase_pop();
	}
	workload_pause(context);
	sim_pile_deinit(&pile);
	ttmem_phase_pop();
	return r;
}

/**
 * workload_leak() - play a cache that never evicts
 * @context: the context; run_ms 0 makes 8 entries
 *
 * Return: 0 or a negative errno. The entries named "prompt_cache.entry" stay.
 */
int workload_leak(struct workload_context *context)
{
	struct workload_devices devices;
	struct sim_pile model = SIM_PILE_NULL;
	struct sim_request weights = {
		.type = TTMEM_DRAM,
		.size = workload_size(context, 1300 * MIB, PAGE),
		.page_size = PAGE,
		.name = "encoder.weights",
	};
	int r;

	r = workload_open(context, 1, &devices);
	if (r < 0)
		return r;
	r = sim_pile_alloc(&model, &devices.device[0], &weights, NULL);
	for (uint32_t i = 0; r == 0 && !workload_ended(context); i++) {
		if (!context->run_ms && i == LEAK_SHORT_ROUND)
			break;
		r = serve_prompt(context, &devices.device[0]);
	}
	sim_pile_deinit(&model);
	workload_close(&devices);
	return r;
}

#define BLOCKS 8u
#define BLOCK_TWICE 3u /* the one with two owners */

/* One round: allocates blocks, evicts one, and at shutdown frees all that are still on the list. */
static int use_blocks(struct workload_context *context, struct sim_device *device)
{
	struct sim_pile pile = SIM_PILE_NULL;
	char name[32];
	struct sim_request block = {
		.type = TTMEM_DRAM,
		.size = workload_size(context, 32 * MIB, PAGE),
		.page_size = PAGE,
		.name = name,
	};
	uint64_t addresses[BLOCKS] = {0};
	int r = 0;

	workload_phase("serve");
	for (uint32_t i = 0; r == 0 && i < BLOCKS; i++) {
		(void)snprintf(name, sizeof(name), "kv_cache.block %u", i);
		r = sim_pile_alloc(&pile, device, &block, &addresses[i]);
	}
	workload_pause(context);
	if (r == 0) {
		workload_phase("evict");
		sim_pile_drop(&pile, BLOCK_TWICE);
		ttmem_phase_pop();
	}
	workload_pause(context);
	ttmem_phase_pop();

	workload_phase("shutdown");
	if (r ==
	    0) /* the bug: it was not taken off the list. The free is refused, as it should be. */
		(void)sim_device_free(device, TTMEM_DRAM, addresses[BLOCK_TWICE]);
	sim_pile_deinit(&pile);
	ttmem_phase_pop();
	return r;
}

/* Plays @round repeatedly on one device. */
static int repeat(struct workload_context *context,
		  int (*round)(struct workload_context *context, struct sim_device *device))
{
	struct workload_devices devices;
	int r;

	r = workload_open(context, 1, &devices);
	if (r < 0)
		return r;
	do {
		r = round(context, &devices.device[0]);
		workload_pause(context);
	} while (r == 0 && workload_again(context));
	workload_close(&devices);
	return r;
}

/**
 * workload_double_free() - play two owners of one buffer
 * @context: the context; every round frees "kv_cache.block 3" twice
 *
 * Return: 0 or a negative errno; everything is freed, one buffer twice.
 */
int workload_double_free(struct workload_context *context)
{
	return repeat(context, use_blocks);
}

#define SLICES 32u

/*
 * Fills almost all of the memory with slices, frees every second one, and requests two slices in
 * one piece: half of the memory is free then, but no hole is larger than one slice. Once a
 * neighbour is freed too, the same request succeeds.
 */
static int fragment(struct workload_context *context, struct sim_device *device)
{
	struct sim_pile pile = SIM_PILE_NULL;
	const struct sim_window *window = &device->card->chip->dram;
	uint64_t page = UINT64_C(32) * window->alignment; /* a page that wastes nothing */
	uint64_t slice = device->banks[TTMEM_DRAM].size / SLICES / page * page;
	char name[32];
	struct sim_request request = {
		.type = TTMEM_DRAM,
		.size = slice * device->banks[TTMEM_DRAM].banks,
		.page_size = page,
		.name = name,
	};
	int r = 0;

	workload_phase("fill");
	for (uint32_t i = 0; r == 0 && i < SLICES; i++) {
		(void)snprintf(name, sizeof(name), "%s %u", i % 2 ? "session" : "scratch", i / 2);
		r = sim_pile_alloc(&pile, device, &request, NULL);
	}
	workload_pause(context);
	for (uint32_t i = 0; r == 0 && i < SLICES; i += 2)
		sim_pile_drop(&pile, i);
	ttmem_phase_pop();
	workload_pause(context);

	workload_phase("load adapter");
	(void)snprintf(name, sizeof(name), "adapter.weights");
	request.size *= 2;
	if (r == 0) /* fails, as intended */
		(void)sim_pile_alloc(&pile, device, &request, NULL);
	workload_pause(context);
	if (r == 0) {
		sim_pile_drop(&pile, SLICES / 2 + 1);
		r = sim_pile_alloc(&pile, device, &request, NULL);
	}
	workload_pause(context);
	sim_pile_deinit(&pile);
	ttmem_phase_pop();
	return r;
}

/**
 * workload_fragmentation() - play an allocation that fails although enough is free
 * @context: the context; the scale is ignored, as a full device is needed
 *
 * Return: 0 or a negative errno; everything is freed.
 */
int workload_fragmentation(struct workload_context *context)
{
	return repeat(context, fragment);
}
