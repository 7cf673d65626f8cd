/* SPDX-License-Identifier: Apache-2.0 */

/* The parts of a call's frame that are rarely needed; the header has the rest. */

#include "lib/call.h"

#include <errno.h>

#include "book/writer.h"
#include "lib/debug.h"

/*
 * A writer for a call that is not nested. The busy flag is not up yet: while the gate opens signals are
 * blocked, and the handlers of those that waited are calls of their own.
 */
static struct writer *call_enter(struct thread *self)
{
	struct writer *writer = gate_peek();

	if (!writer)
		writer = gate_open();
	if (!writer)
		return NULL;
	/* What waits when a process is forked is the parent's, in the words of the parent's book. */
	if (self->instance && self->instance != gate_current.instance)
		self->deferred.word = 0;
	self->busy = 1;
	compiler_barrier();
	if (self->instance != gate_current.instance)
		thread_join(self, writer, gate_current.instance);
	/* A handler came in after the last call had lowered its flag: first what it found waiting. */
	thread_drain(self, writer);
	return writer;
}

bool call_begin_slow(struct call *call, enum call_kind kind)
{
	struct thread *self = call->self;

	*call = (struct call){.self = self, .is_nested = self->busy != 0};
	/* Nested, there is none only in a child that a handler forked off in the middle of a call. */
	call->writer = call->is_nested ? gate_peek() : call_enter(self);
	if (!call->writer)
		return false;
	if (kind == CALL_EVENT && gate_is_paused()) {
		writer_reject(&call->writer->header->rejected.paused);
		debug_line("event while tracking is paused: not recorded");
		call_end(call);
		return false;
	}
	call->is_debugged = debug_is_on();
	call->before = call->writer->header->rejected;
	return true;
}

void call_end_slow(struct call *call)
{
	struct thread *self = call->self;

	/* Looked at once more with the flag down: a handler may have come in just before. */
	while (self->deferred.count) {
		self->busy = 1;
		compiler_barrier();
		thread_drain(self, call->writer);
		compiler_barrier();
		self->busy = 0;
		compiler_barrier();
	}
}

const char *call_verdict(const struct call *call)
{
	const struct book_rejected *now = &call->writer->header->rejected;
	const struct book_rejected *before = &call->before;

	/* Another thread's mishap may be taken for ours: the counters are the process's. */
	if (now->device != before->device)
		return "rejected, no such device";
	if (now->type != before->type)
		return "rejected, no such type";
	if (now->size != before->size)
		return "rejected, size is 0 or too large";
	if (now->arguments != before->arguments)
		return "rejected, NULL, a struct too short or unknown flags";
	if (now->room != before->room)
		return "not recorded, the book has no room";
	if (now->lock != before->lock)
		return "not recorded, another thread does not let go of the device";
	if (now->reentry != before->reentry)
		return "not recorded, too deep in signal handlers";
	return call->is_nested ? "put aside, inside a signal handler" : "recorded";
}
