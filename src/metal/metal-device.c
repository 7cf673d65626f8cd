/* SPDX-License-Identifier: Apache-2.0 */

/* Each device of a mesh is asked for itself: a mesh throws if its devices answer differently. */

#include "metal/metal-device.h"

#include <string.h>
#include <ttmem/ttmem.h>

#include "base/bits.h"
#include "metal/metal-chip.h"
#include "metal/metal-names.h"
#include "metal/metal-target.h"

/* tt::ARCH, which is the same in all releases, and how much L1 a core has there. */
static const struct {
	uint32_t number;
	uint32_t l1_per_core;
	const char *name;
} metal_archs[] = {
	{2, 1499136, "wormhole_b0"},
	{3, 1572864, "blackhole"},
};

/* NULL: not known, or it has not the L1 of that architecture. */
static const char *metal_device_arch(uint32_t number, uint32_t l1_per_core)
{
	for (size_t i = 0; i < ARRAY_SIZE(metal_archs); i++) {
		if (metal_archs[i].number == number && metal_archs[i].l1_per_core == l1_per_core)
			return metal_archs[i].name;
	}
	return NULL;
}

static void metal_device_ask(const struct metal_names *names, const void *device,
			     struct ttmem_device_args *args)
{
	uint32_t banks = args->memory[TTMEM_L1].banks;
	struct metal_grid grid;

	if (*(const void *const *)device != names->device_table)
		return;
	if (names->l1_per_core)
		args->l1_per_core = names->l1_per_core(device);
	if (names->device_arch)
		args->arch =
			metal_device_arch((uint32_t)names->device_arch(device), args->l1_per_core);
	if (names->device_grid) {
		grid = names->device_grid(device);
		/* Each core that computes has one bank of L1. */
		if (grid.x <= banks && grid.y <= banks && grid.x * grid.y == banks)
			args->cores = banks;
	}
	args->unique_id = metal_chip_unique_id(args->device);
	args->card = metal_chip_card(args->device, args->arch);
	if (names->device_is_local)
		args->remote = !names->device_is_local(device);
}

static void metal_device_tell(const struct metal_names *names, const void *device, uint32_t id,
			      const struct ttmem_memory_facts *memory)
{
	struct ttmem_device_args args = {.struct_size = sizeof(args), .device = id};

	memcpy(args.memory, memory, sizeof(args.memory));
	metal_device_ask(names, device, &args);
	ttmem_device(&args);
}

void metal_device_declare(const struct metal_names *names, const void *object,
			  const struct ttmem_memory_facts *memory,
			  const struct metal_target *target)
{
	struct metal_vector devices = {0};
	const void *const *device;

	if (*(const void *const *)object != names->mesh_table) {
		metal_device_tell(names, object, target->ids[0], memory);
		return;
	}
	devices = names->mesh_devices(object);
	device = devices.begin;
	/* In the order of their numbers, which was checked when these were asked for. */
	for (uint32_t i = 0; i < target->count && (const void *)&device[i] < devices.end; i++)
		metal_device_tell(names, device[i], target->ids[i], memory);
	names->operator_delete(devices.begin);
}
