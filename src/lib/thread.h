/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What each thread has: its id, its stack of phases, and a flag that says it is inside the library. An
 * event that finds the flag set comes from a signal handler that interrupted one; it is put aside and
 * recorded when the interrupted call ends. All of it lies in static thread-local storage (initial-exec),
 * because reaching for it must not call anything.
 */

#include <stdbool.h>
#include <stdint.h>

#include "book/shard.h"

#define THREAD_DEFERRED 4u /* a power of two; small, because static TLS is scarce after dlopen() */
#define THREAD_PHASES 64u

struct stack_cache;
struct thread_phases;
struct writer;

/* An event put aside. */
struct thread_deferred {
	struct shard_buffer buffer;
	uint64_t owner;
	uint32_t device;
	uint32_t is_free;
};

/*
 * Which slots are taken: count of them from head on, in turn. Both are one word, changed in one step,
 * because a handler may be interrupted by the handler of another signal, and recording by both.
 */
union thread_queue {
	struct {
		uint16_t count;
		uint16_t head;
	};
	uint32_t word;
};

struct thread {
	uint32_t busy;
	union thread_queue deferred;
	uint32_t instance; /* of the gate that tid and phase belong to; 0 = not joined yet */
	uint32_t tid;
	uint32_t phase;               /* string id of the path, 0 = none pushed */
	uint32_t stack;               /* id of the one that was taken last, 0 = there was none */
	struct thread_phases *phases; /* NULL until the first push */
	struct stack_cache *stacks;   /* stack.c's; NULL until the first stack */
	struct thread_deferred slots[THREAD_DEFERRED];
};

extern __thread struct thread thread_self __attribute__((tls_model("initial-exec")));

/* Makes tid and phase those of the gate's current instance: once per thread, and again after fork. */
void thread_join(struct thread *self, struct writer *writer, uint32_t instance);

/* Inside the busy flag. Beyond THREAD_PHASES the labels are counted but not named. */
void thread_push(struct thread *self, struct writer *writer, const char *name);
void thread_pop(struct thread *self);

/* From a handler that interrupted a call: put an event aside. False if all slots are taken. */
bool thread_defer(struct thread *self, const struct thread_deferred *event);

/* Inside the busy flag: record what signal handlers put aside, in their order. */
void thread_drain(struct thread *self, struct writer *writer);
