/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Per-thread state: the thread's id, its stack of phases, and a flag that says it is inside the
 * library. An event that finds the flag set comes from a signal handler that interrupted a call; it
 * is deferred and recorded when the interrupted call ends. Unless the handler has left by siglongjmp():
 * then the call's frame is gone, and the flag is cleared as soon as that is certain. All of this is in static thread-local
 * storage (initial-exec), because accessing it must not call anything.
 */

#include <stdbool.h>
#include <stdint.h>

#include "book/write/shard.h"

#define THREAD_DEFERRED 4u /* a power of two; small, because static TLS is scarce after dlopen() */
#define THREAD_PHASES 64u

struct stack_cache;
struct thread_phases;
struct writer;

/* A deferred event. */
struct thread_deferred {
	struct shard_buffer buffer;
	uint64_t owner;
	uint32_t device;
	uint32_t is_free;
};

/*
 * The used slots: count of them from head on, circular. Both are one word, changed atomically,
 * because a handler may be interrupted by the handler of another signal, and draining by both.
 */
union thread_queue {
	struct {
		uint16_t count;
		uint16_t head;
	};
	uint32_t word;
};

/* In the frame of a call for as long as the call lasts (base/threads/lock-left.h). */
#define THREAD_MARK 0x6d747461u

struct thread {
	const uint32_t *busy; /* the call's mark; NULL = not inside a call */
	union thread_queue deferred;
	uint32_t instance; /* of the gate that tid and phase belong to; 0 = not joined yet */
	uint32_t tid;
	uint32_t phase;               /* string id of the path, 0 = none pushed */
	uint32_t stack;               /* id of the last one taken, 0 = none */
	struct thread_phases *phases; /* NULL until the first push */
	struct stack_cache *stacks;   /* private to stack.c; NULL until the first stack */
	struct thread_deferred slots[THREAD_DEFERRED];
};

extern __thread struct thread thread_self __attribute__((tls_model("initial-exec")));

/* Updates tid and phase for the gate's current instance: once per thread, again after a fork. */
void thread_join(struct thread *self, struct writer *writer, uint32_t instance);

/* Inside the busy flag: memory that thread_push() needs, for a process that will be frozen. */
void thread_prepare(struct thread *self);

/* Inside the busy flag. Labels beyond THREAD_PHASES are counted but not recorded. */
void thread_push(struct thread *self, struct writer *writer, const char *name);
void thread_pop(struct thread *self);

/* From a handler that interrupted a call: defers an event. False if all slots are taken. */
bool thread_defer(struct thread *self, const struct thread_deferred *event);

/* Inside the busy flag: records deferred events in order. */
void thread_drain(struct thread *self, struct writer *writer);
