/* SPDX-License-Identifier: Apache-2.0 */

/* ttmem.ps/1, and the processes of ttmem.smi/1. */

#include "answers/document-processes.h"

#include "answers/document.h"
#include "answers/fields.h"
#include "base/clock.h"
#include "base/emit.h"
#include "model/cards/join.h"
#include "model/filter.h"
#include "model/snapshot.h"
#include "model/types.h"

void document_put_occupied(struct emit *json, const char *key, const void *row)
{
	const struct snapshot_memory *memory = row;

	if (snapshot_is_occupied(&memory->occupied, memory->buffers, memory->used))
		emit_u64(json, key, memory->occupied.bytes);
	else
		emit_null(json, key);
}

#define ROW struct snapshot_memory

static const struct field document_memory[] = {
	FIELD("used", BYTES, used),
	FIELD_CODED("occupied", document_put_occupied),
	FIELD("buffers", NUMBER, buffers),
	FIELD_UNLESS(peak_is_unknown, "peak", BYTES, peak),
	FIELD("bound", NAME, bound, .names = document_bound),
	FIELD_END,
};

static const struct field document_counters[] = {
	FIELD_MORE(document_memory),
	FIELD("allocs", NUMBER, allocs),
	FIELD("frees", NUMBER, frees),
	FIELD("unknown_frees", NUMBER, unknown_frees),
	FIELD("double_frees", NUMBER, double_frees),
	FIELD("size_changes", NUMBER, size_changes),
	FIELD("realloc_live", NUMBER, realloc_live),
	FIELD("ambiguous_frees", NUMBER, ambiguous_frees),
	FIELD("unplaced_frees", NUMBER, unplaced_frees),
	FIELD("hooked", NUMBER, hooked),
	FIELD("overflow_frees", NUMBER, overflow_frees),
	FIELD_OR_NULL("last_activity_ns", TIME, last_ns),
	FIELD_END,
};

#undef ROW
#define ROW struct snapshot_driver_memory

/* Reported by the driver, next to what is counted. */
static const struct field document_driver_memory[] = {
	FIELD("pinned", BYTES, pinned),
	FIELD("dma", BYTES, dma),
	FIELD("tlb", BYTES, tlb),
	FIELD("tlb_windows", SHORT, tlb_windows),
	FIELD_END,
};

#undef ROW
#define ROW struct book_rejected

/* Calls that could not be recorded, by reason. */
static const struct field document_rejected[] = {
	FIELD("device", NUMBER, device),
	FIELD("type", NUMBER, type),
	FIELD("size", NUMBER, size),
	FIELD("arguments", NUMBER, arguments),
	FIELD("room", NUMBER, room),
	FIELD("reentry", NUMBER, reentry),
	FIELD("lock", NUMBER, lock),
	FIELD("paused", NUMBER, paused),
	FIELD_END,
};

/* A process's part of a device, and the row of that device. */
struct document_part {
	const struct snapshot_part *part;
	const struct snapshot_device *device;
	const struct snapshot_driver_memory *driver_memory;
	bool is_closed;
	bool has_counters;
};

/* What tt-metal's region reports about it, next to what is counted. */
static void document_put_region(struct emit *json, const char *key, const void *row)
{
	const struct snapshot_part *part = ((const struct document_part *)row)->part;

	if (!part->claimed) {
		emit_null(json, key);
		return;
	}
	emit_open_object(json, key);
	for (uint32_t type = 0; type < BOOK_TYPES; type++)
		emit_u64(json, types_name(type), part->claimed_used[type]);
	emit_close_object(json);
}

static void document_put_memory(struct emit *json, const char *key, const void *row)
{
	const struct document_part *part = row;

	fields_put_by_type(json, key, part->has_counters ? document_counters : document_memory,
			   part->part->memory, sizeof(part->part->memory[0]));
}

#undef ROW
#define ROW struct document_part
#define PART(...) FIELD_VIA(part, struct snapshot_part, __VA_ARGS__)

static const struct field document_part[] = {
	PART("device", SHORT, device),
	PART("uid", HEX, facts.unique_id, .absent = FIELD_NULL),
	PART("joined", NAME, joined, .names = join_name),
	PART("summed", SHORT, summed, .absent = FIELD_NOTHING),
	FIELD_VIA(device, struct snapshot_device, "node", SHORT, number, .absent = FIELD_NULL,
		  .known = 1 + offsetof(struct snapshot_device, present)),
	FIELD("closed", BOOL, is_closed),
	PART("differs", BOOL, differs),
	PART("stale_after_reset", BOOL, before_reset),
	FIELD_CODED("region", document_put_region),
	FIELD_CODED("memory", document_put_memory),
	FIELD_POINTED("driver_memory", driver_memory, document_driver_memory),
	FIELD_END,
};

static bool document_wants_part(const struct snapshot *snapshot, const struct filter *filter,
				const struct snapshot_part *part)
{
	const struct snapshot_device *row = &snapshot->devices[part->row];

	return filter_wants_device(filter, row->device, row->unique_id);
}

static bool document_wants_process(const struct snapshot *snapshot, const struct filter *filter,
				   const struct snapshot_process *process)
{
	if (!filter_wants_pid(filter, process->id.pid) ||
	    !filter_wants_user(filter, process->user, process->user_id))
		return false;
	for (size_t i = 0; i < process->part_count; i++) {
		if (document_wants_part(snapshot, filter, &process->parts[i]))
			return true;
	}
	return filter->device_count == 0;
}

/* A process, as it is written. */
struct document_process {
	const struct snapshot *snapshot;
	const struct snapshot_process *process;
	const struct document_scope *scope;
	uint64_t last_ns;
};

static void document_put_command(struct emit *json, const char *key, const void *row)
{
	const struct document_process *one = row;

	(void)key;
	if (one->scope->commands)
		one->scope->commands->write(one->scope->commands, json, one->process);
}

static void document_put_rejected(struct emit *json, const char *key, const void *row)
{
	const struct document_process *one = row;

	if (!one->scope->counters)
		return;
	emit_open_object(json, key);
	fields_put(json, document_rejected, &one->process->rejected);
	emit_close_object(json);
	emit_u64(json, "stray_frees", one->process->stray_frees);
}

static void document_put_parts(struct emit *json, const char *key, const void *row)
{
	const struct document_process *one = row;

	emit_open_array(json, key);
	for (size_t i = 0; i < one->process->part_count; i++) {
		const struct snapshot_part *part = &one->process->parts[i];
		const struct document_part place = {
			.part = part,
			.device = &one->snapshot->devices[part->row],
			.driver_memory = part->driver_memory,
			.is_closed = part->facts.closed_ns != 0,
			.has_counters = one->scope->counters,
		};

		if (document_wants_part(one->snapshot, one->scope->filter, part))
			fields_put_row(json, document_part, &place);
	}
	emit_close_array(json);
}

#undef ROW
#define ROW struct document_process
#define PROCESS(...) FIELD_VIA(process, struct snapshot_process, __VA_ARGS__)

static const struct field document_process[] = {
	PROCESS("pid", SHORT, id.pid),
	PROCESS("ns_pid", SHORT, ns_pid),
	PROCESS("start_ns", TIME, start_ns),
	PROCESS("comm", TEXT, comm),
	PROCESS("user", TEXT, user),
	PROCESS("user_id", SHORT, user_id),
	PROCESS("book_user_id", SHORT, maker_id),
	PROCESS("container", TEXT, container),
	FIELD_CODED("command", document_put_command),
	FIELD("last_activity_ns", TIME, last_ns),
	PROCESS("source", TEXT, source),
	PROCESS("alive", BOOL, alive),
	PROCESS("exact", BOOL, exact),
	PROCESS("gave_up", TEXT, gave_up),
	PROCESS("stale", BOOL, stale),
	PROCESS("claim", BOOL, unproven),
	PROCESS("untracked", BOOL, untracked),
	PROCESS("differs", BOOL, differs),
	FIELD_CODED("rejected", document_put_rejected),
	FIELD_CODED("devices", document_put_parts),
	FIELD_END,
};

void document_processes(struct emit *json, const struct snapshot *snapshot,
			const struct document_scope *scope)
{
	emit_open_array(json, "processes");
	for (size_t i = 0; i < snapshot->process_count; i++) {
		const struct snapshot_process *process = &snapshot->processes[i];

		const struct document_process one = {
			.snapshot = snapshot,
			.process = process,
			.scope = scope,
			/*
			 * Converted from another clock, it has other microseconds each time it is read:
			 * then every row would have changed whenever one has.
			 */
			.last_ns = process->last_ns - process->last_ns % NS_PER_MS,
		};

		/* Only tracked processes have counters. */
		if (scope->counters && process->untracked)
			continue;
		if (document_wants_process(snapshot, scope->filter, process))
			fields_put_row(json, document_process, &one);
	}
	emit_close_array(json);
	document_list_end(json, snapshot->exact);
}

void document_ps(struct emit *json, const struct snapshot *snapshot, const struct filter *filter,
		 struct document_commands *commands)
{
	const struct document_scope scope = {
		.filter = filter, .commands = commands, .counters = true};

	document_open_moment(json, "ttmem.ps/1", snapshot);
	document_processes(json, snapshot, &scope);
	document_close(json, snapshot);
}
