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
#include "compat/oldlog/oldlog.h"
#include "lib/api/call.h"
#include "lib/api/debug.h"
#include "lib/api/gate.h"
#include "lib/process/thread.h"
#include "lib/stack/stack.h"

_Static_assert(TTMEM_DEVICE_COUNT == BOOK_DEVICES && TTMEM_TYPE_COUNT == BOOK_TYPES, "one world");
_Static_assert(TTMEM_ANY == INDEX_ANY, "any is any");
_Static_assert(TTMEM_FREE_BUFFER == SHARD_FREE_BUFFER, "a buffer is a buffer");
_Static_assert(BOOK_META_ALIAS >> BOOK_META_FLAGS_SHIFT == TTMEM_FLAG_ALIAS, "alias is alias");

#define API_EXPORT __attribute__((visibility("default")))
#define API_BODY static __attribute__((noinline)) void

/* Sizes are below 1 TiB: sixteen million of them cannot wrap a counter. */
#define API_SIZE_MAX ((UINT64_C(1) << 40) - 1)
#define API_FLAGS \
	(TTMEM_FLAG_OWNS_DATA | TTMEM_FLAG_PREALLOCATED | TTMEM_FLAG_ALIAS | TTMEM_FLAG_HOOKED)

static inline bool api_alloc_is_plain(uint32_t device, uint32_t type, uint64_t size)
{
	return device < BOOK_DEVICES && type < BOOK_TYPES && size - 1 < API_SIZE_MAX;
}

static inline bool api_alloc_is_sane(struct writer *writer, uint32_t device, uint32_t type,
				     uint64_t size, uint32_t flags)
{
	struct book_rejected *rejected = &writer->header->rejected;

	if (likely(api_alloc_is_plain(device, type, size)))
		return true;
	if (device >= BOOK_DEVICES)
		writer_reject(&rejected->device);
	else if (type >= BOOK_TYPES)
		writer_reject(&rejected->type);
	else if (size == 0 && flags & (TTMEM_FLAG_ALIAS | TTMEM_FLAG_HOOKED))
		return true;
	else
		writer_reject(&rejected->size);
	return false;
}

static inline bool api_free_is_sane(struct writer *writer, uint32_t device, uint32_t type)
{
	if (likely(device < BOOK_DEVICES && (type < BOOK_TYPES || type == TTMEM_ANY)))
		return true;
	writer_reject(device >= BOOK_DEVICES ? &writer->header->rejected.device
					     : &writer->header->rejected.type);
	return false;
}

static inline bool api_free_flags_are_sane(uint32_t type, uint32_t flags)
{
	flags &= ~TTMEM_FREE_DESTRUCTOR;
	return !(flags & ~API_FLAGS) || (flags == TTMEM_FREE_BUFFER && type == TTMEM_ANY);
}

/* Writes calls on the slow path to the old system's logs, which do not show rejected calls. */
static __attribute__((noinline)) void api_log_alloc(const struct call *call,
						    const uint32_t *devices, size_t n,
						    const struct oldlog_buffer *buffer)
{
	struct oldlog_buffer one = *buffer;

	one.stack = stack_last(call);
	for (size_t i = 0; !call->is_paused && devices && n <= BOOK_DEVICES && i < n; i++) {
		one.device = devices[i];
		if (one.device < BOOK_DEVICES)
			oldlog_alloc(&one);
	}
}

static __attribute__((noinline)) void api_log_free(const struct call *call, const uint32_t *devices,
						   size_t n, const struct oldlog_buffer *buffer)
{
	struct oldlog_buffer one = *buffer;

	if (call->is_paused || !devices || n > BOOK_DEVICES ||
	    (one.type >= BOOK_TYPES && one.type != TTMEM_ANY))
		return;
	one.stack = stack_last(call);
	for (size_t i = 0; i < n; i++) {
		one.device = devices[i];
		if (one.device < BOOK_DEVICES)
			oldlog_free(call->writer, &one);
	}
}

/* An event from inside a signal handler that interrupted one of this thread's calls. */
static __attribute__((noinline)) void api_defer(struct writer *writer, uint32_t device,
						bool is_free, const struct shard_buffer *buffer,
						uint64_t owner)
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
				      &(struct oldlog_buffer){
					      .address = address, .size = size, .type = type});
	}
	call_end(&call);
}

API_BODY api_alloc(uint32_t device, uint32_t type, uint64_t address, uint64_t size,
		   const char *name)
{
	struct thread *self = &thread_self;
	struct writer *writer;

	if (unlikely(!api_alloc_is_plain(device, type, size) ||
		     !(writer = call_quick_begin(self)))) {
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
			     &(struct oldlog_buffer){.type = type, .address = address});
	}
	call_end(&call);
}

API_BODY api_free(uint32_t device, uint32_t type, uint64_t address)
{
	struct thread *self = &thread_self;
	struct writer *writer;

	if (unlikely(device >= BOOK_DEVICES || type >= BOOK_TYPES ||
		     !(writer = call_quick_begin(self)))) {
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

/* A mesh call inside an interrupted one: one event per device, as far as slots are free. */
static void api_defer_mesh(struct call *call, const uint32_t *devices, size_t n, bool is_free,
			   const struct shard_buffer *buffer)
{
	for (size_t i = 0; i < n; i++) {
		if (devices[i] < BOOK_DEVICES)
			api_defer(call->writer, devices[i], is_free, buffer, 0);
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
			writer_alloc_mesh(call.writer, devices, n, &buffer);
		else
			api_defer_mesh(&call, devices, n, false, &buffer);
	}
	if (unlikely(call.is_debugged)) {
		debug_line("alloc_mesh devices=%zu type=%u address=0x%" PRIx64 " size=%" PRIu64
			   ": %s",
			   n, type, address, size, call_verdict(&call));
		if (api_alloc_is_plain(0, type, size))
			api_log_alloc(&call, devices, n,
				      &(struct oldlog_buffer){
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
			api_defer_mesh(&call, devices, n, true, &who);
	}
	if (unlikely(call.is_debugged)) {
		debug_line("free_mesh devices=%zu type=%d address=0x%" PRIx64 ": %s", n, (int)type,
			   address, call_verdict(&call));
		api_log_free(&call, devices, n,
			     &(struct oldlog_buffer){.type = type, .address = address});
	}
	call_end(&call);
}

API_EXPORT void ttmem_free_mesh(const uint32_t *devices, size_t n, uint32_t type, uint64_t address)
{
	if (likely(gate_is_off()))
		return;
	api_free_mesh(devices, n, type, address);
}

/* How the buffer is spread over the banks, if the caller gave more than the device's default. */
static uint32_t api_shape(struct call *call, const struct ttmem_alloc_args *args)
{
	struct book_shape shape = {
		.size_per_bank = args->size_per_bank,
		.banks = args->banks,
		.first_bank = args->first_bank,
		.kernel_sort = args->type == TTMEM_KERNEL ? args->kernel_sort : 0,
	};

	if (call->is_nested ||
	    (!shape.size_per_bank && !shape.banks && !shape.first_bank && !shape.kernel_sort))
		return 0;
	return intern_shape(call->writer, &shape);
}

static void api_alloc_args(struct call *call, const struct ttmem_alloc_args *args, uint32_t stack)
{
	struct shard_buffer buffer;

	if (args->flags & ~API_FLAGS || args->kernel_sort > TTMEM_KERNEL_DISPATCH) {
		writer_reject(&call->writer->header->rejected.arguments);
		return;
	}
	if (!api_alloc_is_sane(call->writer, args->device, args->type, args->size, args->flags))
		return;
	buffer = (struct shard_buffer){
		.address = args->address,
		.size = args->size,
		.type = args->type,
		.flags = args->flags,
		.name = args->name ? call_name(call, args->name) : call_known_name(args->name_id),
		.phase = call_phase(call),
		.thread = call->self->tid,
		.stack = stack,
		.shape = api_shape(call, args),
	};
	if (call->is_nested && args->flags & TTMEM_FLAG_HOOKED)
		writer_reject(&call->writer->header->rejected.reentry);
	else if (call->is_nested)
		api_defer(call->writer, args->device, false, &buffer, args->owner);
	else if (args->flags & TTMEM_FLAG_HOOKED)
		writer_hooked(call->writer, args->device, &buffer);
	else
		writer_alloc(call->writer, args->device, &buffer, args->owner);
	if (unlikely(call->is_debugged))
		api_log_alloc(call, &args->device, 1,
			      &(struct oldlog_buffer){.address = args->address,
						      .size = args->size,
						      .type = args->type,
						      .owner = args->owner,
						      .flags = args->flags,
						      .has_flags = true});
}

API_BODY api_alloc_ex(const struct ttmem_alloc_args *args)
{
	struct ttmem_alloc_args copy;
	struct call call;

	if (!call_begin(&call, CALL_EVENT))
		return;
	if (!call_args(&call, &copy, sizeof(copy), offsetof(struct ttmem_alloc_args, name), args))
		memset(&copy, 0, sizeof(copy));
	else if (!call.is_paused)
		api_alloc_args(&call, &copy, stack_here(&call));
	if (unlikely(call.is_debugged))
		debug_line("alloc_ex device=%u type=%u address=0x%" PRIx64 " size=%" PRIu64
			   " flags=0x%x name=%s: %s",
			   copy.device, copy.type, copy.address, copy.size, copy.flags,
			   copy.name ? copy.name : "-", call_verdict(&call));
	call_end(&call);
}

API_EXPORT void ttmem_alloc_ex(const struct ttmem_alloc_args *args)
{
	if (likely(gate_is_off()))
		return;
	api_alloc_ex(args);
}

API_BODY api_free_ex(const struct ttmem_free_args *args)
{
	struct ttmem_free_args copy = {0};
	struct shard_buffer who;
	struct call call;

	if (!call_begin(&call, CALL_EVENT))
		return;
	if (call_args(&call, &copy, sizeof(copy), sizeof(copy), args) && !call.is_paused) {
		who = (struct shard_buffer){
			.address = copy.address,
			.type = copy.type,
			.flags = copy.flags & TTMEM_FREE_BUFFER,
			.phase = call_phase(&call),
			.thread = call.self->tid,
			.stack = stack_here(&call),
		};
		if (!api_free_flags_are_sane(copy.type, copy.flags))
			writer_reject(&call.writer->header->rejected.arguments);
		else if (!api_free_is_sane(call.writer, copy.device, copy.type))
			; /* already counted */
		else if (copy.flags & TTMEM_FLAG_HOOKED && !call.is_nested)
			writer_hooked(call.writer, copy.device, &who);
		else if (copy.flags & TTMEM_FLAG_HOOKED)
			writer_reject(&call.writer->header->rejected.reentry);
		else if (!call.is_nested)
			writer_free_buffer(call.writer, copy.device, &who);
		else
			api_defer(call.writer, copy.device, true, &who, 0);
	}
	if (unlikely(call.is_debugged)) {
		debug_line("free_ex device=%u type=%d address=0x%" PRIx64 " flags=0x%x: %s",
			   copy.device, (int)copy.type, copy.address, copy.flags,
			   call_verdict(&call));
		if (copy.struct_size && api_free_flags_are_sane(copy.type, copy.flags))
			api_log_free(&call, &copy.device, 1,
				     &(struct oldlog_buffer){.type = copy.type,
							     .address = copy.address,
							     .flags = copy.flags});
	}
	call_end(&call);
}

API_EXPORT void ttmem_free_ex(const struct ttmem_free_args *args)
{
	if (likely(gate_is_off()))
		return;
	api_free_ex(args);
}
