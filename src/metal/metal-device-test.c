/* SPDX-License-Identifier: Apache-2.0 */

/* What is declared of a device, and what stays unknown. */

#include "metal/metal-device.h"

#include <string.h>

#include "base/testing/unit.h"
#include "metal/metal-lock.h"
#include "metal/metal-target.h"
#include "metal/testing/metal-testing.h"

static const char test_inner;
static const struct testing_allocator test_allocator = {.inner = &test_inner};
static const struct ttmem_memory_facts test_memory[TTMEM_TYPE_COUNT] = {
	[TTMEM_L1] = {.capacity = 64 * 0x1000, .bank_size = 0x1000, .banks = 64},
};

static struct testing_device test_wormhole(int32_t id)
{
	struct testing_device device = testing_device(id, &test_allocator);

	device.arch = 2;
	device.l1_per_core = 1499136;
	device.grid = (struct metal_grid){8, 8};
	return device;
}

static const struct ttmem_device_args *test_declare(const struct metal_names *names,
						    const struct testing_device *device)
{
	struct metal_target *target = metal_target_get(names, device);

	assert(target);
	metal_device_declare(names, device, test_memory, target);
	metal_lock();
	metal_target_put(target);
	metal_unlock();
	return testing_device_args();
}

UNIT(declares_what_two_answers_agree_on)
{
	struct metal_names names = testing_names();
	struct testing_device device = test_wormhole(3);
	const struct ttmem_device_args *args = test_declare(&names, &device);

	assert(args->device == 3 && strcmp(args->arch, "wormhole_b0") == 0);
	assert(args->l1_per_core == 1499136 && args->cores == 64 && !args->remote);
	assert(args->memory[TTMEM_L1].banks == 64);
	assert(args->unique_id == 0 && !args->card);
	device.arch = 3;
	device.l1_per_core = 1572864;
	device.is_remote = true;
	args = test_declare(&names, &device);
	assert(strcmp(args->arch, "blackhole") == 0 && args->remote);
}

UNIT(does_not_believe_an_architecture_with_other_l1)
{
	struct metal_names names = testing_names();
	struct testing_device device = test_wormhole(0);

	device.arch = 3;
	assert(!test_declare(&names, &device)->arch);
	device.arch = 4;
	assert(!test_declare(&names, &device)->arch);
	names.l1_per_core = NULL;
	device.arch = 2;
	assert(!test_declare(&names, &device)->arch);
}

UNIT(does_not_believe_a_grid_with_other_banks)
{
	struct metal_names names = testing_names();
	struct testing_device device = test_wormhole(0);

	device.grid.x = 7;
	assert(test_declare(&names, &device)->cores == 0);
	/* Their product overflows to the same. */
	device.grid = (struct metal_grid){(UINT64_C(1) << 62) + 8, 8};
	assert(test_declare(&names, &device)->cores == 0);
}

UNIT(asks_each_device_of_a_mesh)
{
	struct metal_names names = testing_names();
	struct testing_device a = test_wormhole(0), b = test_wormhole(6);
	struct testing_device mesh = testing_mesh(&test_allocator, &a, &b);
	const struct ttmem_device_args *args;

	b.is_remote = true;
	args = test_declare(&names, &mesh);
	assert(testing_declared() == 2);
	assert(args->device == 6 && args->remote && strcmp(args->arch, "wormhole_b0") == 0);
	assert(args->cores == 64);
}

UNIT(leaves_unknown_what_has_no_function)
{
	struct metal_names names = testing_names();
	struct testing_device device = test_wormhole(0);
	const struct ttmem_device_args *args;

	names.device_arch = NULL;
	names.device_grid = NULL;
	names.device_is_local = NULL;
	args = test_declare(&names, &device);
	assert(!args->arch && args->cores == 0 && args->remote == 0);
}
