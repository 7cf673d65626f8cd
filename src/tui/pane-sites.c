/* SPDX-License-Identifier: Apache-2.0 */

/* View 4: call sites of living processes, largest first. */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/bits.h"
#include "base/hash.h"
#include "base/text.h"
#include "model/sites/group.h"
#include "model/sites/name-stem.h"
#include "model/snapshot.h"
#include "model/types.h"
#include "tui/pane.h"
#include "tui/stack-lines.h"

#define SITES_NAMES 8u /* shown below the stack */

enum sites_column {
	SITES_BYTES,
	SITES_BUFFERS,
	SITES_OLDEST,
	SITES_PID,
	SITES_COMM,
	SITES_TYPE,
	SITES_PLACE,
};

static const struct list_column sites_columns[] = {
	{.title = "BYTES", .width = 10, .right = true},
	{.title = "BUFFERS", .width = 8, .right = true},
	{.title = "OLDEST", .width = 7, .right = true},
	{.title = "PID", .width = 8, .right = true, .least = 100},
	{.title = "COMMAND", .width = 12},
	{.title = "TYPE", .width = 8, .wide = 13},
	{.title = "CALL SITE", .width = 20, .grows = true},
};

static const struct snapshot *sites_snapshot(const void *context)
{
	return model_details(context, POLLER_SITES)->snapshot;
}

static const struct call_site *sites_at(const void *context, size_t item)
{
	return &model_details(context, POLLER_SITES)->sites.groups[item];
}

/* Names and line of code. */
static void sites_place(const void *context, size_t item, char *text)
{
	const struct poller_details *details = model_details(context, POLLER_SITES);
	const char *frame = site_rows_text(&details->lines, item);
	char name[220];

	call_site_names(sites_at(context, item), name, sizeof(name));
	snprintf(text, LIST_CELL_SIZE, "%s%s%s", name, *name && *frame ? ", " : "", frame);
	if (!*text)
		snprintf(text, LIST_CELL_SIZE, "-");
}

static void sites_cell(const void *context, size_t item, size_t column, char *text,
		       enum grid_style *style)
{
	const struct snapshot *snapshot = sites_snapshot(context);
	const struct call_site *group = sites_at(context, item);
	const struct snapshot_process *process = &snapshot->processes[group->process];
	char number[TEXT_NUMBER_SIZE];

	(void)style; /* all are plain */
	switch (column) {
	case SITES_BYTES:
		snprintf(text, LIST_CELL_SIZE, "%s", text_size(group->bytes, number));
		break;
	case SITES_BUFFERS:
		snprintf(text, LIST_CELL_SIZE, "%" PRIu64, group->buffers);
		break;
	case SITES_OLDEST:
		snprintf(text, LIST_CELL_SIZE, "%s",
			 pane_ago(snapshot->time_ns, group->oldest_ns, number));
		break;
	case SITES_PID:
		snprintf(text, LIST_CELL_SIZE, "%" PRIu32, process->id.pid);
		break;
	case SITES_COMM:
		snprintf(text, LIST_CELL_SIZE, "%s", process->comm);
		break;
	case SITES_TYPE:
		snprintf(text, LIST_CELL_SIZE, "%s", types_name(group->type));
		break;
	default:
		sites_place(context, item, text);
		break;
	}
}

static int sites_compare(const void *context, size_t a, size_t b, size_t column)
{
	const struct snapshot *snapshot = sites_snapshot(context);
	const struct call_site *x = sites_at(context, a), *y = sites_at(context, b);
	char left[LIST_CELL_SIZE], right[LIST_CELL_SIZE];

	switch (column) {
	case SITES_BUFFERS:
		return pane_compare(x->buffers, y->buffers);
	case SITES_OLDEST:
		return pane_compare(y->oldest_ns, x->oldest_ns);
	case SITES_PID:
		return pane_compare(snapshot->processes[x->process].id.pid,
				    snapshot->processes[y->process].id.pid);
	case SITES_COMM:
		return pane_compare_texts(snapshot->processes[x->process].comm,
					  snapshot->processes[y->process].comm);
	case SITES_TYPE:
		return pane_compare(x->type, y->type);
	case SITES_PLACE:
		sites_place(context, a, left);
		sites_place(context, b, right);
		return pane_compare_texts(left, right);
	default:
		return pane_compare(x->bytes, y->bytes);
	}
}

static uint64_t sites_hash(const char *text)
{
	return text ? hash_bytes(text, strlen(text)) : 0;
}

/* By its text: a later snapshot has other pointers. */
static uint64_t sites_key(const void *context, size_t item)
{
	const struct call_site *group = sites_at(context, item);
	uint32_t pid = sites_snapshot(context)->processes[group->process].id.pid;
	char line[STACK_LINE];
	uint64_t hash = sites_hash(stack_line(group->stack, line, sizeof(line)));

	if (!group->stack)
		hash = name_stem_hash(group->name) ^ sites_hash(group->phase);
	return hash_u64(hash ^ ((uint64_t)pid << 8 | group->type)) | 1;
}

static bool sites_wants(const void *context, size_t item, const char *filter)
{
	const struct call_site *group = sites_at(context, item);
	const struct call_site *names = model_details(context, POLLER_SITES)->sites.names;
	char line[STACK_LINE];

	for (size_t i = 0; i < group->names; i++) {
		if (list_has(names[group->first_name + i].name, filter))
			return true;
	}
	return list_has(group->phase, filter) ||
	       list_has(stack_line(group->stack, line, sizeof(line)), filter) ||
	       list_has(types_name(group->type), filter) ||
	       list_has(sites_snapshot(context)->processes[group->process].comm, filter);
}

static size_t sites_line_count(const void *context, size_t item)
{
	const struct call_site *group = sites_at(context, item);

	return (group->stack ? stack_lines_count(group->stack) : 1) +
	       (group->names > 1 ? bits_min(group->names, SITES_NAMES) : 0);
}

/* One of its names, after the stack. */
static void sites_name_line(const struct call_site *name, char *text)
{
	char number[TEXT_NUMBER_SIZE];

	snprintf(text, LIST_CELL_SIZE, "%s in %" PRIu64 " buffer%s: %.200s",
		 text_size(name->bytes, number), name->buffers, name->buffers == 1 ? "" : "s",
		 name->name ? name->name : "without a name");
}

static void sites_line(const void *context, size_t item, size_t line, char *text)
{
	const struct call_site *group = sites_at(context, item);
	size_t frames = group->stack ? stack_lines_count(group->stack) : 1;
	char frame[LIST_CELL_SIZE - 8];

	if (line >= frames) {
		const struct poller_details *details = model_details(context, POLLER_SITES);

		sites_name_line(&details->sites.names[group->first_name + line - frames], text);
		return;
	}

	if (!group->stack) {
		snprintf(text, LIST_CELL_SIZE, "no stack was recorded (ttmem doctor says why)");
		return;
	}
	stack_lines_text(group->stack, line, frame, sizeof(frame));
	snprintf(text, LIST_CELL_SIZE, "at %s", frame);
}

static const struct list_rows sites_rows = {
	.columns = sites_columns,
	.column_count = ARRAY_SIZE(sites_columns),
	.none = "nothing is alive, or it may not be seen",
	.cell = sites_cell,
	.compare = sites_compare,
	.key = sites_key,
	.wants = sites_wants,
	.line_count = sites_line_count,
	.line = sites_line,
};

static void sites_draw(struct model *model, struct grid *grid, const struct grid_area *area)
{
	const struct poller_details *details = model_details(model, POLLER_SITES);
	char title[128], pause[TEXT_NUMBER_SIZE];

	if (!details) {
		grid_text(grid, area->row + 1, area->column + 2, area->columns - 2, GRID_FAINT,
			  "reading...");
		return;
	}
	snprintf(title, sizeof(title), "Call sites: %zu of %zu buffers", details->sites.count,
		 details->snapshot->buffer_count);
	/* Expensive data is read less often; the title says so, because it looks live. */
	if (details->pause_ns > UINT64_C(2000000000))
		snprintf(title + strlen(title), sizeof(title) - strlen(title), ", read every %s",
			 text_duration(details->pause_ns, pause));
	pane_draw_list(model, grid, area, title);
}

static size_t sites_count(const struct model *model)
{
	const struct poller_details *details = model_details(model, POLLER_SITES);

	return details ? details->sites.count : 0;
}

static void sites_enter(struct model *model, size_t item)
{
	(void)item; /* the selected one */
	list_toggle(&model->lists[MODEL_SITES], &sites_rows, model);
}

const struct pane pane_sites = {
	.name = "Call sites",
	.keys = "Enter:stack <>:sort r:reverse /:filter",
	.rows = &sites_rows,
	.sort = SITES_BYTES,
	.falling = true,
	.count = sites_count,
	.draw = sites_draw,
	.enter = sites_enter,
};
