/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The calls that report memory. Each reads the gate, raises the thread's busy flag, lets the writer
 * do the work, and lowers the flag.
 *
 * The exported functions only check whether tracking is off and otherwise tail-call a body: the
 * compiler saves registers and the stack guard at the top of a function, and an untracked
 * application should not pay for that. ttmem_alloc() and ttmem_free() have two bodies each: a fast
 * path, and a slow path for everything else (tracking undecided, paused, debugged, with stacks, an
 * invalid call, a signal handler inside a call).
 */

#include <ttmem/ttmem.h>

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/bits.h"
#include "book/write/writer.h"
#include "lib/api/api-private.h"
#include "lib/api/call.h"
#include "lib/api/debug-log.h"
#include "lib/api/debug.h"
#include "lib/api/gate.h"
#include "lib/process/thread.h"
#include "lib/stack/stack.h"

_Static_assert(TTMEM_DEVICE_COUNT == BOOK_DEVICES && TTMEM_TYPE_COUNT == BOOK_TYPES, "one world");
_Static_assert(TTMEM_ANY == INDEX_ANY, "any is any");

void api_log_alloc(const struct call *call, const uint32_t *devices, size_t n,
		   const struct debug_log_buffer *buffer)
{
	struct debug_log_buffer one = *buffer;

	one.stack = stack_last(call);
	for (size_t i = 0; !call->is_paused && devices && n <= BOOK_DEVICES && i < n; i++) {
		one.device = devices[i];
		if (one.device < BOOK_DEVICES)
			debug_log_alloc(&one);
	}
}

void api_log_free(const struct call *call, const uint32_t *devices, size_t n,
		  const struct debug_log_buffer *buffer)
{
	struct debug_log_buffer one = *buffer;

	if (call->is_paused || !devices || n > BOOK_DEVICES ||
	    (one.type >= BOOK_TYPES && one.type != TTMEM_ANY))
		return;
	one.stack = stack_last(call);
	for (size_t i = 0; i < n; i++) {
		one.device = devices[i];
		if (one.device < BOOK_DEVICES)
			debug_log_free(call->writer, &one, call->is_nested ? NULL : call->self);
	}
}

void api_defer(struct writer *writer, uint32_t device, bool is_free,
	       const struct shard_buffer *buffer, uint64_t owner)
{
	struct thread_deferred event = {
		.buffer = *buffer, .owner = owner, .device = device, .is_free = is_free};

	if (thread_defer(&thread_self, &event))
		return;
	writer_reject(&writer->header->rejected.reentry);
	writer_lost(writer, device, is_free, buffer->type);
}

API_BODY api_alloc_slow(uint32_t device, uint32_t type, uint64_t address, uint64_t size,
			const char *name)
{
	struct shard_buffer buffer;
	struct call call;

	if (!call_begin(&call, CALL_EVENT))
		return;
	if (call.is_paused)
		; /* only logged */
	else if (api_alloc_is_sane(call.writer, device, type, size, 0)) {
		buffer = (struct shard_buffer){
			.address = address,
			.size = size,
			.type = type,
			.name = call_name(&call, name),
			.phase = call_phase(&call),
			.thread = call.self->tid,
			.stack = stack_here(&call),
		};
		if (likely(!call.is_nested))
			writer_alloc(call.writer, device, &buffer, 0);
		else
			api_defer(call.writer, device, false, &buffer, 0);
	}
	if (unlikely(call.is_debugged)) {
		debug_line("alloc device=%u type=%u address=0x%" PRIx64 " size=%" PRIu64
			   " name=%s: %s",
			   device, type, address, size, name ? name : "-", call_verdict(&call));
		if (api_alloc_is_plain(device, type, size))
			api_log_alloc(&call, &device, 1,
				      &(struct debug_log_buffer){
					      .address = address, .size = size, .type = type});
	}
	call_end(&call);
}

API_BODY api_alloc(uint32_t device, uint32_t type, uint64_t address, uint64_t size,
		   const char *name)
{
	struct thread *self = &thread_self;
	struct writer *writer;
	uint32_t mark;

	if (unlikely(!api_alloc_is_plain(device, type, size) ||
		     !(writer = call_quick_begin(self, &mark)))) {
		api_alloc_slow(device, type, address, size, name);
		return;
	}
	writer_alloc(writer, device,
		     &(struct shard_buffer){
			     .address = address,
			     .size = size,
			     .type = type,
			     .name = name ? intern_string(writer, name, BOOK_NAME_MAX) : 0,
			     .phase = call_phase_of(self),
			     .thread = self->tid,
		     },
		     0);
	call_quick_end(self, writer);
}

API_EXPORT void ttmem_alloc(uint32_t device, uint32_t type, uint64_t address, uint64_t size,
			    const char *name)
{
	if (likely(gate_is_off()))
		return;
	api_alloc(device, type, address, size, name);
}

API_BODY api_free_slow(uint32_t device, uint32_t type, uint64_t address)
{
	struct shard_buffer who;
	struct call call;

	if (!call_begin(&call, CALL_EVENT))
		return;
	if (call.is_paused)
		; /* only logged */
	else if (api_free_is_sane(call.writer, device, type)) {
		who = (struct shard_buffer){
			.address = address,
			.type = type,
			.phase = call_phase(&call),
			.thread = call.self->tid,
			.stack = stack_here(&call),
		};
		if (likely(!call.is_nested))
			writer_free_buffer(call.writer, device, &who);
		else
			api_defer(call.writer, device, true, &who, 0);
	}
	if (unlikely(call.is_debugged)) {
		debug_line("free device=%u type=%d address=0x%" PRIx64 ": %s", device, (int)type,
			   address, call_verdict(&call));
		api_log_free(&call, &device, 1,
			     &(struct debug_log_buffer){.type = type, .address = address});
	}
	call_end(&call);
}

API_BODY api_free(uint32_t device, uint32_t type, uint64_t address)
{
	struct thread *self = &thread_self;
	struct writer *writer;
	uint32_t mark;

	if (unlikely(device >= BOOK_DEVICES || type >= BOOK_TYPES ||
		     !(writer = call_quick_begin(self, &mark)))) {
		api_free_slow(device, type, address);
		return;
	}
	writer_free_buffer(writer, device,
			   &(struct shard_buffer){
				   .address = address,
				   .type = type,
				   .phase = call_phase_of(self),
				   .thread = self->tid,
			   });
	call_quick_end(self, writer);
}

API_EXPORT void ttmem_free(uint32_t device, uint32_t type, uint64_t address)
{
	if (likely(gate_is_off()))
		return;
	api_free(device, type, address);
}

void api_defer_mesh(struct call *call, const uint32_t *devices, size_t n, bool is_free,
		    const struct shard_buffer *buffer, uint64_t owner)
{
	for (size_t i = 0; i < n; i++) {
		if (devices[i] < BOOK_DEVICES)
			api_defer(call->writer, devices[i], is_free, buffer, owner);
		else
			writer_reject(&call->writer->header->rejected.device);
	}
}

API_BODY api_alloc_mesh(const uint32_t *devices, size_t n, uint32_t type, uint64_t address,
			uint64_t size, const char *name)
{
	struct shard_buffer buffer;
	struct call call;

	if (!call_begin(&call, CALL_EVENT))
		return;
	if (call.is_paused)
		; /* only logged */
	else if (unlikely(!devices || n > BOOK_DEVICES)) {
		writer_reject(&call.writer->header->rejected.arguments);
	} else if (api_alloc_is_sane(call.writer, 0, type, size, 0)) {
		buffer = (struct shard_buffer){
			.address = address,
			.size = size,
			.type = type,
			.name = call_name(&call, name),
			.phase = call_phase(&call),
			.thread = call.self->tid,
			.stack = stack_here(&call),
		};
		if (likely(!call.is_nested))
			writer_alloc_mesh(call.writer, devices, n, &buffer, 0);
		else
			api_defer_mesh(&call, devices, n, false, &buffer, 0);
	}
	if (unlikely(call.is_debugged)) {
		debug_line("alloc_mesh devices=%zu type=%u address=0x%" PRIx64 " size=%" PRIu64
			   ": %s",
			   n, type, address, size, call_verdict(&call));
		if (api_alloc_is_plain(0, type, size))
			api_log_alloc(&call, devices, n,
				      &(struct debug_log_buffer){
					      .address = address, .size = size, .type = type});
	}
	call_end(&call);
}

API_EXPORT void ttmem_alloc_mesh(const uint32_t *devices, size_t n, uint32_t type, uint64_t address,
				 uint64_t size, const char *name)
{
	if (likely(gate_is_off()))
		return;
	api_alloc_mesh(devices, n, type, address, size, name);
}

API_BODY api_free_mesh(const uint32_t *devices, size_t n, uint32_t type, uint64_t address)
{
	struct shard_buffer who;
	struct call call;

	if (!call_begin(&call, CALL_EVENT))
		return;
	if (call.is_paused)
		; /* only logged */
	else if (unlikely(!devices || n > BOOK_DEVICES)) {
		writer_reject(&call.writer->header->rejected.arguments);
	} else if (api_free_is_sane(call.writer, 0, type)) {
		who = (struct shard_buffer){
			.address = address,
			.type = type,
			.phase = call_phase(&call),
			.thread = call.self->tid,
			.stack = stack_here(&call),
		};
		if (likely(!call.is_nested))
			writer_free_mesh(call.writer, devices, n, &who);
		else
			api_defer_mesh(&call, devices, n, true, &who, 0);
	}
	if (unlikely(call.is_debugged)) {
		debug_line("free_mesh devices=%zu type=%d address=0x%" PRIx64 ": %s", n, (int)type,
			   address, call_verdict(&call));
		api_log_free(&call, devices, n,
			     &(struct debug_log_buffer){.type = type, .address = address});
	}
	call_end(&call);
}

API_EXPORT void ttmem_free_mesh(const uint32_t *devices, size_t n, uint32_t type, uint64_t address)
{
	if (likely(gate_is_off()))
		return;
	api_free_mesh(devices, n, type, address);
}
