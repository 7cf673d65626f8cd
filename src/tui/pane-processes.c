/* SPDX-License-Identifier: Apache-2.0 */

/* View 2: processes, each with a small chart if there is room, and a large one of the selected. */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/bits.h"
#include "base/clock.h"
#include "base/text.h"
#include "model/amount.h"
#include "model/snapshot.h"
#include "model/types.h"
#include "tui/chart.h"
#include "tui/pane.h"

enum processes_column {
	PROCESSES_PID,
	PROCESSES_USER,
	PROCESSES_COMM,
	PROCESSES_DEVICES,
	PROCESSES_DRAM,
	PROCESSES_L1,
	PROCESSES_HOST,
	PROCESSES_BUFFERS,
	PROCESSES_AGE,
	PROCESSES_IDLE,
	PROCESSES_SOURCE,
	PROCESSES_CONTAINER,
	PROCESSES_LINE,
};

static const struct list_column processes_columns[] = {
	{.title = "PID", .width = 8, .right = true},
	{.title = "USER", .width = 8},
	{.title = "COMMAND", .width = 10, .wide = 16, .grows = true},
	{.title = "DEV", .width = 5, .right = true},
	{.title = "DRAM", .width = 10, .right = true},
	{.title = "L1", .width = 10, .right = true},
	{.title = "HOST", .width = 10, .right = true, .least = 130},
	{.title = "BUFFERS", .width = 8, .right = true},
	{.title = "AGE", .width = 7, .right = true, .least = 92},
	{.title = "IDLE", .width = 7, .right = true},
	{.title = "SOURCE", .width = 8, .least = 110},
	{.title = "CONTAINER", .width = 13, .least = 150},
	{.title = "DRAM+L1", .width = 18, .grows = true, .least = 120, .fixed = true},
};

static const struct snapshot_process *processes_at(const void *context, size_t item)
{
	return &model_snapshot(context)->processes[item];
}

static struct snapshot_memory processes_amount(const struct snapshot_process *process,
					       size_t column)
{
	uint32_t folded = column == PROCESSES_DRAM   ? TYPES_DRAM
			  : column == PROCESSES_L1   ? TYPES_L1
			  : column == PROCESSES_HOST ? TYPES_SYSTEM_MEMORY
						     : AMOUNT_ALL;

	return amount_of_process(process, AMOUNT_ANYWHERE, folded);
}

/* A filter may hide those above it. */
static unsigned int processes_depth(const struct model *model, size_t item)
{
	return *model->lists[MODEL_PROCESSES].filter ? 0 : tree_depth(&model->tree, item);
}

/* "3", "0,2", "0-7": as much as fits into the column. */
static void processes_devices(const struct model *model, const struct snapshot_process *process,
			      char *text)
{
	const struct snapshot *snapshot = model_snapshot(model);
	uint32_t first = UINT32_MAX, last = 0, seen = 0;

	for (size_t i = 0; i < process->part_count; i++) {
		uint32_t device = snapshot->devices[process->parts[i].row].device;

		first = (uint32_t)bits_min(first, device);
		last = (uint32_t)bits_max(last, device);
		seen++;
	}
	if (seen == 0)
		snprintf(text, LIST_CELL_SIZE, "-");
	else if (seen == 1)
		snprintf(text, LIST_CELL_SIZE, "%" PRIu32, first);
	else
		snprintf(text, LIST_CELL_SIZE, "%" PRIu32 "%s%" PRIu32, first,
			 seen == 2                  ? ","
			 : seen == last - first + 1 ? "-"
						    : "..",
			 last);
}

static void processes_comm(const struct model *model, size_t item, char *text,
			   enum grid_style *style)
{
	const struct snapshot_process *process = processes_at(model, item);
	unsigned int depth = processes_depth(model, item);
	const char *mark = process->alive      ? ""
			   : process->unproven ? "(claim) "
			   : process->stale    ? "(stale) "
					       : "(ended) ";

	for (size_t i = 0; process->alive && i < process->part_count; i++) {
		if (process->parts[i].before_reset)
			mark = "(reset) "; /* a note says what that means */
	}

	if (!process->alive || process->untracked)
		*style = GRID_FAINT;
	snprintf(text, LIST_CELL_SIZE, "%*s%s%.300s%s", (int)(2 * depth), "", mark, process->comm,
		 process->untracked ? " (not tracked)" : "");
}

static void processes_cell(const void *context, size_t item, size_t column, char *text,
			   enum grid_style *style)
{
	const struct snapshot_process *process = processes_at(context, item);
	struct snapshot_memory amount = processes_amount(process, column);
	uint64_t now = model_snapshot(context)->time_ns;
	char number[TEXT_NUMBER_SIZE];

	switch (column) {
	case PROCESSES_PID:
		snprintf(text, LIST_CELL_SIZE, "%" PRIu32, process->id.pid);
		break;
	case PROCESSES_USER:
		snprintf(text, LIST_CELL_SIZE, "%s", process->user);
		break;
	case PROCESSES_COMM:
		processes_comm(context, item, text, style);
		break;
	case PROCESSES_DEVICES:
		processes_devices(context, process, text);
		break;
	case PROCESSES_DRAM:
	case PROCESSES_L1:
	case PROCESSES_HOST:
		snprintf(text, LIST_CELL_SIZE, "%s",
			 process->untracked ? "not known" : amount_text(&amount, number));
		break;
	case PROCESSES_BUFFERS:
		snprintf(text, LIST_CELL_SIZE, "%" PRIu64, amount.buffers);
		break;
	case PROCESSES_AGE:
		snprintf(text, LIST_CELL_SIZE, "%s", pane_ago(now, process->start_ns, number));
		break;
	case PROCESSES_IDLE:
		snprintf(text, LIST_CELL_SIZE, "%s", pane_ago(now, process->last_ns, number));
		break;
	case PROCESSES_SOURCE:
		snprintf(text, LIST_CELL_SIZE, "%s", process->source);
		break;
	case PROCESSES_CONTAINER:
		snprintf(text, LIST_CELL_SIZE, "%s", process->container ? process->container : "-");
		break;
	default:
		break;
	}
}

/* The last seconds in one row, each with its own scale. */
static void processes_paint(const void *context, size_t item, size_t column, struct grid *grid,
			    const struct grid_area *area)
{
	const struct model *model = context;
	struct series_key key = model_process_key(processes_at(context, item));
	uint64_t dram[CHART_POINTS_MAX], l1[CHART_POINTS_MAX];
	uint64_t until = model->totals->time_ns, span = model->seconds * NS_PER_S;
	const struct series *series;
	uint64_t top = 0;
	size_t count;

	if (column != PROCESSES_LINE)
		return;
	count = chart_points(grid, area->columns);
	series = series_find(&model->series, &key);
	series_plot(series, SERIES_DRAM, until > span ? until - span : 0, until, dram, count);
	series_plot(series, SERIES_L1, until > span ? until - span : 0, until, l1, count);
	for (size_t i = 0; i < count; i++) {
		if (dram[i] == CHART_NOTHING)
			continue;
		dram[i] += bits_min(l1[i], UINT64_MAX - 1 - dram[i]);
		top = bits_max(top, dram[i]);
	}
	chart_draw(grid, area, dram, top, false);
}

static int processes_compare_values(const void *context, size_t a, size_t b, size_t column)
{
	const struct snapshot_process *x = processes_at(context, a), *y = processes_at(context, b);
	struct snapshot_memory p = processes_amount(x, column), q = processes_amount(y, column);

	switch (column) {
	case PROCESSES_USER:
		return pane_compare_texts(x->user, y->user);
	case PROCESSES_COMM:
		return pane_compare_texts(x->comm, y->comm);
	case PROCESSES_DEVICES:
		return pane_compare(x->part_count ? x->parts[0].row : 0,
				    y->part_count ? y->parts[0].row : 0);
	case PROCESSES_DRAM:
	case PROCESSES_L1:
	case PROCESSES_HOST:
		return pane_compare(p.used, q.used);
	case PROCESSES_BUFFERS:
		return pane_compare(p.buffers, q.buffers);
	case PROCESSES_AGE:
		return pane_compare(y->start_ns, x->start_ns);
	case PROCESSES_IDLE:
		return pane_compare(y->last_ns, x->last_ns);
	case PROCESSES_SOURCE:
		return pane_compare_texts(x->source, y->source);
	case PROCESSES_CONTAINER:
		return pane_compare_texts(x->container, y->container);
	default:
		return pane_compare(x->id.pid, y->id.pid);
	}
}

/* In a tree, siblings are sorted, and whoever started a process stands above it either way. */
static int processes_compare(const void *context, size_t a, size_t b, size_t column)
{
	const struct model *model = context;
	const struct list *list = &model->lists[MODEL_PROCESSES];
	int r, order = *list->filter ? 0 : tree_siblings(&model->tree, &a, &b);

	if (order)
		return list->falling ? -order : order;
	r = processes_compare_values(context, a, b, column);
	/* Equal siblings must not mix their children. */
	if (r == 0)
		r = list->falling ? pane_compare(b, a) : pane_compare(a, b);
	return r;
}

static uint64_t processes_key(const void *context, size_t item)
{
	const struct snapshot_process *process = processes_at(context, item);

	return (uint64_t)process->id.pid << 32 | (process->id.start_ticks & UINT32_MAX);
}

static bool processes_wants(const void *context, size_t item, const char *filter)
{
	const struct snapshot_process *process = processes_at(context, item);
	char pid[16];

	if (!model_shows_process(context, process))
		return false;
	snprintf(pid, sizeof(pid), "%" PRIu32, process->id.pid);
	return list_has(process->comm, filter) || list_has(process->user, filter) ||
	       list_has(process->container, filter) || list_has(pid, filter);
}

static const struct list_rows processes_rows = {
	.columns = processes_columns,
	.column_count = ARRAY_SIZE(processes_columns),
	.none = "no tracked process (TTMEM=1 turns tracking on)",
	.cell = processes_cell,
	.compare = processes_compare,
	.key = processes_key,
	.wants = processes_wants,
	.paint = processes_paint,
};

static void processes_title(const struct model *model, char *text, size_t size)
{
	const struct list *list = &model->lists[MODEL_PROCESSES];
	const struct snapshot *snapshot = model_snapshot(model);
	char number[16];

	snprintf(text, size, "Processes: %zu", list->count);
	for (size_t i = 0; snapshot && model->has_device && i < snapshot->device_count; i++) {
		struct series_key key = model_device_key(&snapshot->devices[i]);

		if (key.high != model->device.high || key.low != model->device.low)
			continue;
		pane_device_number(&snapshot->devices[i], number, sizeof(number));
		snprintf(text, size, "Processes with device %s: %zu (2: all)", number, list->count);
	}
}

static void processes_draw(struct model *model, struct grid *grid, const struct grid_area *area)
{
	struct list *list = &model->lists[MODEL_PROCESSES];
	struct grid_area top = *area, rest = *area;
	unsigned int wanted = (unsigned int)bits_min(list->count + 2, GRID_SIDE_MAX);
	char title[128], name[128];
	size_t item;

	/* The list takes what it needs, but leaves 8 rows for charts, or 2/5 of a tall screen. */
	top.rows = (unsigned int)bits_min(bits_max(wanted, 5),
					  area->rows > 20 ? area->rows * 3 / 5 : area->rows - 8);
	if (area->rows < 14)
		top.rows = area->rows;
	processes_title(model, title, sizeof(title));
	pane_draw_list(model, grid, &top, title);
	if (!list_chosen(list, &item) || top.rows == area->rows)
		return;
	rest.row += top.rows;
	rest.rows -= top.rows;
	{
		const struct snapshot_process *process = processes_at(model, item);
		struct model_chart chart = {
			.title = name,
			.key = model_process_key(process),
			.now = {processes_amount(process, PROCESSES_DRAM).used,
				processes_amount(process, PROCESSES_L1).used},
		};

		snprintf(name, sizeof(name), "%.32s", process->comm);
		model_draw_charts(model, grid, &rest, &chart);
	}
}

static size_t processes_count(const struct model *model)
{
	const struct snapshot *snapshot = model_snapshot(model);

	return snapshot ? snapshot->process_count : 0;
}

static void processes_enter(struct model *model, size_t item)
{
	const struct snapshot_process *process = processes_at(model, item);

	model->has_process = model->picked = true;
	model->process = process->id;
	model_go(model, MODEL_BUFFERS);
}

const struct pane pane_processes = {
	.name = "Processes",
	.keys = "Enter:buffers <>:sort /:filter T:tree K:kill",
	.rows = &processes_rows,
	.sort = PROCESSES_DRAM,
	.falling = true,
	.count = processes_count,
	.draw = processes_draw,
	.enter = processes_enter,
};
