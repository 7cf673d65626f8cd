/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Records, found by their Buffer and by their place, which is type and address. Each is reported in the
 * space of its allocator: several allocators may each have a buffer at one place of a device.
 */

#include "metal/metal-records.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ttmem/ttmem.h>

#include "metal/metal-circular.h"
#include "metal/metal-learn.h"
#include "metal/metal-refuse.h"
#include "metal/metal-space.h"
#include "metal/metal-target.h"
#include "metal/metal-trace.h"

#define METAL_RECORDS_BUCKETS_MIN 256u

/* Records that are kept for the next buffers. */
#define METAL_RECORDS_SPARES 64u

struct metal_record {
	const void *buffer;
	struct metal_target *target;
	struct metal_space *space;
	struct metal_record *next_buffer; /* in a bucket */
	struct metal_record *next_place;
	struct metal_record *next; /* of the space */
	struct metal_record **link;
	uint64_t address;
	uint64_t size;
	struct metal_shape shape;
	uint32_t number; /* the space that it was reported in: its allocator's, or a lane */
};

static struct {
	struct metal_record **by_buffer;
	struct metal_record **by_place;
	size_t buckets; /* a power of two, or 0 */
	size_t count;
	struct metal_record *spares; /* by their next */
	uint32_t spare_count;
} metal_records;

static size_t metal_records_hash(uint64_t a, uint64_t b)
{
	uint64_t mixed = (a + b * UINT64_C(0x9e3779b97f4a7c15)) * UINT64_C(0xff51afd7ed558ccd);

	return (size_t)(mixed >> 32) & (metal_records.buckets - 1);
}

static struct metal_record **metal_records_buffer_bucket(const void *buffer)
{
	return &metal_records.by_buffer[metal_records_hash((uintptr_t)buffer >> 4, 0)];
}

static struct metal_record **metal_records_place_bucket(uint32_t type, uint64_t address)
{
	return &metal_records.by_place[metal_records_hash(address, type)];
}

static void metal_records_enter(struct metal_record *record)
{
	struct metal_record **bucket = metal_records_buffer_bucket(record->buffer);

	record->next_buffer = *bucket;
	*bucket = record;
	bucket = metal_records_place_bucket(record->shape.type, record->address);
	record->next_place = *bucket;
	*bucket = record;
}

/* Twice as many buckets. Without memory they stay as they are; only the first ones are needed. */
static bool metal_records_grow(void)
{
	size_t wanted =
		metal_records.buckets ? metal_records.buckets * 2 : METAL_RECORDS_BUCKETS_MIN;
	struct metal_record **by_buffer, **by_place, **old = metal_records.by_buffer;
	size_t count = metal_records.buckets;

	if (metal_records.count < count)
		return true;
	by_buffer = calloc(wanted, sizeof(struct metal_record *));
	by_place = calloc(wanted, sizeof(struct metal_record *));
	if (!by_buffer || !by_place) {
		free(by_buffer);
		free(by_place);
		return count != 0;
	}
	free(metal_records.by_place);
	metal_records.by_buffer = by_buffer;
	metal_records.by_place = by_place;
	metal_records.buckets = wanted;
	for (size_t i = 0; i < count; i++) {
		struct metal_record *next;

		for (struct metal_record *record = old[i]; record; record = next) {
			next = record->next_buffer;
			metal_records_enter(record);
		}
	}
	free(old);
	return true;
}

static struct metal_record *metal_records_find(const void *buffer)
{
	struct metal_record *record =
		metal_records.buckets ? *metal_records_buffer_bucket(buffer) : NULL;

	while (record && record->buffer != buffer)
		record = record->next_buffer;
	return record;
}

static bool metal_records_is_at(const struct metal_record *record, uint32_t type, uint64_t address)
{
	return record->address == address && record->shape.type == type;
}

/* The old log of buffers names the objects; nothing else is worth the time that an owner takes. */
uint64_t metal_records_owner(const void *buffer)
{
	static bool is_known, has_log;

	if (!is_known) {
		const char *value = secure_getenv("TT_BUFFER_DEBUG_LOG");

		has_log = value && *value;
		is_known = true;
	}
	return has_log ? (uintptr_t)buffer : 0;
}

static void metal_records_tell(const struct metal_record *record)
{
	const struct ttmem_alloc_args args = {
		.struct_size = sizeof(args),
		.device = record->target->ids[0],
		.type = record->shape.type,
		.flags = TTMEM_FLAG_OWNS_DATA,
		.address = record->address,
		.size = record->size,
		.owner = metal_records_owner(record->buffer),
		.size_per_bank = record->shape.size_per_bank,
		.banks = record->shape.banks,
		.space = record->number,
		.shape_flags = record->shape.flags,
		.page_size = record->shape.page_size,
	};

	if (record->target->count == 1) /* takes less time */
		ttmem_alloc_ex(&args);
	else
		ttmem_alloc_mesh_ex(record->target->ids, record->target->count, &args);
}

/* It lies where a trace, once it is replayed, writes to a buffer that was freed. */
static void metal_records_tell_overlap(const struct metal_record *record,
				       const struct metal_trace_range *used, uint32_t trace)
{
	char name[sizeof("trace 4294967295")];
	struct ttmem_trace_overlap_args args = {
		.struct_size = sizeof(args),
		.type = record->shape.type,
		.space = record->number,
		.address = record->address,
		.size = record->size,
		.trace = name,
		.traced_size = used->size,
		.traced = used->origin,
	};

	snprintf(name, sizeof(name), "trace %" PRIu32, trace);
	for (uint32_t i = 0; i < record->target->count; i++) {
		args.device = record->target->ids[i];
		ttmem_trace_overlap(&args);
	}
}

static void metal_records_trace(const struct metal_record *record)
{
	struct metal_trace_range range = {
		.space = record->space,
		.type = record->shape.type,
		.start = record->address,
		/* Where it is not known how far it reaches, it has its first byte. */
		.end = record->address +
		       (record->shape.size_per_bank ? record->shape.size_per_bank : 1),
		.size = record->size,
	};
	const struct metal_trace_range *used;
	uint32_t trace;

	/* On which cores of a trace one lies that has an address on each of its own is not kept. */
	if (range.type == TTMEM_SYSTEM_MEMORY || record->shape.is_per_core)
		return;
	used = metal_trace_find(&range, &trace);
	if (used)
		metal_records_tell_overlap(record, used, trace);
	if (!metal_trace_is_open(record->space->device))
		return;
	ttmem_here(&range.origin);
	metal_trace_add(record->space->device, &range);
}

static void metal_records_unlink(struct metal_record *record)
{
	struct metal_record **link = metal_records_buffer_bucket(record->buffer);

	while (*link != record)
		link = &(*link)->next_buffer;
	*link = record->next_buffer;
	link = metal_records_place_bucket(record->shape.type, record->address);
	while (*link != record)
		link = &(*link)->next_place;
	*link = record->next_place;
	*record->link = record->next;
	if (record->next)
		record->next->link = record->link;
	metal_records.count--;
}

/* NULL: out of memory. Nothing of it is set. */
static struct metal_record *metal_records_new(void)
{
	struct metal_record *record = metal_records.spares;

	if (!record)
		return malloc(sizeof(*record));
	metal_records.spares = record->next;
	metal_records.spare_count--;
	return record;
}

static void metal_records_drop(struct metal_record *record)
{
	if (metal_records.spare_count >= METAL_RECORDS_SPARES) {
		free(record);
		return;
	}
	record->next = metal_records.spares;
	metal_records.spares = record;
	metal_records.spare_count++;
}

/* @why: TTMEM_FREE_CLOSED, or 0. */
static void metal_records_end_for(struct metal_record *record, uint32_t why)
{
	const struct ttmem_free_args args = {
		.struct_size = sizeof(args),
		.device = record->target->ids[0],
		.type = record->shape.type,
		.flags = TTMEM_FREE_IN_SPACE | why,
		.address = record->address,
		.space = record->number,
		.owner = metal_records_owner(record->buffer),
	};

	metal_records_unlink(record);
	if (record->target->count == 1)
		ttmem_free_ex(&args);
	else
		ttmem_free_mesh_ex(record->target->ids, record->target->count, &args);
	metal_target_put(record->target);
	metal_records_drop(record);
}

static void metal_records_end(struct metal_record *record)
{
	metal_records_end_for(record, 0);
}

static void metal_records_link(struct metal_record *record, struct metal_space *space)
{
	record->space = space;
	record->next = space->records;
	record->link = &space->records;
	if (record->next)
		record->next->link = &record->next;
	space->records = record;
	metal_records_enter(record);
	metal_records.count++;
}

/*
 * An allocator gives an address once: one that it gave before has ended, and nobody said so. But per core it
 * gives one to each.
 */
static void metal_records_end_older(const struct metal_space *space,
				    const struct metal_shape *shape, uint64_t address)
{
	struct metal_record *next, *record = *metal_records_place_bucket(shape->type, address);

	for (; record; record = next) {
		next = record->next_place;
		if (record->space == space && metal_records_is_at(record, shape->type, address) &&
		    !(record->shape.is_per_core && shape->is_per_core))
			metal_records_end(record);
	}
}

/* Whether something is reported at the place of @record, on a device of it, in space @number. */
static bool metal_records_is_taken(const struct metal_record *record, uint32_t number)
{
	const struct metal_record *other =
		*metal_records_place_bucket(record->shape.type, record->address);

	for (; other; other = other->next_place) {
		if (other->number == number &&
		    metal_records_is_at(other, record->shape.type, record->address) &&
		    metal_target_shares(other->target, record->target))
			return true;
	}
	return false;
}

/* A key that is nobody else's. TTMEM_SPACE_COUNT: there is none. */
static uint32_t metal_records_number(const struct metal_record *record,
				     const struct metal_space *space)
{
	uint32_t number = space->number;

	if (!record->shape.is_per_core || !metal_records_is_taken(record, number))
		return number;
	number = METAL_SPACE_LANES;
	while (number < TTMEM_SPACE_COUNT && metal_records_is_taken(record, number))
		number++;
	return number;
}

void metal_records_allocated(struct metal_space *space, const void *buffer,
			     const struct metal_facts *facts, const struct metal_shape *shape,
			     struct metal_target *target)
{
	struct metal_record *record = metal_records_find(buffer);

	if (record) /* the object's memory was used again: its end was not told either */
		metal_records_end(record);
	record = metal_records_grow() ? metal_records_new() : NULL;
	if (!record) {
		metal_target_put(target);
		return;
	}
	metal_records_end_older(space, shape, facts->address);
	record->buffer = buffer;
	record->target = target;
	record->address = facts->address;
	record->size = facts->size;
	record->shape = *shape;
	record->number = metal_records_number(record, space);
	if (record->number == TTMEM_SPACE_COUNT) {
		metal_refuse("too many buffers are at one address");
		metal_target_put(target);
		metal_records_drop(record);
		return;
	}
	metal_records_link(record, space);
	metal_records_tell(record);
	if (metal_trace_is_any())
		metal_records_trace(record);
}

/* The lowest buffer of L1, of all allocators of the device. */
static const struct metal_record *metal_records_lowest(const void *device)
{
	const struct metal_record *lowest = NULL;

	for (const struct metal_space *space = metal_space_first(); space; space = space->next) {
		const struct metal_record *record = space->device == device ? space->records : NULL;

		for (; record; record = record->next) {
			if (record->shape.type == TTMEM_L1 &&
			    (!lowest || record->address < lowest->address))
				lowest = record;
		}
	}
	return lowest;
}

void metal_records_refused(const void *program, const void *device)
{
	const struct metal_record *lowest = metal_records_lowest(device);
	struct ttmem_clash_args args = {
		.struct_size = sizeof(args), .type = TTMEM_L1, .name = "circular buffers"};

	for (uint32_t i = 0; lowest && i < lowest->target->count; i++) {
		uint32_t id = lowest->target->ids[i];
		struct metal_extent extent = metal_circular_extent(program, id);

		if (extent.end <= lowest->address)
			continue; /* it was refused for another reason */
		args.device = id;
		args.space = lowest->number;
		args.address = lowest->address;
		args.wanted_address = extent.begin;
		args.wanted_size = extent.end - extent.begin;
		ttmem_clash(&args);
	}
}

bool metal_records_freed(const void *buffer)
{
	struct metal_record *record = metal_records_find(buffer);

	if (record)
		metal_records_end(record);
	return record != NULL;
}

static void metal_records_end_all(struct metal_space *space, uint32_t why)
{
	while (space->records)
		metal_records_end_for(space->records, why);
	metal_trace_clear(space);
	metal_space_remove(space);
}

void metal_records_clear(const void *allocator)
{
	struct metal_space *space = metal_space_find(allocator);

	if (space)
		metal_records_end_all(space, TTMEM_FREE_CLOSED);
}

void metal_records_close(const void *device)
{
	struct metal_space *next;

	for (struct metal_space *space = metal_space_first(); space; space = next) {
		next = space->next;
		if (!device || space->device == device)
			metal_records_end_all(space, device ? TTMEM_FREE_CLOSED : 0);
	}
}

void metal_records_forget(void)
{
	memset(&metal_records, 0, sizeof(metal_records));
}
