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

const struct field document_occupied[] = {
	FIELD_OR_NULL("occupied", BYTES, occupied.bytes,
		      .says = "bytes that they take in all banks; null: not known of all of them"),
	FIELD_END,
};

static const struct field document_memory[] = {
	FIELD("used", BYTES, used),
	FIELD_CODED("occupied", document_put_occupied, .fields = document_occupied),
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
	const struct snapshot_driver_memory *driver_memory; /* NULL = not known */
	bool is_closed;
};

#undef ROW
#define ROW struct document_part
#define PART(...) FIELD_VIA(part, struct snapshot_part, __VA_ARGS__)
#define PART_BY_TYPE(KEY, MEMBER, FIELDS, ...)                                                 \
	{                                                                                      \
		.key = (KEY), .kind = FIELD_TYPES, .via = 1 + offsetof(ROW, part),             \
		.offset = offsetof(struct snapshot_part, MEMBER),                              \
		.size = sizeof(((struct snapshot_part *)NULL)->MEMBER[0]), .fields = (FIELDS), \
		##__VA_ARGS__                                                                  \
	}

static const struct field document_part[] = {
	PART("device", SHORT, device, .most = BOOK_DEVICES - 1),
	PART("uid", HEX, facts.unique_id, .absent = FIELD_NULL),
	PART("joined", NAME, joined, .names = join_name),
	PART("summed", SHORT, summed, .absent = FIELD_NOTHING),
	FIELD_VIA(device, struct snapshot_device, "node", SHORT, number, .absent = FIELD_NULL,
		  .known = 1 + offsetof(struct snapshot_device, present)),
	FIELD("closed", BOOL, is_closed),
	PART("differs", BOOL, differs),
	PART("stale_after_reset", BOOL, before_reset),
	PART_BY_TYPE("region", claimed_used, NULL, .absent = FIELD_NULL,
		     .known = 1 + offsetof(struct snapshot_part, claimed),
		     .says = "what tt-metal's region reports, next to what is counted"),
	FIELD_END,
};

static const struct field document_part_driver[] = {
	FIELD_POINTED("driver_memory", driver_memory, document_driver_memory,
		      .says = "what the driver reports, next to what is counted"),
	FIELD_END,
};

static const struct field document_smi_part[] = {
	FIELD_MORE(document_part),
	PART_BY_TYPE("memory", memory, document_memory),
	FIELD_MORE(document_part_driver),
	FIELD_END,
};

static const struct field document_ps_part[] = {
	FIELD_MORE(document_part),
	PART_BY_TYPE("memory", memory, document_counters),
	FIELD_MORE(document_part_driver),
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

static void document_put_command(struct emit *json, const char *key, const void *row)
{
	const struct document_process *one = row;

	(void)key;
	if (one->scope->commands)
		one->scope->commands->write(one->scope->commands, json, one->process);
}

static const void *document_each_part(const void *context, size_t *at, struct fields_room *room)
{
	const struct document_process *one = context;
	struct document_part *row = FIELDS_IN(room, struct document_part);

	while (*at < one->process->part_count) {
		const struct snapshot_part *part = &one->process->parts[(*at)++];

		if (!document_wants_part(one->scope->snapshot, one->scope->filter, part))
			continue;
		*row = (struct document_part){
			.part = part,
			.device = &one->scope->snapshot->devices[part->row],
			.driver_memory = part->driver_memory,
			.is_closed = part->facts.closed_ns != 0,
		};
		return row;
	}
	return NULL;
}

#undef ROW
#define ROW struct document_process
#define PROCESS(...) FIELD_VIA(process, struct snapshot_process, __VA_ARGS__)

static const struct field document_command[] = {
	{.key = "command",
	 .kind = FIELD_TEXTS,
	 .absent = FIELD_ELSEWHERE,
	 .says = "words of the command line as it is now, invalid bytes replaced; what looks like "
		 "a "
		 "secret is ***; only in the command's own output, of living processes whose "
		 "details the user may see"},
	{.key = "command_cut", .kind = FIELD_BOOL, .absent = FIELD_ELSEWHERE},
	FIELD_END,
};

const struct field document_process[] = {
	PROCESS("pid", SHORT, id.pid, .least = 1),
	PROCESS("ns_pid", SHORT, ns_pid, .least = 1),
	PROCESS("start_ns", TIME, start_ns),
	PROCESS("comm", TEXT, comm),
	PROCESS("user", TEXT, user),
	PROCESS("user_id", SHORT, user_id),
	PROCESS("book_user_id", SHORT, maker_id),
	PROCESS("container", TEXT, container, .absent = FIELD_NULL),
	FIELD_CODED("command", document_put_command, .fields = document_command),
	FIELD("last_activity_ns", TIME, last_ns),
	PROCESS("source", TEXT, source, .names = document_source),
	PROCESS("alive", BOOL, alive),
	PROCESS("exact", BOOL, exact),
	PROCESS("gave_up", TEXT, gave_up, .absent = FIELD_NULL, .is_later = true),
	PROCESS("stale", BOOL, stale),
	PROCESS("claim", BOOL, unproven),
	PROCESS("untracked", BOOL, untracked),
	PROCESS("differs", BOOL, differs),
	FIELD_END,
};

const struct field document_smi_process[] = {
	FIELD_MORE(document_process),
	FIELD_MADE("devices", document_each_part, document_smi_part),
	FIELD_END,
};

static const struct field document_ps_process[] = {
	FIELD_MORE(document_process),
	{.key = "rejected",
	 .kind = FIELD_OBJECT,
	 .via = 1 + offsetof(ROW, process),
	 .offset = offsetof(struct snapshot_process, rejected),
	 .fields = document_rejected},
	PROCESS("stray_frees", NUMBER, stray_frees),
	FIELD_MADE("devices", document_each_part, document_ps_part),
	FIELD_END,
};

const void *document_each_process(const void *context, size_t *at, struct fields_room *room)
{
	const struct document_scope *scope = context;
	struct document_process *row = FIELDS_IN(room, struct document_process);

	while (*at < scope->snapshot->process_count) {
		const struct snapshot_process *process = &scope->snapshot->processes[(*at)++];

		/* Only tracked processes have counters. */
		if ((scope->counters && process->untracked) ||
		    !document_wants_process(scope->snapshot, scope->filter, process))
			continue;
		*row = (struct document_process){
			.scope = scope,
			.process = process,
			/*
			 * Converted from another clock, it has other microseconds each time it is
			 * read: then every row would have changed whenever one has.
			 */
			.last_ns = process->last_ns - process->last_ns % NS_PER_MS,
		};
		return row;
	}
	return NULL;
}

#undef ROW
#define ROW struct document_scope

static const struct field ps_members[] = {
	FIELD_MADE("processes", document_each_process, document_ps_process),
	FIELD_END,
};

const struct document ps_document = {
	.schema = "ttmem.ps/1",
	.title = "ttmem ps --json: per process, device and type",
	.members = ps_members,
	.has = DOCUMENT_FROM | DOCUMENT_MOMENT | DOCUMENT_LIST,
};

void document_ps(struct emit *json, const struct snapshot *snapshot, const struct filter *filter,
		 struct document_commands *commands)
{
	const struct document_scope scope = {
		.snapshot = snapshot, .filter = filter, .commands = commands, .counters = true};

	document_put(json, &ps_document, snapshot, &scope);
}
