/* SPDX-License-Identifier: Apache-2.0 */

/* ttmem.buffers/1. */

#include "answers/buffers.h"

#include <stdio.h>
#include <string.h>

#include "answers/call-stack.h"
#include "answers/document-stacks.h"
#include "answers/document.h"
#include "answers/sites.h"
#include "base/bits.h"
#include "base/cleanup.h"
#include "base/emit.h"
#include "model/sites/stack.h"
#include "model/snapshot.h"
#include "model/types.h"

struct buffers_answer {
	const struct snapshot *snapshot;
	struct document_stacks **stacks;
};

static const char *buffers_comm(const void *context, char *text)
{
	const struct buffers_row *row = context;

	(void)snprintf(text, FIELDS_TEXT, "%s%s", row->is_ended ? "(ended) " : "", row->comm);
	return text;
}

#define ROW struct buffers_row

static const struct field buffers_stack[] = {
	FIELD_OR_NOTHING("calls", TEXT, calls,
			 .says = "the stack as a baseline compares it; without a stack left out"),
	FIELD_MORE_OF(frames, call_stack_fields),
	FIELD_END,
};

static void buffers_put_stack(struct emit *json, const char *key, const void *context)
{
	const struct buffers_row *row = context;

	(void)key;
	if (!row->stack)
		fields_put(json, buffers_stack, row);
	else if (row->stacks)
		document_stacks_put(row->stacks, json, row->stack);
	else
		document_stacks_put_one(json, row->stack);
}

static int buffers_take_stack(const struct json_t *object, void *row, struct pool *pool)
{
	return fields_take(object, buffers_stack, row, pool);
}

const struct field buffers_fields[] = {
	FIELD("pid", SHORT, pid, .least = 1, .column = {"PID", true}),
	FIELD("comm", TEXT, comm, .people = buffers_comm,
	      .column = {"COMMAND", .cut = true, .order = 6, .least = 15}),
	FIELD("device", SHORT, device, .most = BOOK_DEVICES - 1, .column = {"DEV", true}),
	FIELD_OR_NULL("device_uid", HEX, device_uid),
	FIELD("type", NAME, type, .names = types_name, .column = {"TYPE"}),
	FIELD("address", HEX, address, .column = {"ADDRESS", .order = 1}),
	FIELD_OR_NOTHING("space", SHORT, space),
	FIELD("size", BYTES, size, .column = {"SIZE", true}),
	FIELD("occupied", BYTES, occupied, .absent = FIELD_NOTHING,
	      .known = FIELD_KNOWN(has_occupied), .column = {"OCCUPIED", true, .order = 3}),
	FIELD_OR_NOTHING("size_per_bank", BYTES, size_per_bank),
	FIELD_OR_NOTHING("banks", SHORT, banks),
	FIELD("refs", SHORT, refs, .least = 1, .column = {"REFS", true, .order = 2}),
	FIELD("born_ns", TIME, born_ns),
	FIELD("age_ns", SPAN, age_ns, .column = {"AGE", true, .order = 5}),
	FIELD_OR_NULL("name", TEXT, name, .column = {"NAME", .cut = true, .least = 16}),
	FIELD_OR_NULL("phase", TEXT, phase,
		      .column = {"PHASE", .cut = true, .order = 4, .least = 12}),
	FIELD_OR_NOTHING("process_phase", TEXT, process_phase),
	FIELD("thread", SHORT, thread),
	FIELD_OR_NOTHING("ended", BOOL, is_ended),
	FIELD_OR_NOTHING("closed", BOOL, is_closed),
	FIELD("flags", FLAGS, flags, .names = types_flag_name),
	FIELD("kernel", NAME, kernel, .names = types_kernel_sort_name, .absent = FIELD_NOTHING,
	      .known = FIELD_KNOWN(is_kernel)),
	FIELD_CODED("stack", buffers_put_stack, .take = buffers_take_stack,
		    .fields = buffers_stack),
	FIELD_END,
};

/*
 * The process's phase, if the buffer's own phase does not show it: a thread may have its own
 * phases, and a child that it forks inherits them.
 */
static const char *buffers_process_phase(const char *process, const char *phase)
{
	size_t length = process ? strlen(process) : 0;

	if (length == 0 || (phase && strncmp(phase, process, length) == 0 &&
			    (phase[length] == '\0' || phase[length] == '/')))
		return NULL;
	return process;
}

struct buffers_row buffers_row_of(const struct snapshot *snapshot,
				  const struct snapshot_buffer *buffer)
{
	const struct snapshot_process *process = &snapshot->processes[buffer->process];
	struct buffers_row row = {
		.pid = process->id.pid,
		.comm = process->comm,
		.device = buffer->device,
		.device_uid = snapshot_part_uid(snapshot, buffer->process, buffer->device),
		.type = buffer->type,
		.address = buffer->address,
		.space = buffer->space,
		.size = buffer->size,
		.size_per_bank = buffer->size_per_bank,
		.banks = buffer->banks,
		.refs = buffer->refs,
		.born_ns = buffer->born_ns,
		.age_ns = snapshot->time_ns - bits_min(snapshot->time_ns, buffer->born_ns),
		.name = buffer->name,
		.phase = buffer->phase,
		.process_phase = buffers_process_phase(process->phase, buffer->phase),
		.thread = buffer->thread,
		.is_ended = !process->alive,
		.is_closed = buffer->closed,
		.flags = buffer->flags,
		.kernel = buffer->kernel_sort,
		.is_kernel = buffer->type == TYPES_KERNEL,
		.stack = buffer->stack,
	};

	row.has_occupied = snapshot_buffer_occupied(buffer, &row.occupied);
	return row;
}

void buffers_put_row(struct emit *json, const struct snapshot *snapshot,
		     const struct snapshot_buffer *buffer)
{
	const struct buffers_row row = buffers_row_of(snapshot, buffer);

	fields_put_row(json, buffers_fields, &row);
}

#undef ROW
#define ROW struct snapshot_process

/* Processes whose buffers are not all there, and why. */
static const struct field buffers_untracked[] = {
	FIELD("pid", SHORT, id.pid, .least = 1),
	FIELD("comm", TEXT, comm),
	FIELD("ended", NOT, alive),
	FIELD_OR_NULL("process_phase", TEXT, phase),
	FIELD("reason", TEXT, gave_up),
	FIELD_END,
};

/* Processes of which not all closings are known. */
static const struct field buffers_forgotten[] = {
	FIELD("pid", SHORT, id.pid, .least = 1),
	FIELD("before_ns", TIME, forgotten_ns),
	FIELD_END,
};

static void buffers_put_forgotten(struct emit *json, const char *key, const void *row)
{
	const struct snapshot *snapshot = ((const struct buffers_answer *)row)->snapshot;
	bool is_open = false;

	for (size_t i = 0; i < snapshot->process_count; i++) {
		if (!snapshot->processes[i].forgotten_ns)
			continue;
		if (!is_open)
			emit_open_array(json, key); /* left out if there is none */
		is_open = true;
		fields_put_row(json, buffers_forgotten, &snapshot->processes[i]);
	}
	if (is_open)
		emit_close_array(json);
}

static const void *buffers_each(const void *context, size_t *at, struct fields_room *room)
{
	const struct buffers_answer *answer = context;
	struct buffers_row *row = FIELDS_IN(room, struct buffers_row);

	if (*at >= answer->snapshot->buffer_count)
		return NULL;
	*row = buffers_row_of(answer->snapshot, &answer->snapshot->buffers[(*at)++]);
	row->stacks = answer->stacks;
	return row;
}

static const void *buffers_each_untracked(const void *context, size_t *at, struct fields_room *room)
{
	const struct snapshot *snapshot = ((const struct buffers_answer *)context)->snapshot;

	(void)room;
	while (*at < snapshot->process_count) {
		const struct snapshot_process *process = &snapshot->processes[(*at)++];

		if (process->gave_up)
			return process;
	}
	return NULL;
}

#undef ROW
#define ROW struct buffers_answer

static const struct field buffers_forgotten_list[] = {
	{.key = "forgotten",
	 .kind = FIELD_EACH,
	 .fields = buffers_forgotten,
	 .absent = FIELD_ELSEWHERE},
	FIELD_END,
};

static const struct field buffers_members[] = {
	FIELD_MADE("buffers", buffers_each, buffers_fields),
	FIELD_MADE("untracked", buffers_each_untracked, buffers_untracked, .is_later = true),
	FIELD_CODED("forgotten", buffers_put_forgotten, .fields = buffers_forgotten_list),
	FIELD_END,
};

const struct document buffers_document = {
	.schema = "ttmem.buffers/1",
	.title = "ttmem buffers --json: every live buffer",
	.members = buffers_members,
	.has = DOCUMENT_FROM | DOCUMENT_MOMENT | DOCUMENT_LIST,
};

void buffers_put(struct emit *json, const struct snapshot *snapshot)
{
	CLEANUP(document_stacks_cleanup) struct document_stacks *stacks = NULL;
	const struct buffers_answer answer = {.snapshot = snapshot, .stacks = &stacks};

	document_put(json, &buffers_document, snapshot, &answer);
}

static const char *buffers_group_shown(const void *context, char *text)
{
	const struct buffers_group *group = context;

	(void)text;
	return group->shown ? group->shown : group->key ? group->key : "-";
}

#undef ROW
#define ROW struct buffers_site

static const struct field buffers_site_fields[] = {
	FIELD("type", NAME, type, .names = types_name),
	FIELD_OR_NOTHING("calls", TEXT, calls),
	FIELD_MORE_OF(stack, call_stack_chosen),
	FIELD_MORE_OF(names, site_names_fields),
	FIELD_END,
};

#undef ROW
#define ROW struct buffers_group

const struct field buffers_group_fields[] = {
	FIELD_OR_NULL("key", TEXT, key, .people = buffers_group_shown,
		      .column = {"KEY", .cut = true, .below = true, .order = 1, .least = 40}),
	FIELD_MORE_OF(site, buffers_site_fields, .known = FIELD_KNOWN(is_site),
		      .absent = FIELD_NOTHING),
	FIELD("bytes", BYTES, bytes, .column = {"BYTES", true}),
	FIELD("buffers", NUMBER, buffers, .column = {"BUFFERS", true}),
	FIELD("oldest_ns", TIME, oldest_ns),
	FIELD("age", SPAN, age_ns, .absent = FIELD_COLUMN, .column = {"OLDEST", true}),
	FIELD("type", NAME, site.type, .names = types_name, .absent = FIELD_COLUMN),
	FIELD("pid", SHORT, pid, .absent = FIELD_COLUMN),
	FIELD("comm", TEXT, comm, .absent = FIELD_COLUMN),
	FIELD_END,
};

struct buffers_groups buffers_groups_of(const struct snapshot *snapshot, enum group_kind kind,
					const struct group_list *list,
					struct buffers_group_room *room)
{
	return (struct buffers_groups){
		.list = *list,
		.count = list->count,
		.snapshot = snapshot,
		.kind = kind,
		.room = room,
	};
}

static struct buffers_site buffers_site_of(const struct group_list *list,
					   const struct call_site *site,
					   struct buffers_group_room *room)
{
	return (struct buffers_site){
		.type = site->type,
		.calls = site->stack ? stack_calls(site->stack, room->calls, sizeof(room->calls))
				     : NULL,
		.stack = call_stack_of(site->stack, &room->stack),
		.names = site_names_of(list->names + site->first_name,
				       bits_min(site->names, GROUP_NAMES_LISTED), site->names),
	};
}

const struct buffers_group *buffers_groups_at(const struct buffers_groups *groups, size_t at,
					      struct buffers_group_room *room)
{
	const struct snapshot *snapshot = groups->snapshot;
	const struct call_site *site;

	if (!groups->list.groups)
		return &groups->rows[at];
	site = &groups->list.groups[at];
	room->group = (struct buffers_group){
		.key = group_key(snapshot, groups->kind, site, room->key, sizeof(room->key)),
		.bytes = site->bytes,
		.buffers = site->buffers,
		.oldest_ns = site->oldest_ns,
		.age_ns = snapshot->time_ns - bits_min(snapshot->time_ns, site->oldest_ns),
		.is_site = groups->kind == GROUP_SITE,
	};
	if (room->group.is_site)
		room->group.site = buffers_site_of(&groups->list, site, room);
	return &room->group;
}

static const void *buffers_each_group(const void *context, size_t *at, struct fields_room *room)
{
	const struct buffers_groups *groups = context;

	(void)room; /* too small */
	return *at < groups->count ? buffers_groups_at(groups, (*at)++, groups->room) : NULL;
}

#undef ROW
#define ROW struct buffers_groups

const struct field buffers_groups_fields[] = {
	FIELD_ARRAY_AT("groups", EACH, rows, count, .each = buffers_each_group,
		       .fields = buffers_group_fields),
	FIELD_END,
};

const struct document buffers_groups_document = {
	.schema = "ttmem.buffers/1",
	.title = "ttmem buffers --by --json: groups of live buffers",
	.members = buffers_groups_fields,
	.has = DOCUMENT_FROM | DOCUMENT_MOMENT | DOCUMENT_LIST,
};

void buffers_put_groups(struct emit *json, const struct snapshot *snapshot, enum group_kind kind,
			const struct group_list *list)
{
	struct buffers_group_room room;
	const struct buffers_groups groups = buffers_groups_of(snapshot, kind, list, &room);

	document_put(json, &buffers_groups_document, snapshot, &groups);
}
