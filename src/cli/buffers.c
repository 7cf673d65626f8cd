/* SPDX-License-Identifier: Apache-2.0 */

/* ttmem buffers: every live buffer, or totals by name, phase, call site or thread. */

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "answers/document.h"
#include "base/bits.h"
#include "base/cleanup.h"
#include "base/emit.h"
#include "base/pattern.h"
#include "base/table.h"
#include "base/text.h"
#include "cli/common/asked-for.h"
#include "cli/common/command.h"
#include "cli/common/options.h"
#include "cli/common/output.h"
#include "cli/common/session.h"
#include "model/amount.h"
#include "model/sites/group.h"
#include "model/sites/site-rows.h"
#include "model/snapshot.h"
#include "model/types.h"

#define BUFFERS_KEY 8192
#define BUFFERS_INDENT "              " /* below the type */

struct buffers {
	struct snapshot_request request;
	enum snapshot_order order;
	const char *by; /* NULL = not grouped */
	enum group_kind kind;
	bool stacks;
	bool json;
	bool csv;
	const char *name; /* a pattern; NULL = any */
	uint32_t limit;   /* rows; 0 = all */
	struct options_from from;
};

static uint64_t buffers_age(const struct snapshot *snapshot, uint64_t born_ns)
{
	return snapshot->time_ns > born_ns ? snapshot->time_ns - born_ns : 0;
}

/* Leaves out what is not called as wanted. */
static void buffers_pick(const struct buffers *buffers, struct snapshot *snapshot)
{
	size_t kept = 0;

	for (size_t i = 0; buffers->name && i < snapshot->buffer_count; i++) {
		const char *name = snapshot->buffers[i].name;

		if (name &&
		    pattern_matches(buffers->name, strlen(buffers->name), name, strlen(name)))
			snapshot->buffers[kept++] = snapshot->buffers[i];
	}
	if (buffers->name)
		snapshot->buffer_count = kept;
}

/* How many of @count rows are shown; a note says how many are not. */
static size_t buffers_cut(const struct buffers *buffers, struct snapshot *snapshot, size_t count)
{
	size_t left;

	if (!buffers->limit || count <= buffers->limit)
		return count;
	left = count - buffers->limit;
	snapshot_note(snapshot, "--limit leaves out %zu row%s", left, left == 1 ? "" : "s");
	return buffers->limit;
}

static void buffers_print(const struct snapshot *snapshot, bool stacks)
{
	static const struct table_column columns[] = {
		{"SIZE", 10, true, false},
		{"TAKES", 10, true, false, .least = 150},
		{"TYPE", 13, false, false},
		{"DEV", 4, true, false},
		{"PID", 8, true, false},
		{"COMMAND", 15, false, true, .least = 131},
		{"ADDRESS", 14, false, false},
		{"REFS", 4, true, false, .least = 137},
		{"AGE", 7, true, false},
		{"NAME", 12, false, true, .most = TABLE_ANY},
		{"PHASE", 12, false, true, .least = 94, .most = TABLE_ANY},
	};
	char number[TEXT_NUMBER_SIZE], takes[AMOUNT_TAKES_SIZE];
	struct table table;
	uint64_t occupied;

	table_begin_within(&table, stdout, columns, ARRAY_SIZE(columns), output_width());
	for (size_t i = 0; i < snapshot->buffer_count && !output_is_broken(); i++) {
		const struct snapshot_buffer *buffer = &snapshot->buffers[i];
		const struct snapshot_process *process = &snapshot->processes[buffer->process];

		table_text(&table, text_size(buffer->size, number));
		table_text(&table, snapshot_buffer_occupied(buffer, &occupied)
					   ? text_size(occupied, number)
					   : "-");
		table_text(&table, types_name(buffer->type));
		table_format(&table, "%" PRIu32, buffer->device);
		table_format(&table, "%" PRIu32, process->pid);
		table_format(&table, "%s%s", process->alive ? "" : "(ended) ", process->comm);
		table_format(&table, "0x%" PRIx64, buffer->address);
		table_format(&table, "%" PRIu32, buffer->refs);
		table_text(&table, text_duration(buffers_age(snapshot, buffer->born_ns), number));
		table_text(&table, buffer->name ? buffer->name : "-");
		table_text(&table, buffer->phase ? buffer->phase : "-");
		if (!stacks)
			continue;
		if (*amount_takes(buffer, takes))
			printf("%s%s\n", BUFFERS_INDENT, takes);
		session_print_stack(buffer->stack, BUFFERS_INDENT);
	}
	session_print_notes(snapshot);
}

static void buffers_csv(const struct snapshot *snapshot)
{
	puts("pid,comm,device,device_uid,type,address,size,refs,born_ns,age_ns,name,phase,thread,"
	     "flags,space,occupied");
	for (size_t i = 0; i < snapshot->buffer_count && !output_is_broken(); i++) {
		const struct snapshot_buffer *buffer = &snapshot->buffers[i];
		const struct snapshot_process *process = &snapshot->processes[buffer->process];
		const struct snapshot_part *part =
			snapshot_find_part(snapshot, buffer->process, buffer->device);
		const char *separator = "";
		uint64_t occupied;

		printf("%" PRIu32 ",", process->pid);
		text_put_csv(stdout, process->comm);
		printf(",%" PRIu32 ",", buffer->device);
		if (part && part->facts.unique_id)
			printf("0x%" PRIx64, part->facts.unique_id);
		printf(",%s,0x%" PRIx64 ",%" PRIu64 ",%" PRIu32 ",%" PRIu64 ",%" PRIu64 ",",
		       types_name(buffer->type), buffer->address, buffer->size, buffer->refs,
		       buffer->born_ns, buffers_age(snapshot, buffer->born_ns));
		text_put_csv(stdout, buffer->name ? buffer->name : "");
		putchar(',');
		text_put_csv(stdout, buffer->phase ? buffer->phase : "");
		printf(",%" PRIu32 ",", buffer->thread);
		for (uint32_t bit = 0; types_flag_name(bit); bit++) {
			if (buffer->flags & 1u << bit) {
				printf("%s%s", separator, types_flag_name(bit));
				separator = " ";
			}
		}
		printf(",%" PRIu32 ",", buffer->space);
		if (snapshot_buffer_occupied(buffer, &occupied))
			printf("%" PRIu64, occupied);
		putchar('\n');
	}
}

/* A call site as people read it: what stands for its stack, then all of it. */
static const char *buffers_site(const struct call_site *site, const char *place, char *text,
				size_t size)
{
	char label[BUFFERS_KEY];

	if (!site->stack)
		return call_site_label(site, text, size);
	snprintf(text, size, "%s at %s", call_site_label(site, label, sizeof(label)), place);
	return text;
}

static void buffers_print_groups(const struct buffers *buffers, const struct snapshot *snapshot,
				 const struct group_list *list)
{
	static const struct table_column columns[] = {
		{"BYTES", 10, true, false},
		{"BUFFERS", 9, true, false},
		{"OLDEST", 7, true, false},
		{"KEY", 0, false, false},
	};
	CLEANUP(site_rows_deinit) struct site_rows rows = SITE_ROWS_NULL;
	bool sites = buffers->kind == GROUP_SITE;
	char number[TEXT_NUMBER_SIZE], text[BUFFERS_KEY];
	struct table table;

	if (buffers->csv)
		puts("key,bytes,buffers,oldest_ns");
	else
		table_begin(&table, stdout, columns, ARRAY_SIZE(columns));
	for (size_t i = 0; sites && !buffers->csv && i < list->count; i++)
		site_rows_add_stack(&rows, list->groups[i].stack);
	site_rows_finish(&rows);
	for (size_t i = 0; i < list->count && !output_is_broken(); i++) {
		const struct call_site *group = &list->groups[i];
		const char *key = group_key(snapshot, buffers->kind, group, text, sizeof(text));

		if (buffers->csv) {
			text_put_csv(stdout, key ? key : "");
			printf(",%" PRIu64 ",%" PRIu64 ",%" PRIu64 "\n", group->bytes,
			       group->buffers, group->oldest_ns);
			continue;
		}
		table_text(&table, text_size(group->bytes, number));
		table_format(&table, "%" PRIu64, group->buffers);
		table_text(&table, text_duration(buffers_age(snapshot, group->oldest_ns), number));
		if (sites)
			key = buffers_site(group, site_rows_text(&rows, i), text, sizeof(text));
		table_text(&table, key ? key : "-");
		if (sites && buffers->stacks)
			session_print_stack(group->stack, BUFFERS_INDENT);
		if (sites)
			session_print_names(list->names + group->first_name, group->names,
					    group->names, BUFFERS_INDENT);
	}
	session_find_tip(&rows);
	session_print_tip(stdout);
}

static int buffers_write_groups(const struct buffers *buffers, struct snapshot *snapshot)
{
	CLEANUP(group_list_deinit) struct group_list list = GROUP_LIST_NULL;
	struct emit json = EMIT_INIT(stdout);
	int r = group_buffers(snapshot, buffers->kind, false, &list);

	if (r < 0)
		return r;
	list.count = buffers_cut(buffers, snapshot, list.count);
	if (buffers->json) {
		document_groups(&json, snapshot, buffers->kind, &list);
		return 0;
	}
	buffers_print_groups(buffers, snapshot, &list);
	if (!buffers->csv)
		session_print_notes(snapshot);
	return 0;
}

static int buffers_write(const struct buffers *buffers, struct snapshot *snapshot)
{
	struct emit json = EMIT_INIT(stdout);

	if (buffers->by)
		return buffers_write_groups(buffers, snapshot);
	snapshot_sort_buffers(snapshot, buffers->order);
	snapshot->buffer_count = buffers_cut(buffers, snapshot, snapshot->buffer_count);
	if (buffers->json)
		document_buffers(&json, snapshot);
	else if (buffers->csv)
		buffers_csv(snapshot);
	else
		buffers_print(snapshot, buffers->stacks);
	return 0;
}

static int buffers_parse_by(void *target, const char *text)
{
	struct buffers *buffers = target;

	buffers->by = text;
	return group_parse(text, &buffers->kind);
}

static int buffers_parse_sort(void *target, const char *text)
{
	enum snapshot_order *order = target;

	if (strcmp(text, "size") == 0)
		*order = SNAPSHOT_BY_SIZE;
	else if (strcmp(text, "age") == 0)
		*order = SNAPSHOT_BY_AGE;
	else
		return -EINVAL;
	return 0;
}

static int buffers_parse(struct buffers *buffers, int argc, char **argv)
{
	const struct options_item items[] = {
		{0, "pid", "PID", "only of this process", &buffers->request.filter, options_pid},
		{'d', "device", "DEV|UID", "only on this device; may be given again",
		 &buffers->request.filter, options_device},
		{0, "type", "TYPE", TYPES_ALL, &buffers->request.filter, options_type},
		{0, "name", "PATTERN",
		 "only with this name; * stands for any text, ? for one character", &buffers->name,
		 options_text},
		{0, "sort", "size|age", "largest first (the default) or oldest first",
		 &buffers->order, buffers_parse_sort},
		{0, "limit", "N", "only the first N rows", &buffers->limit, options_u32},
		{0, "by", "name|phase|site|thread", "add up all buffers that have it in common",
		 buffers, buffers_parse_by},
		{0, "stacks", NULL, "with call stacks", &buffers->stacks, NULL},
		{0, "ended", NULL, "also of ended processes whose memory is still known",
		 &buffers->request.ended, NULL},
		{0, "strict-close", NULL,
		 "also those that were live when their device was closed; with --json",
		 &buffers->request.closed, NULL},
		OPTIONS_FROM(&buffers->from),
		{0, "json", NULL, "as JSON", &buffers->json, NULL},
		{0, "csv", NULL, "as CSV", &buffers->csv, NULL},
	};
	const struct options options = {
		.command = "buffers",
		.shows_sizes = true,
		.summary = "Every live buffer, or buffers added up.",
		.items = items,
		.count = ARRAY_SIZE(items),
	};
	int r = options_parse_only(&options, argc, argv);

	if (r == 0 && buffers->json && buffers->csv)
		r = options_mistake("buffers", "--json or --csv, not both");
	/* A row does not show that it is of the past, and a recording has no log to read it from. */
	if (r == 0 && buffers->request.closed &&
	    (!buffers->json || buffers->by || buffers->from.file))
		r = options_mistake("buffers",
				    "--strict-close needs --json, without --by and --from");
	return r;
}

static int buffers_run(int argc, char **argv)
{
	CLEANUP(session_cleanup_snapshot) struct snapshot *snapshot = NULL;
	CLEANUP(session_cleanup) struct session *session = NULL;
	struct buffers buffers = {.request.buffers = true};
	struct asked_for asked = {
		.command = "buffers", .filter = &buffers.request.filter, .rows = true};
	int r = buffers_parse(&buffers, argc, argv);

	if (r != 0)
		return options_exit(r);
	output_start();
	buffers.from.is_state = true;
	r = session_start(&session, "buffers", &buffers.from, &buffers.request.filter);
	if (r != 0)
		return r;
	/* Symbolizing takes time, so only what is shown gets names. */
	if (buffers.stacks || buffers.json || (buffers.by && buffers.kind == GROUP_SITE))
		buffers.request.namer = session_namer(session);
	r = session_take(session, &buffers.request, &snapshot);
	asked.is_json = buffers.json;
	if (r == 0) {
		asked_for_check(&asked, session, snapshot);
		asked_for_note_untracked(&asked, snapshot);
	}
	if (r == 0)
		buffers_pick(&buffers, snapshot);
	if (r == 0 && !asked.is_missing && snapshot->buffer_count == 0 && !buffers.json)
		asked_for_tell_none(&asked,
				    buffers.name ? "live buffer with that name" : "live buffer");
	if (r == 0 && !buffers.json && !buffers.csv) {
		output_page();
		session_print_moment(session);
	}
	if (r == 0)
		r = buffers_write(&buffers, snapshot);
	if (r < 0)
		return output_fail("buffers", "cannot look at processes", r);
	return asked_for_exit(&asked, output_finish());
}

const struct command buffers_command = {
	.name = "buffers",
	.summary = "every live buffer, or buffers added up",
	.run = buffers_run,
};
