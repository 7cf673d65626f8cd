/* SPDX-License-Identifier: Apache-2.0 */

/* Events as JSON for "ttmem watch": one document ttmem.watch/1 per line. */

#include <stdio.h>

#include "answers/call-stack.h"
#include "answers/document.h"
#include "base/clock.h"
#include "base/emit.h"
#include "cli/watch/watch.h"
#include "model/types.h"
#include "source/books/scan.h"

static void watch_json_open(struct emit *json, const struct follow *follow, const char *op,
			    uint64_t time_ns)
{
	char comm[WATCH_TEXT];

	document_open(json, "ttmem.watch/1", time_ns);
	emit_string(json, "op", op);
	emit_u64(json, "pid", follow->book->owner.id.pid);
	emit_string(json, "comm", watch_comm(follow, comm));
}

static void watch_json_where(struct emit *json, const struct follow_event *event)
{
	const struct follow_shard *shard = &event->follow->shards[event->shard];

	emit_u64(json, "device", shard->device);
	document_uid(json, "device_uid", shard->unique_id);
	emit_u64(json, "number", event->number);
}

static void watch_json_event(const struct watch *watch, const struct follow_event *event)
{
	const struct book_record *record = &event->event.record;
	uint32_t op = event->event.op_slot & BOOK_OP_MASK;
	uint32_t type = book_meta_type(record->meta);
	struct emit json = EMIT_INIT(stdout);
	char text[WATCH_TEXT];

	if (!types_op_name(op) || !types_name(type))
		return; /* not possible in a book of this version */
	watch_json_open(&json, event->follow, types_op_name(op), event->time_ns);
	watch_json_where(&json, event);
	emit_string(&json, "type", types_name(type));
	emit_hex(&json, "address", record->address);
	emit_u64(&json, "size", record->size);
	emit_u64(&json, "refs", op == BOOK_OP_FREE ? 0 : book_meta_refs(record->meta));
	emit_u64(&json, "thread", book_thread(record->thread_space));
	if (book_space(record->thread_space))
		emit_u64(&json, "space", book_space(record->thread_space));
	emit_string(&json, "name", watch_string(event->follow, record->name, text));
	emit_string(&json, "phase", watch_string(event->follow, record->phase, text));
	document_flags(&json, book_meta_flags(record->meta));
	emit_bool(&json, "size_change", (event->event.op_slot & BOOK_OP_RESIZE) != 0);
	call_stack_put(&json, watch_stack(watch, event));
	document_close_bare(&json);
}

static void watch_json_missed(const struct watch *watch, const struct follow_event *event)
{
	struct emit json = EMIT_INIT(stdout);

	(void)watch;
	watch_json_open(&json, event->follow, "missed", event->time_ns);
	watch_json_where(&json, event);
	emit_u64(&json, "count", event->missed);
	document_close_bare(&json);
}

static void watch_json_started(const struct watch *watch, const struct follow *follow)
{
	struct emit json = EMIT_INIT(stdout);

	(void)watch;
	watch_json_open(&json, follow, "start", clock_ns(CLOCK_REALTIME));
	document_close_bare(&json);
}

static void watch_json_ended(const struct watch *watch, const struct follow *follow)
{
	struct emit json = EMIT_INIT(stdout);
	uint64_t bytes, buffers;

	(void)watch;
	watch_totals(follow, BOOK_TYPES, &bytes, &buffers);
	watch_json_open(&json, follow, "end", clock_ns(CLOCK_REALTIME));
	emit_u64(&json, "bytes", bytes);
	emit_u64(&json, "buffers", buffers);
	document_close_bare(&json);
}

const struct watch_form watch_json = {
	.name = "json",
	.event = watch_json_event,
	.missed = watch_json_missed,
	.started = watch_json_started,
	.ended = watch_json_ended,
};
