/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Refused allocations. The largest free block is tt-metal's own figure; where that block would have been large
 * enough, it was not the reason (the buffer was to lie on single cores, or below a limit), and it is not known.
 *
 * tt-metal counts pages in 32 bits, and multiplies that for the size in each bank: a request of more pages has
 * its size from the object, and the size in each bank is not known.
 */

#include "metal/metal-failed.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <ttmem/ttmem.h>

#include "metal/metal-circular.h"
#include "metal/metal-learn.h"
#include "metal/metal-lock.h"
#include "metal/metal-names.h"
#include "metal/metal-space.h"
#include "metal/metal-target.h"

/* As in metal-learn.c: all that is searched for is in the first words of a Buffer. */
#define METAL_FAILED_WORDS 16

#define METAL_FAILED_NAME 64

struct metal_failure {
	const struct metal_names *names;
	const void *buffer;
	const void *api; /* its allocator, as an Allocator */
	struct metal_facts facts;
	struct metal_optional cores;
	uint64_t size_per_bank;
	bool is_per_core;
	bool is_locked;
};

static bool metal_failed_is_device(const struct metal_names *names, uint64_t word)
{
	const void *object, *table;

	if (word == 0 || word % sizeof(void *) != 0)
		return false;
	memcpy(&object, &word, sizeof(object));
	return metal_learn_copy(object, &table, sizeof(table)) == 0 &&
	       (table == names->device_table || table == names->mesh_table);
}

/*
 * The only one in the object where a device may be; NULL = there is none, or there are several. Members of the
 * object that have no value yet may contain anything, such as another device of an object that was freed.
 */
static const void *metal_failed_device(const struct metal_names *names, const uint64_t *words)
{
	const uint32_t places = metal_learn_device_places();
	const void *device = NULL;

	for (uint32_t i = 0; i < METAL_FAILED_WORDS; i++) {
		const void *found;

		if (!(places >> i & 1) || !metal_failed_is_device(names, words[i]))
			continue;
		memcpy(&found, &words[i], sizeof(found));
		if (device && device != found)
			return NULL;
		device = found;
	}
	return device;
}

/* The only value where a size may be that has so many pages, as tt-metal counts them; 0 = none, or several. */
static uint64_t metal_failed_size(const struct metal_facts *facts, const uint64_t *words)
{
	uint32_t places = metal_learn_size_places();
	uint64_t size = 0;

	for (uint32_t i = 0; facts->page_size && i < METAL_FAILED_WORDS; i++) {
		if (!(places >> i & 1) || words[i] == 0 || words[i] == size ||
		    words[i] % facts->page_size != 0 ||
		    (uint32_t)(words[i] / facts->page_size) != facts->pages)
			continue;
		if (size)
			return 0;
		size = words[i];
	}
	return size;
}

static struct metal_statistics metal_failed_statistics(const struct metal_failure *failure,
						       uint32_t type)
{
	/* An allocator knows no memory of a type of which it has no banks. */
	if (!failure->names->statistics || failure->is_per_core || failure->is_locked ||
	    !failure->names->bank_count || failure->names->bank_count(failure->api, &type) == 0)
		return (struct metal_statistics){0};
	return failure->names->statistics(failure->api, &type);
}

/*
 * L1 or L1_SMALL. Only sharded buffers are in the latter. The type follows the size in all releases from 0.62
 * on; that is used where the memory that it names had no room, or the other one had none either.
 */
static uint32_t metal_failed_on_chip(const struct metal_failure *failure, const uint64_t *words)
{
	bool fits =
		metal_failed_statistics(failure, TTMEM_L1).largest_free >= failure->size_per_bank;
	bool fits_small = metal_failed_statistics(failure, TTMEM_L1_SMALL).largest_free >=
			  failure->size_per_bank;

	if (!failure->cores.has_value || failure->is_per_core)
		return TTMEM_L1;
	if (fits != fits_small)
		return fits ? TTMEM_L1_SMALL : TTMEM_L1;
	for (uint32_t i = 0; i + 1 < METAL_FAILED_WORDS; i++) {
		if (words[i] == failure->facts.size &&
		    (uint32_t)words[i + 1] == (uint32_t)TTMEM_L1_SMALL)
			return TTMEM_L1_SMALL;
	}
	return TTMEM_L1;
}

static uint32_t metal_failed_type(const struct metal_failure *failure, const uint64_t *words)
{
	const struct metal_names *names = failure->names;

	if (names->is_trace(failure->buffer))
		return TTMEM_TRACE;
	if (names->is_l1(failure->buffer))
		return metal_failed_on_chip(failure, words);
	return TTMEM_DRAM;
}

/* A mesh fails as one: the first of its devices stands for all. */
static void metal_failed_tell(const struct metal_failure *failure, uint32_t type,
			      struct metal_target *target)
{
	struct metal_statistics bank = metal_failed_statistics(failure, type);
	char name[METAL_FAILED_NAME] = "";
	struct ttmem_failed_args args = {
		.struct_size = sizeof(args),
		.type = type,
		.size = failure->facts.size,
		.largest_free = TTMEM_UNKNOWN,
		.size_per_bank = failure->size_per_bank,
		.bank_size = bank.total,
		.bank_free = bank.free,
		.banks = failure->cores.has_value ? failure->cores.value : 0,
		.shape_flags = failure->is_per_core ? TTMEM_SHAPE_PER_CORE : 0,
		.name = name,
	};
	const struct metal_space *space;

	if (bank.total && bank.largest_free < failure->size_per_bank)
		args.largest_free = bank.largest_free;
	if (!args.banks && failure->names->bank_count)
		args.banks = failure->names->bank_count(failure->api, &type);
	if (target->count > 1)
		(void)snprintf(name, sizeof(name), "on each of %" PRIu32 " devices of a mesh",
			       target->count);
	metal_lock();
	space = metal_space_find(failure->facts.allocator);
	args.space = space ? space->number : 0;
	args.device = target->ids[0];
	metal_target_put(target);
	metal_unlock();
	ttmem_alloc_failed_ex(&args);
}

void metal_failed(const struct metal_names *names, const void *allocator, const void *buffer,
		  bool is_locked)
{
	struct metal_failure failure = {
		.names = names,
		.buffer = buffer,
		.api = names->buffer_allocator ? names->buffer_allocator(buffer) : allocator,
		.facts = {.allocator = allocator,
			  .page_size = names->page_size(buffer),
			  .pages = names->num_pages(buffer)},
		.is_per_core = names->is_per_core && names->is_per_core(buffer),
		.is_locked = is_locked,
	};
	uint64_t words[METAL_FAILED_WORDS];
	struct metal_target *target;

	/* Memory of the host has no banks to be asked about. */
	if (!(names->is_l1(buffer) || names->is_dram(buffer)) ||
	    metal_learn_copy(buffer, words, sizeof(words)) < 0)
		return;
	failure.facts.size = metal_failed_size(&failure.facts, words);
	failure.facts.device = metal_failed_device(names, words);
	target = failure.facts.device ? metal_target_get(names, failure.facts.device) : NULL;
	if (!target)
		return;
	if (target->count == 0) {
		metal_lock();
		metal_target_put(target);
		metal_unlock();
		return;
	}
	if (names->buffer_cores)
		failure.cores = names->buffer_cores(buffer);
	if (names->size_per_bank &&
	    failure.facts.size == failure.facts.page_size * failure.facts.pages)
		failure.size_per_bank = names->size_per_bank(buffer);
	/* What is known of the memory is of interest now. If it fails, that is not known. */
	if (!is_locked)
		(void)metal_space_meet(names, buffer, &failure.facts, target);
	metal_failed_tell(&failure, metal_failed_type(&failure, words), target);
}

bool metal_failed_program(const struct metal_names *names, const void *program, const void *device)
{
	uint64_t end = metal_space_per_core(names, device);
	struct metal_target *target = end ? metal_target_get(names, device) : NULL;
	struct ttmem_failed_args args = {
		.struct_size = sizeof(args),
		.type = TTMEM_CB,
		.bank_size = end,
		.name = "circular buffers that reach beyond L1",
	};
	struct metal_extent extent = {0, 0};

	if (!target)
		return false;
	metal_lock();
	for (uint32_t i = 0; i < target->count && extent.end <= end; i++) {
		args.device = target->ids[i];
		extent = metal_circular_extent(program, args.device);
	}
	metal_target_put(target);
	metal_unlock();
	if (extent.end <= end || extent.begin >= end)
		return false;
	/* From where they begin; what lies there besides is not asked for. */
	args.size = args.size_per_bank = extent.end - extent.begin;
	args.largest_free = args.bank_free = end - extent.begin;
	ttmem_alloc_failed_ex(&args);
	return true;
}
