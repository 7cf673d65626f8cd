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
static void metal_space_measure(const struct metal_names *names, const void *api, uint32_t type,
				struct ttmem_memory_facts *memory)
{
	uint64_t size = names->bank_size(api, &type);

	if (names->statistics && size != names->statistics(api, &type).total)
		return;
	memory->bank_size = size;
	memory->banks = names->bank_count(api, &type);
	memory->capacity = size * memory->banks;
	if (names->alignment)
		memory->alignment = names->alignment(api, type);
}

/*
 * In each bank, DRAM is followed by the trace region, and L1 by the small one. (As in all releases from
 * 0.62 on; that buffers do lie there is checked for each.)
 */
static void metal_space_place(const struct metal_names *names, const void *api,
			      struct ttmem_memory_facts *memory)
{
	/* The second argument is a reference to one byte. */
	const uint8_t l1 = METAL_SPACE_HAL_L1, dram = METAL_SPACE_HAL_DRAM;

	if (!names->bank_base)
		return;
	memory[TTMEM_DRAM].bank_base = names->bank_base(api, &dram);
	memory[TTMEM_L1].bank_base = names->bank_base(api, &l1);
	memory[TTMEM_TRACE].bank_base = memory[TTMEM_DRAM].bank_base + memory[TTMEM_DRAM].bank_size;
	memory[TTMEM_L1_SMALL].bank_base = memory[TTMEM_L1].bank_base + memory[TTMEM_L1].bank_size;
}

static void metal_space_ask(const struct metal_names *names, const void *api,
			    struct metal_space *space)
{
	static const uint32_t types[] = {TTMEM_L1, TTMEM_L1_SMALL, TTMEM_DRAM, TTMEM_TRACE};
	/* A sub-device's has L1 only; what it says about DRAM is not meant. */
	size_t count = space->is_default ? ARRAY_SIZE(types) : 2;

	/* In all releases, blocks of L1 are aligned as those of DRAM are. */
	if (names->alignment)
		space->unit = names->alignment(api, TTMEM_DRAM);
	if (!names->bank_count || !names->bank_size)
		return;
	for (size_t i = 0; i < count; i++)
		metal_space_measure(names, api, types[i], &space->memory[types[i]]);
	metal_space_place(names, api, space->memory);
	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		/* What does not exist has no place either. */
		if (!space->memory[types[i]].capacity)
			space->memory[types[i]] = (struct ttmem_memory_facts){0};
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

/* The smallest number that no other one has; TTMEM_SPACE_COUNT if all are taken. */
static uint32_t metal_space_number(void)
{
	const struct metal_space *other = metal_spaces;
	uint32_t number = 0;

	while (other && number < TTMEM_SPACE_COUNT) {
		if (other->number == number) {
			number++;
			other = metal_spaces;
		} else {
			other = other->next;
		}
	}
	return number;
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
	metal_space_ask(names, api, fresh);
	if (fresh->is_default) /* only a device's own knows all of it */
		metal_device_declare(names, facts->device, fresh->memory, target);
	metal_lock();
	fresh->number = metal_space_number();
	if (fresh->number == TTMEM_SPACE_COUNT)
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
	const struct ttmem_memory_facts *l1 = &space->memory[TTMEM_L1];
	const struct ttmem_memory_facts *small = &space->memory[TTMEM_L1_SMALL];

	if (!l1->bank_size)
		return TTMEM_ANY;
	if (!small->bank_size)
		return TTMEM_L1;
	if (!l1->bank_base)
		return TTMEM_ANY;
	return address < small->bank_base ? TTMEM_L1 : TTMEM_L1_SMALL;
}

void metal_space_forget(void)
{
	metal_spaces = NULL;
}
