/* SPDX-License-Identifier: Apache-2.0 */

/* The calls that are not events: devices, phases, marks, statistics, pausing, closing. */

#include <ttmem/ttmem.h>

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/bits.h"
#include "book/write/incident.h"
#include "book/write/intern.h"
#include "book/write/writer.h"
#include "lib/api/call.h"
#include "lib/api/debug-log.h"
#include "lib/api/debug.h"
#include "lib/bookfile/offer-book.h"
#include "lib/stack/stack.h"

#define REST_EXPORT __attribute__((visibility("default")))
#define REST_TEXT(x) #x
#define REST_VERSION(major, minor, patch) REST_TEXT(major) "." REST_TEXT(minor) "." REST_TEXT(patch)

REST_EXPORT const char *ttmem_version(void)
{
	return REST_VERSION(TTMEM_VERSION_MAJOR, TTMEM_VERSION_MINOR, TTMEM_VERSION_PATCH);
}

REST_EXPORT int ttmem_enabled(void)
{
	struct call call;

	if (!call_begin(&call, CALL_OTHER))
		return 0;
	call_end(&call);
	return !gate_is_paused();
}

/* A call that cannot be deferred: counted instead. */
static bool rest_is_nested(struct call *call)
{
	if (!call->is_nested)
		return false;
	writer_reject(&call->writer->header->rejected.reentry);
	return true;
}

static bool rest_device_is_sane(struct call *call, uint32_t device, uint32_t type)
{
	struct book_rejected *rejected = &call->writer->header->rejected;

	if (device >= BOOK_DEVICES)
		writer_reject(&rejected->device);
	else if (type >= BOOK_TYPES && type != TTMEM_ANY)
		writer_reject(&rejected->type);
	else
		return true;
	return false;
}

REST_EXPORT void ttmem_free_all(uint32_t device, uint32_t type, uint64_t owner)
{
	struct call call;

	if (!call_begin(&call, CALL_EVENT))
		return;
	if (call.is_paused)
		; /* only logged */
	else if (rest_device_is_sane(&call, device, type)) {
		struct shard_buffer who = {
			.type = type,
			.phase = call_phase(&call),
			.thread = call.self->tid,
			.stack = stack_here(&call),
		};

		uint64_t mark = debug_log_mark(call.writer, device);

		if (rest_is_nested(&call))
			writer_lost(call.writer, device, true, type);
		else
			writer_free_all(call.writer, device, owner, &who);
		if (unlikely(call.is_debugged) && !call.is_nested)
			debug_log_free_all(call.writer, device, mark, call.self);
	}
	if (unlikely(call.is_debugged))
		debug_line("free_all device=%u type=%d owner=0x%" PRIx64 ": %s", device, (int)type,
			   owner, call_verdict(&call));
	call_end(&call);
}

REST_EXPORT uint64_t ttmem_end_space(uint32_t device, uint32_t space)
{
	uint64_t ended = 0;
	struct call call;

	if (!call_begin(&call, CALL_EVENT))
		return 0;
	if (call.is_paused)
		; /* only logged */
	else if (space >= BOOK_SPACES) {
		writer_reject(&call.writer->header->rejected.arguments);
	} else if (rest_device_is_sane(&call, device, TTMEM_ANY)) {
		struct shard_buffer who = {
			.space = space,
			.phase = call_phase(&call),
			.thread = call.self->tid,
			.stack = stack_here(&call),
		};
		uint64_t mark = debug_log_mark(call.writer, device);

		if (rest_is_nested(&call))
			writer_lost(call.writer, device, true, TTMEM_ANY);
		else
			ended = writer_end_space(call.writer, device, &who);
		if (unlikely(call.is_debugged) && !call.is_nested)
			debug_log_free_all(call.writer, device, mark, call.self);
	}
	if (unlikely(call.is_debugged))
		debug_line("end_space device=%u space=%u: %" PRIu64 " buffers, %s", device, space,
			   ended, call_verdict(&call));
	call_end(&call);
	return ended;
}

_Static_assert(TTMEM_SHAPE_PER_CORE == BOOK_SHAPE_PER_CORE, "stored unchanged");

static bool rest_failed_is_sane(struct call *call, const struct ttmem_failed_args *args)
{
	struct book_rejected *rejected = &call->writer->header->rejected;

	if (args->type == TTMEM_ANY)
		writer_reject(&rejected->type);
	else if (args->space >= BOOK_SPACES || args->shape_flags & ~TTMEM_SHAPE_PER_CORE)
		writer_reject(&rejected->arguments);
	else
		return rest_device_is_sane(call, args->device, args->type);
	return false;
}

static void rest_failed(struct call *call, const struct ttmem_failed_args *args, uint32_t stack)
{
	const struct book_shape shape = {.size_per_bank = args->size_per_bank,
					 .banks = args->banks,
					 .flags = args->shape_flags};
	const struct shard_buffer buffer = {
		.size = args->size,
		.type = args->type,
		.name = call_name(call, args->name),
		.phase = call_phase(call),
		.thread = call->self->tid,
		.stack = stack,
		.space = args->space,
		/* The incident of a call site has the first one's only. */
		.shape = args->size_per_bank || args->shape_flags
				 ? intern_shape(call->writer, &shape)
				 : 0,
	};
	const struct writer_lack lack = {
		.largest_free = args->largest_free,
		.size_per_bank = args->size_per_bank,
		.bank_size = args->bank_size,
		.bank_free = args->bank_free,
		.banks = args->banks,
		.shape_flags = args->shape_flags,
	};

	writer_failed(call->writer, args->device, &buffer, &lack);
	offer_book_tell_failed();
}

REST_EXPORT void ttmem_alloc_failed_ex(const struct ttmem_failed_args *args)
{
	struct ttmem_failed_args copy = {.device = TTMEM_DEVICE_COUNT};
	int saved_errno = errno;
	struct call call;

	if (!call_begin(&call, CALL_EVENT))
		return;
	if (!call.is_paused &&
	    call_args(&call, &copy, sizeof(copy), offsetof(struct ttmem_failed_args, name), args) &&
	    rest_failed_is_sane(&call, &copy) && !rest_is_nested(&call)) {
		rest_failed(&call, &copy, stack_here(&call));
		errno = saved_errno;
	}
	if (unlikely(call.is_debugged))
		debug_line("alloc_failed device=%u type=%d size=%" PRIu64 ": %s", copy.device,
			   (int)copy.type, copy.size, call_verdict(&call));
	call_end(&call);
}

REST_EXPORT void ttmem_alloc_failed(uint32_t device, uint32_t type, uint64_t size,
				    uint64_t largest_free)
{
	const struct ttmem_failed_args args = {
		.struct_size = sizeof(args),
		.device = device,
		.type = type,
		.size = size,
		.largest_free = largest_free,
	};
	int saved_errno = errno;
	struct call call;

	if (!call_begin(&call, CALL_EVENT))
		return;
	if (!call.is_paused && rest_failed_is_sane(&call, &args) && !rest_is_nested(&call)) {
		rest_failed(&call, &args, stack_here(&call));
		errno = saved_errno;
	}
	if (unlikely(call.is_debugged))
		debug_line("alloc_failed device=%u type=%u size=%" PRIu64 ": %s", device, type,
			   size, call_verdict(&call));
	call_end(&call);
}

/* What was refused must end behind the beginning of the buffer, or they do not meet. */
static bool rest_clash_is_sane(struct call *call, const struct ttmem_clash_args *args)
{
	struct book_rejected *rejected = &call->writer->header->rejected;
	uint64_t end;

	if (!rest_device_is_sane(call, args->device, args->type))
		return false;
	if (args->type != TTMEM_ANY && args->space < BOOK_SPACES &&
	    !__builtin_add_overflow(args->wanted_address, args->wanted_size, &end) &&
	    end > args->address)
		return true;
	writer_reject(args->type == TTMEM_ANY ? &rejected->type : &rejected->arguments);
	return false;
}

REST_EXPORT void ttmem_clash(const struct ttmem_clash_args *args)
{
	struct ttmem_clash_args copy = {.device = TTMEM_DEVICE_COUNT};
	struct call call;

	if (!call_begin(&call, CALL_EVENT))
		return;
	if (!call.is_paused &&
	    call_args(&call, &copy, sizeof(copy), offsetof(struct ttmem_clash_args, name), args) &&
	    rest_clash_is_sane(&call, &copy) && !rest_is_nested(&call)) {
		struct shard_buffer who = {
			.address = copy.address,
			.size = copy.wanted_size,
			.type = copy.type,
			.name = call_name(&call, copy.name),
			.phase = call_phase(&call),
			.thread = call.self->tid,
			.stack = stack_here(&call),
			.space = copy.space,
		};

		writer_clash(call.writer, copy.device, &who,
			     copy.wanted_address + copy.wanted_size);
	}
	if (unlikely(call.is_debugged))
		debug_line("clash device=%u type=%d address=0x%" PRIx64 ": %s", copy.device,
			   (int)copy.type, copy.address, call_verdict(&call));
	call_end(&call);
}

REST_EXPORT void ttmem_here(struct ttmem_origin *ret_origin)
{
	struct ttmem_origin origin = {0};
	struct call call;

	if (call_begin(&call, CALL_OTHER)) {
		if (!call.is_nested)
			origin = (struct ttmem_origin){
				.time = writer_now(call.writer),
				.thread = call.self->tid,
				.phase = call_phase(&call),
				.stack = stack_here(&call),
			};
		call_end(&call);
	}
	if (ret_origin)
		*ret_origin = origin;
}

static void rest_trace_overlap(struct call *call, const struct ttmem_trace_overlap_args *args,
			       uint32_t stack)
{
	const struct book_party traced = {
		.time = args->traced.time,
		.size = args->traced_size,
		.thread = args->traced.thread,
		.name = call_name(call, args->trace),
		.phase = args->traced.phase,
		.stack = args->traced.stack,
	};
	const struct shard_buffer who = {
		.address = args->address,
		.size = args->size,
		.type = args->type,
		.phase = call_phase(call),
		.thread = call->self->tid,
		.stack = stack,
		.space = args->space,
	};

	incident_trace_overlap(call->writer, args->device, &who, &traced);
}

REST_EXPORT void ttmem_trace_overlap(const struct ttmem_trace_overlap_args *args)
{
	struct ttmem_trace_overlap_args copy = {.device = TTMEM_DEVICE_COUNT};
	struct call call;

	if (!call_begin(&call, CALL_EVENT))
		return;
	if (call.is_paused || !call_args(&call, &copy, sizeof(copy),
					 offsetof(struct ttmem_trace_overlap_args, traced), args))
		; /* only logged, or counted */
	else if (copy.type == TTMEM_ANY)
		writer_reject(&call.writer->header->rejected.type);
	else if (copy.space >= BOOK_SPACES)
		writer_reject(&call.writer->header->rejected.arguments);
	else if (rest_device_is_sane(&call, copy.device, copy.type) && !rest_is_nested(&call))
		rest_trace_overlap(&call, &copy, stack_here(&call));
	if (unlikely(call.is_debugged))
		debug_line("trace_overlap device=%u type=%d address=0x%" PRIx64 ": %s", copy.device,
			   (int)copy.type, copy.address, call_verdict(&call));
	call_end(&call);
}

static void rest_declare(struct call *call, const struct ttmem_device_args *args)
{
	struct writer_device facts = {
		.unique_id = args->unique_id,
		.arch = args->arch,
		.card = args->card,
		.remote = args->remote != 0,
		.l1_per_core = args->l1_per_core,
		.cores = args->cores,
	};

	_Static_assert(sizeof(args->memory) == sizeof(facts.memory), "facts go over as they are");
	memcpy(facts.memory, args->memory, sizeof(facts.memory));
	writer_declare(call->writer, args->device, &facts);
}

REST_EXPORT void ttmem_device(const struct ttmem_device_args *args)
{
	struct ttmem_device_args copy;
	struct call call;

	if (!call_begin(&call, CALL_OTHER))
		return;
	copy.device = TTMEM_DEVICE_COUNT;
	if (call_args(&call, &copy, sizeof(copy), offsetof(struct ttmem_device_args, arch), args) &&
	    rest_device_is_sane(&call, copy.device, TTMEM_ANY) && !rest_is_nested(&call))
		rest_declare(&call, &copy);
	if (unlikely(call.is_debugged))
		debug_line("device %u: %s", copy.device, call_verdict(&call));
	call_end(&call);
}

REST_EXPORT void ttmem_device_close(uint32_t device)
{
	struct call call;

	if (!call_begin(&call, CALL_OTHER))
		return;
	if (rest_device_is_sane(&call, device, TTMEM_ANY) && !rest_is_nested(&call))
		writer_close_device(call.writer, device);
	if (unlikely(call.is_debugged))
		debug_line("device_close %u", device);
	call_end(&call);
}

REST_EXPORT void ttmem_phase_push(const char *name)
{
	struct call call;

	if (!call_begin(&call, CALL_OTHER))
		return;
	if (!rest_is_nested(&call))
		thread_push(call.self, call.writer, name ? name : "");
	if (unlikely(call.is_debugged))
		debug_line("phase_push %s", name ? name : "-");
	call_end(&call);
}

REST_EXPORT void ttmem_phase_pop(void)
{
	struct call call;

	if (!call_begin(&call, CALL_OTHER))
		return;
	if (!rest_is_nested(&call))
		thread_pop(call.self);
	if (unlikely(call.is_debugged))
		debug_line("phase_pop");
	call_end(&call);
}

REST_EXPORT void ttmem_phase_process(const char *name)
{
	struct call call;

	if (!call_begin(&call, CALL_OTHER))
		return;
	if (!rest_is_nested(&call))
		gate_set_phase(name);
	if (unlikely(call.is_debugged))
		debug_line("phase_process %s", name ? name : "-");
	call_end(&call);
}

REST_EXPORT void ttmem_skip_frames(const char *patterns)
{
	struct call call;

	if (!call_begin(&call, CALL_OTHER))
		return;
	if (!rest_is_nested(&call))
		gate_set_skip_frames(patterns);
	if (unlikely(call.is_debugged))
		debug_line("skip_frames %s", patterns ? patterns : "-");
	call_end(&call);
}

REST_EXPORT void ttmem_give_up(const char *reason)
{
	struct call call;

	if (!call_begin(&call, CALL_OTHER))
		return;
	if (!rest_is_nested(&call))
		gate_set_gave_up(reason);
	if (unlikely(call.is_debugged))
		debug_line("give_up %s", reason ? reason : "-");
	call_end(&call);
}

REST_EXPORT const char *ttmem_gave_up(void)
{
	return gate_gave_up();
}

REST_EXPORT void ttmem_mark(const char *name)
{
	struct call call;

	if (!call_begin(&call, CALL_OTHER))
		return;
	if (!rest_is_nested(&call))
		writer_mark(call.writer, call_name(&call, name), call.self->tid, call_phase(&call));
	if (unlikely(call.is_debugged))
		debug_line("mark %s", name ? name : "-");
	call_end(&call);
}

REST_EXPORT uint32_t ttmem_intern(const char *name)
{
	struct call call;
	uint32_t id;

	if (!call_begin(&call, CALL_OTHER))
		return 0;
	id = call_keep_name(call_name(&call, name));
	if (unlikely(call.is_debugged))
		debug_line("intern %s: id %u", name ? name : "-", id);
	call_end(&call);
	return id;
}

static void rest_add(struct ttmem_stats *stats, const struct book_hot *hot)
{
	stats->bytes += hot->bytes;
	stats->buffers += hot->buffers;
	stats->peak_bytes += hot->peak;
	stats->allocs += hot->allocs;
	stats->frees += hot->frees;
}

REST_EXPORT int ttmem_stats(uint32_t device, uint32_t type, struct ttmem_stats *ret_stats)
{
	struct ttmem_stats stats = {0};
	struct book_hot hot;
	struct call call;
	int r = 0;

	if (!ret_stats || device >= BOOK_DEVICES || (type >= BOOK_TYPES && type != TTMEM_ANY))
		return -EINVAL;
	if (!call_begin(&call, CALL_OTHER))
		return -ENODATA;
	if (call.is_nested)
		r = -EBUSY;
	for (uint32_t t = 0; r == 0 && t < BOOK_TYPES; t++) {
		/* A device without events has no counters: all 0. */
		if ((type == TTMEM_ANY || type == t) &&
		    writer_counters(call.writer, device, t, call.self->tid, &hot))
			rest_add(&stats, &hot);
	}
	if (unlikely(call.is_debugged))
		debug_line("stats device=%u type=%d", device, (int)type);
	call_end(&call);
	if (r == 0)
		*ret_stats = stats;
	return r;
}

REST_EXPORT void ttmem_reset_peak(uint32_t device, uint32_t type)
{
	struct call call;

	if (!call_begin(&call, CALL_OTHER))
		return;
	if (rest_device_is_sane(&call, device, type) && !rest_is_nested(&call))
		writer_reset_peak(call.writer, device, type, call.self->tid);
	if (unlikely(call.is_debugged))
		debug_line("reset_peak device=%u type=%d", device, (int)type);
	call_end(&call);
}

REST_EXPORT void ttmem_pause(void)
{
	gate_pause();
	if (gate_peek())
		debug_line("pause");
}

REST_EXPORT void ttmem_resume(void)
{
	gate_resume();
	if (gate_peek())
		debug_line("resume");
}

REST_EXPORT void ttmem_goodbye(void)
{
	struct writer *writer = gate_peek();

	/* A process without events has no book to close. */
	if (writer) {
		writer_goodbye(writer);
		debug_line("goodbye");
	}
}

/* Runs after the atexit() handlers; events in later destructors still count. */
__attribute__((destructor)) static void rest_at_exit(void)
{
	ttmem_goodbye();
}
