/* SPDX-License-Identifier: Apache-2.0 */

/* Both formats line by line, the bounds on rows, and counters that never decrease. */

#include "model/health.h"
#include "web/export/metrics-headroom.h"
#include "web/export/metrics.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/testing/unit.h"
#include "model/types.h"
#include "web/server/web.h"

static struct snapshot *snapshot_of(uint32_t processes, uint64_t allocs)
{
	struct snapshot *snapshot = snapshot_new(1);

	assert(snapshot);
	for (uint32_t i = 0; i < processes; i++) {
		const struct snapshot_process identity = {
			.id.pid = 100 + i,
			.comm = i == 0 ? "a\"b\\c\nx" : "python",
			.user = "me",
			.source = "book",
			.alive = true,
			.exact = i != 1,
			.last_ns = UINT64_C(5000000001),
		};
		struct snapshot_part *part;
		uint32_t index = 0;

		assert(snapshot_add_process(snapshot, &identity, &index) == 0);
		part = snapshot_part(snapshot, index, 0);
		assert(part);
		part->facts.unique_id = 0xabc;
		part->facts.capacity[0] = 1000;
		part->memory[0] = (struct snapshot_memory){
			.used = 100 - i,
			.buffers = 2,
			.peak = 120,
			.allocs = allocs,
			.frees = allocs - 2,
		};
	}
	assert(snapshot_finish(snapshot) == 0);
	return snapshot;
}

static uint32_t wanted = 2; /* processes with rows of their own */

static char *text_of(const struct snapshot *snapshot, const struct health *health,
		     struct tally *last, bool openmetrics)
{
	const struct metrics_server server = {.answers = {0, 0, 11, 0, 12, 13}};
	const struct metrics_input input = {snapshot, health, &server, wanted};
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	assert(out);
	metrics_write(&input, last, openmetrics ? EXPOSITION_OPENMETRICS : EXPOSITION_TEXT, out);
	assert(fclose(out) == 0);
	return text;
}

static struct health *health;
static struct tally *last;

static void begin(void)
{
	health = calloc(1, sizeof(*health));
	last = calloc(1, sizeof(*last));
	assert(health && last);
}

static void end(void)
{
	free(health);
	free(last);
}

static bool has(const char *text, const char *line)
{
	const char *at = strstr(text, line);

	return at && (at == text || at[-1] == '\n');
}

UNIT(metrics_have_the_prometheus_text_form)
{
	struct snapshot *snapshot = snapshot_of(4, 10);
	char *text;

	begin();
	health->incidents[0] = 3;
	health->start_ns = UINT64_C(1500000000);
	text = text_of(snapshot, health, last, false);
	assert(has(text, "# TYPE ttmem_device_bytes gauge\n"
			 "ttmem_device_bytes{device=\"0\",uid=\"0xabc\",type=\"DRAM\"} 394\n"));
	assert(has(text, "ttmem_device_capacity_bytes{device=\"0\",uid=\"0xabc\",type=\"DRAM\"} "
			 "1000\n"));
	assert(!strstr(text, "ttmem_device_capacity_bytes{device=\"0\",uid=\"0xabc\",type=\"L1\""));
	assert(has(text, "ttmem_process_bytes{pid=\"100\",comm=\"a\\\"b\\\\c\\nx\",user=\"me\","
			 "device=\"0\",uid=\"0xabc\",type=\"DRAM\"} 100\n"));
	assert(has(text, "ttmem_process_bytes{pid=\"101\","));
	assert(!has(text, "ttmem_process_bytes{pid=\"102\","));
	assert(has(text, "ttmem_process_bytes{pid=\"other\",comm=\"other\",user=\"\",device=\"0\","
			 "uid=\"0xabc\",type=\"DRAM\"} 195\n"));
	assert(has(text, "ttmem_process_buffers{pid=\"other\",comm=\"other\",user=\"\","
			 "device=\"0\",uid=\"0xabc\",type=\"DRAM\"} 4\n"));
	assert(has(text, "# TYPE ttmem_allocations_total counter\n"
			 "ttmem_allocations_total{device=\"0\",uid=\"0xabc\",type=\"DRAM\"} 40\n"));
	assert(has(text, "ttmem_frees_total{device=\"0\",uid=\"0xabc\",type=\"DRAM\"} 32\n"));
	assert(has(text, "ttmem_incidents_total{kind=\"double_free\"} 3\n"));
	assert(has(text, "ttmem_inexact_processes 1\n"));
	assert(!strstr(text, "ttmem_fleet_page"));
	assert(has(text, "ttmem_last_activity_timestamp_seconds 5.000000001\n"));
	assert(has(text, "process_start_time_seconds 1.500000000\n"));
	assert(has(text, "ttmem_http_requests_total{code=\"5xx\"} 13\n"));
	assert(!strstr(text, "# UNIT") && !strstr(text, "# EOF"));
	free(text);
	snapshot_free(snapshot);
	end();
}

/* A card with all of its values but a clock, one in reset, and a device that is none of the driver's. */
static struct snapshot *snapshot_of_cards(void)
{
	const struct snapshot_card hot = {
		.unique_id = 0xabc,
		.serial = 0x51,
		.card = "p150a",
		.bus = "0000:01:00.0",
		.telemetry = {.known = ((1u << SNAPSHOT_SENSORS) - 1) & ~(1u << SNAPSHOT_AXICLK),
			      .value = {-5500, 312000, 820, 38000, 1350, 0, 540, 5400}},
		.condition = {.state = SNAPSHOT_PRESENT,
			      .limits = {.known = 1u << SNAPSHOT_POWER,
					 .value[SNAPSHOT_POWER] = 300000},
			      .has_trips = true,
			      .trips = 2,
			      .has_heartbeat = true,
			      .heartbeat = 77,
			      .outside = 3},
	};
	const struct snapshot_card resetting = {
		.number = 1, .unique_id = 0xabd, .condition.state = SNAPSHOT_IN_RESET};
	struct snapshot *snapshot = snapshot_new(1);
	const struct snapshot_process who = {.id.pid = 1, .alive = true, .user = "", .comm = ""};
	uint32_t index;

	assert(snapshot && snapshot_add_card(snapshot, &hot) == 0);
	assert(snapshot_add_card(snapshot, &resetting) == 0);
	assert(snapshot_add_process(snapshot, &who, &index) == 0);
	assert(snapshot_part(snapshot, index, 2));
	assert(snapshot_finish(snapshot) == 0);
	return snapshot;
}

UNIT(metrics_of_cards_are_in_base_units)
{
	static const char *const lines[] = {
		("ttmem_device_info{device=\"0\",uid=\"0xabc\",card=\"p150a\",arch=\"blackhole\","
		 "serial=\"0x51\",bus=\"0000:01:00.0\",firmware=\"\"} 1\n"),
		"ttmem_device_state{device=\"0\",uid=\"0xabc\",state=\"present\"} 1\n",
		"ttmem_device_state{device=\"0\",uid=\"0xabc\",state=\"in_reset\"} 0\n",
		"ttmem_device_state{device=\"1\",uid=\"0xabd\",state=\"in_reset\"} 1\n",
		"ttmem_device_temperature_celsius{device=\"0\",uid=\"0xabc\"} -5.500\n",
		"ttmem_device_power_watts{device=\"0\",uid=\"0xabc\"} 312.000\n",
		"ttmem_device_power_limit_watts{device=\"0\",uid=\"0xabc\"} 300.000\n",
		"ttmem_device_voltage_volts{device=\"0\",uid=\"0xabc\"} 0.820\n",
		"ttmem_device_current_amperes{device=\"0\",uid=\"0xabc\"} 38.000\n",
		"ttmem_device_clock_hertz{device=\"0\",uid=\"0xabc\",clock=\"ai\"} 1350000000\n",
		"ttmem_device_clock_hertz{device=\"0\",uid=\"0xabc\",clock=\"arc\"} 540000000\n",
		"ttmem_device_fan_rpm{device=\"0\",uid=\"0xabc\"} 5400\n",
		"ttmem_device_thermal_trips_total{device=\"0\",uid=\"0xabc\"} 2\n",
		"ttmem_device_heartbeats_total{device=\"0\",uid=\"0xabc\"} 77\n",
		"ttmem_device_untracked_openers{device=\"0\",uid=\"0xabc\"} 0\n",
		"ttmem_device_outside_openers{device=\"0\",uid=\"0xabc\"} 3\n",
		"ttmem_device_stale_holders{device=\"1\",uid=\"0xabd\"} 0\n",
	};
	static const char *const missing[] = {
		"ttmem_device_temperature_limit_celsius{", "ttmem_device_power_watts{device=\"1\"",
		"ttmem_device_info{device=\"2\"", "ttmem_device_state{device=\"2\""};
	struct snapshot *snapshot = snapshot_of_cards();
	char *text;

	begin();
	/* In every order: what has no value hides nothing behind it. */
	for (size_t turn = 0; turn < snapshot->device_count; turn++) {
		struct snapshot_device first = snapshot->devices[0];

		text = text_of(snapshot, health, last, false);
		for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
			assert(has(text, lines[i]));
		for (size_t i = 0; i < ARRAY_SIZE(missing); i++)
			assert(!strstr(text, missing[i]));
		free(text);
		memmove(&snapshot->devices[0], &snapshot->devices[1],
			(snapshot->device_count - 1) * sizeof(first));
		snapshot->devices[snapshot->device_count - 1] = first;
	}
	text = text_of(snapshot, health, last, true);
	assert(has(text, "# UNIT ttmem_device_temperature_celsius celsius\n"));
	free(text);
	snapshot_free(snapshot);
	end();
}

UNIT(metrics_have_the_openmetrics_form)
{
	struct snapshot *snapshot = snapshot_of(1, 10);
	char *text;

	begin();
	text = text_of(snapshot, health, last, true);
	assert(has(text, "# TYPE ttmem_device_bytes gauge\n# UNIT ttmem_device_bytes bytes\n"));
	assert(has(text, "# TYPE ttmem_allocations counter\n"
			 "ttmem_allocations_total{device=\"0\",uid=\"0xabc\",type=\"DRAM\"} 10\n"));
	assert(has(text, "# TYPE process_cpu_seconds counter\n# UNIT process_cpu_seconds seconds\n"
			 "process_cpu_seconds_total "));
	assert(strcmp(text + strlen(text) - 6, "# EOF\n") == 0);
	free(text);
	snapshot_free(snapshot);
	end();
}

static uint64_t allocations(uint32_t processes, uint64_t allocs)
{
	struct snapshot *snapshot = snapshot_of(processes, allocs);
	char *text = text_of(snapshot, health, last, false);
	const char *line = "ttmem_allocations_total{device=\"0\",uid=\"0xabc\",type=\"DRAM\"} ";
	const char *at = strstr(text, line);
	uint64_t value;

	assert(at);
	value = strtoull(at + strlen(line), NULL, 10);
	free(text);
	snapshot_free(snapshot);
	return value;
}

UNIT(counters_never_fall)
{
	struct snapshot *dead = snapshot_of(1, 100);

	begin();
	assert(allocations(2, 100) == 200);
	/* One has exited and was not counted yet: the figure stays. */
	assert(allocations(1, 101) == 200);
	tally_add_process(&health->past, dead, 0);
	assert(allocations(1, 105) == 205);
	/* All are gone. */
	tally_add_process(&health->past, dead, 0);
	assert(allocations(0, 0) == 205);
	snapshot_free(dead);
	end();
}

UNIT(processes_of_equal_pid_become_other)
{
	struct snapshot *snapshot = snapshot_of(2, 10);
	char *text;

	begin();
	snapshot->processes[1].id.pid = 100;
	text = text_of(snapshot, health, last, false);
	assert(has(text, "ttmem_process_bytes{pid=\"other\",comm=\"other\",user=\"\",device=\"0\","
			 "uid=\"0xabc\",type=\"DRAM\"} 99\n"));
	free(text);
	snapshot_free(snapshot);
	end();
}

/* Processes with circular buffers; what is read of each is counted. */
static size_t reads;

static int read_rows(void *context, const struct snapshot_request *request,
		     struct snapshot **ret_snapshot)
{
	struct snapshot *rows = snapshot_of(1, 10);
	const struct snapshot_buffer buffers[] = {
		{.type = TYPES_CB, .address = 0x1000, .size = 64, .size_per_bank = 0x800},
		{.type = TYPES_L1, .address = 0x4000, .size = 64, .size_per_bank = 0x100},
	};
	struct snapshot_part *part = &rows->processes[0].parts[0];

	(void)context; /* none */
	assert(request->filter.pid && request->limit == METRICS_HEADROOM_BUFFERS_MAX);
	rows->processes[0].id.pid = request->filter.pid;
	part->facts.windows[TYPES_L1] = (struct snapshot_window){0, 0x10000, 8, 32};
	for (size_t i = 0; i < ARRAY_SIZE(buffers); i++)
		assert(snapshot_add_buffer(rows, &buffers[i]) == 0);
	reads++;
	*ret_snapshot = rows;
	return 0;
}

UNIT(headroom_is_read_as_far_as_users_have_room)
{
	static const struct web_provider provider = {.snapshot = read_rows};
	struct snapshot *snapshot = snapshot_of(4, 10);
	struct metrics_input input = {snapshot, NULL, NULL, 4, NULL, &provider};
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	begin();
	assert(out);
	input.health = health;
	/* Three of one user: a half, a quarter of what is left for others, and nothing more. */
	for (size_t i = 0; i < 3; i++) {
		snapshot->processes[i].parts[0].memory[TYPES_CB].buffers = 1;
		snapshot->processes[i].parts[0].memory[TYPES_DRAM].buffers =
			i == 0 ? METRICS_HEADROOM_BUFFERS_MAX / 2 - 1 : 1;
	}
	snapshot->processes[1].user_id = 1; /* another's */
	metrics_write(&input, last, EXPOSITION_TEXT, out);
	assert(fclose(out) == 0);
	assert(reads == 2);
	assert(has(text, "ttmem_l1_headroom_bytes{pid=\"100\","));
	assert(has(text, "ttmem_l1_headroom_bytes{pid=\"101\",comm=\"python\",user=\"me\","
			 "device=\"0\",uid=\"0xabc\"} 10240\n"));
	assert(!strstr(text, "ttmem_l1_headroom_bytes{pid=\"102\""));
	assert(has(text, "ttmem_l1_headroom_left_out 1\n"));
	free(text);
	snapshot_free(snapshot);
	end();
}

UNIT(dead_processes_and_unknown_peaks_are_left_out)
{
	struct snapshot *snapshot = snapshot_of(1, 10);
	char *text;

	begin();
	snapshot->processes[0].alive = false;
	snapshot->devices[0].memory[0].peak_is_unknown = true;
	text = text_of(snapshot, health, last, false);
	assert(!strstr(text, "ttmem_process_bytes{"));
	assert(!strstr(text, "ttmem_device_peak_bytes{device=\"0\",uid=\"0xabc\",type=\"DRAM\""));
	free(text);
	snapshot_free(snapshot);
	end();
}

UNIT(tallies_are_bounded)
{
	begin();
	for (uint32_t i = 0; i < 2 * TALLY_MAX; i++)
		tally_row(last, i, 0)->allocs[0]++;
	assert(last->count == TALLY_MAX);
	assert(last->rows[TALLY_MAX - 1].device == TALLY_OTHER);
	assert(last->rows[TALLY_MAX - 1].allocs[0] == TALLY_MAX + 1);
	assert(last->rows[5].allocs[0] == 1 && tally_row(last, 5, 0) == &last->rows[5]);
	end();
}

/* Samples, not comments; each must stay on one line whatever the names are. */
static size_t samples(const char *text, const char *family)
{
	size_t count = 0;

	for (const char *line = text; line && *line; line = strchr(line, '\n') + 1) {
		bool sample = strncmp(line, "ttmem_", 6) == 0 || strncmp(line, "process_", 8) == 0;

		assert(sample || *line == '#');
		count += sample && strncmp(line, family, strlen(family)) == 0;
	}
	return count;
}

/* Processes seen only once, each with every device and the worst possible name. */
static struct snapshot *crowd(uint32_t generation, uint32_t processes, uint32_t devices)
{
	struct snapshot *snapshot = snapshot_new(1);

	assert(snapshot);
	for (uint32_t i = 0; i < processes; i++) {
		char name[32];
		size_t length = (size_t)snprintf(name, sizeof(name), "\n\"} 1\n%u\\",
						 generation * processes + i);
		const struct snapshot_process identity = {
			.id.pid = generation * processes + i + 1,
			.comm = snapshot_text(snapshot, name, length),
			.user = "\"}\n# ",
			.source = "book",
			.alive = true,
			.exact = true,
		};
		uint32_t index = 0;

		assert(identity.comm);
		assert(snapshot_add_process(snapshot, &identity, &index) == 0);
		for (uint32_t device = 0; device < devices; device++) {
			struct snapshot_part *part = snapshot_part(snapshot, index, device);

			assert(part);
			for (uint32_t type = 0; type < BOOK_TYPES; type++)
				part->memory[type] = (struct snapshot_memory){
					.used = 1, .buffers = 1, .allocs = 1};
		}
	}
	assert(snapshot_finish(snapshot) == 0);
	return snapshot;
}

UNIT(rows_stay_bounded_however_many_processes_come)
{
	size_t most = 2 * BOOK_TYPES * 3 + BOOK_TYPES * 3; /* two with rows, plus the others */

	begin();
	for (uint32_t generation = 0; generation < 10; generation++) {
		struct snapshot *snapshot = crowd(generation, 2000, 3);
		char *text = text_of(snapshot, health, last, false);

		assert(samples(text, "ttmem_process_bytes{") == most);
		assert(samples(text, "ttmem_process_buffers{") == most);
		assert(samples(text, "ttmem_device_bytes{") == (size_t)BOOK_TYPES * 3);
		assert(samples(text, "ttmem_allocations_total{") == (size_t)BOOK_TYPES * 3);
		assert(samples(text, "") < 300);
		for (uint32_t i = 0; i < 2000; i++)
			tally_add_process(&health->past, snapshot, i);
		free(text);
		snapshot_free(snapshot);
	}
	end();
}

UNIT(a_process_with_too_many_devices_has_an_other_row)
{
	struct snapshot *snapshot = crowd(0, 1, 2 * METRICS_PROCESS_ROWS_MAX);
	char *text;

	begin();
	text = text_of(snapshot, health, last, false);
	/* 64 of its own, the rest as other: nothing is lost. */
	assert(samples(text, "ttmem_process_bytes{") ==
	       (size_t)BOOK_TYPES * 2 * METRICS_PROCESS_ROWS_MAX);
	assert(samples(text, "ttmem_process_bytes{pid=\"other\"") ==
	       (size_t)BOOK_TYPES * METRICS_PROCESS_ROWS_MAX);
	free(text);
	snapshot_free(snapshot);
	end();
}

UNIT(no_process_has_rows)
{
	struct snapshot *snapshot = crowd(0, 5, 1);
	char *text;

	begin();
	wanted = 0;
	text = text_of(snapshot, health, last, false);
	assert(samples(text, "ttmem_process_bytes{") == BOOK_TYPES);
	assert(has(text, "ttmem_process_bytes{pid=\"other\",comm=\"other\",user=\"\",device=\"0\","
			 "uid=\"\",type=\"DRAM\"} 5\n"));
	free(text);
	snapshot_free(snapshot);
	end();
}
