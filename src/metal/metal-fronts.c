/* SPDX-License-Identifier: Apache-2.0 */

/*
 * libttmem-metal.so: stands in front of tt-metal's functions in an application that was not compiled for
 * ttmem. Its functions have the names of tt-metal's and are found before them; each reports and calls on.
 * They are called on whatever thread allocates, so no thread has to be registered.
 *
 * It is loaded into every process that the application starts, most of which have no tt-metal, and refers
 * to no symbol of it. tt-metal's functions may throw; so nothing is called with the lock held.
 */

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <ttmem/ttmem.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "metal/metal-chip.h"
#include "metal/metal-circular.h"
#include "metal/metal-failed.h"
#include "metal/metal-front.h"
#include "metal/metal-learn.h"
#include "metal/metal-lock.h"
#include "metal/metal-names.h"
#include "metal/metal-note.h"
#include "metal/metal-records.h"
#include "metal/metal-refuse.h"
#include "metal/metal-shape.h"
#include "metal/metal-space.h"
#include "metal/metal-target.h"
#include "metal/metal-trace.h"
#include "metal/metal-version.h"

/* Which of tt-metal's functions this thread is in, that will change the account of circular buffers. */
static _Thread_local uint32_t metal_program_depth;

/* The program whose circular buffers this thread allocates; NULL = none. */
static _Thread_local const void *metal_program;
static _Thread_local uint64_t metal_program_round;

static bool metal_is_noted; /* that this process's book says what was learned */

void metal_front_allocate(void *tracker, const void *buffer) METAL_FRONT(METAL_NAME_ALLOCATE);
void metal_front_deallocate(void *tracker, void *buffer) METAL_FRONT(METAL_NAME_DEALLOCATE);
void metal_front_cb(void *tracker, const void *cores, uint64_t address, uint64_t size,
		    bool is_global, const void *device) METAL_FRONT(METAL_NAME_CB);
void metal_front_cb_old(void *tracker, const void *cores, uint64_t address, uint64_t size,
			bool is_global, const void *device) METAL_FRONT(METAL_NAME_CB_OLD);
void metal_front_cb_end(void *tracker, const void *device) METAL_FRONT(METAL_NAME_CB_END);
uint64_t metal_front_take(void *allocator, void *buffer) METAL_FRONT(METAL_NAME_TAKE);
uint64_t metal_front_take_old(void *allocator, void *buffer) METAL_FRONT(METAL_NAME_TAKE_OLD);
void metal_front_clear(void *allocator) METAL_FRONT(METAL_NAME_CLEAR);
void metal_front_clear_old(void *allocator) METAL_FRONT(METAL_NAME_CLEAR_OLD);
bool metal_front_device_close(void *device) METAL_FRONT(METAL_NAME_DEVICE_CLOSE);
bool metal_front_mesh_close(void *mesh) METAL_FRONT(METAL_NAME_MESH_CLOSE);
void metal_front_program_cb(void *program, const void *device) METAL_FRONT(METAL_NAME_PROGRAM_CB);
void metal_front_program_cb_end(void *program) METAL_FRONT(METAL_NAME_PROGRAM_CB_END);
void metal_front_program_check(void *program, const void *device)
	METAL_FRONT(METAL_NAME_PROGRAM_CHECK);
const void *metal_front_chip_ids(const void *descriptor) METAL_FRONT(METAL_NAME_CHIP_IDS);
uint64_t metal_front_chip_board(const void *descriptor, int32_t chip)
	METAL_FRONT(METAL_NAME_CHIP_BOARD);

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
		metal_refusal_to_book();
		metal_records_close(NULL);
		metal_circular_close(NULL);
		metal_trace_close(NULL);
	}
	metal_unlock();
	return false;
}

/* An interned text stays in the book for as long as the book exists; `ttmem doctor` looks for it. */
__attribute__((noinline, cold)) static void metal_note(const struct metal_names *names)
{
	char found[METAL_NOTE_SIZE] = METAL_NOTE_HEAD, learned[METAL_NOTE_SIZE] = METAL_NOTE_HEAD;
	const size_t head = sizeof(METAL_NOTE_HEAD) - 1;

	if (!*metal_learn_note() || __atomic_exchange_n(&metal_is_noted, true, __ATOMIC_RELAXED))
		return;
	metal_version_describe(names->library, found + head, sizeof(found) - head);
	(void)stpncpy(learned + head, metal_learn_note(), sizeof(learned) - head - 1);
	(void)ttmem_intern(found); /* the numbers are not needed */
	(void)ttmem_intern(learned);
}

/* Graph capture: no memory, hence no record; ttmem counts that it happened. */
static void metal_hooked(const void *buffer, const struct metal_facts *facts,
			 const struct metal_shape *shape, const struct metal_target *target)
{
	struct ttmem_alloc_args args = {
		.struct_size = sizeof(args),
		.type = shape->type,
		.flags = TTMEM_FLAG_HOOKED,
		.size = facts->size,
		.owner = metal_records_owner(buffer),
	};

	for (uint32_t i = 0; i < target->count; i++) {
		args.device = target->ids[i];
		ttmem_alloc_ex(&args);
	}
}

/*
 * Returns with the lock held, also with NULL: refused, or out of memory. It is taken once if all is known, which
 * it nearly always is.
 */
static struct metal_target *metal_lock_target(const struct metal_names *names, const void *buffer,
					      const struct metal_facts *facts,
					      struct metal_look *look,
					      struct metal_space **ret_space)
{
	struct metal_target *target;

	metal_lock();
	target = metal_target_known(facts->device);
	*ret_space = metal_space_find(facts->allocator);
	if (target && *ret_space && !metal_shape_must_ask(facts, look, *ret_space))
		return target;
	if (target)
		metal_target_put(target);
	metal_unlock();
	if (!look->is_asked)
		metal_shape_ask(names, buffer, look);
	target = metal_target_get(names, facts->device);
	if (target)
		(void)metal_space_meet(names, buffer, facts,
				       target); /* if it fails, it is not found */
	metal_lock();
	*ret_space = metal_space_find(facts->allocator);
	return target;
}

static void metal_allocated(const struct metal_names *names, const void *buffer)
{
	struct metal_space *space;
	struct metal_target *target;
	struct metal_facts facts;
	struct metal_shape shape;
	struct metal_look look;

	if (metal_learn(names, buffer, &facts) != 0)
		return;
	look = metal_shape_look(names, buffer);
	target = metal_lock_target(names, buffer, &facts, &look, &space);
	if (!target)
		; /* nothing can be told */
	else if (!space || !metal_shape_make(&facts, &look, space, &shape)) {
		metal_target_put(target);
	} else if (facts.address == 0) {
		metal_hooked(buffer, &facts, &shape, target);
		metal_target_put(target);
	} else {
		metal_records_allocated(space, buffer, &facts, &shape, target);
	}
	metal_unlock();
	if (!__atomic_load_n(&metal_is_noted, __ATOMIC_RELAXED))
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

/* A function of tt-metal that throws if it refuses something, and on which thread it is. */
struct metal_attempt {
	const struct metal_names *names;
	const void *who;  /* an allocator, or a program */
	const void *what; /* the buffer, or the device of the program */
	bool is_program;
	bool is_refused; /* until it has returned */
	struct metal_attempt *outer;
};

static _Thread_local struct metal_attempt *metal_attempt_now;

/*
 * What is asked of tt-metal here is what it answers without throwing: an exception would take the place of
 * the application's.
 */
static void metal_attempt_tell(const struct metal_attempt *attempt, bool is_locked)
{
	if (!metal_is_on())
		return;
	if (!attempt->is_program) {
		metal_failed(attempt->names, attempt->who, attempt->what, is_locked);
	} else if (!metal_failed_program(attempt->names, attempt->who, attempt->what)) {
		metal_lock();
		metal_records_refused(attempt->who, attempt->what);
		metal_unlock();
	}
}

static void (*metal_terminate_next)(void);

/* An exception that nobody catches passes through no function: all locks are held, and this is called. */
static void metal_terminate(void)
{
	struct metal_attempt *attempt = metal_attempt_now;

	metal_attempt_now = NULL;
	if (attempt && attempt->is_refused)
		metal_attempt_tell(attempt, true);
	if (metal_terminate_next)
		metal_terminate_next();
	abort();
}

static void metal_attempt_begin(struct metal_attempt *attempt)
{
	static const char name[] = "_ZSt13set_terminatePFvvE";
	static bool is_set;
	void (*(*set)(void (*)(void)))(void);
	void *found;

	/* Read first: a locked exchange would be paid by each allocation. */
	if (unlikely(!__atomic_load_n(&is_set, __ATOMIC_RELAXED)) &&
	    !__atomic_exchange_n(&is_set, true, __ATOMIC_RELAXED)) {
		found = dlsym(RTLD_DEFAULT, name);
		memcpy(&set, &found, sizeof(set));
		if (set)
			metal_terminate_next = set(metal_terminate);
	}
	attempt->outer = metal_attempt_now;
	attempt->is_refused = true;
	metal_attempt_now = attempt;
}

/* Also, and only then of interest, if it throws; the allocator's lock has been released by then. */
static void metal_attempt_end(const struct metal_attempt *attempt)
{
	metal_attempt_now = attempt->outer;
	if (attempt->is_refused)
		metal_attempt_tell(attempt, false);
}

void metal_front_program_check(void *program, const void *device)
{
	const struct metal_names *names = metal_names(METAL_HERE);
	CLEANUP(metal_attempt_end)
	struct metal_attempt attempt = {names, program, device, .is_program = true,
					.outer = metal_attempt_now};

	if (!names->program_check)
		return;
	metal_attempt_begin(&attempt);
	names->program_check(program, device);
	attempt.is_refused = false;
}

uint64_t metal_front_take(void *allocator, void *buffer)
{
	const struct metal_names *names = metal_names(METAL_HERE);
	CLEANUP(metal_attempt_end)
	struct metal_attempt attempt = {names, allocator, buffer, .outer = metal_attempt_now};
	uint64_t address = 0;

	if (!names->take)
		return 0;
	metal_attempt_begin(&attempt);
	address = names->take(allocator, buffer);
	attempt.is_refused = false;
	return address;
}

uint64_t metal_front_take_old(void *allocator, void *buffer)
{
	const struct metal_names *names = metal_names(METAL_HERE);
	CLEANUP(metal_attempt_end)
	struct metal_attempt attempt = {names, allocator, buffer, .outer = metal_attempt_now};
	uint64_t address = 0;

	if (!names->take_old)
		return 0;
	if (!names->take) /* else it is the face of the other, which tells */
		metal_attempt_begin(&attempt);
	address = names->take_old(allocator, buffer);
	attempt.is_refused = false;
	return address;
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

/* An unordered_map without entries, as it would be if ours were the only one of that name. */
static const void *const metal_no_chips[7] = {&metal_no_chips[6], (const void *)1};

/* These two are called in processes without tt-metal, too: so there is nothing but listening. */
const void *metal_front_chip_ids(const void *descriptor)
{
	static void *found;
	const void *(*next)(const void *);
	const void *map = metal_no_chips;

	if (!__atomic_load_n(&found, __ATOMIC_RELAXED))
		__atomic_store_n(&found, metal_names_below(METAL_HERE, METAL_NAME_CHIP_IDS),
				 __ATOMIC_RELAXED);
	memcpy(&next, &found, sizeof(next));
	if (next)
		map = next(descriptor);
	if (!metal_refused())
		metal_chip_told_ids(map);
	return map;
}

uint64_t metal_front_chip_board(const void *descriptor, int32_t chip)
{
	static void *found;
	uint64_t (*next)(const void *, int32_t);
	uint64_t board = 0;

	if (!__atomic_load_n(&found, __ATOMIC_RELAXED))
		__atomic_store_n(&found, metal_names_below(METAL_HERE, METAL_NAME_CHIP_BOARD),
				 __ATOMIC_RELAXED);
	memcpy(&next, &found, sizeof(next));
	if (next)
		board = next(descriptor, chip);
	if (!metal_refused())
		metal_chip_told_board(chip, board);
	return board;
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
