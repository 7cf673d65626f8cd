/* SPDX-License-Identifier: Apache-2.0 */

/* Allocators: which there are, and how their banks lie. With the first one of a device it is declared. */

#include "metal/metal-space.h"

#include <errno.h>
#include <stdlib.h>

#include "base/bits.h"
#include "metal/metal-device.h"
#include "metal/metal-learn.h"
#include "metal/metal-lock.h"
#include "metal/metal-names.h"
#include "metal/metal-target.h"

/* tt-metal's HalMemType. */
#define METAL_SPACE_HAL_L1 0
#define METAL_SPACE_HAL_DRAM 1

static struct metal_space *metal_spaces;

/* One kind of memory; left unknown if get_statistics() has another size. */
static bool metal_space_measure(const struct metal_names *names, const void *api, uint32_t type,
				struct ttmem_memory_facts *memory)
{
	uint64_t size = names->bank_size(api, &type);

	if (names->statistics && size != names->statistics(api, &type).total)
		return false;
	memory->bank_size = size;
	memory->banks = names->bank_count(api, &type);
	if (names->alignment)
		memory->alignment = names->alignment(api, type);
	return true;
}

uint64_t metal_space_per_core(const struct metal_names *names, const void *object)
{
	struct metal_vector devices = {0};
	uint64_t size = 0;

	if (!names->l1_per_core)
		return 0;
	if (*(const void *const *)object == names->device_table)
		return names->l1_per_core(object);
	devices = names->mesh_devices(object);
	if (devices.begin != devices.end &&
	    **(const void *const *const *)devices.begin == names->device_table)
		size = names->l1_per_core(*(const void *const *)devices.begin);
	names->operator_delete(devices.begin);
	return size;
}

/*
 * Where L1 ends in each bank, that of L1_SMALL included; 0 = not known. While sub-devices have L1 of their own,
 * the beginning of a device's is cut off, and get_bank_size() and get_statistics() both tell what is left. These
 * two are of the hardware, and stay.
 */
static uint64_t metal_space_l1_end(const struct metal_names *names, const void *api,
				   const struct metal_space *space)
{
	uint64_t told = names->l1_end ? names->l1_end(api) : 0;
	uint64_t per_core = space->is_default ? metal_space_per_core(names, space->device) : 0;

	if (told && per_core && told != per_core)
		return 0;
	return told ? told : per_core;
}

/* In each bank, L1 is followed by the small one, as in all releases from 0.62 on. */
static void metal_space_place_l1(const struct metal_names *names, const void *api,
				 struct metal_space *space)
{
	const uint8_t memory = METAL_SPACE_HAL_L1; /* the argument is a reference to one byte */
	struct ttmem_memory_facts *l1 = &space->memory[TTMEM_L1];
	struct ttmem_memory_facts *small = &space->memory[TTMEM_L1_SMALL];
	uint64_t base = names->bank_base ? names->bank_base(api, &memory) : 0;
	uint64_t left = names->bank_size(api, &(const uint32_t){TTMEM_L1});
	uint64_t end = metal_space_l1_end(names, api, space);

	if (!end && !space->is_default)
		end = base + left + small->bank_size; /* of a sub-device nothing is cut off */
	if (!base || end < base + left + small->bank_size)
		return; /* also if it is not known */
	l1->bank_base = base;
	l1->bank_size = end - small->bank_size - base;
	if (small->bank_size)
		small->bank_base = space->small_base = end - small->bank_size;
}

/* Each is followed by the trace region. A sub-device's has none; what it says about DRAM is not meant. */
static void metal_space_ask_dram(const struct metal_names *names, const void *api,
				 struct ttmem_memory_facts *memory)
{
	const uint8_t dram = METAL_SPACE_HAL_DRAM;

	(void)metal_space_measure(names, api, TTMEM_DRAM, &memory[TTMEM_DRAM]);
	(void)metal_space_measure(names, api, TTMEM_TRACE, &memory[TTMEM_TRACE]);
	if (!names->bank_base || !memory[TTMEM_DRAM].bank_size)
		return;
	memory[TTMEM_DRAM].bank_base = names->bank_base(api, &dram);
	memory[TTMEM_TRACE].bank_base = memory[TTMEM_DRAM].bank_base + memory[TTMEM_DRAM].bank_size;
}

static void metal_space_ask(const struct metal_names *names, const void *api,
			    struct metal_space *space)
{
	struct ttmem_memory_facts *small = &space->memory[TTMEM_L1_SMALL];

	/* In all releases, blocks of L1 are aligned as those of DRAM are. */
	if (names->alignment)
		space->unit = names->alignment(api, TTMEM_DRAM);
	if (!names->bank_count || !names->bank_size)
		return;
	space->memory[TTMEM_L1].banks = names->bank_count(api, &(const uint32_t){TTMEM_L1});
	if (names->alignment)
		space->memory[TTMEM_L1].alignment = names->alignment(api, TTMEM_L1);
	if (metal_space_measure(names, api, TTMEM_L1_SMALL, small)) {
		space->small_base = small->bank_size ? 0 : UINT64_MAX;
		metal_space_place_l1(names, api, space);
	}
	if (space->is_default)
		metal_space_ask_dram(names, api, space->memory);
	for (uint32_t type = 0; type < TTMEM_TYPE_COUNT; type++) {
		struct ttmem_memory_facts *memory = &space->memory[type];

		memory->capacity = memory->bank_size * memory->banks;
		/* What does not exist has no place either. */
		if (!memory->capacity && type != TTMEM_L1)
			*memory = (struct ttmem_memory_facts){0};
	}
}

struct metal_space *metal_space_find(const void *allocator)
{
	struct metal_space *space = metal_spaces;

	while (space && space->allocator != allocator)
		space = space->next;
	return space;
}

struct metal_space *metal_space_first(void)
{
	return metal_spaces;
}

/* The smallest number that no other one has; METAL_SPACE_LANES if all are taken. */
static uint32_t metal_space_number(void)
{
	const struct metal_space *other = metal_spaces;
	uint32_t number = 0;

	while (other && number < METAL_SPACE_LANES) {
		if (other->number == number) {
			number++;
			other = metal_spaces;
		} else {
			other = other->next;
		}
	}
	return number;
}

/* Nothing that is exported tells it. Read as tt-metal reads it. */
static bool metal_space_is_hybrid(const struct metal_names *names)
{
	const char *value = getenv("TT_METAL_ALLOCATOR_MODE_HYBRID");

	return names->is_per_core && value && value[0] == '1';
}

/* Whether the device's own allocator was met since it was opened. */
static bool metal_space_is_met(const void *device)
{
	const struct metal_space *space;

	metal_lock();
	space = metal_spaces;
	while (space && !(space->device == device && space->is_default))
		space = space->next;
	metal_unlock();
	return space;
}

/*
 * Declares the device by its own allocator, which alone knows all of it. A sub-device's may be met before: then
 * what was declared is of an earlier opening, in which L1_SMALL and the trace region may have had other sizes.
 */
static void metal_space_declare(const struct metal_names *names, const struct metal_space *fresh,
				const struct metal_target *target)
{
	struct metal_space own = {.device = fresh->device, .is_default = true};

	if (fresh->is_default) {
		metal_device_declare(names, fresh->device, fresh->memory, target);
	} else if (!metal_space_is_met(fresh->device)) {
		metal_space_ask(names, metal_learn_own_allocator(names, fresh->device), &own);
		metal_device_declare(names, own.device, own.memory, target);
	}
}

int metal_space_meet(const struct metal_names *names, const void *buffer,
		     const struct metal_facts *facts, const struct metal_target *target)
{
	struct metal_space *fresh;
	const void *api;
	bool is_known;
	int r = 0;

	metal_lock();
	is_known = metal_space_find(facts->allocator) != NULL;
	metal_unlock();
	if (is_known)
		return 0;
	fresh = calloc(1, sizeof(*fresh));
	if (!fresh)
		return -ENOMEM;
	fresh->allocator = facts->allocator;
	fresh->device = facts->device;
	api = metal_learn_api(names, buffer, facts, &fresh->is_default);
	fresh->is_hybrid = fresh->is_default && metal_space_is_hybrid(names);
	metal_space_ask(names, api, fresh);
	metal_space_declare(names, fresh, target);
	metal_lock();
	fresh->number = metal_space_number();
	if (fresh->number == METAL_SPACE_LANES)
		r = -ENOSPC;
	if (r < 0 || metal_space_find(facts->allocator)) { /* another thread came first */
		free(fresh);
	} else {
		fresh->next = metal_spaces;
		metal_spaces = fresh;
	}
	metal_unlock();
	return r;
}

void metal_space_remove(struct metal_space *space)
{
	struct metal_space **link = &metal_spaces;

	while (*link != space)
		link = &(*link)->next;
	*link = space->next;
	free(space);
}

bool metal_space_has(const struct metal_space *space, uint32_t type, uint64_t address)
{
	const struct ttmem_memory_facts *memory = &space->memory[type];

	return !memory->bank_base || !memory->bank_size ||
	       (address >= memory->bank_base && address - memory->bank_base < memory->bank_size);
}

uint32_t metal_space_on_chip(const struct metal_space *space, uint64_t address)
{
	if (!space->small_base)
		return TTMEM_ANY;
	return address < space->small_base ? TTMEM_L1 : TTMEM_L1_SMALL;
}

void metal_space_forget(void)
{
	metal_spaces = NULL;
}
