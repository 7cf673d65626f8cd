/* SPDX-License-Identifier: Apache-2.0 */

/* View 6: sensor readings of the cards from the driver. */

#include <stdio.h>

#include "answers/document-processes.h"
#include "base/bits.h"
#include "model/cards/condition.h"
#include "tui/pane.h"

static const struct {
	const char *unit;
	double divisor;
	int digits;
} telemetry_sensors[SNAPSHOT_SENSORS] = {
	[SNAPSHOT_TEMPERATURE] = {"C", 1000, 1}, [SNAPSHOT_POWER] = {"W", 1000, 1},
	[SNAPSHOT_VOLTAGE] = {"V", 1000, 2},     [SNAPSHOT_CURRENT] = {"A", 1000, 1},
	[SNAPSHOT_AICLK] = {"MHz", 1, 0},        [SNAPSHOT_AXICLK] = {"MHz", 1, 0},
	[SNAPSHOT_ARCCLK] = {"MHz", 1, 0},       [SNAPSHOT_FAN] = {"rpm", 1, 0},
};

static const struct snapshot_device *telemetry_at(const void *context, size_t item)
{
	return &model_snapshot(context)->devices[item];
}

static const char *telemetry_card(struct list_cell *cell)
{
	pane_device_card(telemetry_at(cell->context, cell->item), cell->text, FIELDS_TEXT);
	return cell->text;
}

/* Less than any other if it is not known. */
static uint64_t telemetry_value(const struct list_cell *cell)
{
	const struct snapshot_telemetry *telemetry =
		&telemetry_at(cell->context, cell->item)->telemetry;

	return telemetry->known & UINT32_C(1) << cell->of
		       ? (uint64_t)telemetry->value[cell->of] - (uint64_t)INT64_MIN
		       : 0;
}

static const char *telemetry_text(struct list_cell *cell)
{
	const struct snapshot_device *device = telemetry_at(cell->context, cell->item);

	if (condition_is_over(device, (enum snapshot_sensor)cell->of))
		cell->style = GRID_BAD;
	if (!(device->telemetry.known & UINT32_C(1) << cell->of))
		return NULL;
	snprintf(cell->text, FIELDS_TEXT, "%.*f %s", telemetry_sensors[cell->of].digits,
		 (double)device->telemetry.value[cell->of] / telemetry_sensors[cell->of].divisor,
		 telemetry_sensors[cell->of].unit);
	return cell->text;
}

#define UNKNOWN .none = "not known"
#define SENSOR UNKNOWN, .width = 9, .right = true, .cell = telemetry_text, .value = telemetry_value

static const struct list_column telemetry_columns[] = {
	{"device", "DEV", .width = 5, .right = true, .cell = pane_devices_number},
	{"card", "CARD", .width = 16, .grows = true, .cell = telemetry_card},
	{.title = "TEMP", SENSOR, .of = SNAPSHOT_TEMPERATURE},
	{.title = "POWER", SENSOR, .of = SNAPSHOT_POWER},
	{.title = "CLOCK", SENSOR, .of = SNAPSHOT_AICLK},
	{.title = "FAN", SENSOR, .of = SNAPSHOT_FAN},
	{.title = "VOLTAGE", SENSOR, .of = SNAPSHOT_VOLTAGE},
	{.title = "CURRENT", SENSOR, .of = SNAPSHOT_CURRENT, .least = 100},
	{.title = "AXI", SENSOR, .of = SNAPSHOT_AXICLK, .least = 120},
	{.title = "ARC", SENSOR, .of = SNAPSHOT_ARCCLK, .least = 120},
	{"bus", "BUS", UNKNOWN, .width = 12, .least = 140},
	{"serial", "SERIAL", UNKNOWN, .width = 18, .least = 160},
	{"firmware", "FIRMWARE", UNKNOWN, .width = 12, .least = 180},
};

static const struct list_rows telemetry_rows = {
	.columns = telemetry_columns,
	.column_count = ARRAY_SIZE(telemetry_columns),
	.none = "no device: neither the driver nor a tracked process has one",
	.fields = document_device,
	.row = pane_devices_row,
	.wants = pane_devices_wants,
	.finds = pane_devices_finds,
	.key = pane_devices_key,
};

static void telemetry_draw(struct model *model, struct grid *grid, const struct grid_area *area)
{
	pane_draw_list(model, grid, area, "Telemetry, as the driver tells it");
}

const struct pane pane_telemetry = {
	.name = "Telemetry",
	.keys = "<>:sort r:reverse /:filter",
	.rows = &telemetry_rows,
	.count = pane_devices_count,
	.draw = telemetry_draw,
};
