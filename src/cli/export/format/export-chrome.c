/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Trace events for chrome://tracing and tools that read them: a counter for each process, device and type
 * of memory, phases as slices of threads, and marks, failed allocations and gaps as instants. Their times
 * are in microseconds since the start.
 */

#include <inttypes.h>
#include <stdlib.h>

#include "base/emit.h"
#include "book/format/layout.h"
#include "cli/common/must.h"
#include "cli/export/export-phases.h"
#include "cli/export/format/export-form.h"
#include "model/sites/stack.h"
#include "model/types.h"

#define NS_PER_US 1000u

struct chrome {
	struct export_target *target;
	struct export_phases phases;
	struct emit json;
};

static void chrome_put_owner(struct emit *json, const struct export_owner *owner)
{
	emit_open_object(json, NULL);
	emit_string(json, "ph", "M");
	emit_string(json, "name", "process_name");
	emit_u64(json, "pid", owner->pid);
	emit_open_object(json, "args");
	emit_string(json, "name", owner->comm);
	emit_close_object(json);
	emit_close_object(json);
}

static void *chrome_begin(struct export_target *target)
{
	struct chrome *chrome = must_alloc(1, sizeof(*chrome));

	chrome->target = target;
	chrome->json = EMIT_INIT(target->out);
	emit_open_object(&chrome->json, NULL);
	emit_string(&chrome->json, "displayTimeUnit", "ns");
	emit_open_array(&chrome->json, "traceEvents");
	for (size_t i = 0; i < target->owner_count; i++)
		chrome_put_owner(&chrome->json, &target->owners[i]);
	return chrome;
}

static void chrome_put_time(struct emit *json, const char *key, uint64_t ns)
{
	char time[32];

	snprintf(time, sizeof(time), "%" PRIu64 ".%03u", ns / NS_PER_US,
		 (unsigned int)(ns % NS_PER_US));
	emit_raw(json, key, time);
}

static void chrome_open(struct chrome *chrome, const struct export_event *event, const char *phase,
			const char *name)
{
	uint64_t start = chrome->target->start_ns;

	emit_open_object(&chrome->json, NULL);
	emit_string(&chrome->json, "ph", phase);
	emit_string(&chrome->json, "name", name);
	emit_u64(&chrome->json, "pid", chrome->target->owners[event->process].pid);
	emit_u64(&chrome->json, "tid", event->thread);
	chrome_put_time(&chrome->json, "ts", event->time_ns > start ? event->time_ns - start : 0);
}

static void chrome_put_phase(void *context, const struct export_phase *phase)
{
	const struct export_event begin = {
		.process = phase->process, .thread = phase->thread, .time_ns = phase->begin_ns};
	struct chrome *chrome = context;

	chrome_open(chrome, &begin, "X", phase->name);
	chrome_put_time(&chrome->json, "dur", phase->end_ns - phase->begin_ns);
	emit_close_object(&chrome->json);
}

static void chrome_put_counter(struct chrome *chrome, const struct export_event *event)
{
	char name[64];

	snprintf(name, sizeof(name), "%s of device %" PRIu32, types_name(event->type),
		 event->device);
	chrome_open(chrome, event, "C", name);
	emit_open_object(&chrome->json, "args");
	emit_u64(&chrome->json, "bytes", event->used);
	emit_close_object(&chrome->json);
	emit_close_object(&chrome->json);
}

/* @scope: of the process ("p") or of its thread ("t"). */
static void chrome_put_instant(struct chrome *chrome, const struct export_event *event,
			       const char *name, const char *scope)
{
	struct emit *json = &chrome->json;

	chrome_open(chrome, event, "i", name);
	emit_string(json, "s", scope);
	emit_open_object(json, "args");
	if (event->kind != EXPORT_MARK)
		emit_u64(json, "device", event->device);
	if (event->kind == EXPORT_GAP)
		emit_u64(json, "events", event->missed);
	if (event->kind == EXPORT_CALL) {
		char line[STACK_LINE];

		emit_string(json, "type", types_name(event->type));
		emit_u64(json, "size", event->size);
		emit_string(json, "stack",
			    event->stack ? stack_line(event->stack, line, sizeof(line)) : NULL);
	}
	emit_close_object(json);
	emit_close_object(json);
}

static void chrome_event(void *state, const struct export_event *event)
{
	struct chrome *chrome = state;

	if (event->kind == EXPORT_MARK)
		chrome_put_instant(chrome, event, event->name ? event->name : "mark", "p");
	else if (event->kind == EXPORT_GAP)
		chrome_put_instant(chrome, event, "events missed", "p");
	else if (event->op == BOOK_OP_FAILED)
		chrome_put_instant(chrome, event, "allocation failed", "t");
	else if (event->op == BOOK_OP_DOUBLE_FREE || event->op == BOOK_OP_UNKNOWN_FREE)
		chrome_put_instant(chrome, event, types_op_name(event->op), "t");
	else if (event->op == BOOK_OP_ALLOC || event->op == BOOK_OP_FREE)
		chrome_put_counter(chrome, event);
	export_phases_event(&chrome->phases, event, chrome_put_phase, chrome);
}

static void chrome_finish(void *state)
{
	struct chrome *chrome = state;

	export_phases_end(&chrome->phases, chrome_put_phase, chrome);

	emit_close_array(&chrome->json);
	emit_close_object(&chrome->json);
	emit_end(&chrome->json);
}

static void chrome_free(void *state)
{
	struct chrome *chrome = state;

	export_phases_deinit(&chrome->phases);
	free(chrome);
}

const struct export_form export_chrome = {
	.name = "chrome",
	.is_course = true,
	.begin = chrome_begin,
	.event = chrome_event,
	.finish = chrome_finish,
	.free = chrome_free,
};
