/* SPDX-License-Identifier: Apache-2.0 */

/* The parts of a call's frame that are rarely needed; the header has the rest. */

#include "lib/call.h"

#include <errno.h>

#include "book/writer.h"
#include "lib/debug.h"

/* How many calls this process has had turned away, for any reason. */
static uint64_t call_rejected(struct writer *writer)
{
	const struct book_rejected *rejected = &writer->header->rejected;

	return rejected->device + rejected->type + rejected->size + rejected->arguments +
	       rejected->room + rejected->reentry + rejected->lock;
}

bool call_begin_slow(struct call *call, enum call_kind kind)
{
	struct thread *self = call->self;

	*call = (struct call){.self = self, .is_nested = self->busy != 0};
	if (call->is_nested) {
		call->writer = gate_peek(); /* NULL while the first call is still making the book */
		return call->writer != NULL;
	}
	self->busy = 1;
	compiler_barrier();
	call->writer = gate_peek();
	if (!call->writer)
		call->writer = gate_open();
	if (call->writer && kind == CALL_EVENT && gate_is_paused()) {
		writer_reject(&call->writer->header->rejected.paused);
		debug_line("event while tracking is paused: not recorded");
		call_end(call);
		return false;
	}
	if (!call->writer) {
		compiler_barrier();
		self->busy = 0;
		return false;
	}
	if (self->instance != gate_current->instance)
		thread_join(self, call->writer, gate_current->instance);
	call->is_debugged = debug_is_on();
	call->rejected_before = call_rejected(call->writer);
	return true;
}

void call_end_slow(struct call *call)
{
	thread_drain(call->self, call->writer);
}

const char *call_verdict(const struct call *call)
{
	if (call->is_nested)
		return "inside a signal handler, put aside";
	if (call_rejected(call->writer) != call->rejected_before)
		return "rejected";
	return "recorded";
}
