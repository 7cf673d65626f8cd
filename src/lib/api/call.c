/* SPDX-License-Identifier: Apache-2.0 */

/* The rarely needed parts of the frame around a call. */

#include "lib/api/call.h"

#include <errno.h>
#include <string.h>

#include "base/process/freeze.h"
#include "base/threads/lock-left.h"
#include "book/write/writer.h"
#include "lib/api/debug-log.h"
#include "lib/api/debug.h"
#include "lib/stack/stack.h"

/*
 * The writer for a call that is not nested. The busy flag is not set yet: signals are blocked while
 * the gate opens, and the handlers of those that became pending are calls of their own.
 */
static struct writer *call_enter(struct thread *self, uint32_t *mark)
{
	struct writer *writer = gate_peek();

	if (!writer)
		writer = gate_open();
	if (!writer)
		return NULL;
	/* Events deferred before a fork belong to the parent and use string ids of its book. */
	if (self->instance && self->instance != gate_current.instance)
		self->deferred.word = 0;
	call_enter_busy(self, mark);
	if (self->instance != gate_current.instance)
		thread_join(self, writer, gate_current.instance);
	/* A handler may have run after the last call cleared its flag: first record its events. */
	thread_drain(self, writer);
	return writer;
}

/* Atomic loads, because other threads increment the counters meanwhile. */
static struct book_rejected call_rejected(struct writer *writer)
{
	const uint64_t *from = &writer->header->rejected.device;
	uint64_t words[sizeof(struct book_rejected) / sizeof(uint64_t)];
	struct book_rejected rejected;

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		words[i] = __atomic_load_n(&from[i], __ATOMIC_RELAXED);
	memcpy(&rejected, words, sizeof(rejected));
	return rejected;
}

#define CALL_FRAMES 1024 /* of a call and of what follows here, at most */

/*
 * Whether the call that the busy flag stands for was left, and not merely interrupted by a handler that now
 * calls: its mark has changed, or its memory is part of this call's frames. If neither is so, its memory has
 * not been used since; later calls ask again.
 */
static bool call_is_left(const struct thread *self, const struct call *call)
{
	uintptr_t mark = (uintptr_t)self->busy, here = (uintptr_t)__builtin_frame_address(0);
	uintptr_t end = (uintptr_t)(call + 1);

	/* A sanitizer may keep the variables of a frame elsewhere. */
	if (end - here <= CALL_FRAMES && mark - here < end - here)
		return true;
	return !freeze_is_on() && lock_mark_is_gone(self->busy, THREAD_MARK);
}

/*
 * If the thread has left its last call: gives back what it held there. Its event counts as lost, because it
 * may not have been recorded.
 */
static __attribute__((noinline)) void call_drop_left(struct thread *self, struct call *call)
{
	struct writer *writer = gate_peek();
	int saved_errno = errno;

	if (call_is_left(self, call)) {
		/* First, so that a handler does not take from this call what it took from that one. */
		call_enter_busy(self, &call->mark);
		if (writer) {
			writer_reject(&writer->header->rejected.reentry);
			writer_drop_left(writer, self->tid);
		}
		/* What that call was changing is made again. */
		if (self->instance == gate_current.instance)
			self->instance = 0;
		stack_drop(self);
		compiler_barrier();
		self->busy = NULL;
		compiler_barrier();
	}
	errno = saved_errno;
}

bool call_begin_slow(struct call *call, enum call_kind kind)
{
	struct thread *self = call->self;

	if (unlikely(self->busy))
		call_drop_left(self, call);
	*call = (struct call){.self = self, .is_nested = self->busy != NULL};
	/* Nested, there is none only in a child that a handler forked in the middle of a call. */
	call->writer = call->is_nested ? gate_peek() : call_enter(self, &call->mark);
	if (!call->writer)
		return false;
	if (kind == CALL_EVENT && gate_is_paused()) {
		writer_reject(&call->writer->header->rejected.paused);
		if (!debug_is_on()) {
			call_end(call);
			return false;
		}
		call->is_paused = true;
	}
	call->is_debugged = debug_is_on() || (debug_log_is_on() && !call->is_paused);
	if (call->is_debugged)
		call->before = call_rejected(call->writer);
	return true;
}

void call_end_slow(struct call *call)
{
	struct thread *self = call->self;

	/* Check again with the flag cleared: a handler may have run just before. */
	while (self->deferred.count) {
		call_enter_busy(self, &call->mark);
		thread_drain(self, call->writer);
		compiler_barrier();
		self->busy = NULL;
		compiler_barrier();
	}
}

bool call_args(struct call *call, void *to, size_t size, size_t least, const void *from)
{
	uint32_t said = 0;

	if (from)
		memcpy(&said, from, sizeof(said));
	if (!from || said < least) {
		writer_reject(&call->writer->header->rejected.arguments);
		return false;
	}
	memset(to, 0, size);
	/* Whole words only: half a pointer would point anywhere. */
	memcpy(to, from, bits_min(said & ~7u, size));
	return true;
}

const char *call_verdict(const struct call *call)
{
	const struct book_rejected now = call_rejected(call->writer);
	const struct book_rejected *before = &call->before;

	if (call->is_paused)
		return "not recorded, tracking is paused";
	/* The counters are per process, so another thread's error may be reported as ours. */
	if (now.device != before->device)
		return "rejected, no such device";
	if (now.type != before->type)
		return "rejected, no such type";
	if (now.size != before->size)
		return "rejected, size is 0 or too large";
	if (now.arguments != before->arguments)
		return "rejected, NULL, a struct too short or unknown flags";
	if (now.room != before->room)
		return "not recorded, the book has no room";
	if (now.lock != before->lock)
		return "not recorded, another thread does not let go of the device";
	if (now.reentry != before->reentry)
		return "not recorded, too deep in signal handlers";
	return call->is_nested ? "put aside, inside a signal handler" : "recorded";
}
