/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Units are those that Prometheus has for everything: degrees Celsius, watts, volts, amperes, hertz;
 * of a fan rpm, as node_exporter. What is not known has no sample.
 */

#include "web/export/metrics-card.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/bits.h"
#include "model/cards/condition.h"
#include "model/snapshot.h"
#include "web/export/exposition.h"
#include "web/export/metrics.h"

static const struct {
	const char *name, *unit, *help;
	const char *limit, *limit_help;
} metrics_card_sensors[] = {
	[SNAPSHOT_TEMPERATURE] = {"ttmem_device_temperature_celsius", "celsius",
				  "Temperature of the chip.",
				  "ttmem_device_temperature_limit_celsius",
				  "Temperature from which on the firmware slows it down."},
	[SNAPSHOT_POWER] = {"ttmem_device_power_watts", "watts", "Power that it takes.",
			    "ttmem_device_power_limit_watts", "The most that it should take."},
	[SNAPSHOT_VOLTAGE] = {"ttmem_device_voltage_volts", "volts", "Voltage of the core.",
			      "ttmem_device_voltage_limit_volts",
			      "The highest that it should have."},
	[SNAPSHOT_CURRENT] = {"ttmem_device_current_amperes", "amperes", "Current of the core.",
			      "ttmem_device_current_limit_amperes",
			      "The most that it should take."},
};

/* Whether the driver has, or had, a card for it. */
static bool metrics_card_is(const struct snapshot_device *device)
{
	return device->present || device->condition.state != SNAPSHOT_STATE_UNKNOWN;
}

static void metrics_card_begin(struct exposition *to, const struct snapshot_device *device)
{
	exposition_begin(to);
	metrics_label_device(to, device->device, device->unique_id);
}

/* One family over all cards. */
static void metrics_card_values(struct exposition *to, const struct snapshot *snapshot,
				uint32_t sensor, bool is_limit)
{
	for (size_t i = 0; i < snapshot->device_count; i++) {
		const struct snapshot_device *device = &snapshot->devices[i];
		const struct snapshot_telemetry *telemetry =
			is_limit ? &device->condition.limits : &device->telemetry;

		if (!(telemetry->known & UINT32_C(1) << sensor))
			continue;
		metrics_card_begin(to, device);
		exposition_milli(to, telemetry->value[sensor]);
	}
}

static void metrics_card_write_sensors(struct exposition *to, const struct snapshot *snapshot)
{
	for (uint32_t i = 0; i < ARRAY_SIZE(metrics_card_sensors); i++) {
		exposition_family(to, metrics_card_sensors[i].name, EXPOSITION_GAUGE,
				  metrics_card_sensors[i].unit, metrics_card_sensors[i].help);
		metrics_card_values(to, snapshot, i, false);
		exposition_family(to, metrics_card_sensors[i].limit, EXPOSITION_GAUGE,
				  metrics_card_sensors[i].unit, metrics_card_sensors[i].limit_help);
		metrics_card_values(to, snapshot, i, true);
	}
}

static void metrics_card_write_clocks(struct exposition *to, const struct snapshot *snapshot)
{
	static const char *const clocks[] = {"ai", "axi", "arc"};

	exposition_family(to, "ttmem_device_clock_hertz", EXPOSITION_GAUGE, "hertz",
			  "Its clocks at this moment.");
	for (size_t i = 0; i < snapshot->device_count; i++) {
		const struct snapshot_device *device = &snapshot->devices[i];

		for (uint32_t k = 0; k < ARRAY_SIZE(clocks); k++) {
			uint32_t sensor = SNAPSHOT_AICLK + k;

			if (!(device->telemetry.known & UINT32_C(1) << sensor))
				continue;
			metrics_card_begin(to, device);
			exposition_label(to, "clock", clocks[k]);
			exposition_u64(to, (uint64_t)device->telemetry.value[sensor] * 1000000);
		}
	}
}

/* A whole number; false where there is none. */
typedef bool metrics_card_value_fn(const struct snapshot_device *device, uint64_t *ret_value);

/* One family of them. */
static void metrics_card_numbers(struct exposition *to, const struct snapshot *snapshot,
				 metrics_card_value_fn *value)
{
	for (size_t i = 0; i < snapshot->device_count; i++) {
		const struct snapshot_device *device = &snapshot->devices[i];
		uint64_t number = 0;

		if (!metrics_card_is(device) || !value(device, &number))
			continue;
		metrics_card_begin(to, device);
		exposition_u64(to, number);
	}
}

static bool metrics_card_fan(const struct snapshot_device *device, uint64_t *ret_value)
{
	*ret_value = (uint64_t)device->telemetry.value[SNAPSHOT_FAN];
	return device->telemetry.known & UINT32_C(1) << SNAPSHOT_FAN;
}

static bool metrics_card_trips(const struct snapshot_device *device, uint64_t *ret_value)
{
	*ret_value = device->condition.trips;
	return device->condition.has_trips;
}

static bool metrics_card_heartbeats(const struct snapshot_device *device, uint64_t *ret_value)
{
	*ret_value = device->condition.heartbeat;
	return device->condition.has_heartbeat;
}

static bool metrics_card_untracked(const struct snapshot_device *device, uint64_t *ret_value)
{
	*ret_value = device->untracked;
	return true;
}

static bool metrics_card_outside(const struct snapshot_device *device, uint64_t *ret_value)
{
	*ret_value = device->condition.outside;
	return true;
}

static bool metrics_card_stale(const struct snapshot_device *device, uint64_t *ret_value)
{
	*ret_value = device->before_reset;
	return true;
}

static const struct {
	const char *name, *help;
	enum exposition_type type;
	metrics_card_value_fn *value;
} metrics_card_families[] = {
	{"ttmem_device_fan_rpm", "Revolutions of its fan in a minute.", EXPOSITION_GAUGE,
	 metrics_card_fan},
	{"ttmem_device_thermal_trips",
	 "How often it switched itself off for heat, since power was cycled.", EXPOSITION_COUNTER,
	 metrics_card_trips},
	{"ttmem_device_heartbeats", "Counts while its firmware runs.", EXPOSITION_COUNTER,
	 metrics_card_heartbeats},
	{"ttmem_device_untracked_openers",
	 "Living processes that have it open and tell nothing of their memory.", EXPOSITION_GAUGE,
	 metrics_card_untracked},
	{"ttmem_device_outside_openers",
	 "Descriptors of it in processes outside of the daemon's pid namespace.", EXPOSITION_GAUGE,
	 metrics_card_outside},
	{"ttmem_device_stale_holders", "Processes with memory from before it was reset or removed.",
	 EXPOSITION_GAUGE, metrics_card_stale},
};

static void metrics_card_write_numbers(struct exposition *to, const struct snapshot *snapshot)
{
	for (size_t i = 0; i < ARRAY_SIZE(metrics_card_families); i++) {
		exposition_family(to, metrics_card_families[i].name, metrics_card_families[i].type,
				  NULL, metrics_card_families[i].help);
		metrics_card_numbers(to, snapshot, metrics_card_families[i].value);
	}
}

static void metrics_card_write_info(struct exposition *to, const struct snapshot *snapshot)
{
	exposition_family(to, "ttmem_device_info", EXPOSITION_GAUGE, NULL,
			  "What card it is; always 1.");
	for (size_t i = 0; i < snapshot->device_count; i++) {
		const struct snapshot_device *device = &snapshot->devices[i];
		char serial[24] = "";

		if (!metrics_card_is(device))
			continue;
		if (device->serial)
			snprintf(serial, sizeof(serial), "0x%" PRIx64, device->serial);
		metrics_card_begin(to, device);
		exposition_label(to, "card", device->card ? device->card : "");
		exposition_label(to, "arch", device->arch ? device->arch : "");
		exposition_label(to, "serial", serial);
		exposition_label(to, "bus", device->bus ? device->bus : "");
		exposition_label(to, "firmware", device->firmware ? device->firmware : "");
		exposition_u64(to, 1);
	}
}

static void metrics_card_write_states(struct exposition *to, const struct snapshot *snapshot)
{
	exposition_family(to, "ttmem_device_state", EXPOSITION_GAUGE, NULL,
			  "1 for the state that it is in, 0 for the others.");
	for (size_t i = 0; i < snapshot->device_count; i++) {
		const struct snapshot_device *device = &snapshot->devices[i];

		for (uint32_t state = SNAPSHOT_PRESENT;
		     metrics_card_is(device) && state <= SNAPSHOT_GONE; state++) {
			metrics_card_begin(to, device);
			exposition_label(to, "state", condition_state(state));
			exposition_u64(to, device->condition.state == state);
		}
	}
}

void metrics_card_write(struct exposition *to, const struct snapshot *snapshot)
{
	metrics_card_write_info(to, snapshot);
	metrics_card_write_states(to, snapshot);
	metrics_card_write_sensors(to, snapshot);
	metrics_card_write_clocks(to, snapshot);
	metrics_card_write_numbers(to, snapshot);
}
