/* SPDX-License-Identifier: Apache-2.0 */

/* View 6: sensor readings of the cards from the driver. */

#include <inttypes.h>
#include <stdio.h>

#include "base/bits.h"
#include "model/cards/condition.h"
#include "tui/pane.h"

/* Columns after DEV and CARD are sensors, in this order. */
static const struct {
	const char *unit;
	double divisor;
	enum snapshot_sensor sensor;
	int digits;
} telemetry_sensors[] = {
	{"C", 1000, SNAPSHOT_TEMPERATURE, 1}, {"W", 1000, SNAPSHOT_POWER, 1},
	{"MHz", 1, SNAPSHOT_AICLK, 0},        {"rpm", 1, SNAPSHOT_FAN, 0},
	{"V", 1000, SNAPSHOT_VOLTAGE, 2},     {"A", 1000, SNAPSHOT_CURRENT, 1},
	{"MHz", 1, SNAPSHOT_AXICLK, 0},       {"MHz", 1, SNAPSHOT_ARCCLK, 0},
};

enum telemetry_column {
	TELEMETRY_NUMBER,
	TELEMETRY_CARD,
	TELEMETRY_SENSOR,
	TELEMETRY_BUS = TELEMETRY_SENSOR + ARRAY_SIZE(telemetry_sensors),
	TELEMETRY_SERIAL,
	TELEMETRY_FIRMWARE,
};

static const struct list_column telemetry_columns[] = {
	{.title = "DEV", .width = 5, .right = true},
	{.title = "CARD", .width = 16, .grows = true},
	{.title = "TEMP", .width = 9, .right = true},
	{.title = "POWER", .width = 9, .right = true},
	{.title = "CLOCK", .width = 9, .right = true},
	{.title = "FAN", .width = 9, .right = true},
	{.title = "VOLTAGE", .width = 9, .right = true},
	{.title = "CURRENT", .width = 9, .right = true, .least = 100},
	{.title = "AXI", .width = 9, .right = true, .least = 120},
	{.title = "ARC", .width = 9, .right = true, .least = 120},
	{.title = "BUS", .width = 12, .least = 140},
	{.title = "SERIAL", .width = 18, .least = 160},
	{.title = "FIRMWARE", .width = 12, .least = 180},
};

static const struct snapshot_device *telemetry_at(const void *context, size_t item)
{
	return &model_snapshot(context)->devices[item];
}

static bool telemetry_knows(const struct snapshot_device *device, enum snapshot_sensor sensor)
{
	return device->telemetry.known & UINT32_C(1) << sensor;
}

static void telemetry_cell(const void *context, size_t item, size_t column, char *text,
			   enum grid_style *style)
{
	const struct snapshot_device *device = telemetry_at(context, item);
	bool is_known = true;

	if (column == TELEMETRY_NUMBER) {
		pane_device_number(device, text, LIST_CELL_SIZE);
	} else if (column == TELEMETRY_CARD) {
		pane_device_card(device, text, LIST_CELL_SIZE);
	} else if (column < TELEMETRY_BUS) {
		size_t i = column - TELEMETRY_SENSOR;
		enum snapshot_sensor sensor = telemetry_sensors[i].sensor;

		is_known = telemetry_knows(device, sensor);
		snprintf(text, LIST_CELL_SIZE, "%.*f %s", telemetry_sensors[i].digits,
			 (double)device->telemetry.value[sensor] / telemetry_sensors[i].divisor,
			 telemetry_sensors[i].unit);
		if (condition_is_over(device, sensor))
			*style = GRID_BAD;
	} else if (column == TELEMETRY_BUS) {
		is_known = device->bus;
		snprintf(text, LIST_CELL_SIZE, "%s", is_known ? device->bus : "");
	} else if (column == TELEMETRY_SERIAL) {
		is_known = device->serial;
		snprintf(text, LIST_CELL_SIZE, "0x%" PRIx64, device->serial);
	} else {
		is_known = device->firmware;
		snprintf(text, LIST_CELL_SIZE, "%s", is_known ? device->firmware : "");
	}
	if (!is_known) {
		snprintf(text, LIST_CELL_SIZE, "not known");
		*style = GRID_FAINT;
	}
}

static int telemetry_compare(const void *context, size_t a, size_t b, size_t column)
{
	const struct snapshot_device *x = telemetry_at(context, a), *y = telemetry_at(context, b);

	if (column >= TELEMETRY_SENSOR && column < TELEMETRY_BUS) {
		enum snapshot_sensor sensor = telemetry_sensors[column - TELEMETRY_SENSOR].sensor;
		int64_t p = telemetry_knows(x, sensor) ? x->telemetry.value[sensor] : INT64_MIN;
		int64_t q = telemetry_knows(y, sensor) ? y->telemetry.value[sensor] : INT64_MIN;

		return (p > q) - (p < q);
	}
	if (column == TELEMETRY_CARD)
		return pane_compare_texts(x->card, y->card);
	if (column == TELEMETRY_BUS)
		return pane_compare_texts(x->bus, y->bus);
	if (column == TELEMETRY_SERIAL)
		return pane_compare(x->serial, y->serial);
	if (column == TELEMETRY_FIRMWARE)
		return pane_compare_texts(x->firmware, y->firmware);
	return pane_compare(x->device, y->device);
}

static uint64_t telemetry_key(const void *context, size_t item)
{
	return pane_devices.rows->key(context, item);
}

static bool telemetry_wants(const void *context, size_t item, const char *filter)
{
	return pane_devices.rows->wants(context, item, filter);
}

static const struct list_rows telemetry_rows = {
	.columns = telemetry_columns,
	.column_count = ARRAY_SIZE(telemetry_columns),
	.none = "no device: neither the driver nor a tracked process has one",
	.cell = telemetry_cell,
	.compare = telemetry_compare,
	.key = telemetry_key,
	.wants = telemetry_wants,
};

static void telemetry_draw(struct model *model, struct grid *grid, const struct grid_area *area)
{
	pane_draw_list(model, grid, area, "Telemetry, as the driver tells it");
}

static size_t telemetry_count(const struct model *model)
{
	return pane_devices.count(model);
}

const struct pane pane_telemetry = {
	.name = "Telemetry",
	.keys = "<>:sort r:reverse /:filter",
	.rows = &telemetry_rows,
	.sort = TELEMETRY_NUMBER,
	.count = telemetry_count,
	.draw = telemetry_draw,
};
