/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The debug logs of the old system, in its formats, for the scripts that read them:
 *
 *	TT_BUFFER_DEBUG_LOG=1		/tmp/tt_buffer_debug.log; filters TT_BUFFER_DEBUG_DEVICE, _TYPE
 *	TT_ALLOC_TRACKING_DETAILED=1	/tmp/tt_alloc_detailed.log, allocations only
 *	TT_ALLOC_STACK_TRACE=1		/tmp/tt_alloc_stack_traces.log
 *
 * The first and the last have call stacks, also if TTMEM_STACKS says nothing of them.
 * Each has a variable of the same name and _FILE for another place. They are the one mode in which a call
 * makes system calls: a record is written before the call returns, after the device's lock was let go. An
 * application that reports a free before it lets the memory go, and an allocation after it got it, has
 * them in the right order whatever its threads do.
 *
 * While a log is on the gate sends every call the slow way, so calls cost nothing more while it is off.
 */

#include <stdbool.h>
#include <stdint.h>

struct thread;
struct writer;

/* What a call said of a buffer. */
struct oldlog_buffer {
	uint64_t address;
	uint64_t size;  /* of an allocation */
	uint64_t owner; /* 0 = not said */
	uint32_t device;
	uint32_t type;
	uint32_t flags;
	bool has_flags; /* else nothing is known of them */
	uint32_t stack; /* of the call; 0 = none */
};

/* Reads the environment; the answer of oldlog_is_on() is fixed from then on. */
void oldlog_open(void);
bool oldlog_is_on(void);

/* Whether a log that is on has call stacks in it. */
bool oldlog_has_stacks(void);

void oldlog_alloc(const struct oldlog_buffer *buffer);

/* Size and, if it was not said, type come from the book's own log, if they are still there. */
void oldlog_free(struct writer *writer, const struct oldlog_buffer *buffer);

/* The number of a device's last event; then a record for each buffer that @thread freed since. */
uint64_t oldlog_mark(const struct writer *writer, uint32_t device);
void oldlog_free_all(struct writer *writer, uint32_t device, uint64_t mark,
		     const struct thread *thread);
