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

/* What comes from the stack: "calls", "stack" and "site". */
static void buffers_put_stack(struct emit *json, const char *key, const void *context)
{
	const struct buffers_row *row = context;

	(void)key;
	if (row->stacks)
		document_stacks_put(row->stacks, json, row->buffer->stack);
	else
		document_stacks_put_one(json, row->buffer->stack);
}

static const char *buffers_comm(const void *context, char *text)
{
	const struct buffers_row *row = context;

	(void)snprintf(text, FIELDS_TEXT, "%s%s", row->is_ended ? "(ended) " : "",
		       row->process->comm);
	return text;
}

#define ROW struct buffers_row
#define BUFFER(...) FIELD_VIA(buffer, struct snapshot_buffer, __VA_ARGS__)
#define PROCESS(...) FIELD_VIA(process, struct snapshot_process, __VA_ARGS__)

const struct field buffers_fields[] = {
	PROCESS("pid", SHORT, id.pid, .column = {"PID", true}),
	PROCESS("comm", TEXT, comm, .people = buffers_comm,
		.column = {"COMMAND", .cut = true, .order = 6, .least = 15}),
	BUFFER("device", SHORT, device, .column = {"DEV", true}),
	FIELD_OR_NULL("device_uid", HEX, device_uid),
	FIELD("type", NAME, type, .names = types_name, .column = {"TYPE"}),
	BUFFER("address", HEX, address, .column = {"ADDRESS", .order = 1}),
	BUFFER("space", SHORT, space, .absent = FIELD_NOTHING),
	BUFFER("size", BYTES, size, .column = {"SIZE", true}),
	FIELD("occupied", BYTES, occupied, .absent = FIELD_NOTHING,
	      .known = FIELD_KNOWN(has_occupied), .column = {"OCCUPIED", true, .order = 3}),
	BUFFER("size_per_bank", BYTES, size_per_bank, .absent = FIELD_NOTHING),
	BUFFER("banks", SHORT, banks, .absent = FIELD_NOTHING),
	BUFFER("refs", SHORT, refs, .column = {"REFS", true, .order = 2}),
	BUFFER("born_ns", TIME, born_ns),
	FIELD("age_ns", SPAN, age_ns, .column = {"AGE", true, .order = 5}),
	BUFFER("name", TEXT, name, .column = {"NAME", .cut = true, .least = 20}),
	BUFFER("phase", TEXT, phase, .column = {"PHASE", .cut = true, .order = 4, .least = 12}),
	FIELD_OR_NOTHING("process_phase", TEXT, process_phase),
	BUFFER("thread", SHORT, thread),
	FIELD_OR_NOTHING("ended", BOOL, is_ended),
	FIELD_OR_NOTHING("closed", BOOL, is_closed),
	FIELD("flags", FLAGS, flags, .names = types_flag_name),
	FIELD("kernel", NAME, kernel, .names = types_kernel_sort_name, .absent = FIELD_NOTHING,
	      .known = FIELD_KNOWN(is_kernel)),
	FIELD_CODED("stack", buffers_put_stack),
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
		.buffer = buffer,
		.process = process,
		.device_uid = snapshot_part_uid(snapshot, buffer->process, buffer->device),
		.age_ns = snapshot->time_ns - bits_min(snapshot->time_ns, buffer->born_ns),
		.process_phase = buffers_process_phase(process->phase, buffer->phase),
		.type = buffer->type,
		.flags = buffer->flags,
		.kernel = buffer->kernel_sort,
		.is_kernel = buffer->type == TYPES_KERNEL,
		.is_ended = !process->alive,
		.is_closed = buffer->closed,
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
	FIELD("pid", SHORT, id.pid),    FIELD("comm", TEXT, comm),
	FIELD("ended", NOT, alive),     FIELD("process_phase", TEXT, phase),
	FIELD("reason", TEXT, gave_up), FIELD_END,
};

/* Processes of which not all closings are known. */
static const struct field buffers_forgotten[] = {
	FIELD("pid", SHORT, id.pid),
	FIELD("before_ns", TIME, forgotten_ns),
	FIELD_END,
};

static void buffers_put_processes(struct emit *json, const struct snapshot *snapshot)
{
	bool is_open = false;

	emit_open_array(json, "untracked");
	for (size_t i = 0; i < snapshot->process_count; i++) {
		if (snapshot->processes[i].gave_up)
			fields_put_row(json, buffers_untracked, &snapshot->processes[i]);
	}
	emit_close_array(json);
	for (size_t i = 0; i < snapshot->process_count; i++) {
		if (!snapshot->processes[i].forgotten_ns)
			continue;
		if (!is_open)
			emit_open_array(json, "forgotten"); /* left out if there is none */
		is_open = true;
		fields_put_row(json, buffers_forgotten, &snapshot->processes[i]);
	}
	if (is_open)
		emit_close_array(json);
}

void buffers_put(struct emit *json, const struct snapshot *snapshot)
{
	CLEANUP(document_stacks_cleanup) struct document_stacks *stacks = NULL;
	char next[PAGE_CURSOR_TEXT_SIZE];

	document_open_moment(json, "ttmem.buffers/1", snapshot);
	emit_open_array(json, "buffers");
	for (size_t i = 0; i < snapshot->buffer_count; i++) {
		struct buffers_row row = buffers_row_of(snapshot, &snapshot->buffers[i]);

		row.stacks = &stacks;
		fields_put_row(json, buffers_fields, &row);
	}
	emit_close_array(json);
	buffers_put_processes(json, snapshot);
	document_page_end(json, snapshot->exact,
			  snapshot->has_next ? page_cursor_format(&snapshot->next, next) : NULL);
	document_close(json, snapshot);
}

static void buffers_put_site(struct emit *json, const char *key, const void *context)
{
	const struct buffers_group *group = context;
	const struct stack *stack = group->site->stack;
	char calls[BUFFERS_KEY];
	struct site site;

	(void)key;
	if (!group->is_site)
		return;
	emit_string(json, "type", types_name(group->site->type));
	if (stack)
		emit_string(json, "calls", stack_calls(stack, calls, sizeof(calls)));
	(void)site_choose(stack, &site); /* without one it is null */
	call_stack_put_site(json, &site);
	site_names_put(json, group->names, bits_min(group->site->names, GROUP_NAMES_LISTED),
		       group->site->names);
}

static const char *buffers_group_shown(const void *context, char *text)
{
	const struct buffers_group *group = context;

	(void)text;
	return group->shown ? group->shown : group->key ? group->key : "-";
}

#undef ROW
#define ROW struct buffers_group
#define SITE(...) FIELD_VIA(site, struct call_site, __VA_ARGS__)

const struct field buffers_group_fields[] = {
	FIELD("key", TEXT, key, .people = buffers_group_shown,
	      .column = {"KEY", .cut = true, .below = true, .order = 1, .least = 40}),
	FIELD_CODED("site", buffers_put_site),
	SITE("bytes", BYTES, bytes, .column = {"BYTES", true}),
	SITE("buffers", NUMBER, buffers, .column = {"BUFFERS", true}),
	SITE("oldest_ns", TIME, oldest_ns),
	FIELD("age", SPAN, age_ns, .absent = FIELD_COLUMN, .column = {"OLDEST", true}),
	FIELD_END,
};

struct buffers_group buffers_group_of(const struct snapshot *snapshot, enum group_kind kind,
				      const struct group_list *list, size_t at, char *key)
{
	const struct call_site *site = &list->groups[at];

	return (struct buffers_group){
		.site = site,
		.names = list->names + site->first_name,
		.key = group_key(snapshot, kind, site, key, BUFFERS_KEY),
		.age_ns = snapshot->time_ns - bits_min(snapshot->time_ns, site->oldest_ns),
		.is_site = kind == GROUP_SITE,
	};
}

void buffers_put_group_rows(struct emit *json, const struct snapshot *snapshot,
			    enum group_kind kind, const struct group_list *list)
{
	char key[BUFFERS_KEY];

	emit_open_array(json, "groups");
	for (size_t i = 0; i < list->count; i++) {
		const struct buffers_group group = buffers_group_of(snapshot, kind, list, i, key);

		fields_put_row(json, buffers_group_fields, &group);
	}
	emit_close_array(json);
}

void buffers_put_groups(struct emit *json, const struct snapshot *snapshot, enum group_kind kind,
			const struct group_list *list)
{
	document_open_moment(json, "ttmem.buffers/1", snapshot);
	buffers_put_group_rows(json, snapshot, kind, list);
	document_list_end(json, snapshot->exact);
	document_close(json, snapshot);
}
