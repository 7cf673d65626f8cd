/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The debug logs of the old system, in its formats, for the scripts that read them:
 *
 *	TT_BUFFER_DEBUG_LOG=1		/tmp/tt_buffer_debug.log; filters TT_BUFFER_DEBUG_DEVICE, _TYPE
 *	TT_ALLOC_TRACKING_DETAILED=1	/tmp/tt_alloc_detailed.log, allocations only
 *	TT_ALLOC_STACK_TRACE=1		/tmp/tt_alloc_stack_traces.log
 *
 * src/legacy/debug-log writes them. Without it (-Dlegacy=disabled) lib/api/debug-log-none.c is in its
 * place, and the variables do nothing.
 *
 * The first and the last contain call stacks, even if TTMEM_STACKS is not set. Each path can be
 * changed by a variable of the same name plus _FILE. Only in this mode does a call make system
 * calls: a record is written before the call returns, after the device's lock was released. If an
 * application reports a free before it releases the memory, and an allocation after it got it, the
 * records are in the right order whatever its threads do.
 *
 * While a log is on, the gate sends every call down the slow path, so calls cost nothing extra
 * while it is off.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct thread;
struct writer;

/* What the caller said about a buffer. */
struct debug_log_buffer {
	uint64_t address;
	uint64_t size;  /* of an allocation */
	uint64_t owner; /* 0 = not given */
	uint32_t device;
	uint32_t type;
	uint32_t space;
	uint32_t flags;
	bool has_flags; /* else they are unknown */
	uint32_t stack; /* of the call; 0 = none */
};

/* Whether the environment asks for a log that needs no other setting to turn tracking on. */
bool debug_log_tracks(void);

/* When the program starts: what takes locks of libc, such as finding the time zone. */
void debug_log_prepare(void);

/* Reads the environment; debug_log_is_on() does not change afterwards. */
void debug_log_open(void);
bool debug_log_is_on(void);

/* Once for each book: the ids of another book mean other stacks. */
void debug_log_new_book(void);

/*
 * The return addresses of stack @id, innermost first, which is seen for the first time. Without any lock
 * of ours. @room: how much of the thread's stack may be used; 0 = a function that takes locks of libc, such
 * as malloc(), must not be called here, as in a signal handler.
 */
void debug_log_new_stack(uint32_t id, const uintptr_t *addresses, size_t count, size_t room);

void debug_log_alloc(const struct debug_log_buffer *buffer);

/*
 * The size, and a type and space that were not given, come from the book's history if they are still there.
 * @thread: the one that has freed it; NULL = that is not recorded yet.
 */
void debug_log_free(struct writer *writer, const struct debug_log_buffer *buffer,
		    const struct thread *thread);

/* The number of a device's last event; debug_log_free_all() logs what @thread has freed since then. */
uint64_t debug_log_mark(const struct writer *writer, uint32_t device);
void debug_log_free_all(struct writer *writer, uint32_t device, uint64_t mark,
			const struct thread *thread);
