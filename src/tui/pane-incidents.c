/* SPDX-License-Identifier: Apache-2.0 */

/* View 5: leaks and incidents, the newest first. */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "answers/fields.h"
#include "base/bits.h"
#include "base/hash.h"
#include "base/text.h"
#include "model/snapshot.h"
#include "tui/incident-rows.h"
#include "tui/pane.h"

static const struct incident_rows_row *past_at(const void *context, size_t item)
{
	return &model_details(context, POLLER_PAST)->incident_rows->rows[item];
}

static const void *past_row(const void *context, size_t item, struct fields_room *room)
{
	(void)room;
	return past_at(context, item);
}

static uint64_t past_now(const void *context)
{
	const struct model *model = context;

	return model->totals ? model_snapshot(model)->time_ns : 0;
}

static const char *past_kind(struct list_cell *cell)
{
	const char *kind = past_at(cell->context, cell->item)->kind;

	cell->style = strcmp(kind, "unknown_free") == 0 ? GRID_WARNING : GRID_BAD;
	return kind;
}

#define ROW struct incident_rows_row

static const struct field past_fields[] = {
	FIELD("time_ns", TIME, time_ns),
	FIELD("kind", TEXT, kind),
	FIELD("pid", SHORT, pid),
	FIELD("comm", TEXT, comm),
	FIELD_IF(has_device, "device", SHORT, device),
	FIELD_OR_NULL("type", TEXT, type),
	FIELD_IF(has_address, "address", HEX, address),
	FIELD_OR_NULL("bytes", BYTES, bytes),
	FIELD("count", NUMBER, count),
	FIELD_OR_NULL("what", TEXT, what),
	FIELD_END,
};

static const struct list_column past_columns[] = {
	{"time_ns", "AGO", .width = 7, .right = true},
	{"kind", "KIND", .width = 12, .cell = past_kind},
	{"pid", "PID", .width = 8, .right = true},
	{"comm", "COMMAND", .width = 10},
	{"device", "DEV", .width = 4, .right = true},
	{"type", "TYPE", .width = 13, .least = 100},
	{"address", "ADDRESS", .width = 12, .least = 120},
	{"bytes", "SIZE", .width = 10, .right = true},
	{"count", "COUNT", .width = 6, .right = true},
	{"what", "WHAT", .width = 11, .grows = true, .none = ""},
};

/* Without the time and the count, which change with every repetition. */
static uint64_t incidents_key(const void *context, size_t item)
{
	const struct incident_rows_row *row = past_at(context, item);
	uint64_t hash = hash_fold((uint64_t)row->pid << 32 | row->device, row->address ^ HASH_K0);

	hash ^= hash_bytes(row->kind, strlen(row->kind));
	if (row->what)
		hash ^= hash_u64(hash_bytes(row->what, strlen(row->what)));
	return hash_u64(hash) | 1;
}

static size_t past_line_count(const void *context, size_t item)
{
	size_t count = past_at(context, item)->line_count;

	return count ? count : 1;
}

static void past_line_text(const void *context, size_t item, size_t line, char *text)
{
	const struct incident_rows_row *row = past_at(context, item);

	snprintf(text, LIST_CELL_SIZE, "%s",
		 line < row->line_count ? row->lines[line] : "nothing more is known");
}

static const struct list_rows incidents_rows = {
	.columns = past_columns,
	.column_count = ARRAY_SIZE(past_columns),
	.none = "no leaks, no incidents",
	.fields = past_fields,
	.row = past_row,
	.now = past_now,
	.sought = "kind,comm,what,type,pid",
	.key = incidents_key,
	.line_count = past_line_count,
	.line = past_line_text,
};

static void past_draw(struct model *model, struct grid *grid, const struct grid_area *area)
{
	const struct poller_details *details = model_details(model, POLLER_PAST);
	char title[160], hidden[64] = "";

	if (!details) {
		grid_text(grid, area->row + 1, area->column + 2, area->columns - 2, GRID_FAINT,
			  "reading...");
		return;
	}
	if (details->incident_rows->hidden)
		snprintf(hidden, sizeof(hidden), ", and %" PRIu64 " of other users hidden",
			 details->incident_rows->hidden);
	snprintf(title, sizeof(title), "Leaks and incidents: %zu%s%s%s",
		 details->incident_rows->count, details->incident_rows->is_cut ? " newest" : "",
		 hidden,
		 details->from_daemon ? ", as ttmemd remembers them"
				      : " of living processes (only ttmemd remembers the ended)");
	pane_draw_list(model, grid, area, title);
}

static size_t past_count(const struct model *model)
{
	const struct poller_details *details = model_details(model, POLLER_PAST);

	return details ? details->incident_rows->count : 0;
}

static void past_enter(struct model *model, size_t item)
{
	(void)item; /* the selected one */
	list_toggle(&model->lists[MODEL_PAST], &incidents_rows, model);
}

const struct pane pane_past = {
	.name = "Incidents",
	.keys = "Enter:details <>:sort r:reverse /:filter",
	.rows = &incidents_rows,
	.count = past_count,
	.draw = past_draw,
	.enter = past_enter,
};
