/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A load: buffers on a device with random lifetimes, at addresses that are reused. Half of the
 * load's addresses are live; each step frees one of them at random and allocates one of the others.
 *
 * The steps of a batch are drawn before it is timed, into a script that is then read sequentially:
 * choosing at random among a million addresses causes cache misses that are not the library's.
 */

#include <stddef.h>
#include <stdint.h>

#include <ttmem/ttmem.h>

#include "sim/random.h"

struct bench_load_pair {
	uint32_t freed;
	uint32_t allocated;
};

struct bench_load {
	const uint32_t *devices; /* more than one: uses the mesh calls */
	uint32_t device_count;
	uint32_t live;
	uint32_t *pool; /* 2 * live addresses, the live ones first */
	struct bench_load_pair *script;
	size_t pairs; /* capacity of the script */
	struct sim_random random;
};

/*
 * Allocates the live buffers. @first: number of the first address, so that two loads can share a
 * device; @pairs: the most steps of a script. 0, -ENOMEM, or -ENOSPC if they do not fit into the
 * book.
 */
int bench_load_init(struct bench_load *load, const uint32_t *devices, uint32_t device_count,
		    uint32_t first, uint32_t live, size_t pairs);
void bench_load_deinit(struct bench_load *load);

/* Draws the next script. Within a block of @block steps no address is used twice. */
void bench_load_draw(struct bench_load *load, size_t pairs, uint32_t block);

/* Addresses as a bank allocator returns them: aligned, dense. */
static inline uint64_t bench_load_address(uint32_t number)
{
	return 0x100000u + (uint64_t)number * 2048;
}

static inline uint64_t bench_load_size(uint32_t number)
{
	return 2048 + number % 64 * 1024;
}

/* Three of four in DRAM. */
static inline uint32_t bench_load_type(uint32_t number)
{
	return number & 3 ? TTMEM_DRAM : TTMEM_L1;
}

static inline void bench_load_free(const struct bench_load *load, uint32_t number)
{
	ttmem_free(load->devices[0], bench_load_type(number), bench_load_address(number));
}

static inline void bench_load_alloc(const struct bench_load *load, uint32_t number,
				    const char *name)
{
	ttmem_alloc(load->devices[0], bench_load_type(number), bench_load_address(number),
		    bench_load_size(number), name);
}
