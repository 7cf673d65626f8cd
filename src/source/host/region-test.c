/* SPDX-License-Identifier: Apache-2.0 */

/* The layouts of tt-metal's regions, and what a snapshot has of them. */

#include "source/host/region.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/testing/unit.h"
#include "model/snapshot.h"
#include "model/types.h"
#include "source/host/testing/host-testing.h"

#define CHIP UINT64_C(77)
#define FILE_NAME "shm/tt_device_77_memory"
#define NARROW HOST_TESTING_NARROW
#define WIDE HOST_TESTING_WIDE

static void chip(uint32_t version, size_t slot, uint32_t number, bool remote, uint64_t dram)
{
	size_t at = host_testing_is_wide(version) ? 96 + slot * 56 : 88 + slot * 48;

	host_testing_put32(at, number);
	host_testing_put32(at + 4, remote);
	host_testing_put64(at + 8, dram);
}

static uint64_t now(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

UNIT(each_version_is_read)
{
	for (uint32_t version = 1; version <= 4; version++) {
		struct region region;
		size_t length = host_testing_is_wide(version) ? WIDE : NARROW;

		host_testing_region(version, CHIP, 3);
		host_testing_row(version, 5, 1234, 4096, 99);
		chip(version, 0, 3, true, 1024);
		assert(region_parse(host_testing_bytes, length, &region) == 0);
		assert(region.version == version && region.id == CHIP && region.device == 3);
		assert(region.is_place == (version == 1));
		assert(region.process_count == 1 && region.remote);
		assert(region.processes[0].pid == 1234 && region.processes[0].stamp == 99);
		assert(region.processes[0].used[TYPES_DRAM] == 4096);
		assert(strcmp(region.processes[0].name, "python3") == 0);
		assert(!!(region.types & 1u << TYPES_KERNEL) == (version == 1));
		/* Truncated anywhere, it is unfinished. */
		for (size_t cut = 0; cut < length; cut += 7)
			assert(region_parse(host_testing_bytes, cut, &region) == REGION_UNFINISHED);
	}
}

UNIT(types_lie_where_tt_metal_puts_them)
{
	static const uint32_t order[] = {TYPES_DRAM,  TYPES_L1, TYPES_L1_SMALL,
					 TYPES_TRACE, TYPES_CB, TYPES_KERNEL};
	struct region region;

	for (uint32_t version = 1; version <= 4; version += 3) {
		host_testing_region(version, CHIP, 0);
		host_testing_row(version, 0, 5, 0, 1);
		for (size_t i = 0; i < (host_testing_is_wide(version) ? 6u : 5u); i++) {
			host_testing_put64(48 + i * 8, 100 + i);
			host_testing_put64(
				(host_testing_is_wide(version) ? 992u : 856u) + 8 + i * 8, 200 + i);
		}
		assert(region_parse(host_testing_bytes,
				    host_testing_is_wide(version) ? WIDE : NARROW, &region) == 0);
		for (size_t i = 0; i < (host_testing_is_wide(version) ? 6u : 5u); i++) {
			assert(region.used[order[i]] == 100 + i);
			assert(region.processes[0].used[order[i]] == 200 + i);
		}
		assert(region.processes[0].used[TYPES_SYSTEM_MEMORY] == 0);
	}
}

UNIT(version_two_is_told_by_its_size)
{
	struct region region;

	host_testing_region(2, CHIP, 0);
	assert(region_parse(host_testing_bytes, NARROW, &region) == 0);
	assert(!(region.types & 1u << TYPES_KERNEL));
	assert(region_parse(host_testing_bytes, WIDE, &region) == 0);
	assert(region.types & 1u << TYPES_KERNEL);
}

UNIT(what_is_not_ready_or_not_known)
{
	struct region region;

	host_testing_region(4, CHIP, 0);
	host_testing_put32(8536, 1);
	assert(region_parse(host_testing_bytes, NARROW, &region) == REGION_UNFINISHED);
	host_testing_put32(8536, 0);
	assert(region_parse(host_testing_bytes, NARROW, &region) == REGION_UNFINISHED);
	host_testing_region(0, CHIP, 0);
	assert(region_parse(host_testing_bytes, NARROW, &region) == REGION_UNFINISHED);
	host_testing_region(5, CHIP, 0);
	assert(region_parse(host_testing_bytes, NARROW, &region) == REGION_UNKNOWN);
	host_testing_region(4, CHIP, 1024);
	assert(region_parse(host_testing_bytes, NARROW, &region) == REGION_BROKEN);
}

UNIT(slots_that_are_free)
{
	struct region region;

	host_testing_region(4, CHIP, 0);
	host_testing_row(4, 0, UINT32_MAX, 5, 1); /* being released */
	host_testing_row(4, 63, 7, 5, 1);
	assert(region_parse(host_testing_bytes, NARROW, &region) == 0);
	assert(region.process_count == 1 && region.processes[0].pid == 7);
	memset(host_testing_bytes + 856 + 63 * 120 + 56, 'x', 64); /* a name without a NUL */
	assert(region_parse(host_testing_bytes, NARROW, &region) == 0);
	assert(strlen(region.processes[0].name) == 64);
}

UNIT(a_table_is_full_if_no_slot_is_free)
{
	struct region region;

	host_testing_region(4, CHIP, 0);
	for (uint32_t i = 0; i < REGION_PROCESSES; i++)
		host_testing_row(4, i, 1000 + i, 5, 1);
	assert(region_parse(host_testing_bytes, NARROW, &region) == 0 && region.is_full);
	host_testing_row(4, 9, UINT32_MAX, 5, 1); /* being released: not yet free */
	assert(region_parse(host_testing_bytes, NARROW, &region) == 0 && region.is_full);
	host_testing_row(4, 9, 0, 0, 0);
	assert(region_parse(host_testing_bytes, NARROW, &region) == 0 && !region.is_full);
}

UNIT(bounds_follow_from_version_table_and_mode)
{
	for (uint32_t version = 2; version <= 4; version++) {
		const struct snapshot_claim *claim;
		struct snapshot *snapshot;
		struct stat file;
		char path[512];

		if (version == 2)
			host_testing_start();
		host_testing_process(100, "python3", 50);
		host_testing_region(version, CHIP, 0);
		for (uint32_t i = 0; i < REGION_PROCESSES; i++)
			host_testing_row(version, i, 100 + i, 0, now());
		host_testing_row(version, 0, 100, 1000, now());
		host_testing_write(FILE_NAME, host_testing_bytes, NARROW);
		snprintf(path, sizeof(path), "%s/%s", unit_dir(), FILE_NAME);
		assert(chmod(path, version == 3 ? 0666 : 0600) == 0 && stat(path, &file) == 0);
		snprintf(path, sizeof(path), "0-1 rw-s 0 %x:%x %" PRIu64 " /r\n",
			 major(file.st_dev), minor(file.st_dev), (uint64_t)file.st_ino);
		host_testing_text("proc/100/maps", path);
		snapshot = host_testing_look();
		claim = &snapshot->claims[0];
		assert(claim->bound == (version < 4 ? SNAPSHOT_AT_LEAST : SNAPSHOT_EXACT));
		assert(claim->region_version == version && claim->region_is_full);
		assert(claim->region_is_private == (version != 3));
		assert(snapshot->devices[0].memory[TYPES_DRAM].bound == SNAPSHOT_AT_LEAST);
		assert(snapshot->note_count == (version < 4 ? 2 : 1));
		snapshot_free(snapshot);
	}
}

UNIT(region_file_names_are_parsed)
{
	uint64_t id = 0;

	assert(region_is_name("tt_device_18446744073709551615_memory", &id) && id == UINT64_MAX);
	assert(region_is_name("tt_device_0_memory", &id) && id == 0);
	assert(!region_is_name("tt_device__memory", &id));
	assert(!region_is_name("tt_device_memory", &id));
	assert(!region_is_name("tt_device_0x10_memory", &id));
	assert(!region_is_name("tt_device_1_memory2", &id));
	assert(!region_is_name("tt_device_18446744073709551616_memory", &id));
	assert(!region_is_name("", &id));
}

UNIT(the_living_count_and_the_dead_do_not)
{
	struct snapshot *snapshot;

	host_testing_start();
	host_testing_process(100, "python3", 50);
	host_testing_region(4, CHIP, 0);
	host_testing_row(4, 0, 100, 1000, now() - NS_PER_S);
	host_testing_row(4, 1, 200, 77, now() - NS_PER_S);
	host_testing_put64(48, 1077);
	host_testing_write(FILE_NAME, host_testing_bytes, NARROW);
	snapshot = host_testing_look();
	assert(snapshot->process_count == 2 && host_testing_total(snapshot) == 1000);
	assert(snapshot->processes[0].alive &&
	       strcmp(snapshot->processes[0].source, "tt-metal") == 0);
	assert(snapshot->time_ns - snapshot->processes[0].last_ns < 60 * NS_PER_S);
	assert(snapshot->processes[1].stale && !snapshot->processes[1].alive);
	assert(snapshot->processes[1].parts[0].memory[TYPES_DRAM].used == 77);
	assert(snapshot->device_count == 1 && snapshot->devices[0].unique_id == CHIP);
	assert(snapshot->note_count == 0);
	snapshot_free(snapshot);
}

UNIT(a_pid_that_is_used_again_is_stale)
{
	struct snapshot *snapshot;

	if (now() < 200 * NS_PER_S)
		unit_skip("the machine has only just started");
	host_testing_start();
	host_testing_process(100, "python3", 50);
	host_testing_region(4, CHIP, 0);
	host_testing_row(4, 0, 100, 1000, now() - 100 * NS_PER_S); /* written before it started */
	host_testing_write(FILE_NAME, host_testing_bytes, NARROW);
	snapshot = host_testing_look();
	assert(snapshot->process_count == 1 && snapshot->processes[0].stale);
	assert(host_testing_total(snapshot) == 0);
	snapshot_free(snapshot);
}

/* Processes number the chip differently: each number has a slot, and each process its row. */
UNIT(a_region_is_one_device_whatever_its_processes_call_it)
{
	struct snapshot *snapshot;

	host_testing_start();
	host_testing_process(100, "python3", 50);
	host_testing_region(4, CHIP, 0);
	host_testing_row(4, 0, 100, 1000, now());
	chip(4, 0, 0, false, 600);
	chip(4, 1, 1, true, 400);
	host_testing_write(FILE_NAME, host_testing_bytes, NARROW);
	snapshot = host_testing_look();
	assert(snapshot->device_count == 1 && !snapshot->devices[0].remote);
	assert(host_testing_total(snapshot) == 1000 && snapshot->processes[0].part_count == 1);
	snapshot_free(snapshot);

	host_testing_process(101, "python3", 50);
	host_testing_row(4, 1, 101, 500, now());
	host_testing_put64(48, 1500);
	host_testing_write(FILE_NAME, host_testing_bytes, NARROW);
	snapshot = host_testing_look();
	assert(snapshot->device_count == 1 && snapshot->devices[0].unique_id == CHIP);
	assert(host_testing_total(snapshot) == 1500 && snapshot->devices[0].processes == 2);
	assert(snapshot->note_count == 0);
	snapshot_free(snapshot);
}

UNIT(files_that_are_no_regions_are_said_and_passed_over)
{
	struct snapshot *snapshot;
	char path[512];

	host_testing_start();
	host_testing_region(4, CHIP, 0);
	host_testing_write("shm/tt_device_78_memory", host_testing_bytes,
			   NARROW); /* id of another chip */
	host_testing_write("shm/tt_device_79_memory", host_testing_bytes, 100);
	host_testing_region(9, CHIP, 0);
	host_testing_write("shm/tt_device_80_memory", host_testing_bytes, NARROW);
	snprintf(path, sizeof(path), "%s/shm/tt_device_81_memory", unit_dir());
	assert(mkfifo(path, 0600) == 0);
	snprintf(path, sizeof(path), "%s/shm/tt_device_82_memory", unit_dir());
	assert(symlink("/dev/zero", path) == 0);
	host_testing_text("shm/something_else", "x");
	snapshot = host_testing_look();
	assert(snapshot->process_count == 0 && snapshot->device_count == 0);
	assert(snapshot->note_count == 5);
	snapshot_free(snapshot);
}

UNIT(region_bytes_without_a_process_are_noted)
{
	struct snapshot *snapshot;

	host_testing_start();
	host_testing_region(4, CHIP, 0);
	host_testing_put64(48, 4096);
	host_testing_write(FILE_NAME, host_testing_bytes, NARROW);
	snapshot = host_testing_look();
	assert(snapshot->note_count == 1 && strstr(snapshot->notes[0], "4.0 KiB"));
	snapshot_free(snapshot);
}

/* Between its two stores, as far as anybody can tell. */
UNIT(bytes_of_a_writer_that_was_active_just_now_are_not_noted)
{
	struct snapshot *snapshot;

	host_testing_start();
	host_testing_region(4, CHIP, 0);
	host_testing_put64(8, clock_ns(CLOCK_REALTIME));
	host_testing_put64(48, 4096);
	host_testing_write(FILE_NAME, host_testing_bytes, NARROW);
	snapshot = host_testing_look();
	assert(snapshot->note_count == 0);
	snapshot_free(snapshot);
}
