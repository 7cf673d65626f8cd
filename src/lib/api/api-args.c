/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The calls that take all properties of a buffer in a struct, on one device or on those of a mesh. They
 * have one body each: what the shorter calls save is little beside reading the struct.
 */

#include <inttypes.h>
#include <string.h>

#include "lib/api/api-private.h"
#include "lib/api/debug-log.h"
#include "lib/api/debug.h"
#include "lib/stack/stack.h"

_Static_assert(TTMEM_SPACE_COUNT == BOOK_SPACES, "as many spaces");
_Static_assert(TTMEM_FREE_BUFFER == SHARD_FREE_BUFFER, "passed on unchanged");
_Static_assert(TTMEM_FREE_CLOSED == SHARD_FREE_CLOSED, "passed on unchanged");
_Static_assert(TTMEM_FREE_IN_SPACE == SHARD_FREE_IN_SPACE, "passed on unchanged");
_Static_assert(BOOK_META_ALIAS >> BOOK_META_FLAGS_SHIFT == TTMEM_FLAG_ALIAS, "alias is alias");
_Static_assert(TTMEM_SHAPE_BOTTOM_UP == BOOK_SHAPE_BOTTOM_UP &&
		       TTMEM_SHAPE_TOP_DOWN == BOOK_SHAPE_TOP_DOWN &&
		       TTMEM_SHAPE_INTERLEAVED == BOOK_SHAPE_INTERLEAVED &&
		       TTMEM_SHAPE_SHARDED == BOOK_SHAPE_SHARDED,
	       "stored unchanged");

#define ARGS_FLAGS \
	(TTMEM_FLAG_OWNS_DATA | TTMEM_FLAG_PREALLOCATED | TTMEM_FLAG_ALIAS | TTMEM_FLAG_HOOKED)
#define ARGS_SHAPE_FLAGS                                                          \
	(TTMEM_SHAPE_BOTTOM_UP | TTMEM_SHAPE_TOP_DOWN | TTMEM_SHAPE_INTERLEAVED | \
	 TTMEM_SHAPE_SHARDED)

/* The devices of a call: those of a mesh, or the one that the struct names. */
struct args_devices {
	const uint32_t *list;
	size_t n;
	bool is_mesh;
};

static bool args_devices_are_sane(struct writer *writer, const struct args_devices *devices)
{
	if (likely(devices->list && devices->n <= BOOK_DEVICES))
		return true;
	writer_reject(&writer->header->rejected.arguments);
	return false;
}

/* A mesh call counts each device that is out of range; the writer does that. */
static uint32_t args_first(const struct args_devices *devices)
{
	return devices->is_mesh ? 0 : devices->list[0];
}

/*
 * How the buffer is spread over the banks, if the caller gave more than the device's default. The
 * number of banks is resolved here: what a buffer takes must not change when a device is declared anew.
 */
static uint32_t args_shape(struct call *call, const struct args_devices *devices,
			   const struct ttmem_alloc_args *args)
{
	struct book_shape shape = {
		.size_per_bank = args->size_per_bank,
		.banks = args->banks,
		.first_bank = args->first_bank,
		.kernel_sort = args->type == TTMEM_KERNEL ? args->kernel_sort : 0,
		.flags = args->shape_flags,
		.page_size = args->page_size,
	};
	static const struct book_shape none;

	if (call->is_nested || memcmp(&shape, &none, sizeof(shape)) == 0)
		return 0;
	if (shape.size_per_bank && !shape.banks && devices->n > 0)
		shape.banks = writer_banks(call->writer, devices->list[0], args->type);
	return intern_shape(call->writer, &shape);
}

static bool args_alloc_is_sane(struct call *call, const struct args_devices *devices,
			       const struct ttmem_alloc_args *args)
{
	if (args->flags & ~ARGS_FLAGS || args->kernel_sort > TTMEM_KERNEL_DISPATCH ||
	    args->space >= BOOK_SPACES || args->shape_flags & ~ARGS_SHAPE_FLAGS) {
		writer_reject(&call->writer->header->rejected.arguments);
		return false;
	}
	return args_devices_are_sane(call->writer, devices) &&
	       api_alloc_is_sane(call->writer, args_first(devices), args->type, args->size,
				 args->flags);
}

static void args_hooked(struct call *call, const struct args_devices *devices,
			const struct shard_buffer *buffer)
{
	for (size_t i = 0; i < devices->n; i++) {
		if (devices->list[i] >= BOOK_DEVICES)
			writer_reject(&call->writer->header->rejected.device);
		else if (call->is_nested)
			writer_reject(&call->writer->header->rejected.reentry);
		else
			writer_hooked(call->writer, devices->list[i], buffer);
	}
}

static void args_alloc(struct call *call, const struct args_devices *devices,
		       const struct ttmem_alloc_args *args, uint32_t stack)
{
	struct shard_buffer buffer;

	if (!args_alloc_is_sane(call, devices, args))
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
		.shape = args_shape(call, devices, args),
		.space = args->space,
	};
	if (args->flags & TTMEM_FLAG_HOOKED)
		args_hooked(call, devices, &buffer);
	else if (call->is_nested)
		api_defer_mesh(call, devices->list, devices->n, false, &buffer, args->owner);
	else if (devices->is_mesh)
		writer_alloc_mesh(call->writer, devices->list, devices->n, &buffer, args->owner);
	else
		writer_alloc(call->writer, devices->list[0], &buffer, args->owner);
	if (unlikely(call->is_debugged))
		api_log_alloc(call, devices->list, devices->n,
			      &(struct debug_log_buffer){.address = args->address,
							 .size = args->size,
							 .type = args->type,
							 .owner = args->owner,
							 .space = args->space,
							 .flags = args->flags,
							 .has_flags = true});
}

/*
 * @list: NULL = the device that @args names. Devices are no struct here: a call with arguments in memory is no
 * tail call, and then the chain of frames is broken at which a stack begins.
 */
API_BODY args_alloc_ex(const uint32_t *list, size_t n, bool is_mesh,
		       const struct ttmem_alloc_args *args)
{
	struct args_devices devices = {list, n, .is_mesh = is_mesh};
	struct ttmem_alloc_args copy;
	struct call call;

	if (!call_begin(&call, CALL_EVENT))
		return;
	if (!call_args(&call, &copy, sizeof(copy), offsetof(struct ttmem_alloc_args, name), args))
		memset(&copy, 0, sizeof(copy));
	else if (!call.is_paused) {
		if (!devices.is_mesh)
			devices.list = &copy.device;
		args_alloc(&call, &devices, &copy, stack_here(&call));
	}
	if (unlikely(call.is_debugged))
		debug_line("%s %s=%zu type=%u address=0x%" PRIx64 " size=%" PRIu64
			   " flags=0x%x space=%u name=%s: %s",
			   devices.is_mesh ? "alloc_mesh_ex" : "alloc_ex",
			   devices.is_mesh ? "devices" : "device",
			   devices.is_mesh ? devices.n : copy.device, copy.type, copy.address,
			   copy.size, copy.flags, copy.space, copy.name ? copy.name : "-",
			   call_verdict(&call));
	call_end(&call);
}

API_EXPORT void ttmem_alloc_ex(const struct ttmem_alloc_args *args)
{
	if (likely(gate_is_off()))
		return;
	args_alloc_ex(NULL, 1, false, args);
}

API_EXPORT void ttmem_alloc_mesh_ex(const uint32_t *devices, size_t n,
				    const struct ttmem_alloc_args *args)
{
	if (likely(gate_is_off()))
		return;
	args_alloc_ex(devices, n, true, args);
}

static bool args_free_flags_are_sane(const struct ttmem_free_args *args)
{
	uint32_t flags =
		args->flags & ~(TTMEM_FREE_DESTRUCTOR | TTMEM_FREE_IN_SPACE | TTMEM_FREE_CLOSED);

	return args->space < BOOK_SPACES &&
	       (!(flags & ~ARGS_FLAGS) || (flags == TTMEM_FREE_BUFFER && args->type == TTMEM_ANY));
}

static void args_free(struct call *call, const struct args_devices *devices,
		      const struct ttmem_free_args *args, uint32_t stack)
{
	struct shard_buffer who = {
		.address = args->address,
		.type = args->type,
		.flags =
			args->flags & (TTMEM_FREE_BUFFER | TTMEM_FREE_IN_SPACE | TTMEM_FREE_CLOSED),
		.phase = call_phase(call),
		.thread = call->self->tid,
		.stack = stack,
		.space = args->space,
	};

	if (!args_free_flags_are_sane(args))
		writer_reject(&call->writer->header->rejected.arguments);
	else if (!args_devices_are_sane(call->writer, devices) ||
		 !api_free_is_sane(call->writer, args_first(devices), args->type))
		; /* already counted */
	else if (args->flags & TTMEM_FLAG_HOOKED)
		args_hooked(call, devices, &who);
	else if (call->is_nested)
		api_defer_mesh(call, devices->list, devices->n, true, &who, 0);
	else if (devices->is_mesh)
		writer_free_mesh(call->writer, devices->list, devices->n, &who);
	else
		writer_free_buffer(call->writer, devices->list[0], &who);
}

API_BODY args_free_ex(const uint32_t *list, size_t n, bool is_mesh,
		      const struct ttmem_free_args *args)
{
	struct args_devices devices = {list, n, .is_mesh = is_mesh};
	struct ttmem_free_args copy = {0};
	struct call call;

	if (!call_begin(&call, CALL_EVENT))
		return;
	if (call_args(&call, &copy, sizeof(copy), offsetof(struct ttmem_free_args, space), args)) {
		if (!devices.is_mesh)
			devices.list = &copy.device;
		if (!call.is_paused)
			args_free(&call, &devices, &copy, stack_here(&call));
	}
	if (unlikely(call.is_debugged)) {
		debug_line("%s %s=%zu type=%d address=0x%" PRIx64 " flags=0x%x space=%u: %s",
			   devices.is_mesh ? "free_mesh_ex" : "free_ex",
			   devices.is_mesh ? "devices" : "device",
			   devices.is_mesh ? devices.n : copy.device, (int)copy.type, copy.address,
			   copy.flags, copy.space, call_verdict(&call));
		if (copy.struct_size && args_free_flags_are_sane(&copy))
			api_log_free(&call, devices.list, devices.n,
				     &(struct debug_log_buffer){.type = copy.type,
								.address = copy.address,
								.owner = copy.owner,
								.space = copy.space,
								.flags = copy.flags});
	}
	call_end(&call);
}

API_EXPORT void ttmem_free_ex(const struct ttmem_free_args *args)
{
	if (likely(gate_is_off()))
		return;
	args_free_ex(NULL, 1, false, args);
}

API_EXPORT void ttmem_free_mesh_ex(const uint32_t *devices, size_t n,
				   const struct ttmem_free_args *args)
{
	if (likely(gate_is_off()))
		return;
	args_free_ex(devices, n, true, args);
}
