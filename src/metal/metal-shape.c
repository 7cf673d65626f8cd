/* SPDX-License-Identifier: Apache-2.0 */

#include "metal/metal-shape.h"

#include <string.h>

#include "base/bits.h"
#include "metal/metal-learn.h"
#include "metal/metal-names.h"
#include "metal/metal-records.h"
#include "metal/metal-refuse.h"
#include "metal/metal-space.h"

/* More than any chip has. */
#define METAL_SHAPE_CORES_MAX 1024u

/* Buffers for which both ways must have been the same before one is left out. */
#define METAL_SHAPE_PROOF 64u

static const uint32_t metal_shape_types[] = {
	[METAL_MEMORY_OTHER] = TTMEM_SYSTEM_MEMORY,
	[METAL_MEMORY_L1] = TTMEM_L1,
	[METAL_MEMORY_DRAM] = TTMEM_DRAM,
	[METAL_MEMORY_TRACE] = TTMEM_TRACE,
};

/* By enum metal_memory. */
static struct {
	bool is_learned; /* atomic */
	bool is_different;
	bool is_varied; /* not always the first one */
	uint32_t agreed;
	uint64_t first;
} metal_shape_ways[ARRAY_SIZE(metal_shape_types)];

static bool metal_shape_is_learned(enum metal_memory memory)
{
	return __atomic_load_n(&metal_shape_ways[memory].is_learned, __ATOMIC_RELAXED);
}

/* Those for system memory would throw. */
static bool metal_shape_can_ask(const struct metal_names *names, const struct metal_look *look)
{
	return look->memory != METAL_MEMORY_OTHER && names->size_per_bank;
}

/* As long as it is not known that tables look like this, what they point to may not be memory. */
static bool metal_shape_read(const void *from, void *to, size_t size, bool is_known)
{
	if (!is_known)
		return metal_learn_copy(from, to, size) == 0;
	memcpy(to, from, size);
	return true;
}

/*
 * On how many cores it has an address: num_cores() counts those with data only. 0 = not known, if the table is
 * not what it should be.
 */
static uint32_t metal_shape_cores(const struct metal_names *names, const void *buffer)
{
	static bool is_learned; /* atomic */
	const bool is_known = __atomic_load_n(&is_learned, __ATOMIC_RELAXED);
	const struct metal_core_map *map =
		names->per_core_addresses ? names->per_core_addresses(buffer) : NULL;
	const uint64_t address = names->address(buffer);
	struct metal_core_map copy;
	struct metal_core_node node;
	uint32_t count = 0;
	bool has_address = false;

	if (!map || !metal_shape_read(map, &copy, sizeof(copy), is_known) ||
	    copy.count > METAL_SHAPE_CORES_MAX)
		return 0;
	for (node.next = copy.first; node.next && count <= copy.count; count++) {
		if (!metal_shape_read(node.next, &node, sizeof(node), is_known))
			return 0;
		has_address |= node.address == address;
	}
	if (!has_address || count != copy.count)
		return 0;
	__atomic_store_n(&is_learned, true, __ATOMIC_RELAXED);
	return count;
}

struct metal_look metal_shape_look(const struct metal_names *names, const void *buffer)
{
	struct metal_look look = {.memory = METAL_MEMORY_OTHER};
	struct metal_optional cores;

	if (names->is_dram(buffer)) /* also of a trace */
		look.memory = names->is_trace(buffer) ? METAL_MEMORY_TRACE : METAL_MEMORY_DRAM;
	else if (names->is_l1(buffer))
		look.memory = METAL_MEMORY_L1;
	if (names->buffer_cores) {
		cores = names->buffer_cores(buffer);
		look.banks = cores.has_value ? cores.value : UINT32_MAX;
	}
	if (look.memory == METAL_MEMORY_L1 && look.banks != UINT32_MAX && names->is_per_core &&
	    names->is_per_core(buffer)) {
		look.is_per_core = true;
		look.banks = metal_shape_cores(names, buffer);
	}
	if (look.banks != UINT32_MAX || !metal_shape_is_learned(look.memory))
		metal_shape_ask(names, buffer, &look);
	return look;
}

void metal_shape_ask(const struct metal_names *names, const void *buffer, struct metal_look *look)
{
	look->is_asked = true;
	if (metal_shape_can_ask(names, look))
		look->size_per_bank = names->size_per_bank(buffer);
}

static uint32_t metal_shape_type(const struct metal_facts *facts, const struct metal_look *look,
				 const struct metal_space *space)
{
	return look->memory == METAL_MEMORY_L1 ? metal_space_on_chip(space, facts->address)
					       : metal_shape_types[look->memory];
}

static bool metal_shape_can_spread(const struct ttmem_memory_facts *memory)
{
	return memory->banks && memory->alignment &&
	       (memory->alignment & (memory->alignment - 1)) == 0;
}

/* Pages are dealt to the banks in turn. */
static uint64_t metal_shape_spread(const struct metal_facts *facts,
				   const struct ttmem_memory_facts *memory)
{
	uint32_t pages = facts->pages / memory->banks + (facts->pages % memory->banks != 0);

	return pages * bits_align_up(facts->page_size, memory->alignment);
}

bool metal_shape_must_ask(const struct metal_facts *facts, const struct metal_look *look,
			  const struct metal_space *space)
{
	uint32_t type;

	if (look->is_asked)
		return false;
	type = metal_shape_type(facts, look, space);
	return type < TTMEM_TYPE_COUNT && !metal_shape_can_spread(&space->memory[type]);
}

/* Buffers of one size prove little. */
static void metal_shape_learn(enum metal_memory memory, uint64_t spread, uint64_t told)
{
	if (metal_shape_ways[memory].agreed++ == 0)
		metal_shape_ways[memory].first = spread;
	metal_shape_ways[memory].is_different |= spread != told;
	metal_shape_ways[memory].is_varied |= spread != metal_shape_ways[memory].first;
	if (!metal_shape_ways[memory].is_different && metal_shape_ways[memory].is_varied &&
	    metal_shape_ways[memory].agreed >= METAL_SHAPE_PROOF)
		__atomic_store_n(&metal_shape_ways[memory].is_learned, true, __ATOMIC_RELAXED);
}

static uint64_t metal_shape_per_bank(const struct metal_facts *facts, const struct metal_look *look,
				     const struct ttmem_memory_facts *memory)
{
	if (!look->is_asked)
		return metal_shape_spread(facts, memory);
	if (look->banks == UINT32_MAX && look->size_per_bank && metal_shape_can_spread(memory) &&
	    !metal_shape_is_learned(look->memory))
		metal_shape_learn(look->memory, metal_shape_spread(facts, memory),
				  look->size_per_bank);
	return look->size_per_bank;
}

/* A hybrid allocator has each page of L1 aligned as its blocks are, which the buffer does not tell. */
static uint64_t metal_shape_in_units(const struct metal_shape *shape, uint64_t told,
				     const struct metal_space *space)
{
	const struct ttmem_memory_facts *l1 = &space->memory[TTMEM_L1];
	uint64_t page;

	if (!space->is_hybrid || shape->type != TTMEM_L1)
		return told;
	if (!metal_shape_can_spread(l1) || !shape->page_size)
		return 0;
	page = bits_align_up(shape->page_size, l1->alignment);
	return told % page ? 0 : told / page * bits_align_up(page, space->unit);
}

bool metal_shape_make(const struct metal_facts *facts, const struct metal_look *look,
		      const struct metal_space *space, struct metal_shape *ret_shape)
{
	uint32_t type = metal_shape_type(facts, look, space);

	if (type == TTMEM_ANY) {
		metal_refuse("L1 and L1_SMALL cannot be told apart");
		return false;
	}
	/* Which of the two it is has been told by the address alone. */
	if (facts->address && look->memory == METAL_MEMORY_L1 && space->small_base != UINT64_MAX &&
	    !metal_space_has(space, type, facts->address)) {
		metal_refuse("a buffer lies outside the banks that its allocator has");
		return false;
	}
	*ret_shape = (struct metal_shape){
		.type = type,
		.banks = look->banks,
		.page_size = facts->page_size,
		.is_per_core = look->is_per_core,
	};
	/* Without the number of banks, what it takes is not known; 0 would be all that were declared. */
	if (!look->banks)
		return true;
	ret_shape->size_per_bank = metal_shape_per_bank(facts, look, &space->memory[type]);
	if (space->unit && (space->unit & (space->unit - 1)) == 0) {
		ret_shape->size_per_bank =
			metal_shape_in_units(ret_shape, ret_shape->size_per_bank, space);
		ret_shape->size_per_bank = bits_align_up(ret_shape->size_per_bank, space->unit);
	}
	/* With an address per core it lies in neither way: it takes its place in no other bank. */
	ret_shape->flags = look->is_per_core ? 0 : TTMEM_SHAPE_SHARDED;
	if (look->banks == UINT32_MAX) { /* over all banks */
		ret_shape->banks = space->memory[type].banks;
		ret_shape->flags = TTMEM_SHAPE_INTERLEAVED;
	}
	return true;
}
