/* SPDX-License-Identifier: Apache-2.0 */

/* View 2: processes, each with a small chart if there is room, and a large one of the selected. */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "answers/document-processes.h"
#include "base/bits.h"
#include "base/clock.h"
#include "base/text.h"
#include "model/amount.h"
#include "model/snapshot.h"
#include "model/types.h"
#include "tui/chart.h"
#include "tui/pane.h"

static const struct snapshot_process *processes_at(const void *context, size_t item)
{
	return &model_snapshot(context)->processes[item];
}

/* A filter may hide those above it. */
static unsigned int processes_depth(const struct model *model, size_t item)
{
	return *model->lists[MODEL_PROCESSES].filter ? 0 : tree_depth(&model->tree, item);
}

/* "3", "0,2", "0-7": as much as fits into the column. */
static const char *processes_devices(struct list_cell *cell)
{
	const struct snapshot *snapshot = model_snapshot(cell->context);
	const struct snapshot_process *process = processes_at(cell->context, cell->item);
	uint32_t first = UINT32_MAX, last = 0, seen = 0;

	for (size_t i = 0; i < process->part_count; i++) {
		uint32_t device = snapshot->devices[process->parts[i].row].device;

		first = (uint32_t)bits_min(first, device);
		last = (uint32_t)bits_max(last, device);
		seen++;
	}
	if (seen == 0)
		return NULL;
	if (seen == 1)
		snprintf(cell->text, FIELDS_TEXT, "%" PRIu32, first);
	else
		snprintf(cell->text, FIELDS_TEXT, "%" PRIu32 "%s%" PRIu32, first,
			 seen == 2                  ? ","
			 : seen == last - first + 1 ? "-"
						    : "..",
			 last);
	return cell->text;
}

static uint64_t processes_device(const struct list_cell *cell)
{
	const struct snapshot_process *process = processes_at(cell->context, cell->item);

	return process->part_count ? process->parts[0].row : 0;
}

static const char *processes_comm(struct list_cell *cell)
{
	const struct snapshot_process *process = processes_at(cell->context, cell->item);
	unsigned int depth = processes_depth(cell->context, cell->item);
	const char *mark = process->alive      ? ""
			   : process->unproven ? "(claim) "
			   : process->stale    ? "(stale) "
					       : "(ended) ";

	for (size_t i = 0; process->alive && i < process->part_count; i++) {
		if (process->parts[i].before_reset)
			mark = "(reset) "; /* a note says what that means */
	}

	if (!process->alive || process->untracked)
		cell->style = GRID_FAINT;
	snprintf(cell->text, FIELDS_TEXT, "%*s%s%.300s%s", (int)(2 * depth), "", mark,
		 process->comm, process->untracked ? " (not tracked)" : "");
	return cell->text;
}

/* Of a type, and of those that share a memory with it. */
static const char *processes_memory(struct list_cell *cell)
{
	const struct snapshot_process *process = processes_at(cell->context, cell->item);
	struct snapshot_memory amount = amount_of_process(process, AMOUNT_ANYWHERE, cell->of);

	return process->untracked ? "not known" : amount_text(&amount, cell->text);
}

static uint64_t processes_used(const struct list_cell *cell)
{
	return amount_of_process(processes_at(cell->context, cell->item), AMOUNT_ANYWHERE, cell->of)
		.used;
}

static uint64_t processes_buffers(const struct list_cell *cell)
{
	return amount_of_process(processes_at(cell->context, cell->item), AMOUNT_ANYWHERE, cell->of)
		.buffers;
}

/* The last seconds in one row, each with its own scale. */
static void processes_paint(const struct list_cell *cell, struct grid *grid,
			    const struct grid_area *area)
{
	const struct model *model = cell->context;
	struct series_key key = model_process_key(processes_at(cell->context, cell->item));
	uint64_t dram[CHART_POINTS_MAX], l1[CHART_POINTS_MAX];
	uint64_t until = model->totals->time_ns, span = model->seconds * NS_PER_S;
	const struct series *series;
	uint64_t top = 0;
	size_t count;

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

#define MEMORY .cell = processes_memory, .value = processes_used, .width = 10, .right = true

static const struct list_column processes_columns[] = {
	{"pid", "PID", .width = 8, .right = true},
	{"user", "USER", .width = 8},
	{"comm", "COMMAND", .width = 10, .wide = 16, .grows = true, .cell = processes_comm},
	{.title = "DEV",
	 .width = 5,
	 .right = true,
	 .cell = processes_devices,
	 .value = processes_device},
	{.title = "DRAM", MEMORY, .of = TYPES_DRAM},
	{.title = "L1", MEMORY, .of = TYPES_L1},
	{.title = "HOST", MEMORY, .of = TYPES_SYSTEM_MEMORY, .least = 130},
	{.title = "BUFFERS",
	 .width = 8,
	 .right = true,
	 .value = processes_buffers,
	 .of = AMOUNT_ALL},
	{"start_ns", "AGE", .width = 7, .right = true, .least = 92},
	{"last_activity_ns", "IDLE", .width = 7, .right = true},
	{"source", "SOURCE", .width = 8, .least = 110},
	{"container", "CONTAINER", .width = 13, .least = 150},
	{.title = "DRAM+L1", .width = 18, .grows = true, .least = 120, .paint = processes_paint},
};

static const void *processes_row(const void *context, size_t item, struct fields_room *room)
{
	const struct snapshot_process *process = processes_at(context, item);
	struct document_process *row = FIELDS_IN(room, struct document_process);

	*row = (struct document_process){.process = process, .last_ns = process->last_ns};
	return row;
}

static uint64_t processes_now(const void *context)
{
	return model_snapshot(context)->time_ns;
}

/* In a tree, siblings are sorted, and whoever started a process stands above it either way. */
static int processes_siblings(const void *context, size_t *a, size_t *b)
{
	const struct model *model = context;

	return *model->lists[MODEL_PROCESSES].filter ? 0 : tree_siblings(&model->tree, a, b);
}

static uint64_t processes_key(const void *context, size_t item)
{
	const struct snapshot_process *process = processes_at(context, item);

	return (uint64_t)process->id.pid << 32 | (process->id.start_ticks & UINT32_MAX);
}

static bool processes_wants(const void *context, size_t item)
{
	return model_shows_process(context, processes_at(context, item));
}

static const struct list_rows processes_rows = {
	.columns = processes_columns,
	.column_count = ARRAY_SIZE(processes_columns),
	.none = "no tracked process (TTMEM=1 turns tracking on)",
	.fields = document_process,
	.row = processes_row,
	.now = processes_now,
	.sought = "comm,user,container,pid",
	.wants = processes_wants,
	.siblings = processes_siblings,
	.key = processes_key,
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
			.now = {amount_of_process(process, AMOUNT_ANYWHERE, TYPES_DRAM).used,
				amount_of_process(process, AMOUNT_ANYWHERE, TYPES_L1).used},
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
	.sort = 4, /* DRAM */
	.falling = true,
	.count = processes_count,
	.draw = processes_draw,
	.enter = processes_enter,
};
