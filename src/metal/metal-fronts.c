/* SPDX-License-Identifier: Apache-2.0 */

/*
 * libttmem-metal.so: stands in front of tt-metal's functions in an application that was not compiled for
 * ttmem. Its functions have the names of tt-metal's and are found before them; each reports and calls on.
 * They are called on whatever thread allocates, so no thread has to be registered.
 *
 * It is loaded into every process that the application starts, most of which have no tt-metal, and refers
 * to no symbol of it. tt-metal's functions may throw; so nothing is called with the lock held.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <ttmem/ttmem.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "metal/metal-circular.h"
#include "metal/metal-front.h"
#include "metal/metal-learn.h"
#include "metal/metal-lock.h"
#include "metal/metal-names.h"
#include "metal/metal-note.h"
#include "metal/metal-records.h"
#include "metal/metal-refuse.h"
#include "metal/metal-space.h"
#include "metal/metal-target.h"
#include "metal/metal-trace.h"
#include "metal/metal-version.h"

/* Which of tt-metal's functions this thread is in, that will change the account of circular buffers. */
static _Thread_local uint32_t metal_program_depth;

/* The program whose circular buffers this thread allocates; NULL = none. */
static _Thread_local const void *metal_program;
static _Thread_local uint64_t metal_program_round;

/* What a buffer says besides its facts. */
struct metal_look {
	bool is_l1;
	bool is_dram; /* also of a trace */
	bool is_trace;
	uint64_t size_per_bank;
	uint32_t banks; /* 0 = not known, UINT32_MAX = all */
	uint64_t page_size;
};

static bool metal_is_noted; /* that this process's book says what was learned */

void metal_front_allocate(void *tracker, const void *buffer) METAL_FRONT(METAL_NAME_ALLOCATE);
void metal_front_deallocate(void *tracker, void *buffer) METAL_FRONT(METAL_NAME_DEALLOCATE);
void metal_front_cb(void *tracker, const void *cores, uint64_t address, uint64_t size,
		    bool is_global, const void *device) METAL_FRONT(METAL_NAME_CB);
void metal_front_cb_old(void *tracker, const void *cores, uint64_t address, uint64_t size,
			bool is_global, const void *device) METAL_FRONT(METAL_NAME_CB_OLD);
void metal_front_cb_end(void *tracker, const void *device) METAL_FRONT(METAL_NAME_CB_END);
void metal_front_clear(void *allocator) METAL_FRONT(METAL_NAME_CLEAR);
void metal_front_clear_old(void *allocator) METAL_FRONT(METAL_NAME_CLEAR_OLD);
bool metal_front_device_close(void *device) METAL_FRONT(METAL_NAME_DEVICE_CLOSE);
bool metal_front_mesh_close(void *mesh) METAL_FRONT(METAL_NAME_MESH_CLOSE);
void metal_front_program_cb(void *program, const void *device) METAL_FRONT(METAL_NAME_PROGRAM_CB);
void metal_front_program_cb_end(void *program) METAL_FRONT(METAL_NAME_PROGRAM_CB_END);

bool metal_is_on(void)
{
	static bool is_cleared, was_enabled;

	if (!metal_refused()) {
		/* While it is paused, ttmem counts what it does not record. */
		if (!__atomic_load_n(&was_enabled, __ATOMIC_RELAXED) && ttmem_enabled())
			__atomic_store_n(&was_enabled, true, __ATOMIC_RELAXED);
		return __atomic_load_n(&was_enabled, __ATOMIC_RELAXED);
	}
	metal_lock();
	if (!is_cleared) {
		is_cleared = true;
		metal_records_close(NULL);
		metal_circular_close(NULL);
		metal_trace_close(NULL);
	}
	metal_unlock();
	return false;
}

/* An interned text stays in the book for as long as the book exists; `ttmem doctor` looks for it. */
static void metal_note(const struct metal_names *names)
{
	char found[METAL_NOTE_SIZE] = METAL_NOTE_HEAD, learned[METAL_NOTE_SIZE] = METAL_NOTE_HEAD;
	const size_t head = sizeof(METAL_NOTE_HEAD) - 1;

	if (__atomic_load_n(&metal_is_noted, __ATOMIC_RELAXED) || !*metal_learn_note() ||
	    __atomic_exchange_n(&metal_is_noted, true, __ATOMIC_RELAXED))
		return;
	metal_version_describe(names->library, found + head, sizeof(found) - head);
	(void)stpncpy(learned + head, metal_learn_note(), sizeof(learned) - head - 1);
	(void)ttmem_intern(found); /* the numbers are not needed */
	(void)ttmem_intern(learned);
}

/* What its own functions say; those for system memory would throw. */
static struct metal_look metal_look_at(const struct metal_names *names, const void *buffer)
{
	struct metal_look look = {
		.is_l1 = names->is_l1(buffer),
		.is_dram = names->is_dram(buffer),
		.is_trace = names->is_trace(buffer),
		.page_size = names->page_size(buffer),
	};
	struct metal_optional cores;

	if ((look.is_l1 || look.is_dram) && names->size_per_bank)
		look.size_per_bank = names->size_per_bank(buffer);
	if (names->buffer_cores) {
		cores = names->buffer_cores(buffer);
		look.banks = cores.has_value ? cores.value : UINT32_MAX;
	}
	return look;
}

/* With the lock held. False: it cannot be told which memory it is in. */
static bool metal_shape(const struct metal_facts *facts, const struct metal_look *look,
			struct metal_shape *ret_shape)
{
	const struct metal_space *space = metal_space_find(facts->allocator);
	struct metal_shape shape = {.type = TTMEM_SYSTEM_MEMORY};

	if (!space)
		return false;
	if (look->is_l1)
		shape.type = metal_space_on_chip(space, facts->address);
	else if (look->is_dram)
		shape.type = look->is_trace ? TTMEM_TRACE : TTMEM_DRAM;
	if (shape.type == TTMEM_ANY) {
		metal_refuse("L1 and L1_SMALL cannot be told apart");
		return false;
	}
	if (facts->address && !metal_space_has(space, shape.type, facts->address)) {
		metal_refuse("a buffer lies outside the banks that its allocator has");
		return false;
	}
	/* Without the number of banks, what it takes is not known; 0 would be all that were declared. */
	if (look->banks)
		shape.size_per_bank = look->size_per_bank;
	if (space->unit && (space->unit & (space->unit - 1)) == 0)
		shape.size_per_bank = bits_align_up(shape.size_per_bank, space->unit);
	/* Not sharded: over all banks. */
	shape.banks = look->banks == UINT32_MAX ? space->memory[shape.type].banks : look->banks;
	*ret_shape = shape;
	return true;
}

/* Graph capture: no memory, hence no record; ttmem counts that it happened. */
static void metal_hooked(const struct metal_facts *facts, const struct metal_shape *shape,
			 const struct metal_target *target)
{
	struct ttmem_alloc_args args = {
		.struct_size = sizeof(args),
		.type = shape->type,
		.flags = TTMEM_FLAG_HOOKED,
		.size = facts->size,
	};

	for (uint32_t i = 0; i < target->count; i++) {
		args.device = target->ids[i];
		ttmem_alloc_ex(&args);
	}
}

static void metal_allocated(const struct metal_names *names, const void *buffer)
{
	struct metal_target *target;
	struct metal_facts facts;
	struct metal_shape shape;
	struct metal_look look;

	if (metal_learn(names, buffer, &facts) != 0)
		return;
	target = metal_target_get(names, facts.device);
	if (!target)
		return;
	look = metal_look_at(names, buffer);
	(void)metal_space_meet(names, buffer, &facts, target); /* after a failure it is not found */
	metal_lock();
	if (!metal_shape(&facts, &look, &shape)) {
		metal_target_put(target);
	} else if (facts.address == 0) {
		metal_hooked(&facts, &shape, target);
		metal_target_put(target);
	} else {
		metal_records_allocated(buffer, &facts, &shape, target);
	}
	metal_unlock();
	metal_note(names);
}

void metal_front_allocate(void *tracker, const void *buffer)
{
	const struct metal_names *names = metal_names(METAL_HERE);

	if (names->track_allocate)
		names->track_allocate(tracker, buffer);
	if (metal_is_on())
		metal_allocated(names, buffer);
}

/* Reported first: after the call the address may be somebody else's. */
void metal_front_deallocate(void *tracker, void *buffer)
{
	const struct metal_names *names = metal_names(METAL_HERE);

	if (metal_is_on()) {
		metal_lock();
		/* One that was not seen was hooked, or has ended with its allocator. */
		(void)metal_records_freed(buffer);
		metal_unlock();
	}
	if (names->track_deallocate)
		names->track_deallocate(tracker, buffer);
}

/* One that is globally allocated lies in an L1 buffer, which is counted. */
static void metal_cb(const struct metal_names *names, const struct metal_circular *cb,
		     bool is_global, const void *device)
{
	if (!is_global && device && cb->size && cb->cores && metal_is_on())
		metal_circular_told(names, device, cb);
	if (names->cb_total && metal_program_depth == 0)
		metal_circular_refresh(names);
}

void metal_front_cb(void *tracker, const void *cores, uint64_t address, uint64_t size,
		    bool is_global, const void *device)
{
	const struct metal_names *names = metal_names(METAL_HERE);
	struct metal_circular cb = {address, size, 0, metal_program, metal_program_round};

	if (names->track_cb)
		names->track_cb(tracker, cores, address, size, is_global, device);
	if (names->core_count)
		cb.cores = names->core_count(cores);
	metal_cb(names, &cb, is_global, device);
}

void metal_front_cb_old(void *tracker, const void *cores, uint64_t address, uint64_t size,
			bool is_global, const void *device)
{
	metal_front_cb(tracker, cores, address, size, is_global, device);
}

void metal_front_cb_end(void *tracker, const void *device)
{
	const struct metal_names *names = metal_names(METAL_HERE);

	if (names->track_cb_end)
		names->track_cb_end(tracker, device);
	if (!metal_is_on())
		return;
	metal_circular_ended(names, device);
	if (names->cb_total && metal_program_depth == 0)
		metal_circular_refresh(names);
}

/* Also if it throws. */
static void metal_program_leave(const uint32_t *depth)
{
	metal_program_depth = *depth;
	metal_program = NULL;
}

static void metal_program_enter(const struct metal_names *names, void *program, const void *device)
{
	CLEANUP(metal_program_leave) uint32_t depth = metal_program_depth++;

	metal_program = program;
	names->program_cb(program, device);
}

/* The account changes after the tracker was told, but before these return. */
void metal_front_program_cb(void *program, const void *device)
{
	const struct metal_names *names = metal_names(METAL_HERE);

	static uint64_t rounds;

	if (!names->program_cb)
		return;
	metal_program_round = __atomic_add_fetch(&rounds, 1, __ATOMIC_RELAXED);
	metal_program_enter(names, program, device);
	if (metal_program_depth == 0 && names->cb_total && metal_is_on())
		metal_circular_refresh(names);
}

void metal_front_program_cb_end(void *program)
{
	const struct metal_names *names = metal_names(METAL_HERE);

	if (!names->program_cb_end)
		return;
	metal_program_depth++;
	names->program_cb_end(program);
	metal_circular_program_ended(program);
	if (--metal_program_depth == 0 && names->cb_total && metal_is_on())
		metal_circular_refresh(names);
}

/*
 * Closing a device, mesh, submesh or sub-device ends what its allocator holds, and nothing else is said
 * about it. Most versions and kinds clear the allocator; a single device just deletes it.
 */
void metal_front_clear(void *allocator)
{
	const struct metal_names *names = metal_names(METAL_HERE);

	if (metal_is_on()) {
		metal_lock();
		metal_records_clear(allocator);
		metal_target_expire();
		metal_unlock();
	}
	if (names->clear)
		names->clear(allocator);
}

void metal_front_clear_old(void *allocator)
{
	metal_front_clear(allocator);
}

static void metal_closed(const void *device)
{
	metal_lock();
	metal_records_close(device);
	metal_circular_close(device);
	metal_trace_close(device);
	metal_target_expire();
	metal_unlock();
}

bool metal_front_device_close(void *device)
{
	const struct metal_names *names = metal_names(METAL_HERE);

	if (metal_is_on()) {
		metal_closed(device);
		if (names->has_ids && *(const void *const *)device == names->device_table)
			ttmem_device_close(metal_names_id(device));
	}
	return names->device_close && names->device_close(device);
}

bool metal_front_mesh_close(void *mesh)
{
	const struct metal_names *names = metal_names(METAL_HERE);

	if (metal_is_on())
		metal_closed(mesh);
	return names->mesh_close && names->mesh_close(mesh);
}

static void metal_forget(void)
{
	metal_records_forget();
	metal_space_forget();
	metal_target_forget();
	metal_circular_forget();
	metal_trace_forget();
	metal_is_noted = false;
}

/* An application that is linked with tt-metal is told before it starts. */
__attribute__((constructor)) static void metal_start(void)
{
	metal_lock_at_fork(metal_forget);
	metal_names_inspect();
}

/* One that loaded it later is told at the end: if we were called, the names are there. */
__attribute__((destructor)) static void metal_end(void)
{
	if (!metal_names_were_used())
		metal_names_inspect();
}
