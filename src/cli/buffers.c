/* SPDX-License-Identifier: Apache-2.0 */

/* ttmem buffers: every live buffer, or totals by name, phase, call site or thread. */

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "answers/answers.h"
#include "answers/buffers.h"
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
#include "model/query.h"
#include "model/sites/group.h"
#include "model/sites/site-rows.h"
#include "model/snapshot.h"
#include "model/types.h"

#define BUFFERS_INDENT "              " /* below the type */

struct buffers {
	struct snapshot_request request;
	struct query query;
	bool stacks;
	bool json;
	bool csv;
	struct options_from from;
};

/* Leaves out what is not called as wanted. */
static void buffers_pick(const struct buffers *buffers, struct snapshot *snapshot)
{
	size_t kept = 0;

	for (size_t i = 0; buffers->query.name && i < snapshot->buffer_count; i++) {
		const char *name = snapshot->buffers[i].name;

		if (name && pattern_matches(buffers->query.name, strlen(buffers->query.name), name,
					    strlen(name)))
			snapshot->buffers[kept++] = snapshot->buffers[i];
	}
	if (buffers->query.name)
		snapshot->buffer_count = kept;
}

/* How many of @count rows are shown; a note says how many are not. */
static size_t buffers_cut(const struct buffers *buffers, struct snapshot *snapshot, size_t count)
{
	size_t left;

	if (!buffers->query.limit || count <= buffers->query.limit)
		return count;
	left = count - buffers->query.limit;
	snapshot_note(snapshot, "--limit leaves out %zu row%s", left, left == 1 ? "" : "s");
	return buffers->query.limit;
}

static void buffers_print(const struct snapshot *snapshot, bool stacks)
{
	char takes[AMOUNT_TAKES_SIZE];
	struct fields_view view;
	struct table table;

	fields_choose(&view, buffers_fields, BUFFERS_TABLE);
	table_begin(&table, stdout, view.columns, view.count, output_width());
	for (size_t i = 0; i < snapshot->buffer_count && !output_is_broken(); i++) {
		const struct snapshot_buffer *buffer = &snapshot->buffers[i];
		const struct buffers_row row = buffers_row_of(snapshot, buffer);

		fields_table_row(&table, &view, &row);
		if (!stacks)
			continue;
		if (*amount_takes(buffer, takes))
			fprintf(table_lines(&table), "%s%s\n", BUFFERS_INDENT, takes);
		session_print_stack(table_lines(&table), buffer->stack, BUFFERS_INDENT);
	}
	table_end(&table);
	session_print_notes(snapshot);
}

static void buffers_csv(const struct snapshot *snapshot)
{
	struct fields_view view;

	fields_choose(&view, buffers_fields, BUFFERS_CSV);
	puts(BUFFERS_CSV);
	for (size_t i = 0; i < snapshot->buffer_count && !output_is_broken(); i++) {
		const struct buffers_row row = buffers_row_of(snapshot, &snapshot->buffers[i]);

		fields_csv_row(stdout, &view, &row);
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

static void buffers_csv_groups(const struct buffers *buffers, const struct snapshot *snapshot,
			       const struct group_list *list)
{
	struct fields_view view;
	struct buffers_group_room room;
	const struct buffers_groups groups =
		buffers_groups_of(snapshot, buffers->query.by, list, &room);

	fields_choose(&view, buffers_group_fields, BUFFERS_GROUP_CSV);
	puts(BUFFERS_GROUP_CSV);
	for (size_t i = 0; i < list->count && !output_is_broken(); i++)
		fields_csv_row(stdout, &view, buffers_groups_at(&groups, i, &room));
}

static void buffers_print_groups(const struct buffers *buffers, const struct snapshot *snapshot,
				 const struct group_list *list)
{
	static const char *const titles[] = {
		[GROUP_NAME] = "NAME",
		[GROUP_PHASE] = "PHASE",
		[GROUP_SITE] = "CALL SITE",
		[GROUP_THREAD] = "THREAD",
	};
	CLEANUP(site_rows_deinit) struct site_rows rows = SITE_ROWS_NULL;
	bool sites = buffers->query.by == GROUP_SITE;
	struct buffers_group_room room;
	const struct buffers_groups groups =
		buffers_groups_of(snapshot, buffers->query.by, list, &room);
	char text[BUFFERS_KEY];
	struct fields_view view;
	struct table table;

	fields_choose(&view, buffers_group_fields, BUFFERS_GROUP_TABLE);
	view.columns[view.count - 1].title = titles[buffers->query.by];
	table_begin(&table, stdout, view.columns, view.count, output_width());
	for (size_t i = 0; sites && i < list->count; i++)
		site_rows_add_stack(&rows, list->groups[i].stack);
	site_rows_finish(&rows);
	for (size_t i = 0; i < list->count && !output_is_broken(); i++) {
		const struct call_site *site = &list->groups[i];
		struct buffers_group group = *buffers_groups_at(&groups, i, &room);

		if (sites)
			group.shown =
				buffers_site(site, site_rows_text(&rows, i), text, sizeof(text));
		fields_table_row(&table, &view, &group);
		if (sites && buffers->stacks)
			session_print_stack(table_lines(&table), site->stack, BUFFERS_INDENT);
		if (sites)
			session_print_names(table_lines(&table), list->names + site->first_name,
					    site->names, site->names, BUFFERS_INDENT);
	}
	table_end(&table);
	session_find_tip(&rows);
	session_print_tip(stdout);
}

static int buffers_write_groups(const struct buffers *buffers, struct snapshot *snapshot)
{
	CLEANUP(group_list_deinit) struct group_list list = GROUP_LIST_NULL;
	struct emit json = EMIT_INIT(stdout);
	int r = group_buffers(snapshot, buffers->query.by, false, &list);

	if (r < 0)
		return r;
	list.count = buffers_cut(buffers, snapshot, list.count);
	if (buffers->json) {
		buffers_put_groups(&json, snapshot, buffers->query.by, &list);
		return 0;
	}
	if (buffers->csv) {
		buffers_csv_groups(buffers, snapshot, &list);
		return 0;
	}
	buffers_print_groups(buffers, snapshot, &list);
	session_print_notes(snapshot);
	return 0;
}

static int buffers_write(const struct buffers *buffers, struct snapshot *snapshot)
{
	struct emit json = EMIT_INIT(stdout);

	if (buffers->query.given & QUERY_BY)
		return buffers_write_groups(buffers, snapshot);
	snapshot_sort_buffers(snapshot, buffers->query.order);
	snapshot->buffer_count = buffers_cut(buffers, snapshot, snapshot->buffer_count);
	if (buffers->json)
		buffers_put(&json, snapshot);
	else if (buffers->csv)
		buffers_csv(snapshot);
	else
		buffers_print(snapshot, buffers->stacks);
	return 0;
}

static int buffers_parse(struct buffers *buffers, int argc, char **argv)
{
	const struct options_item items[] = {
		{0, "pid", "PID", "only of this process"},
		{'d', "device", "DEV|UID", "only on this device; may be given again"},
		{0, "type", "TYPE", TYPES_ALL},
		{0, "name", "PATTERN",
		 "only with this name; * stands for any text, ? for one character"},
		{0, "sort", "size|age", "largest first (the default) or oldest first"},
		{0, "limit", "N", "only the first N rows", &buffers->query.limit, options_u32},
		{0, "by", "name|phase|site|thread", "add up all buffers that have it in common"},
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
		.query = &buffers->query,
		.answer = &answers[ANSWERS_BUFFERS],
	};
	int r = options_parse_only(&options, argc, argv);

	if (r == 0 && buffers->json && buffers->csv)
		r = options_mistake("buffers", "--json or --csv, not both");
	/* A row does not show that it is of the past, and a recording has no log to read it from. */
	if (r == 0 && buffers->request.closed &&
	    (!buffers->json || (buffers->query.given & QUERY_BY) || buffers->from.file))
		r = options_mistake("buffers",
				    "--strict-close needs --json, without --by and --from");
	return r;
}

static int buffers_run(int argc, char **argv)
{
	CLEANUP(snapshot_cleanup) struct snapshot *snapshot = NULL;
	CLEANUP(session_cleanup) struct session *session = NULL;
	struct buffers buffers = {.request.buffers = true};
	struct asked_for asked = {
		.command = "buffers", .filter = &buffers.request.filter, .rows = true};
	int r = buffers_parse(&buffers, argc, argv);

	if (r != 0)
		return options_exit(r);
	output_start();
	buffers.request.filter = buffers.query.filter;
	buffers.from.is_state = true;
	r = session_start(&session, "buffers", &buffers.from, &buffers.request.filter);
	if (r != 0)
		return r;
	/* Symbolizing takes time, so only what is shown gets names. */
	if (buffers.stacks || buffers.json ||
	    ((buffers.query.given & QUERY_BY) && buffers.query.by == GROUP_SITE))
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
		asked_for_tell_none(&asked, buffers.query.name ? "live buffer with that name"
							       : "live buffer");
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
