/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Freezing: room is reserved, and then nothing here makes a system call (base/process/freeze.h). And the beginning
 * of it: when the program starts, before it can have forbidden anything.
 */

#include <ttmem/ttmem.h>

#include <errno.h>

#include "base/process/freeze.h"
#include "book/write/writer.h"
#include "lib/api/call.h"
#include "lib/api/debug.h"
#include "lib/stack/stack.h"

__attribute__((visibility("default"))) int ttmem_freeze(uint64_t buffers)
{
	struct call call;
	int r;

	if (!call_begin(&call, CALL_OTHER)) {
		freeze_set(); /* a forked child would decide anew */
		return -ENODATA;
	}
	if (call.is_nested)
		return -EBUSY;
	if (freeze_is_on()) {
		call_end(&call);
		return 0;
	}
	/* Memory that this thread would ask for later. */
	thread_prepare(call.self);
	(void)stack_here(&call); /* only for its cache */
	r = writer_prepare(call.writer, buffers);
	if (unlikely(call.is_debugged))
		debug_line("freeze: %s",
			   r == 0 ? "room is reserved" : "less room than was asked for");
	writer_stop_clock(call.writer);
	freeze_set();
	call_end(&call);
	return r;
}

__attribute__((constructor)) static void freeze_at_start(void)
{
	gate_prepare();
}
