/* SPDX-License-Identifier: Apache-2.0 */

/* ttmem doctor: why do I see nothing, or KB instead of MB? */

#include "cli/doctor/doctor.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "answers/document.h"
#include "base/bits.h"
#include "base/cleanup.h"
#include "base/emit.h"
#include "base/text.h"
#include "cli/common/command.h"
#include "cli/common/must.h"
#include "cli/common/options.h"
#include "cli/common/output.h"
#include "cli/common/session.h"
#include "model/filter.h"
#include "model/merge.h"
#include "model/query.h"
#include "model/snapshot.h"
#include "model/types.h"

#define DOCTOR_FINDINGS_MAX 10000u /* more findings help nobody */
#define DOCTOR_WHAT_MAX 1024u
#define DOCTOR_INDENT 7u /* of the text after "why:" */

/* Exit codes, as documented: in other commands 2 means wrong usage. */
enum {
	DOCTOR_EXIT_WELL = 0,
	DOCTOR_EXIT_ERROR = 1,
	DOCTOR_EXIT_WARNING = 2,
};

void doctor_tell(struct doctor *doctor, enum doctor_kind_id kind, uint32_t pid, uint32_t user_id,
		 const char *format, ...)
{
	struct doctor_finding *finding;
	va_list arguments;
	char *what;

	if (doctor->count >= DOCTOR_FINDINGS_MAX) {
		doctor->lost = true;
		return;
	}
	must_grow(doctor->findings, &doctor->capacity, doctor->count + 1);
	what = must_alloc(1, DOCTOR_WHAT_MAX);
	va_start(arguments, format);
	vsnprintf(what, DOCTOR_WHAT_MAX, format, arguments);
	va_end(arguments);
	finding = &doctor->findings[doctor->count++];
	*finding =
		(struct doctor_finding){.kind = kind, .pid = pid, .user_id = user_id, .what = what};
}

bool doctor_has_told(const struct doctor *doctor, enum doctor_kind_id kind, uint32_t pid)
{
	for (size_t i = 0; i < doctor->count; i++) {
		if (doctor->findings[i].kind == kind && doctor->findings[i].pid == pid)
			return true;
	}
	return false;
}

void doctor_advise(struct doctor *doctor, const char *fix)
{
	if (doctor->count > 0 && !doctor->lost)
		doctor->findings[doctor->count - 1].fix = fix;
}

static void doctor_deinit(struct doctor *doctor)
{
	for (size_t i = 0; i < doctor->count; i++)
		free(doctor->findings[i].what);
	free(doctor->findings);
	free(doctor->launchers);
	snapshot_free(doctor->snapshot);
	session_free(doctor->session);
}

/* Worst first; findings of the same kind by process. */
static int doctor_compare(const void *left, const void *right)
{
	const struct doctor_finding *a = left, *b = right;
	int levels = (int)doctor_kinds[b->kind].level - (int)doctor_kinds[a->kind].level;

	if (levels)
		return levels;
	if (a->kind != b->kind)
		return bits_compare(a->kind, b->kind);
	return bits_compare(a->pid, b->pid);
}

static int doctor_examine_all(struct doctor *doctor)
{
	static const struct snapshot_request request = {0};
	int r = session_new(&doctor->session);

	if (r == 0)
		r = session_take(doctor->session, &request, &doctor->snapshot);
	if (r == 0)
		r = doctor_look_at_daemon(doctor);
	if (r == 0)
		r = doctor_look_at_processes(doctor);
	if (r < 0)
		return r;
	doctor_look_at_memory(doctor);
	doctor_look_at_machine(doctor);
	doctor_look_at_sources(doctor);
	if (doctor->count > 0)
		qsort(doctor->findings, doctor->count, sizeof(*doctor->findings), doctor_compare);
	return 0;
}

static size_t doctor_count(const struct doctor *doctor, enum doctor_level level)
{
	size_t count = 0;

	for (size_t i = 0; i < doctor->count; i++)
		count += doctor_kinds[doctor->findings[i].kind].level == level;
	return count;
}

static void doctor_add(struct doctor_totals *totals, const struct snapshot_process *process)
{
	for (size_t i = 0; i < process->part_count; i++) {
		const struct snapshot_part *part = &process->parts[i];

		/* "ttmem smi" counts what is from before a reset on no device either. */
		for (uint32_t type = 0; type < BOOK_TYPES && !part->before_reset; type++) {
			uint64_t used = part->memory[type].used;
			uint64_t buffers = part->memory[type].buffers;

			totals->memory[type].used = merge_add(totals->memory[type].used, used);
			totals->memory[type].buffers =
				merge_add(totals->memory[type].buffers, buffers);
			totals->bytes = merge_add(totals->bytes, used);
			totals->buffers = merge_add(totals->buffers, buffers);
		}
	}
}

/* Over all live processes or the selected one. */
static struct doctor_totals doctor_totals(const struct doctor *doctor)
{
	const struct snapshot *snapshot = doctor->snapshot;
	struct doctor_totals totals = {.bytes = 0};

	for (size_t i = 0; i < snapshot->process_count; i++) {
		const struct snapshot_process *process = &snapshot->processes[i];

		if (process->alive && (!doctor->only_pid || doctor->only_pid == process->id.pid))
			doctor_add(&totals, process);
	}
	return totals;
}

/* Not every source knows the number of buffers. */
static void doctor_print_amount(const char *what, uint64_t bytes, uint64_t buffers)
{
	char size[TEXT_NUMBER_SIZE];

	printf("  %-13s %10s", what, text_size(bytes, size));
	if (buffers)
		printf(" in %" PRIu64 " buffer%s", buffers, buffers == 1 ? "" : "s");
	putchar('\n');
}

static void doctor_print_totals(const struct doctor *doctor)
{
	const struct doctor_totals totals = doctor_totals(doctor);

	for (uint32_t type = 0; type < BOOK_TYPES; type++) {
		if (totals.memory[type].used || totals.memory[type].buffers)
			doctor_print_amount(types_name(type), totals.memory[type].used,
					    totals.memory[type].buffers);
	}
	doctor_print_amount("all together", totals.bytes, totals.buffers);
}

static void doctor_print_finding(const struct doctor_finding *finding)
{
	static const char *const colours[] = {"\033[36m", "\033[33m", "\033[31m"};
	const struct doctor_kind *kind = &doctor_kinds[finding->kind];
	bool coloured = output_has_colours();
	char what[TEXT_ESCAPE_SIZE(DOCTOR_WHAT_MAX)];

	printf("\n%s%s%s %s", coloured ? colours[kind->level] : "", doctor_level_name(kind->level),
	       coloured ? "\033[0m" : "", kind->id);
	if (finding->pid)
		printf(", pid %" PRIu32, finding->pid);
	text_escape(finding->what, what, sizeof(what));
	printf("\n  ");
	output_put_wrapped(what, 2);
	printf("\n  why: ");
	output_put_wrapped(kind->why, DOCTOR_INDENT);
	printf("\n  fix: ");
	output_put_wrapped(doctor_advice(finding), DOCTOR_INDENT);
	putchar('\n');
}

static void doctor_print(const struct doctor *doctor)
{
	size_t errors = doctor_count(doctor, DOCTOR_ERROR);
	size_t warnings = doctor_count(doctor, DOCTOR_WARNING);

	printf("%" PRIu32 " process%s checked, %" PRIu32 " of them tracked; ", doctor->looked_at,
	       doctor->looked_at == 1 ? "" : "es", doctor->tracked);
	if (doctor->daemon.answers)
		printf("ttmemd %s, pid %" PRIu32 "\n", doctor->daemon.version, doctor->daemon.pid);
	else
		printf("ttmemd does not answer\n");
	doctor_print_totals(doctor);
	for (size_t i = 0; i < doctor->count; i++)
		doctor_print_finding(&doctor->findings[i]);
	if (errors + warnings == 0)
		printf("\nNothing is wrong.\n");
	else
		printf("\n%zu error%s, %zu warning%s.\n", errors, errors == 1 ? "" : "s", warnings,
		       warnings == 1 ? "" : "s");
}

/* A finding for whoever reads the document. */
struct doctor_told {
	const struct doctor_kind *kind;
	uint32_t pid;
	const char *what, *fix;
};

static const void *doctor_told_each(const void *document, size_t *at, struct fields_room *room)
{
	const struct doctor_row *row = document;
	const struct doctor_finding *finding = &row->doctor->findings[*at];
	struct doctor_told *told = FIELDS_IN(room, struct doctor_told);
	bool is_hidden;

	if (*at >= row->doctor->count)
		return NULL;
	is_hidden = row->only_user && finding->pid && finding->user_id != *row->only_user;
	*told = (struct doctor_told){
		.kind = &doctor_kinds[finding->kind],
		.pid = is_hidden ? 0 : finding->pid,
		.what = is_hidden ? "(of another user)" : finding->what,
		.fix = doctor_advice(finding),
	};
	(*at)++;
	return told;
}

#define ROW struct doctor_memory

static const struct field doctor_memory_fields[] = {
	FIELD("used", BYTES, used),
	FIELD("buffers", NUMBER, buffers),
	FIELD_END,
};

#undef ROW
#define ROW struct doctor_totals

static const struct field doctor_totals_fields[] = {
	FIELD_BY_TYPE("memory", memory, doctor_memory_fields),
	FIELD("bytes", BYTES, bytes),
	FIELD("buffers", NUMBER, buffers),
	FIELD_END,
};

#undef ROW
#define ROW struct doctor_told

static const struct field doctor_told_fields[] = {
	FIELD_VIA(kind, struct doctor_kind, "id", TEXT, id,
		  .says = "never changes its meaning; ttmem doctor --kinds lists all"),
	FIELD_VIA(kind, struct doctor_kind, "level", NAME, level, .names = doctor_level_name),
	FIELD_OR_NULL("pid", SHORT, pid, .least = 1),
	FIELD("what", TEXT, what, .says = "what was seen"),
	FIELD_VIA(kind, struct doctor_kind, "why", TEXT, why, .says = "why it matters"),
	FIELD("fix", TEXT, fix, .says = "what to do"),
	FIELD_END,
};

#undef ROW
#define ROW struct doctor_row
#define DOCTOR(...) FIELD_VIA(doctor, struct doctor, __VA_ARGS__)

const struct field doctor_members[] = {
	FIELD("healthy", NOT, is_ill, .says = "neither errors nor warnings"),
	DOCTOR("looked_at", SHORT, looked_at, .says = "processes"),
	DOCTOR("tracked", SHORT, tracked, .says = "of them, those with a book"),
	DOCTOR("daemon", BOOL, daemon.answers, .says = "whether ttmemd answers"),
	FIELD_STRUCT("totals", totals, doctor_totals_fields),
	FIELD_MADE("findings", doctor_told_each, doctor_told_fields, .says = "the worst first"),
	FIELD_END,
};

const struct document doctor_document = {
	.schema = "ttmem.doctor/1",
	.title = "ttmem doctor --json: what is wrong, why it matters, and what to do",
	.members = doctor_members,
	.has = DOCUMENT_LIST,
};

struct doctor_row doctor_row_of(const struct doctor *doctor, const uint32_t *only_user)
{
	return (struct doctor_row){
		.doctor = doctor,
		.only_user = only_user,
		.is_ill =
			doctor_count(doctor, DOCTOR_ERROR) || doctor_count(doctor, DOCTOR_WARNING),
		.totals = doctor_totals(doctor),
	};
}

static void doctor_json(const struct doctor *doctor)
{
	const struct doctor_row row = doctor_row_of(doctor, NULL);
	struct emit json = EMIT_INIT(stdout);

	document_begin(&json, &doctor_document, doctor->snapshot);
	fields_put(&json, doctor_members, &row);
	document_list_end(&json, !doctor->lost);
	document_close(&json, doctor->snapshot);
}

/* Lists every possible finding, for the manual and for users who want to know what is checked. */
static int doctor_list_kinds(void)
{
	for (size_t i = 0; i < DOCTOR_KINDS; i++)
		printf("%-20s %-8s %s\n", doctor_kinds[i].id,
		       doctor_level_name(doctor_kinds[i].level), doctor_kinds[i].why);
	return output_finish();
}

static int doctor_exit(const struct doctor *doctor, int written)
{
	if (written != COMMAND_OK || doctor_count(doctor, DOCTOR_ERROR))
		return DOCTOR_EXIT_ERROR;
	return doctor_count(doctor, DOCTOR_WARNING) ? DOCTOR_EXIT_WARNING : DOCTOR_EXIT_WELL;
}

static int doctor_tell_missing(uint32_t pid)
{
	fprintf(stderr, "ttmem doctor: there is no process %" PRIu32 "\n", pid);
	return DOCTOR_EXIT_ERROR;
}

static int doctor_run(int argc, char **argv)
{
	CLEANUP(doctor_deinit) struct doctor doctor = {0};
	struct query query = {0};
	const char *bundle = NULL;
	bool json = false, kinds = false;
	const struct options_item items[] = {
		{0, "pid", "PID", "look at this process"},
		{0, "json", NULL, "as JSON", &json, NULL},
		{0, "bundle", "FILE", "also write a file for a bug report", &bundle, options_text},
		{0, "kinds", NULL, "only list what can be found", &kinds, NULL},
	};
	const struct options options = {
		.command = "doctor",
		.shows_sizes = true,
		.summary = "Why do I see nothing, or KB instead of MB?",
		.items = items,
		.count = ARRAY_SIZE(items),
		.query = &query,
		.honours = QUERY_PID,
	};
	int r = options_parse_only(&options, argc, argv);

	/* 2 means a warning here. */
	if (r != 0)
		return r == OPTIONS_HELP ? DOCTOR_EXIT_WELL : DOCTOR_EXIT_ERROR;
	output_start();
	if (kinds)
		return doctor_list_kinds();
	doctor.only_pid = query.filter.pid;
	r = doctor_examine_all(&doctor);
	if (r == -ESRCH && doctor.only_pid)
		return doctor_tell_missing(doctor.only_pid);
	if (r < 0)
		return output_fail("doctor", "cannot look around", r);
	if (bundle) {
		r = doctor_bundle(&doctor, bundle);
		if (r < 0)
			return output_fail("doctor", bundle, r);
	}
	if (json)
		doctor_json(&doctor);
	else
		doctor_print(&doctor);
	return doctor_exit(&doctor, output_finish());
}

const struct command doctor_command = {
	.name = "doctor",
	.summary = "why do I see nothing, or KB instead of MB?",
	.run = doctor_run,
};
