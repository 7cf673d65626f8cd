/* SPDX-License-Identifier: Apache-2.0 */

/* Allocators: their numbers, what is declared of them, and which memory an address is in. */

#include "metal/metal-space.h"

#include "base/testing/unit.h"
#include "metal/metal-learn.h"
#include "metal/metal-lock.h"
#include "metal/metal-names.h"
#include "metal/metal-target.h"
#include "metal/testing/metal-testing.h"

static const char test_inner[4];

static const struct testing_allocator test_whole = {
	.inner = &test_inner[0],
	.bank_sizes = {[TTMEM_DRAM] = 0x100000,
		       [TTMEM_L1] = 0x8000,
		       [TTMEM_L1_SMALL] = 0x1000,
		       [TTMEM_TRACE] = 0x4000},
};

/* As a buffer of @allocator on @device makes it. */
static const struct metal_space *test_meet(const struct metal_names *names,
					   const struct testing_device *device,
					   const struct testing_allocator *allocator)
{
	struct testing_buffer buffer = testing_buffer(device, 0x2000, 1);
	const struct metal_facts facts = {.device = device, .allocator = allocator->inner};
	struct metal_target *target = metal_target_get(names, device);
	const struct metal_space *space;

	buffer.allocator = allocator;
	assert(target);
	assert(metal_space_meet(names, &buffer, &facts, target) == 0);
	metal_lock();
	metal_target_put(target);
	space = metal_space_find(allocator->inner);
	metal_unlock();
	assert(space);
	return space;
}

UNIT(declares_what_the_allocator_says)
{
	struct metal_names names = testing_names();
	struct testing_device device = testing_device(3, &test_whole);
	const struct ttmem_device_args *args = testing_device_args();

	test_meet(&names, &device, &test_whole);
	assert(testing_declared() == 1 && args->device == 3);
	assert(args->memory[TTMEM_DRAM].capacity == 8 * 0x100000);
	assert(args->memory[TTMEM_DRAM].banks == 8);
	assert(args->memory[TTMEM_DRAM].bank_base == 0x1000);
	assert(args->memory[TTMEM_TRACE].bank_base == 0x101000);
	assert(args->memory[TTMEM_TRACE].bank_size == 0x4000);
	assert(args->memory[TTMEM_L1].bank_size == 0x8000);
	assert(args->memory[TTMEM_L1_SMALL].bank_base == 0x9000);
	assert(args->memory[TTMEM_L1_SMALL].alignment == 32);
	assert(args->memory[TTMEM_SYSTEM_MEMORY].capacity == 0);
	test_meet(&names, &device, &test_whole);
	assert(testing_declared() == 1);
}

UNIT(declares_each_device_of_a_mesh)
{
	struct metal_names names = testing_names();
	struct testing_device a = testing_device(0, &test_whole);
	struct testing_device b = testing_device(9, &test_whole);
	struct testing_device mesh = testing_mesh(&test_whole, &a, &b);

	test_meet(&names, &mesh, &test_whole);
	assert(testing_declared() == 2 && testing_device_args()->device == 9);
}

UNIT(leaves_unknown_what_the_statistics_contradict)
{
	struct metal_names names = testing_names();
	struct testing_allocator odd = test_whole;
	struct testing_device device = testing_device(0, &odd);

	odd.total = 0x1000; /* true of L1_SMALL only; L1's is not asked for */
	test_meet(&names, &device, &odd);
	assert(testing_device_args()->memory[TTMEM_L1].bank_size == 0x8000);
	assert(testing_device_args()->memory[TTMEM_DRAM].capacity == 0);
	assert(testing_device_args()->memory[TTMEM_DRAM].bank_base == 0);
}

/* What was declared before may be of an earlier opening. */
UNIT(declares_a_device_by_its_own_allocator_also_for_a_sub_device)
{
	struct metal_names names = testing_names();
	struct testing_device device = testing_device(0, &test_whole);
	struct testing_allocator part = {
		.inner = &test_inner[1],
		.bank_sizes = {[TTMEM_L1] = 0x2000, [TTMEM_DRAM] = 0x7777}};
	const struct metal_space *space = test_meet(&names, &device, &part);

	assert(testing_declared() == 1);
	assert(testing_device_args()->memory[TTMEM_L1].bank_size == 0x8000);
	assert(testing_device_args()->memory[TTMEM_DRAM].bank_size == 0x100000);
	assert(!space->is_default);
	assert(space->memory[TTMEM_L1].bank_size == 0x2000);
	assert(space->memory[TTMEM_DRAM].bank_size == 0);
}

UNIT(gives_the_smallest_number_that_is_free)
{
	struct metal_names names = testing_names();
	struct testing_device device = testing_device(0, &test_whole);
	struct testing_allocator others[3];

	for (uint32_t i = 0; i < 3; i++) {
		others[i] = test_whole;
		others[i].inner = &test_inner[1 + i];
		assert(test_meet(&names, &device, &others[i])->number == i);
	}
	metal_lock();
	metal_space_remove(metal_space_find(&test_inner[2]));
	metal_unlock();
	assert(test_meet(&names, &device, &test_whole)->number == 1);
	assert(test_meet(&names, &device, &others[1])->number == 3);
}

UNIT(tells_l1_from_l1_small_by_address)
{
	struct metal_names names = testing_names();
	struct testing_device device = testing_device(0, &test_whole);
	const struct metal_space *space = test_meet(&names, &device, &test_whole);

	assert(metal_space_on_chip(space, 0x8fff) == TTMEM_L1);
	assert(metal_space_on_chip(space, 0x9000) == TTMEM_L1_SMALL);
	assert(metal_space_has(space, TTMEM_L1, 0x1000));
	assert(!metal_space_has(space, TTMEM_L1, 0xfff));
	assert(!metal_space_has(space, TTMEM_L1, 0x9000));
	assert(metal_space_has(space, TTMEM_L1_SMALL, 0x9fff));
	assert(!metal_space_has(space, TTMEM_L1_SMALL, 0xa000));
}

/* As while sub-devices have L1 of their own: both functions tell what is left. */
static struct testing_allocator test_shrunk(uint64_t by)
{
	struct testing_allocator shrunk = test_whole;

	shrunk.bank_sizes[TTMEM_L1] -= by;
	shrunk.l1_end = 0xa000;
	return shrunk;
}

UNIT(knows_the_places_of_l1_while_it_is_shrunk)
{
	static const uint64_t shrunk_by[] = {0, 0x20, 0x4000, 0x8000};
	struct metal_names names = testing_names();

	for (size_t i = 0; i < 4; i++) {
		struct testing_allocator shrunk = test_shrunk(shrunk_by[i]);
		struct testing_device device = testing_device(0, &shrunk);
		const struct metal_space *space;

		shrunk.inner = &test_inner[i];
		space = test_meet(&names, &device, &shrunk);
		assert(metal_space_on_chip(space, 0x8fff) == TTMEM_L1);
		assert(metal_space_on_chip(space, 0x9000) == TTMEM_L1_SMALL);
		assert(metal_space_has(space, TTMEM_L1, 0x1000));
		assert(metal_space_has(space, TTMEM_L1, 0x8fff));
		assert(testing_device_args()->memory[TTMEM_L1].bank_size == 0x8000);
		assert(testing_device_args()->memory[TTMEM_L1].capacity == 8 * 0x8000);
		assert(testing_device_args()->memory[TTMEM_L1_SMALL].bank_base == 0x9000);
	}
}

UNIT(knows_the_end_of_l1_from_the_devices_of_an_older_release)
{
	struct metal_names names = testing_names();
	struct testing_allocator shrunk = test_shrunk(0x4000);
	struct testing_device a = testing_device(0, &shrunk), b = testing_device(1, &shrunk);
	struct testing_device mesh = testing_mesh(&shrunk, &a, &b);

	names.l1_end = NULL;
	a.l1_per_core = b.l1_per_core = 0xa000;
	assert(test_meet(&names, &mesh, &shrunk)->small_base == 0x9000);
	shrunk.inner = &test_inner[1];
	assert(test_meet(&names, &a, &shrunk)->small_base == 0x9000);
}

UNIT(does_not_guess_the_end_of_l1)
{
	struct metal_names names = testing_names();
	struct testing_allocator whole = test_whole;
	struct testing_device device = testing_device(0, &whole);
	const struct metal_space *space;

	device.l1_per_core = 0xb000; /* the allocator has another one */
	space = test_meet(&names, &device, &whole);
	assert(metal_space_on_chip(space, 0x2000) == TTMEM_ANY);
	assert(testing_device_args()->memory[TTMEM_L1].capacity == 0);
	assert(space->memory[TTMEM_L1].banks == 8);
	/* One function is missing, the other says nothing. */
	names.l1_end = NULL;
	names.l1_per_core = NULL;
	whole.inner = &test_inner[1];
	assert(metal_space_on_chip(test_meet(&names, &device, &whole), 0x2000) == TTMEM_ANY);
	/* More than there is. */
	names = testing_names();
	device.l1_per_core = 0;
	whole.l1_end = 0x9fff;
	whole.inner = &test_inner[2];
	assert(metal_space_on_chip(test_meet(&names, &device, &whole), 0x2000) == TTMEM_ANY);
	/* Without L1_SMALL there is only one that it can be. */
	whole.bank_sizes[TTMEM_L1_SMALL] = 0;
	whole.l1_end = 0x100;
	whole.inner = &test_inner[3];
	space = test_meet(&names, &device, &whole);
	assert(metal_space_on_chip(space, 0x2000) == TTMEM_L1);
	assert(metal_space_has(space, TTMEM_L1, 0x2000));
}

UNIT(cannot_tell_l1_small_without_the_places_of_banks)
{
	struct metal_names names = testing_names();
	struct testing_device device = testing_device(0, &test_whole);

	names.bank_base = NULL;
	assert(metal_space_on_chip(test_meet(&names, &device, &test_whole), 0x2000) == TTMEM_ANY);
}
