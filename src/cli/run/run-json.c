/* SPDX-License-Identifier: Apache-2.0 */

/* ttmem.run/1: the report for scripts, and the baseline of later runs. */

#include "cli/run/run-report.h"

#include <assert.h>
#include <string.h>

#include "answers/buffers.h"
#include "answers/call-stack.h"
#include "answers/document.h"
#include "answers/ended.h"
#include "answers/incidents.h"
#include "answers/peak.h"
#include "answers/sites.h"
#include "base/emit.h"
#include "cli/budget/budget-output.h"
#include "cli/common/run-report.h"
#include "cli/run/run-family.h"
#include "model/merge.h"
#include "model/types.h"

struct run_held {
	uint64_t bytes, buffers;
};

struct run_row {
	const struct report *report;
	const struct family *family;
	const struct snapshot *ended;
	const struct budget_result *limits; /* NULL = none */
	const struct ended_exit *exit;
	const struct run_held *held; /* NULL = not asked for */
	bool leaked;
	const char *const *command;
	size_t word_count;
	char *key; /* room for one of a leak, REPORT_KEY */
};

struct run_peak {
	const struct report *report;
	uint32_t device, type;
	const struct family_peak *peak;
	bool is_partial;
};

static const void *run_part_each(const void *row, size_t *at, struct fields_room *room)
{
	const struct run_peak *peak = row;
	const struct budget_summary *summary = &peak->report->limits->summary;
	struct run_report_part *made = FIELDS_IN(room, struct run_report_part);
	size_t skipped = (*at)++;

	for (size_t i = 0; i < summary->count; i++) {
		const struct budget_moment *moment = &summary->moments[i];

		if (!moment->is_peak || moment->device != peak->device ||
		    moment->type != peak->type)
			continue;
		if (skipped < moment->part_count) {
			*made = budget_part_row(&moment->parts[skipped]);
			return made;
		}
		skipped -= moment->part_count;
	}
	return NULL;
}

/* Without memory for the groups it is left out. */
static void run_put_at_peak(struct emit *json, const char *key, const void *row)
{
	const struct run_peak *peak = row;
	const struct snapshot *top;
	const struct snapshot_peak *found =
		run_peaks_find(&peak->report->family->peaks, peak->device, peak->type, &top);

	if (!found || peak_put_row(json, key, top, found, GROUP_SITE) < 0)
		emit_null(json, key);
}

static const struct field run_at_peak[] = {
	{.key = "at_peak",
	 .kind = FIELD_POINTER,
	 .fields = peak_fields,
	 .says = "the process that held the most, and what was live in it then; null: not known"},
	FIELD_END,
};

#define ROW struct run_peak

static const struct field run_peak_fields[] = {
	FIELD("device", SHORT, device),
	FIELD("type", NAME, type, .names = types_name),
	FIELD_VIA(peak, struct family_peak, "bytes", BYTES, bytes),
	FIELD("exact", NOT, is_partial,
	      .says = "false: several processes, sampled, or tracking gave up"),
	FIELD_CODED("at_peak", run_put_at_peak, .fields = run_at_peak),
	FIELD_MADE("parts", run_part_each, run_report_part_fields,
		   .says = "the same by stack and phase, as limits are compared with it; largest "
			   "first"),
	FIELD_END,
};

static const void *run_peak_each(const void *document, size_t *at, struct fields_room *room)
{
	const struct run_row *row = document;
	struct run_peak *made = FIELDS_IN(room, struct run_peak);

	while (*at < (size_t)BOOK_DEVICES * BOOK_TYPES) {
		uint32_t device = (uint32_t)(*at / BOOK_TYPES), type = (uint32_t)(*at % BOOK_TYPES);
		const struct family_peak *peak = &row->family->peak[device][type];

		(*at)++;
		if (peak->processes == 0 || peak->bytes == 0)
			continue;
		*made = (struct run_peak){
			.report = row->report,
			.device = device,
			.type = type,
			.peak = peak,
			.is_partial = peak->sampled || peak->is_bound,
		};
		return made;
	}
	return NULL;
}

/* Some of a leak's buffers. */
struct run_stack {
	const struct call_site *group;
	struct call_stack stack;
	struct call_stack_room room;
};

struct run_leak {
	struct run_report_leak leak;
	const struct report_site *site;
	struct site chosen;
	struct call_stack_site frame;
};

static const void *run_stack_each(const void *row, size_t *at, struct fields_room *room)
{
	const struct group_list *stacks = &((const struct run_leak *)row)->site->stacks;
	struct run_stack *made = FIELDS_IN(room, struct run_stack);

	while (*at < stacks->count) {
		made->group = &stacks->groups[(*at)++];
		if (!made->group->stack)
			continue;
		made->stack = call_stack_of(made->group->stack, &made->room);
		return made;
	}
	return NULL;
}

#undef ROW
#define ROW struct run_stack

static const struct field run_stack_fields[] = {
	FIELD_VIA(group, struct call_site, "bytes", BYTES, bytes),
	FIELD_VIA(group, struct call_site, "buffers", NUMBER, buffers, .least = 1),
	FIELD_MORE_OF(stack, call_stack_fields),
	FIELD_END,
};

#undef ROW
#define ROW struct run_leak

static const struct field run_leak_fields[] = {
	FIELD_MORE_OF(leak, run_report_leak_fields),
	FIELD_MADE("stacks", run_stack_each, run_stack_fields,
		   .says = "the same buffers by call stack, largest first; those without one are "
			   "missing"),
	FIELD_END,
};

static const void *run_leak_each(const void *document, size_t *at, struct fields_room *room)
{
	const struct run_row *row = document;
	const struct report_site *site = &row->report->sites[*at];
	const struct call_site *group;
	struct run_leak *made = FIELDS_IN(room, struct run_leak);

	if ((*at)++ >= row->report->site_count)
		return NULL;
	group = report_group(site);
	made->site = site;
	(void)site_choose(site->stacks.groups[0].stack, &made->chosen); /* may have none */
	made->leak = (struct run_report_leak){
		.key = report_key(site, row->key, REPORT_KEY),
		.type = group->type,
		.site = call_stack_site_of(&made->chosen, &made->frame),
		.calls = site->calls,
		/* A baseline needs all. */
		.names = site_names_of(site->sum.names, site->sum.name_count, group->names),
		.phase = group->names == 1 ? group->phase : NULL,
		.bytes = group->bytes,
		.buffers = group->buffers,
		.is_known = site->known,
	};
	return made;
}

/* An ended process and what it left, as in ttmem.leaks/1. */
struct run_process {
	struct ended_row ended;
	struct ended_room room;
	const struct snapshot *snapshot;
	const struct snapshot_process *process;
	uint32_t number; /* of the process */
};

static const void *run_buffer_each(const void *row, size_t *at, struct fields_room *room)
{
	const struct run_process *process = row;
	const struct snapshot *snapshot = process->snapshot;
	struct buffers_row *made = FIELDS_IN(room, struct buffers_row);

	while (*at < snapshot->buffer_count) {
		const struct snapshot_buffer *buffer = &snapshot->buffers[(*at)++];

		if (buffer->process != process->number)
			continue;
		*made = buffers_row_of(snapshot, buffer);
		return made;
	}
	return NULL;
}

#undef ROW
#define ROW struct run_process
#define PROCESS(...) FIELD_VIA(process, struct snapshot_process, __VA_ARGS__)

static const struct field run_process_fields[] = {
	FIELD("pid", SHORT, ended.pid, .least = 1),
	FIELD("comm", TEXT, ended.comm),
	FIELD("user_id", SHORT, ended.user_id),
	FIELD("start_ns", TIME, ended.start_ns),
	FIELD("ended_ns", TIME, ended.ended_ns),
	FIELD("how", TEXT, ended.how, .says = "closed or died"),
	FIELD("exec", BOOL, ended.execed),
	FIELD_POINTED("exit", ended.exit, ended_exit_fields),
	PROCESS("exact", BOOL, exact),
	PROCESS("gave_up", TEXT, gave_up, .absent = FIELD_NULL),
	FIELD_MADE("buffers", run_buffer_each, buffers_fields),
	FIELD("bytes", BYTES, ended.bytes),
	FIELD_END,
};

/* A process that called exec has one row and an end per program: the last one counts. */
static bool run_is_last(const struct family *family, size_t i)
{
	for (size_t k = i + 1; k < family->end_count; k++) {
		if (family->ends[k].process == family->ends[i].process)
			return false;
	}
	return true;
}

static const void *run_process_each(const void *document, size_t *at, struct fields_room *room)
{
	const struct run_row *row = document;
	const struct snapshot *snapshot = row->ended;
	struct run_process *made = FIELDS_IN(room, struct run_process);

	while (*at < row->family->end_count && !run_is_last(row->family, *at))
		(*at)++;
	if (*at >= row->family->end_count)
		return NULL;
	made->number = row->family->ends[*at].process;
	made->snapshot = snapshot;
	made->process = &snapshot->processes[made->number];
	made->ended = ended_row_of(made->process, &row->family->ends[*at].ending, &made->room);
	for (size_t i = 0; i < snapshot->buffer_count; i++) {
		if (snapshot->buffers[i].process == made->number)
			made->ended.bytes += snapshot->buffers[i].size;
	}
	(*at)++;
	return made;
}

#undef ROW
#define ROW struct run_held

static const struct field run_held_fields[] = {
	FIELD("bytes", BYTES, bytes),
	FIELD("buffers", NUMBER, buffers),
	FIELD_END,
};

#undef ROW
#define ROW struct run_row
#define REPORT(...) FIELD_VIA(report, struct report, __VA_ARGS__)
#define FAMILY(...) FIELD_VIA(family, struct family, __VA_ARGS__)

static const struct field run_members[] = {
	FIELD_ARRAY_AT("command", TEXTS, command, word_count),
	FIELD_POINTED("exit", exit, ended_exit_fields),
	REPORT("duration_ns", SPAN, duration_ns),
	REPORT("tracked", BOOL, is_tracked,
	       .says = "a process of the command had a book; false: nothing was checked"),
	FAMILY("gave_up", TEXT, gave_up, .absent = FIELD_NULL,
	       .says = "why the tracking of one of them is incomplete: what was found is a lower "
		       "bound"),
	FIELD("leaked", BOOL, leaked, .says = "something was left that is not in the baseline"),
	REPORT("leaked_bytes", BYTES, leaked_bytes),
	REPORT("leaked_buffers", NUMBER, leaked_buffers),
	REPORT("ignored_buffers", NUMBER, ignored_buffers),
	FIELD_POINTED("held_at_close", held, run_held_fields,
		      .says = "with --strict-close: what was live when its device was closed; "
			      "incidents of this kind say what"),
	FAMILY("without_book", SHORT, without_book,
	       .says = "descendants that were seen and handed over no book, shells and tools among "
		       "them"),
	FAMILY("untracked", SHORT, untracked,
	       .says = "of these, seen with a device open or with tt-metal mapped"),
	FAMILY("still_running", SHORT, still_running),
	FAMILY("refused", SHORT, refused),
	FIELD_MADE("peaks", run_peak_each, run_peak_fields),
	FIELD_MORE_AT(limits, budget_result_fields, .absent = FIELD_NOTHING),
	FIELD_MADE("leaks", run_leak_each, run_leak_fields),
	FIELD_MADE("processes", run_process_each, run_process_fields),
	FIELD_MORE_AT(ended, incident_list_fields),
	FIELD_END,
};

const struct document run_document = {
	.schema = "ttmem.run/1",
	.title = "ttmem run --json",
	.members = run_members,
	.has = DOCUMENT_LIST,
};

void report_json(const struct report *report, FILE *out)
{
	const struct family *family = report->family;
	const struct run_held held = {report->held_bytes, report->held_buffers};
	struct ended_room room;
	char key[REPORT_KEY];
	struct run_row row = {
		.report = report,
		.family = family,
		.ended = family->ended,
		.limits = report->limits->budget.count > 0 ? report->limits : NULL,
		.exit = ended_exit_of(&family->command, &room),
		.held = family->strict_close ? &held : NULL,
		.leaked = report->new_buffers > 0,
		.command = (const char *const *)report->argv,
		.key = key,
	};
	struct emit json = EMIT_INIT(out);

	while (row.command[row.word_count])
		row.word_count++;
	document_begin(&json, &run_document, family->ended);
	fields_put(&json, run_members, &row);
	document_list_end(&json, family->ended->exact && !family->gave_up);
	document_close(&json, family->ended);
}
