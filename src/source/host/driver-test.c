/* SPDX-License-Identifier: Apache-2.0 */

/* The driver's files: complete, with some missing, all wrong. */

#include "source/host/driver.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/testing/unit.h"
#include "model/snapshot.h"
#include "model/types.h"
#include "source/host/nodes.h"
#include "source/host/testing/host-testing.h"
#include "source/proc/pid-cache.h"
#include "source/proc/proc.h"

#define CARD "sys/class/tenstorrent/tenstorrent!0/"
#define PCI "sys/devices/pci0000:00/0000:c1:00.0/"

static void link_device(void)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/" CARD "device", unit_dir());
	assert(symlink("../../../devices/pci0000:00/0000:c1:00.0", path) == 0);
}

struct file {
	const char *name, *text;
};

/* A machine with one card that has these files; their list ends with {NULL}. */
static struct snapshot *look_at(const struct file *files)
{
	host_testing_start();
	for (; files->name; files++)
		host_testing_text(files->name, files->text);
	link_device();
	return host_testing_look();
}

UNIT(a_whole_card)
{
	static const struct file files[] = {
		{CARD "tt_card_type", "n150\n"},
		{CARD "tt_serial", "0100018511732031\n"},
		{CARD "tt_asic_id", "1F2E3D4C5B6A7988\n"},
		{CARD "tt_aiclk", "1000\n"},
		{CARD "tt_axiclk", "900\n"},
		{CARD "tt_arcclk", "540\n"},
		{CARD "tt_fw_bundle_ver", "80.18.0.0\n"},
		{PCI "vendor", "0x1e52\n"},
		{PCI "device", "0x401e\n"},
		{PCI "hwmon/hwmon3/temp1_input", "51375\n"},
		{PCI "hwmon/hwmon3/power1_input", "34000000\n"},
		{PCI "hwmon/hwmon3/in0_input", "820\n"},
		{PCI "hwmon/hwmon3/curr1_input", "41000\n"},
		{PCI "hwmon/hwmon3/fan1_input", "3200\n"},
		{PCI "hwmon/hwmon3/temp1_max", "95000\n"},
		{PCI "hwmon/hwmon3/power1_max", "300000000\n"},
		{PCI "hwmon/hwmon3/in0_max", "0\n"},
		{CARD "tt_heartbeat", "51200\n"},
		{CARD "tt_therm_trip_count", "2\n"},
		{NULL, NULL},
	};
	static const int64_t values[SNAPSHOT_SENSORS] = {51375, 34000, 820, 41000,
							 1000,  900,   540, 3200};
	const struct snapshot_device *device;
	struct snapshot *snapshot = look_at(files);

	assert(snapshot->device_count == 1 && snapshot->note_count == 0);
	assert(snapshot->cards[0].folder); /* whatever it is */
	device = &snapshot->devices[0];
	assert(device->present && device->unique_id == UINT64_C(0x1f2e3d4c5b6a7988));
	assert(device->serial == UINT64_C(0x0100018511732031));
	assert(strcmp(device->card, "n150") == 0 && strcmp(device->arch, "wormhole_b0") == 0);
	assert(strcmp(device->bus, "0000:c1:00.0") == 0);
	assert(strcmp(device->firmware, "80.18.0.0") == 0);
	assert(device->memory[TYPES_DRAM].capacity == UINT64_C(12) << 30);
	assert(device->telemetry.known == (1u << SNAPSHOT_SENSORS) - 1);
	assert(memcmp(device->telemetry.value, values, sizeof(values)) == 0);
	assert(device->condition.state == SNAPSHOT_PRESENT);
	assert(device->condition.limits.known ==
	       (1u << SNAPSHOT_TEMPERATURE | 1u << SNAPSHOT_POWER));
	assert(device->condition.limits.value[SNAPSHOT_TEMPERATURE] == 95000);
	assert(device->condition.limits.value[SNAPSHOT_POWER] == 300000);
	assert(device->condition.has_heartbeat && device->condition.heartbeat == 51200);
	assert(device->condition.has_trips && device->condition.trips == 2);
	snapshot_free(snapshot);
}

UNIT(a_card_of_which_nothing_is_known)
{
	struct snapshot *snapshot;

	host_testing_start();
	host_testing_text(CARD "dev", "240:0\n");
	host_testing_text("sys/class/tenstorrent/other", "x");
	host_testing_text("sys/class/tenstorrent/tenstorrent!x/tt_card_type", "n150\n");
	host_testing_text("sys/class/tenstorrent/tenstorrent!5000/tt_card_type", "n150\n");
	snapshot = host_testing_look();
	assert(snapshot->device_count == 1 && snapshot->devices[0].by_number);
	assert(!snapshot->devices[0].card && !snapshot->devices[0].arch);
	assert(snapshot->devices[0].telemetry.known == 0);
	assert(snapshot->devices[0].memory[TYPES_DRAM].capacity == 0);
	snapshot_free(snapshot);
}

UNIT(invalid_driver_values_are_unknown)
{
	static const struct file files[] = {
		{CARD "tt_card_type", "unknown\n"},
		{CARD "tt_asic_id", "not hex\n"},
		{CARD "tt_serial", "\n"},
		{CARD "tt_aiclk", "99999999999\n"},
		{CARD "tt_arcclk", "5 40\n"},
		{PCI "vendor", "0x1234\n"},
		{PCI "hwmon/hwmon0/temp1_input", "-12500\n"},
		{PCI "hwmon/hwmon0/power1_input", ""},
		{NULL, NULL},
	};
	struct snapshot *snapshot = look_at(files);

	assert(snapshot->device_count == 1 && snapshot->devices[0].unique_id == 0);
	assert(!snapshot->devices[0].card && !snapshot->devices[0].arch);
	assert(snapshot->devices[0].telemetry.known == 1u << SNAPSHOT_TEMPERATURE);
	assert(snapshot->devices[0].telemetry.value[SNAPSHOT_TEMPERATURE] == -12500);
	snapshot_free(snapshot);
}

/* An ordinary file cannot fail with ENODATA; an empty one is reported as the same. */
UNIT(a_card_without_data_is_in_reset)
{
	static const struct file files[] = {
		{CARD "tt_card_type", ""},
		{CARD "tt_asic_id", ""},
		{CARD "tt_aiclk", ""},
		{PCI "device", "0x401e\n"},
		{PCI "vendor", "0x1e52\n"},
		{PCI "hwmon/hwmon0/temp1_input", ""},
		{NULL, NULL},
	};
	struct snapshot *snapshot = look_at(files);

	assert(snapshot->device_count == 1 && snapshot->devices[0].present);
	assert(snapshot->devices[0].condition.state == SNAPSHOT_IN_RESET);
	assert(strcmp(snapshot->devices[0].arch, "wormhole_b0") == 0);
	snapshot_free(snapshot);
	/* One that lacks only some of the data is there. */
	host_testing_text(CARD "tt_aiclk", "1000\n");
	snapshot = host_testing_look();
	assert(snapshot->devices[0].condition.state == SNAPSHOT_PRESENT);
	snapshot_free(snapshot);
}

/* What the driver makes of 0xffffffff. */
UNIT(values_of_ones_are_not_known)
{
	static const struct file files[] = {
		{CARD "tt_card_type", "unknown\n"},
		{CARD "tt_serial", "FFFFFFFFFFFFFFFF\n"},
		{CARD "tt_asic_id", "FFFFFFFFFFFFFFFF\n"},
		{CARD "tt_aiclk", "4294967295\n"},
		{CARD "tt_heartbeat", "4294967295\n"},
		{CARD "tt_therm_trip_count", "4294967295\n"},
		{CARD "tt_fw_bundle_ver", "255.255.255.255\n"},
		{PCI "hwmon/hwmon0/temp1_input", "65535999\n"},
		{PCI "hwmon/hwmon0/temp1_max", "4294966296\n"},
		{PCI "hwmon/hwmon0/power1_input", "4293967296\n"},
		{PCI "hwmon/hwmon0/power1_max", "4293967296\n"},
		{PCI "hwmon/hwmon0/in0_input", "4294967295\n"},
		{PCI "hwmon/hwmon0/in0_max", "65535\n"},
		{PCI "hwmon/hwmon0/curr1_input", "4294966296\n"},
		{PCI "hwmon/hwmon0/fan1_input", "4294967295\n"},
		{NULL, NULL},
	};
	const struct snapshot_device *device;
	struct snapshot *snapshot = look_at(files);

	device = &snapshot->devices[0];
	assert(device->condition.state == SNAPSHOT_NOT_ANSWERING && device->telemetry.known == 0);
	assert(device->condition.limits.known == 0 && !device->condition.has_heartbeat);
	assert(!device->condition.has_trips && !device->unique_id && !device->serial);
	assert(!device->firmware && !device->card);
	snapshot_free(snapshot);
	/* Each of them alone is enough, if the others have no data; the first is no value at all. */
	for (size_t i = 1; files[i].name; i++) {
		for (size_t k = 0; files[k].name; k++)
			host_testing_text(files[k].name, k == i ? files[k].text : "");
		snapshot = host_testing_look();
		assert(snapshot->devices[0].condition.state == SNAPSHOT_NOT_ANSWERING);
		snapshot_free(snapshot);
	}
}

/* Nothing is colder than nothing, and only a temperature may be negative. */
UNIT(values_that_no_card_can_have_are_not_believed)
{
	static const struct file files[] = {
		{CARD "tt_asic_id", "00000000000000AA\n"},
		{PCI "hwmon/hwmon0/temp1_input", "-300000\n"},
		{PCI "hwmon/hwmon0/temp1_max", "-5000\n"},
		{PCI "hwmon/hwmon0/power1_input", "-1000000\n"},
		{PCI "hwmon/hwmon0/in0_input", "-1\n"},
		{PCI "hwmon/hwmon0/curr1_input", "0\n"},
		{NULL, NULL},
	};
	struct snapshot *snapshot = look_at(files);
	const struct snapshot_device *device = &snapshot->devices[0];

	assert(device->condition.state == SNAPSHOT_PRESENT);
	assert(device->telemetry.known == UINT32_C(1) << SNAPSHOT_CURRENT);
	assert(device->telemetry.value[SNAPSHOT_CURRENT] == 0);
	assert(device->condition.limits.known == 0);
	snapshot_free(snapshot);
}

UNIT(openers_outside_the_pid_namespace_are_counted)
{
	struct snapshot *snapshot;

	assert(driver_count_outside("") == 0 && driver_count_outside("10\n100\n") == 0);
	assert(driver_count_outside("0\n12\n0") == 2 && driver_count_outside("00\n") == 0);
	host_testing_start();
	host_testing_text(CARD "tt_asic_id", "00000000000000AA\n");
	host_testing_text("proc/driver/tenstorrent/0/pids", "0\n0\n");
	snapshot = host_testing_look();
	assert(snapshot->process_count == 0 && snapshot->devices[0].condition.outside == 2);
	assert(!snapshot->devices[0].closed);
	snapshot_free(snapshot);
}

UNIT(pids_are_parsed_from_the_driver)
{
	uint32_t pids[2];

	assert(driver_parse_pids("", pids, 2) == 0);
	assert(driver_parse_pids("12\n\n0\n-3\nabc\n 4\n99999999999\n34", pids, 2) == 2);
	assert(pids[0] == 12 && pids[1] == 34);
	assert(driver_parse_pids("1\n2\n3\n", pids, 2) == 3 && pids[1] == 2);
}

UNIT(processes_with_an_open_node_are_listed)
{
	struct snapshot *snapshot;

	host_testing_start();
	host_testing_text(CARD "tt_asic_id", "00000000000000AA\n");
	host_testing_process(100, "python3", 5);
	host_testing_text("proc/driver/tenstorrent/0/pids", "100\n200\n");
	host_testing_text("proc/driver/tenstorrent/1/pids", "100\n"); /* belongs to no card */
	snapshot = host_testing_look();
	assert(snapshot->process_count == 1 && snapshot->processes[0].untracked);
	assert(strcmp(snapshot->processes[0].comm, "python3") == 0);
	assert(strcmp(snapshot->processes[0].source, "driver") == 0);
	assert(snapshot->devices[0].untracked == 1 && snapshot->devices[0].processes == 0);
	snapshot_free(snapshot);
}

/* The list may be full: there is nothing behind its last card. */
UNIT(only_cards_in_the_list_have_holders)
{
	struct snapshot_card cards[] = {{.number = 0}, {.number = 1}};
	struct snapshot *snapshot = snapshot_new(1);
	struct pid_cache *pid_cache;
	struct proc proc;

	host_testing_start();
	host_testing_text("proc/driver/tenstorrent/0/pids", "0\n");
	host_testing_text("proc/driver/tenstorrent/1/pids", "0\n");
	assert(snapshot && proc_open(&proc) == 0);
	assert(pid_cache_new(&pid_cache, &proc, snapshot) == 0);
	snapshot->cards = cards;
	snapshot->card_count = 1;
	assert(driver_collect_pids(pid_cache, snapshot) == 0);
	assert(cards[0].condition.outside == 1 && cards[1].condition.outside == 0);
	snapshot->cards = NULL;
	snapshot->card_count = 0;
	pid_cache_cleanup(&pid_cache);
	proc_close(&proc);
	snapshot_free(snapshot);
}

/* A descriptor in the /proc of the fake machine. */
static void open_node(uint32_t pid, uint32_t fd, const char *target)
{
	char path[512];

	snprintf(path, sizeof(path), "proc/%" PRIu32 "/fd/0", pid);
	host_testing_text(path, ""); /* makes the folder */
	snprintf(path, sizeof(path), "%s/proc/%" PRIu32 "/fd/%" PRIu32, unit_dir(), pid, fd);
	assert(symlink(target, path) == 0);
}

static bool is_left(const struct snapshot *snapshot, uint32_t pid, uint32_t node)
{
	for (size_t i = 0; i < snapshot->left_count; i++) {
		if (snapshot->left[i].process.pid == pid && snapshot->left[i].node == node)
			return true;
	}
	return false;
}

UNIT(holders_of_removed_nodes_are_found)
{
	struct snapshot *snapshot = snapshot_new(1);
	struct pid_cache *pid_cache;
	struct proc proc;

	host_testing_start();
	host_testing_text("proc/driver/tenstorrent/0/pids", "13\n");
	open_node(10, 3, "/dev/tenstorrent/0 (deleted)");
	open_node(11, 3, "/dev/tenstorrent/0 (deleted)");
	open_node(11, 4, "/dev/tenstorrent/1");
	open_node(12, 3, "/dev/tenstorrent/0 (deleted)");
	open_node(12, 4, "/dev/tenstorrent/0");
	open_node(14, 3, "/tmp/dev/tenstorrent/0 (deleted)");
	assert(snapshot && proc_open(&proc) == 0);
	for (uint32_t pid = 10; pid <= 14; pid++) {
		const struct snapshot_process who = {
			.id.pid = pid, .id.start_ticks = 1, .alive = true};
		uint32_t index;

		assert(snapshot_add_process(snapshot, &who, &index) == 0);
		assert(snapshot_part(snapshot, index, 0));
	}
	assert(pid_cache_new(&pid_cache, &proc, snapshot) == 0);
	assert(nodes_check(pid_cache, NULL, snapshot) == 0);
	assert(snapshot->left_count == 3);
	assert(is_left(snapshot, 10, UINT32_MAX) && is_left(snapshot, 10, 0));
	assert(is_left(snapshot, 11, 0));
	pid_cache_cleanup(&pid_cache);
	proc_close(&proc);
	snapshot_free(snapshot);
}
