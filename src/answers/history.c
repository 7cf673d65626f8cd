/* SPDX-License-Identifier: Apache-2.0 */

/* ttmem.history/1: what happened at an address. */

#include "answers/history.h"

#include "answers/call-stack.h"
#include "answers/document.h"
#include "answers/ended.h"
#include "answers/incidents.h"

#include "model/history.h"
#include "model/snapshot.h"
#include "model/types.h"

struct history_event_row {
	const struct history_event *event;
	struct call_stack stack;
	struct call_stack_room room;
};

struct history_row {
	const struct history_life *life;
	const struct snapshot_process *process;
	uint64_t device_uid;
};

#define ROW struct history_event_row
#define EVENT(...) FIELD_VIA(event, struct history_event, __VA_ARGS__)

static const struct field history_events[] = {
	EVENT("op", NAME, op, .names = types_op_name),
	EVENT("time_ns", TIME, time_ns),
	EVENT("number", NUMBER, number, .absent = FIELD_NULL),
	EVENT("size", BYTES, size),
	EVENT("refs", SHORT, refs),
	EVENT("thread", SHORT, thread),
	EVENT("name", TEXT, name, .absent = FIELD_NULL),
	EVENT("phase", TEXT, phase, .absent = FIELD_NULL),
	EVENT("reused", BOOL, reused),
	EVENT("size_change", BOOL, size_change),
	FIELD_MORE_OF(stack, call_stack_fields),
	FIELD_END,
};

static const void *history_each_event(const void *context, size_t *at, struct fields_room *room)
{
	const struct history_row *row = context;
	struct history_event_row *made = FIELDS_IN(room, struct history_event_row);

	if (*at >= row->life->count)
		return NULL;
	made->event = &row->life->events[(*at)++];
	made->stack = call_stack_of(made->event->stack, &made->room);
	return made;
}

#undef ROW
#define ROW struct history_row
#define LIFE(...) FIELD_VIA(life, struct history_life, __VA_ARGS__)
#define PROCESS(...) FIELD_VIA(process, struct snapshot_process, __VA_ARGS__)

static const struct field history_fields[] = {
	PROCESS("pid", SHORT, id.pid, .least = 1),
	PROCESS("comm", TEXT, comm),
	LIFE("device", SHORT, device, .most = BOOK_DEVICES - 1),
	FIELD_OR_NULL("device_uid", HEX, device_uid),
	PROCESS("alive", BOOL, alive),
	LIFE("type", NAME, type, .names = types_name),
	LIFE("address", HEX, address),
	LIFE("space", SHORT, space, .absent = FIELD_NOTHING),
	LIFE("allocs", NUMBER, allocs),
	LIFE("frees", NUMBER, frees),
	LIFE("live", BOOL, live),
	LIFE("complete", BOOL, complete),
	FIELD_MADE("events", history_each_event, history_events),
	FIELD_END,
};

static const void *history_each(const void *context, size_t *at, struct fields_room *room)
{
	const struct history_answer *answer = context;
	const struct history_life *life = &answer->history->lives[*at];
	struct history_row *row = FIELDS_IN(room, struct history_row);

	if (*at >= answer->history->count)
		return NULL;
	(*at)++;
	*row = (struct history_row){
		.life = life,
		.process = &answer->snapshot->processes[life->process],
		.device_uid = snapshot_part_uid(answer->snapshot, life->process, life->device),
	};
	return row;
}

#undef ROW
#define ROW struct history_past

static const struct field history_past[] = {
	FIELD_ARRAY_AT("leaks", ROWS, leaks, leak_count, .fields = leaks_fields,
		       .written = 1 + offsetof(ROW, leaks_json)),
	FIELD_ARRAY_AT("incidents", ROWS, incidents, incident_count, .fields = incident_fields,
		       .written = 1 + offsetof(ROW, incidents_json)),
	FIELD_END,
};

#undef ROW
#define ROW struct history_answer

static const struct field history_members[] = {
	FIELD("address", HEX, address),
	FIELD_MADE("buffers", history_each, history_fields),
	FIELD_POINTED("past", past, history_past,
		      .says = "what ttmemd has of the address; null: it could not be asked"),
	FIELD_END,
};

const struct document history_document = {
	.schema = "ttmem.history/1",
	.title = "ttmem history --json: what happened at an address",
	.members = history_members,
	.has = DOCUMENT_FROM | DOCUMENT_LIST,
};
