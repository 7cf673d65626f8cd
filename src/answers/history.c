/* SPDX-License-Identifier: Apache-2.0 */

/* ttmem.history/1: what happened at an address. */

#include "model/history.h"

#include "answers/call-stack.h"
#include "answers/document.h"
#include "base/emit.h"
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

static bool history_each_event(const void *context, size_t *at, void *ret_element)
{
	const struct history_row *row = context;
	struct history_event_row *made = ret_element;

	if (*at >= row->life->count)
		return false;
	made->event = &row->life->events[(*at)++];
	made->stack = call_stack_of(made->event->stack, &made->room);
	return true;
}

#undef ROW
#define ROW struct history_row
#define LIFE(...) FIELD_VIA(life, struct history_life, __VA_ARGS__)
#define PROCESS(...) FIELD_VIA(process, struct snapshot_process, __VA_ARGS__)

static const struct field history_fields[] = {
	PROCESS("pid", SHORT, id.pid, .least = 1),
	PROCESS("comm", TEXT, comm),
	LIFE("device", SHORT, device),
	FIELD_OR_NULL("device_uid", HEX, device_uid),
	PROCESS("alive", BOOL, alive),
	LIFE("type", NAME, type, .names = types_name),
	LIFE("address", HEX, address),
	LIFE("space", SHORT, space, .absent = FIELD_NOTHING),
	LIFE("allocs", NUMBER, allocs),
	LIFE("frees", NUMBER, frees),
	LIFE("live", BOOL, live),
	LIFE("complete", BOOL, complete),
	FIELD_MADE("events", history_each_event, struct history_event_row, history_events),
	FIELD_END,
};

static void history_put_past(struct emit *json, const struct document_past *past)
{
	if (!past) {
		emit_null(json, "past");
		return;
	}
	emit_open_object(json, "past");
	emit_raw(json, "leaks", past->leaks);
	emit_raw(json, "incidents", past->incidents);
	emit_close_object(json);
}

void document_history(struct emit *json, const struct snapshot *snapshot,
		      const struct history *history, uint64_t address,
		      const struct document_past *past)
{
	document_open_at(json, "ttmem.history/1", snapshot);
	emit_hex(json, "address", address);
	emit_open_array(json, "buffers");
	for (size_t i = 0; i < history->count; i++) {
		const struct history_life *life = &history->lives[i];
		const struct history_row row = {
			.life = life,
			.process = &snapshot->processes[life->process],
			.device_uid = snapshot_part_uid(snapshot, life->process, life->device),
		};

		fields_put_row(json, history_fields, &row);
	}
	emit_close_array(json);
	history_put_past(json, past);
	document_list_end(json, snapshot->exact);
	document_close(json, snapshot);
}
