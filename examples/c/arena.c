/* SPDX-License-Identifier: Apache-2.0 */

/*
 * How any allocator of device memory is tracked: three calls, at the three places where it has decided.
 *
 *     cc arena.c -o arena $(pkg-config --cflags --libs ttmem)
 *     ttmem run ./arena
 *
 * The allocator here hands out the L1 memory of one simulated device from bottom to top.
 */

#include <stdint.h>
#include <stdio.h>

#include <ttmem/ttmem.h>

#define ARENA_DEVICE 0u
#define ARENA_BASE UINT64_C(0x10000)
#define ARENA_SIZE UINT64_C(16384)

static uint64_t arena_used;

/* The address, or 0. */
static uint64_t arena_alloc(uint64_t size, const char *name)
{
	uint64_t address;

	if (size > ARENA_SIZE - arena_used) {
		/* 1. It did not fit: who holds the memory now is what people will ask. */
		ttmem_alloc_failed(ARENA_DEVICE, TTMEM_L1, size, ARENA_SIZE - arena_used);
		return 0;
	}
	address = ARENA_BASE + arena_used;
	arena_used += size;
	/* 2. It did. The name is what people will look for; NULL if there is none. */
	ttmem_alloc(ARENA_DEVICE, TTMEM_L1, address, size, name);
	return address;
}

static void arena_free(uint64_t address)
{
	/* 3. Before the address can be handed out again, or another thread's 2. may come first. */
	ttmem_free(ARENA_DEVICE, TTMEM_L1, address);
}

int main(void)
{
	uint64_t weights, activations;
	int refused = 0;

	/* What is born from here on belongs to this phase. Phases are optional. */
	ttmem_phase_push("load");
	weights = arena_alloc(8192, "weights");
	(void)arena_alloc(4096, "forgotten"); /* the leak that "ttmem run" will name */
	ttmem_phase_pop();

	activations = arena_alloc(4096, "activations");
	if (arena_alloc(1, "one too many") == 0)
		refused++;
	arena_free(activations);
	arena_free(weights);
	printf("3 handed out, 2 given back, %d refused\n", refused);
	return 0;
}
