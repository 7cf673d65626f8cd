/* SPDX-License-Identifier: Apache-2.0 */

/* The course of events as CSV: a line for each event, with what is in use after it. */

#include <inttypes.h>

#include "base/text.h"
#include "cli/export/format/export-form.h"
#include "model/sites/stack.h"
#include "model/types.h"

static void *csv_begin(struct export_target *target)
{
	fputs("time_ns,pid,process,device,number,event,type,address,size,refs,thread,space,name,"
	      "phase,"
	      "used,missed,stack\n",
	      target->out);
	return target;
}

static void csv_put_text(FILE *out, const char *text)
{
	if (text)
		text_put_csv(out, text);
	fputc(',', out);
}

/* What only calls have. */
static void csv_put_call(FILE *out, const struct export_event *event)
{
	if (event->kind != EXPORT_CALL) {
		fputs(",,,,,,", out);
		return;
	}
	fprintf(out, "%s,0x%" PRIx64 ",%" PRIu64 ",%" PRIu32 ",%" PRIu32 ",%" PRIu32 ",",
		types_name(event->type), event->address, event->size, event->refs, event->thread,
		event->space);
}

static const char *csv_word(const struct export_event *event)
{
	if (event->kind == EXPORT_CALL)
		return event->number ? types_op_name(event->op) : "live";
	return event->kind == EXPORT_GAP ? "missed" : "mark";
}

static void csv_event(void *state, const struct export_event *event)
{
	const struct export_target *target = state;
	const struct export_owner *owner = &target->owners[event->process];
	FILE *out = target->out;
	char line[STACK_LINE];

	fprintf(out, "%" PRIu64 ",%" PRIu32 ",", event->time_ns, owner->pid);
	csv_put_text(out, owner->comm);
	if (event->kind == EXPORT_MARK)
		fputc(',', out);
	else
		fprintf(out, "%" PRIu32 ",", event->device);
	fprintf(out, "%" PRIu64 ",%s,", event->number, csv_word(event));
	csv_put_call(out, event);
	csv_put_text(out, event->name);
	csv_put_text(out, event->phase);
	if (event->kind == EXPORT_CALL)
		fprintf(out, "%" PRIu64, event->used);
	fputc(',', out);
	if (event->kind == EXPORT_GAP)
		fprintf(out, "%" PRIu64, event->missed);
	fputc(',', out);
	if (event->stack)
		text_put_csv(out, stack_line(event->stack, line, sizeof(line)));
	fputc('\n', out);
}

static void csv_finish(void *state)
{
	(void)state;
}

const struct export_form export_csv = {
	.name = "csv",
	.is_course = true,
	.begin = csv_begin,
	.event = csv_event,
	.finish = csv_finish,
};
