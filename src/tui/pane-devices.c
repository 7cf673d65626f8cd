/* SPDX-License-Identifier: Apache-2.0 */

/* View 1: devices with bars, and charts of the selected one. */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "answers/document-processes.h"
#include "base/bits.h"
#include "base/text.h"
#include "model/amount.h"
#include "model/cards/condition.h"
#include "model/types.h"
#include "tui/chart.h"
#include "tui/pane.h"

#define DEVICES_SIDE 57u     /* columns of the text beside the charts */
#define DEVICES_SIDE_AT 120u /* the width from which it is shown */
#define DEVICES_HOLDERS 64u

static const struct snapshot_device *devices_at(const void *context, size_t item)
{
	return &model_snapshot(context)->devices[item];
}

const void *pane_devices_row(const void *context, size_t item, struct fields_room *room)
{
	(void)room;
	return devices_at(context, item);
}

static struct snapshot_memory devices_amount(const struct list_cell *cell)
{
	return amount_of_device(devices_at(cell->context, cell->item), cell->of);
}

const char *pane_devices_number(struct list_cell *cell)
{
	pane_device_number(devices_at(cell->context, cell->item), cell->text, FIELDS_TEXT);
	return cell->text;
}

static const char *devices_card(struct list_cell *cell)
{
	const struct snapshot_device *device = devices_at(cell->context, cell->item);

	pane_device_card(device, cell->text, FIELDS_TEXT);
	if (condition_words(device->condition.state))
		cell->style = GRID_BAD;
	return cell->text;
}

static const char *devices_used_text(struct list_cell *cell)
{
	struct snapshot_memory amount = devices_amount(cell);

	return amount_text(&amount, cell->text);
}

static uint64_t devices_used(const struct list_cell *cell)
{
	return devices_amount(cell).used;
}

static const char *devices_capacity_text(struct list_cell *cell)
{
	uint64_t capacity = devices_amount(cell).capacity;

	return capacity ? text_size(capacity, cell->text) : "not known";
}

static uint64_t devices_capacity(const struct list_cell *cell)
{
	return devices_amount(cell).capacity;
}

static const char *devices_share_text(struct list_cell *cell)
{
	struct snapshot_memory amount = devices_amount(cell);
	double share = amount_share(&amount);

	if (!amount.capacity)
		return NULL;
	cell->style = chart_style(share);
	if (share < 0.9995)
		snprintf(cell->text, FIELDS_TEXT, "%.1f", share * 100);
	else
		snprintf(cell->text, FIELDS_TEXT, "%.0f", share < 99 ? share * 100 : 9900);
	return cell->text;
}

static uint64_t devices_share(const struct list_cell *cell)
{
	struct snapshot_memory amount = devices_amount(cell);
	double share = amount_share(&amount);
	uint64_t bits;

	/* In the same order, as none is negative. */
	memcpy(&bits, &share, sizeof(bits));
	return bits;
}

/* Processes that have it open but report nothing are just as interesting. */
static const char *devices_processes_text(struct list_cell *cell)
{
	const struct snapshot_device *device = devices_at(cell->context, cell->item);

	snprintf(cell->text, FIELDS_TEXT, device->untracked ? "%" PRIu32 "+%" PRIu32 : "%" PRIu32,
		 device->processes, device->untracked);
	return cell->text;
}

static uint64_t devices_processes(const struct list_cell *cell)
{
	return devices_at(cell->context, cell->item)->processes;
}

static void devices_bar(const struct list_cell *cell, struct grid *grid,
			const struct grid_area *area)
{
	struct snapshot_memory amount = devices_amount(cell);

	if (amount.capacity)
		chart_bar(grid, area->row, area->column, area->columns, amount_share(&amount));
}

uint64_t pane_devices_key(const void *context, size_t item)
{
	const struct snapshot_device *device = devices_at(context, item);

	return device->unique_id ? device->unique_id : device->device + UINT64_C(1);
}

bool pane_devices_wants(const void *context, size_t item)
{
	return model_shows_device(context, devices_at(context, item));
}

bool pane_devices_finds(const void *context, size_t item, const char *filter)
{
	char card[128];

	pane_device_card(devices_at(context, item), card, sizeof(card));
	return list_has(card, filter);
}

#define BAR .width = 7, .grows = true, .paint = devices_bar
#define USED .width = 10, .right = true, .cell = devices_used_text, .value = devices_used
#define ALL .width = 10, .right = true, .cell = devices_capacity_text, .value = devices_capacity
#define SHARE .width = 5, .right = true, .cell = devices_share_text, .value = devices_share
#define PROCESSES .width = 6, .cell = devices_processes_text, .value = devices_processes

static const struct list_column devices_columns[] = {
	{"device", "DEV", .width = 5, .right = true, .cell = pane_devices_number},
	{.title = "CARD", .width = 16, .cell = devices_card},
	{.title = "DRAM", BAR, .of = TYPES_DRAM},
	{.title = "USED", USED, .of = TYPES_DRAM},
	{.title = "OF", ALL, .of = TYPES_DRAM, .least = 110},
	{.title = "%", SHARE, .of = TYPES_DRAM},
	{.title = "L1", BAR, .of = TYPES_L1},
	{.title = "USED", USED, .of = TYPES_L1},
	{.title = "OF", ALL, .of = TYPES_L1, .least = 110},
	{.title = "%", SHARE, .of = TYPES_L1},
	{.title = "PROCS", PROCESSES, .right = true, .least = 100},
};

static const struct list_rows devices_rows = {
	.columns = devices_columns,
	.column_count = ARRAY_SIZE(devices_columns),
	.none = "no device yet: none is open in a tracked process (TTMEM=1 turns tracking on)",
	.fields = document_device,
	.row = pane_devices_row,
	.finds = pane_devices_finds,
	.wants = pane_devices_wants,
	.key = pane_devices_key,
};

/* Each type by itself. Return: rows used. */
static unsigned int devices_draw_types(const struct snapshot_device *device, struct grid *grid,
				       const struct grid_area *area)
{
	unsigned int row = area->row;
	char text[160], used[TEXT_NUMBER_SIZE], takes[TEXT_NUMBER_SIZE], peak[TEXT_NUMBER_SIZE];

	snprintf(text, sizeof(text), "%-13s %9s %9s %10s %8s", "TYPE", "USED", "TAKES", "PEAK",
		 "BUFFERS");
	grid_text(grid, row++, area->column, area->columns, GRID_STRONG, text);
	for (uint32_t type = 0; type < BOOK_TYPES; type++) {
		const struct snapshot_memory *memory = &device->memory[type];

		snprintf(text, sizeof(text), "%-13s %9s %9s %10s %8" PRIu64, types_name(type),
			 text_size(memory->used, used),
			 snapshot_is_occupied(&memory->occupied, memory->buffers, memory->used)
				 ? text_size(memory->occupied.bytes, takes)
				 : "-",
			 memory->peak_is_unknown ? "-" : text_size(memory->peak, peak),
			 memory->buffers);
		grid_text(grid, row++, area->column, area->columns,
			  memory->buffers ? GRID_PLAIN : GRID_FAINT, text);
	}
	return row - area->row;
}

/* The largest holders, as many as fit. */
static void devices_draw_holders(const struct model *model, uint32_t device, struct grid *grid,
				 const struct grid_area *area)
{
	const struct snapshot *snapshot = model_snapshot(model);
	bool taken[DEVICES_HOLDERS] = {false};
	size_t count = bits_min(snapshot->process_count, DEVICES_HOLDERS);
	char text[256], number[TEXT_NUMBER_SIZE];

	grid_text(grid, area->row, area->column, area->columns, GRID_STRONG, "HELD BY");
	for (unsigned int row = 1; row < area->rows; row++) {
		struct snapshot_memory most = {0};
		size_t who = SIZE_MAX;

		for (size_t i = 0; i < count; i++) {
			struct snapshot_memory amount =
				amount_of_process(&snapshot->processes[i], device, AMOUNT_ALL);

			if (!taken[i] && snapshot->processes[i].alive && amount.used > most.used) {
				most = amount;
				who = i;
			}
		}
		if (who == SIZE_MAX)
			return;
		taken[who] = true;
		grid_right(grid, area->row + row, area->column, 10, GRID_PLAIN,
			   amount_text(&most, number));
		snprintf(text, sizeof(text), "%s (%" PRIu32 ")", snapshot->processes[who].comm,
			 snapshot->processes[who].id.pid);
		grid_text(grid, area->row + row, area->column + 12, area->columns - 12, GRID_PLAIN,
			  text);
	}
}

static void devices_draw_side(const struct model *model, uint32_t device, struct grid *grid,
			      const struct grid_area *area)
{
	struct grid_area rest = *area;
	unsigned int used = devices_draw_types(&model_snapshot(model)->devices[device], grid, area);

	if (used + 3 > area->rows)
		return;
	rest.row += used + 1;
	rest.rows -= used + 1;
	devices_draw_holders(model, device, grid, &rest);
}

static void devices_draw_charts(const struct model *model, const struct snapshot_device *device,
				struct grid *grid, const struct grid_area *area)
{
	struct snapshot_memory dram = amount_of_device(device, TYPES_DRAM);
	struct snapshot_memory l1 = amount_of_device(device, TYPES_L1);
	char number[16], title[64];
	struct model_chart chart = {
		.title = title,
		.key = model_device_key(device),
		.now = {dram.used, l1.used},
		.capacity = {dram.capacity, l1.capacity},
	};

	pane_device_number(device, number, sizeof(number));
	snprintf(title, sizeof(title), "Device %s", number);
	model_draw_charts(model, grid, area, &chart);
}

/* What the letter in the first column means, if it is there. */
static void devices_draw_legend(const struct model *model, struct grid *grid, unsigned int row,
				const struct grid_area *area)
{
	const struct list *list = &model->lists[MODEL_DEVICES];
	bool is_remote = false;

	for (size_t i = 0; i < list->count && !is_remote; i++)
		is_remote = devices_at(model, list->order[i])->remote;
	if (is_remote && area->rows > 0 && area->columns > 2)
		grid_text(grid, row, area->column + 2, area->columns - 2, GRID_FAINT,
			  "R a remote chip, without a node of its own");
}

static void devices_draw(struct model *model, struct grid *grid, const struct grid_area *area)
{
	struct list *list = &model->lists[MODEL_DEVICES];
	struct grid_area top = *area, rest = *area;
	size_t item;

	top.rows = (unsigned int)bits_min(bits_max(list->count, 2) + 1, area->rows * 2 / 5);
	list_draw(list, &devices_rows, model, grid, &top);
	devices_draw_legend(model, grid, area->row + top.rows, area);
	if (!list_chosen(list, &item))
		return;
	rest.row += top.rows + 1;
	rest.rows = area->rows > top.rows ? area->rows - top.rows - 1 : 0;
	if (area->columns >= DEVICES_SIDE_AT && rest.rows > BOOK_TYPES) {
		struct grid_area side = rest;

		rest.columns -= DEVICES_SIDE;
		side.column += rest.columns + 2;
		side.columns = DEVICES_SIDE - 3;
		devices_draw_side(model, (uint32_t)item, grid, &side);
	}
	devices_draw_charts(model, devices_at(model, item), grid, &rest);
}

size_t pane_devices_count(const struct model *model)
{
	const struct snapshot *snapshot = model_snapshot(model);

	return snapshot ? snapshot->device_count : 0;
}

/* Shows the processes of the device. */
static void devices_enter(struct model *model, size_t item)
{
	model->has_device = true;
	model->device = model_device_key(devices_at(model, item));
	model_go(model, MODEL_PROCESSES);
}

const struct pane pane_devices = {
	.name = "Devices",
	.keys = "Enter:processes t:time",
	.rows = &devices_rows,
	.count = pane_devices_count,
	.draw = devices_draw,
	.enter = devices_enter,
};
