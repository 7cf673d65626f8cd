/* SPDX-License-Identifier: Apache-2.0 */

/* View 5: leaks and incidents, the newest first. */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/bits.h"
#include "base/hash.h"
#include "base/text.h"
#include "model/snapshot.h"
#include "tui/incident-rows.h"
#include "tui/pane.h"

enum past_column {
	PAST_WHEN,
	PAST_KIND,
	PAST_PID,
	PAST_COMM,
	PAST_DEVICE,
	PAST_TYPE,
	PAST_ADDRESS,
	PAST_SIZE,
	PAST_COUNT,
	PAST_WHAT,
};

static const struct list_column past_columns[] = {
	{.title = "AGO", .width = 7, .right = true},
	{.title = "KIND", .width = 12},
	{.title = "PID", .width = 8, .right = true},
	{.title = "COMMAND", .width = 10},
	{.title = "DEV", .width = 4, .right = true},
	{.title = "TYPE", .width = 13, .least = 100},
	{.title = "ADDRESS", .width = 12, .least = 120},
	{.title = "SIZE", .width = 10, .right = true},
	{.title = "COUNT", .width = 6, .right = true},
	{.title = "WHAT", .width = 11, .grows = true},
};

static const struct incident_rows_row *past_at(const void *context, size_t item)
{
	return &model_details(context, POLLER_PAST)->incident_rows->rows[item];
}

static void past_cell(const void *context, size_t item, size_t column, char *text,
		      enum grid_style *style)
{
	const struct model *model = context;
	const struct incident_rows_row *row = past_at(context, item);
	uint64_t now = model->totals ? model_snapshot(model)->time_ns : 0;
	char number[TEXT_NUMBER_SIZE];

	switch (column) {
	case PAST_WHEN:
		snprintf(text, LIST_CELL_SIZE, "%s", pane_ago(now, row->time_ns, number));
		break;
	case PAST_KIND:
		*style = strcmp(row->kind, "unknown_free") == 0 ? GRID_WARNING : GRID_BAD;
		snprintf(text, LIST_CELL_SIZE, "%s", row->kind);
		break;
	case PAST_PID:
		snprintf(text, LIST_CELL_SIZE, "%" PRIu32, row->pid);
		break;
	case PAST_COMM:
		snprintf(text, LIST_CELL_SIZE, "%s", row->comm);
		break;
	case PAST_DEVICE:
		snprintf(text, LIST_CELL_SIZE, row->has_device ? "%" PRIu32 : "-", row->device);
		break;
	case PAST_TYPE:
		snprintf(text, LIST_CELL_SIZE, "%s", row->type ? row->type : "-");
		break;
	case PAST_ADDRESS:
		snprintf(text, LIST_CELL_SIZE, row->has_address ? "0x%" PRIx64 : "-", row->address);
		break;
	case PAST_SIZE:
		snprintf(text, LIST_CELL_SIZE, "%s",
			 row->bytes ? text_size(row->bytes, number) : "-");
		break;
	case PAST_COUNT:
		snprintf(text, LIST_CELL_SIZE, "%" PRIu64, row->count);
		break;
	default:
		snprintf(text, LIST_CELL_SIZE, "%s", row->what ? row->what : "");
		break;
	}
}

static int past_compare(const void *context, size_t a, size_t b, size_t column)
{
	const struct incident_rows_row *x = past_at(context, a), *y = past_at(context, b);

	switch (column) {
	case PAST_KIND:
		return pane_compare_texts(x->kind, y->kind);
	case PAST_PID:
		return pane_compare(x->pid, y->pid);
	case PAST_COMM:
		return pane_compare_texts(x->comm, y->comm);
	case PAST_DEVICE:
		return pane_compare(x->device, y->device);
	case PAST_TYPE:
		return pane_compare_texts(x->type, y->type);
	case PAST_ADDRESS:
		return pane_compare(x->address, y->address);
	case PAST_SIZE:
		return pane_compare(x->bytes, y->bytes);
	case PAST_COUNT:
		return pane_compare(x->count, y->count);
	case PAST_WHAT:
		return pane_compare_texts(x->what, y->what);
	default:
		return pane_compare(y->time_ns, x->time_ns);
	}
}

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

static bool past_wants(const void *context, size_t item, const char *filter)
{
	const struct incident_rows_row *row = past_at(context, item);
	char pid[16];

	snprintf(pid, sizeof(pid), "%" PRIu32, row->pid);
	return list_has(row->kind, filter) || list_has(row->comm, filter) ||
	       list_has(row->what, filter) || list_has(row->type, filter) || list_has(pid, filter);
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
	.cell = past_cell,
	.compare = past_compare,
	.key = incidents_key,
	.wants = past_wants,
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
	.sort = PAST_WHEN,
	.count = past_count,
	.draw = past_draw,
	.enter = past_enter,
};
