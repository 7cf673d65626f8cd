/* SPDX-License-Identifier: Apache-2.0 */

/* View 4: call sites of living processes, largest first. */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "answers/buffers.h"
#include "base/bits.h"
#include "base/hash.h"
#include "base/text.h"
#include "model/sites/group.h"
#include "model/sites/name-stem.h"
#include "model/snapshot.h"
#include "tui/pane.h"
#include "tui/stack-lines.h"

#define SITES_NAMES 8u /* shown below the stack */

static const struct snapshot *sites_snapshot(const void *context)
{
	return model_details(context, POLLER_SITES)->snapshot;
}

static const struct call_site *sites_at(const void *context, size_t item)
{
	return &model_details(context, POLLER_SITES)->sites.groups[item];
}

static const struct snapshot_process *sites_process(const void *context, size_t item)
{
	return &sites_snapshot(context)->processes[sites_at(context, item)->process];
}

/* Names and line of code. */
static const char *sites_place(struct list_cell *cell)
{
	const struct poller_details *details = model_details(cell->context, POLLER_SITES);
	const char *frame = site_rows_text(&details->lines, cell->item);
	char name[220];

	call_site_names(sites_at(cell->context, cell->item), name, sizeof(name));
	snprintf(cell->text, FIELDS_TEXT, "%s%s%s", name, *name && *frame ? ", " : "", frame);
	return *cell->text ? cell->text : NULL;
}

static const struct list_column sites_columns[] = {
	{"bytes", .width = 10},
	{"buffers", .width = 8},
	{"oldest_ns", "OLDEST", .width = 7, .right = true},
	{"pid", "PID", .width = 8, .right = true, .least = 100},
	{"comm", "COMMAND", .width = 12},
	{"type", "TYPE", .width = 8, .wide = 13},
	{.title = "CALL SITE", .width = 20, .grows = true, .cell = sites_place},
};

static const void *sites_row(const void *context, size_t item, struct fields_room *room)
{
	const struct call_site *site = sites_at(context, item);
	const struct snapshot_process *process = sites_process(context, item);
	struct buffers_group *row = FIELDS_IN(room, struct buffers_group);

	*row = (struct buffers_group){
		.pid = process->id.pid,
		.comm = process->comm,
		.bytes = site->bytes,
		.buffers = site->buffers,
		.oldest_ns = site->oldest_ns,
		.site.type = site->type,
	};
	return row;
}

static uint64_t sites_now(const void *context)
{
	return sites_snapshot(context)->time_ns;
}

static uint64_t sites_hash(const char *text)
{
	return text ? hash_bytes(text, strlen(text)) : 0;
}

/* By its text: a later snapshot has other pointers. */
static uint64_t sites_key(const void *context, size_t item)
{
	const struct call_site *group = sites_at(context, item);
	uint32_t pid = sites_process(context, item)->id.pid;
	char line[STACK_LINE];
	uint64_t hash = sites_hash(stack_line(group->stack, line, sizeof(line)));

	if (!group->stack)
		hash = name_stem_hash(group->name) ^ sites_hash(group->phase);
	return hash_u64(hash ^ ((uint64_t)pid << 8 | group->type)) | 1;
}

static bool sites_finds(const void *context, size_t item, const char *filter)
{
	const struct call_site *group = sites_at(context, item);
	const struct call_site *names = model_details(context, POLLER_SITES)->sites.names;
	char line[STACK_LINE];

	for (size_t i = 0; i < group->names; i++) {
		if (list_has(names[group->first_name + i].name, filter))
			return true;
	}
	return list_has(group->phase, filter) ||
	       list_has(stack_line(group->stack, line, sizeof(line)), filter);
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
	.fields = buffers_group_fields,
	.row = sites_row,
	.now = sites_now,
	.sought = "type,comm",
	.finds = sites_finds,
	.key = sites_key,
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
	.falling = true,
	.count = sites_count,
	.draw = sites_draw,
	.enter = sites_enter,
};
