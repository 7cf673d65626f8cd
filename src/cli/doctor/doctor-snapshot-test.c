/* SPDX-License-Identifier: Apache-2.0 */

/* What the doctor finds in a snapshot: each finding with only its own reason, and none just below its limit. */

#include "cli/doctor/doctor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/testing/unit.h"
#include "cli/common/session.h"
#include "model/snapshot.h"
#include "model/types.h"

#define KIB UINT64_C(1024)
#define MIB UINT64_C(1048576)

static struct doctor doctor;
static struct snapshot_process *process; /* of user 1000 */
static struct snapshot_part *part;       /* its device 0, of card 0 */
static struct snapshot_device *device;

/* After one that has nothing, a process with a device that has a card: there is no reason for a finding. */
static void begin(void)
{
	const struct snapshot_process one = {.id = {4000007, 1},
					     .comm = "train",
					     .user = "me",
					     .user_id = 1000,
					     .source = "book",
					     .alive = true,
					     .exact = true};
	const struct snapshot_process other = {.id = {4000006, 1},
					       .comm = "x",
					       .user = "x",
					       .source = "book",
					       .alive = true,
					       .exact = true};
	const struct snapshot_card card = {.unique_id = 0xaa};
	uint32_t index;

	/* NOLINTBEGIN(concurrency-mt-unsafe): there is one thread */
	assert(setenv("TTMEM_SHM_DIR", unit_dir(), 1) == 0);
	assert(setenv("TTMEM_PROC_ROOT", unit_dir(), 1) == 0);
	assert(setenv("TTMEM_SYS_ROOT", "/none", 1) == 0);
	/* NOLINTEND(concurrency-mt-unsafe) */
	memset(&doctor, 0, sizeof(doctor));
	assert(session_new(&doctor.session) == 0);
	doctor.snapshot = snapshot_new(1000);
	assert(doctor.snapshot && snapshot_add_card(doctor.snapshot, &card) == 0);
	assert(snapshot_add_process(doctor.snapshot, &other, &index) == 0);
	assert(snapshot_add_process(doctor.snapshot, &one, &index) == 0);
	part = snapshot_part(doctor.snapshot, index, 0);
	assert(part);
	part->facts.unique_id = 0xaa;
	part->memory[TYPES_DRAM].used = part->memory[TYPES_DRAM].peak = 2 * MIB;
	part->memory[TYPES_L1].allocs = 1;
	assert(snapshot_finish(doctor.snapshot) == 0);
	process = &doctor.snapshot->processes[index];
	part = &process->parts[0];
	device = &doctor.snapshot->devices[0];
}

static void end(void)
{
	for (size_t i = 0; i < doctor.count; i++)
		free(doctor.findings[i].what);
	free(doctor.findings);
	snapshot_free(doctor.snapshot);
	session_free(doctor.session);
}

/* Whether this is all that was found since the last call: lines "id what". */
static bool finds(const char *expected)
{
	static char text[4096];
	size_t length = 0;

	*text = '\0';
	for (size_t i = 0; i < doctor.count; i++) {
		const struct doctor_finding *finding = &doctor.findings[i];

		length += (size_t)snprintf(text + length, sizeof(text) - length, "%s %s\n",
					   doctor_kinds[finding->kind].id, finding->what);
		assert(finding->pid == 0 ||
		       (finding->pid == process->id.pid && finding->user_id == 1000));
		free(finding->what);
	}
	doctor.count = 0;
	if (strcmp(text, expected) != 0)
		fprintf(stderr, "found:\n%s", text);
	return strcmp(text, expected) == 0;
}

static bool memory(const char *expected)
{
	doctor_look_at_memory(&doctor);
	return finds(expected);
}

static bool sources(const char *expected)
{
	doctor_look_at_sources(&doctor);
	return finds(expected);
}

UNIT(a_process_in_order_has_no_finding)
{
	begin();
	assert(memory("") && sources(""));
	end();
}

/* Of DRAM; the rest stays. */
static void hold(uint64_t used, uint64_t peak)
{
	part->memory[TYPES_DRAM].used = used;
	part->memory[TYPES_DRAM].peak = peak;
}

UNIT(little_memory_is_told_while_a_device_is_open_or_was_never_used_much)
{
	begin();
	hold(MIB - 1, MIB - 1);
	assert(memory("total-small train holds 1.0 MiB in all, and never held 1 MiB\n"));
	part->memory[TYPES_DRAM].peak_is_unknown = true;
	assert(memory("total-small train holds 1.0 MiB in all\n"));
	part->memory[TYPES_DRAM].peak_is_unknown = false;
	hold(MIB - 1, MIB);
	assert(memory(""));
	hold(0, 0);
	assert(memory(""));
	part->facts.declared = true;
	assert(memory("total-small train has a device open and holds 0 B in all\n"));
	hold(MIB - 1, MIB);
	assert(memory("total-small train has a device open and holds 1.0 MiB in all\n"));
	hold(MIB, MIB);
	assert(memory(""));
	hold(MIB - 1, MIB);
	part->facts.closed_ns = 1;
	assert(memory(""));
	end();
}

UNIT(little_memory_is_right_if_a_region_confirms_it)
{
	begin();
	hold(MIB - 1, MIB - 1);
	part->claimed = true;
	assert(memory(""));
	part->differs = true;
	assert(memory("total-small train holds 1.0 MiB in all, and never held 1 MiB\n"));
	part->differs = false;
	process->gave_up = "no room";
	assert(memory("total-small train holds 1.0 MiB in all, and never held 1 MiB\n"));
	process->gave_up = NULL;
	process->stray_frees = 1;
	assert(memory("total-small train holds 1.0 MiB in all, and never held 1 MiB\n"
		      "frees-unknown train freed 1 buffer that was never reported\n"));
	end();
}

UNIT(a_high_peak_that_is_past_is_told)
{
	begin();
	hold(MIB, 16 * MIB);
	assert(memory("peak-past train holds 1.0 MiB now, and held 16.0 MiB at most\n"));
	hold(MIB, 16 * MIB - 1);
	assert(memory(""));
	hold(16 * MIB / 10, 16 * MIB);
	assert(memory(""));
	hold(16 * MIB / 10 - 1, 16 * MIB);
	assert(memory("peak-past train holds 1.6 MiB now, and held 16.0 MiB at most\n"));
	part->memory[TYPES_L1].peak_is_unknown = true;
	assert(memory(""));
	end();
}

UNIT(dram_without_l1_is_told)
{
	static const uint32_t on_chip[] = {TYPES_L1, TYPES_L1_SMALL, TYPES_CB};

	begin();
	part->memory[TYPES_L1].allocs = 0;
	part->memory[TYPES_TRACE].allocs = 1;
	assert(memory("dram-only train holds 2.0 MiB of DRAM and never had a buffer in L1\n"));
	for (size_t i = 0; i < sizeof(on_chip) / sizeof(on_chip[0]); i++) {
		part->memory[on_chip[i]].used = 1;
		assert(memory(""));
		part->memory[on_chip[i]].used = 0;
	}
	process->source = "tt-metal";
	assert(memory(""));
	end();
}

UNIT(lost_events_and_unknown_frees_are_told)
{
	begin();
	part->memory[TYPES_L1].unknown_frees = 1;
	assert(memory("frees-unknown train freed 1 buffer that was never reported\n"));
	process->stray_frees = 1;
	assert(memory("frees-unknown train freed 2 buffers that were never reported\n"));
	part->memory[TYPES_L1].unknown_frees = process->stray_frees = 0;
	process->rejected = (struct book_rejected){.room = 1,
						   .lock = 2,
						   .reentry = 3,
						   .device = 4,
						   .type = 5,
						   .size = 6,
						   .arguments = 7,
						   .paused = 8};
	assert(memory(""));
	process->exact = false;
	assert(memory("events-lost train: events were lost: room 1, lock 2, reentry 3, device 4, "
		      "type 5, size 6, arguments 7, paused 8\n"));
	process->gave_up = "no room";
	assert(memory(""));
	end();
}

UNIT(only_living_tracked_processes_that_are_asked_for_are_judged)
{
	begin();
	part->memory[TYPES_L1].unknown_frees = 1;
	doctor.only_pid = process->id.pid + 1;
	assert(memory("") && sources(""));
	doctor.only_pid = process->id.pid;
	assert(memory("frees-unknown train freed 1 buffer that was never reported\n"));
	process->untracked = true;
	assert(memory("") && sources("device-untracked (train) has device 0 open\n"));
	process->untracked = false;
	process->alive = false;
	assert(memory(""));
	end();
}

UNIT(what_regions_say_of_a_process_is_told)
{
	begin();
	process->stale = true;
	assert(sources("region-stale a region still has 2.0 MiB of (train), which has ended\n"));
	process->unproven = true;
	assert(sources("region-claim a region of user me claims that this process (train) has "
		       "2.0 MiB\n"));
	process->stale = process->unproven = false;
	process->untracked = true;
	assert(sources("device-untracked (train) has device 0 open\n"));
	process->untracked = false;
	process->differs = part->differs = true;
	part->claimed_used[TYPES_DRAM] = 2 * MIB;
	assert(sources(""));
	part->claimed_used[TYPES_DRAM] = 3 * MIB;
	part->claimed_used[TYPES_L1] = KIB;
	assert(sources("region-differs device 0, DRAM: its book says 2.0 MiB, the region 3.0 "
		       "MiB\n"));
	part->claimed_used[TYPES_DRAM] = 2 * MIB;
	assert(sources("region-differs device 0, L1: its book says 0 B, the region 1.0 KiB\n"));
	process->differs = false;
	process->capacities_refused = 1;
	assert(sources("capacity-refused (train) declares 1 capacity that no card has\n"));
	process->capacities_refused = 2;
	assert(sources("capacity-refused (train) declares 2 capacities that no card has\n"));
	end();
}

UNIT(a_device_without_a_card_is_told_with_the_reason)
{
	static const char *const why[] = {
		[SNAPSHOT_UNMATCHED_ID] = "no card has its id 0xaa",
		[SNAPSHOT_UNMATCHED_NUMBER] = "no card has that number",
		[SNAPSHOT_UNMATCHED_OPEN] = "the process has other nodes open",
		[SNAPSHOT_UNMATCHED_TAKEN] = "the card of that number is another chip",
		[SNAPSHOT_UNMATCHED_NO_NODE] = "the process has no node open",
	};
	char expected[128];

	begin();
	for (uint32_t i = 0; i < sizeof(why) / sizeof(why[0]); i++) {
		part->unmatched = i;
		snprintf(expected, sizeof(expected),
			 "device-unmatched its device 0 has no card: %s\n", why[i] ? why[i] : "");
		assert(sources(why[i] ? expected : ""));
	}
	part->before_reset = true;
	assert(sources("stale-after-reset device 0 was reset or removed while it held 2.0 MiB of "
		       "it\n"));
	part->before_reset = false;
	process->alive = false;
	assert(sources(""));
	end();
}

UNIT(what_is_wrong_with_a_card_is_told)
{
	static const char *const states[] = {
		[SNAPSHOT_IN_RESET] = "card-unavailable device 0 is in reset\n",
		[SNAPSHOT_NOT_ANSWERING] = "card-unavailable device 0 is not answering\n",
		[SNAPSHOT_GONE] = "card-unavailable device 0 is gone\n",
	};

	begin();
	for (uint32_t i = 0; i <= SNAPSHOT_GONE; i++) {
		device->condition.state = i;
		assert(sources(states[i] ? states[i] : ""));
	}
	device->condition.state = SNAPSHOT_PRESENT;
	device->condition.trips = 1;
	assert(sources(""));
	device->condition.has_trips = true;
	assert(sources("thermal-trip device 0 switched itself off 1 time\n"));
	device->condition.trips = 2;
	assert(sources("thermal-trip device 0 switched itself off 2 times\n"));
	device->condition.trips = 0;
	device->condition.outside = 1;
	assert(sources("device-untracked device 0 is opened by a process outside this pid "
		       "namespace\n"));
	device->condition.outside = 0;
	device->summed = 5;
	device->declared_by = "me";
	assert(sources("devices-many 5 devices of user me are summed up in one row\n"));
	device->summed = 0;
	doctor.snapshot->card_count = 0;
	assert(sources("driver-none no card in /none/class/tenstorrent\n"));
	doctor.only_pid = process->id.pid;
	assert(sources(""));
	end();
}

UNIT(sensors_beyond_their_limits_are_told)
{
	begin();
	device->telemetry.known = device->condition.limits.known = 15;
	for (uint32_t i = 0; i < 4; i++)
		device->telemetry.value[i] = device->condition.limits.value[i] = 1000 * (i + 1);
	for (uint32_t i = 0; i < 4; i++)
		device->telemetry.value[i] += 500;
	assert(sources("over-limit device 0: its temperature is 1.5 degrees Celsius, the limit 1\n"
		       "over-limit device 0: its power is 2.5 W, the limit 2\n"
		       "over-limit device 0: its voltage is 3.5 V, the limit 3\n"
		       "over-limit device 0: its current is 4.5 A, the limit 4\n"));
	device->condition.limits.known = 2;
	assert(sources("over-limit device 0: its power is 2.5 W, the limit 2\n"));
	device->telemetry.value[SNAPSHOT_POWER] = 1999;
	assert(sources(""));
	end();
}
