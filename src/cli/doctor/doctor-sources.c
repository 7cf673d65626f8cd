/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What the doctor finds in the driver's files and in tt-metal's regions, beyond what is in the
 * snapshot.
 */

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "cli/common/session.h"
#include "cli/doctor/doctor.h"
#include "model/amount.h"
#include "model/cards/condition.h"
#include "model/snapshot.h"
#include "model/types.h"
#include "source/books/scan.h"
#include "source/host/driver.h"
#include "source/host/region-list.h"
#include "source/host/region.h"
#include "source/proc/proc.h"

static bool doctor_has_threads(const struct proc *proc, uint32_t pid)
{
	CLEANUP_CLOSEDIR DIR *threads = NULL;
	const struct dirent *entry;
	size_t count = 0;
	char path[32];

	(void)snprintf(path, sizeof(path), "%" PRIu32 "/task", pid);
	threads = proc_list(proc, path);
	while (threads && (entry = readdir(threads)))
		count += entry->d_name[0] != '.';
	return count > 1;
}

/* Reports the first device on which book and region disagree. */
static void doctor_tell_difference(struct doctor *doctor, const struct snapshot_process *process)
{
	char book[TEXT_NUMBER_SIZE], region[TEXT_NUMBER_SIZE];
	/* A region lacks what other threads than the one that opened the device allocate: that is usual. */
	bool is_threaded =
		doctor_has_threads(&session_scan(doctor->session)->proc, process->id.pid);

	for (size_t i = 0; i < process->part_count; i++) {
		const struct snapshot_part *part = &process->parts[i];

		for (uint32_t type = 0; part->differs && type < BOOK_TYPES; type++) {
			if (part->memory[type].used == part->claimed_used[type] ||
			    (is_threaded && part->memory[type].used > part->claimed_used[type]))
				continue;
			doctor_tell(doctor, DOCTOR_REGION_DIFFERS, process->id.pid,
				    process->user_id,
				    "device %" PRIu32 ", %s: its book says %s, the region %s",
				    doctor->snapshot->devices[part->row].device, types_name(type),
				    text_size(part->memory[type].used, book),
				    text_size(part->claimed_used[type], region));
			return;
		}
	}
}

size_t doctor_count_nodes(const struct snapshot *snapshot, const struct snapshot_process *process)
{
	size_t count = 0;

	for (size_t i = 0; i < snapshot->claim_count; i++)
		count += snapshot->claims[i].is_open_only &&
			 snapshot->claims[i].process.id.pid == process->id.pid;
	return count;
}

/* Reports the first of its devices that has no card, and why. */
static void doctor_tell_unmatched(struct doctor *doctor, const struct snapshot_process *process)
{
	size_t nodes = doctor_count_nodes(doctor->snapshot, process);
	char why[128] = "";

	for (size_t i = 0; i < process->part_count; i++) {
		const struct snapshot_part *part = &process->parts[i];

		if (part->before_reset)
			continue; /* its card is gone: doctor_tell_left() */
		switch ((enum snapshot_unmatched)part->unmatched) {
		case SNAPSHOT_UNMATCHED_ID:
			snprintf(why, sizeof(why), "no card has its id 0x%" PRIx64,
				 part->facts.unique_id);
			break;
		case SNAPSHOT_UNMATCHED_NUMBER:
			snprintf(why, sizeof(why), "no card has that number");
			break;
		case SNAPSHOT_UNMATCHED_OPEN:
			/* The daemon may know of nodes that we cannot count. */
			if (nodes == 0)
				snprintf(why, sizeof(why), "the process has other nodes open");
			else
				snprintf(why, sizeof(why),
					 "the process has %zu node%s open, not that one", nodes,
					 nodes == 1 ? "" : "s");
			break;
		case SNAPSHOT_UNMATCHED_TAKEN:
			snprintf(why, sizeof(why), "the card of that number is another chip");
			break;
		case SNAPSHOT_UNMATCHED_NO_NODE:
			snprintf(why, sizeof(why), "the process has no node open");
			break;
		case SNAPSHOT_MATCHED:
		case SNAPSHOT_UNMATCHED_REMOTE:
		default:
			continue;
		}
		doctor_tell(doctor, DOCTOR_DEVICE_UNMATCHED, process->id.pid, process->user_id,
			    "its device %" PRIu32 " has no card: %s", part->device, why);
		return;
	}
}

static void doctor_tell_left(struct doctor *doctor, const struct snapshot_process *process)
{
	for (size_t i = 0; i < process->part_count; i++) {
		const struct snapshot_part *part = &process->parts[i];
		char size[TEXT_NUMBER_SIZE];

		if (part->before_reset)
			doctor_tell(
				doctor, DOCTOR_STALE_AFTER_RESET, process->id.pid, process->user_id,
				"device %" PRIu32 " was reset or removed while it held %s of it",
				doctor->snapshot->devices[part->row].device,
				text_size(amount_of_part(part, AMOUNT_ALL).used, size));
	}
}

/* The earliest region that still names an exited process; NULL: none is known. */
static const struct snapshot_claim *doctor_stale_region(const struct snapshot *snapshot,
							const struct snapshot_process *process)
{
	const struct snapshot_claim *found = NULL;

	for (size_t i = 0; i < snapshot->claim_count; i++) {
		const struct snapshot_claim *claim = &snapshot->claims[i];

		if (claim->is_open_only || claim->process.alive ||
		    claim->process.id.pid != process->id.pid || claim->region_version == 0)
			continue;
		if (!found || claim->region_version < found->region_version)
			found = claim;
	}
	return found;
}

/* Programs clear rows of exited ones since the version that claims its row when it opens a device. */
static void doctor_tell_stale(struct doctor *doctor, const struct snapshot_process *process,
			      const char *shown, const char *size)
{
	const struct snapshot_claim *claim = doctor_stale_region(doctor->snapshot, process);

	if (!claim) {
		doctor_tell(doctor, DOCTOR_REGION_STALE, process->id.pid, process->user_id,
			    "a region still has %s of (%s), which has ended", size, shown);
		return;
	}
	doctor_tell(doctor, DOCTOR_REGION_STALE, process->id.pid, process->user_id,
		    "tt_device_%" PRIu64 "_memory, version %" PRIu32
		    ", still has %s of (%s), which has ended",
		    claim->region, claim->region_version, size, shown);
	doctor_advise(doctor,
		      claim->region_version >= REGION_VERSION_CLEARS
			      ? "the next program that opens the device clears it"
			      : "remove the file from /dev/shm while nobody uses the device: "
				"no program of this version clears it");
}

/* A row that a living process is not known to have written. */
static void doctor_tell_claim(struct doctor *doctor, const struct snapshot_process *process,
			      const char *shown, const char *size)
{
	const struct snapshot_claim *claim = doctor_stale_region(doctor->snapshot, process);
	char name[64] = "a region";

	if (claim)
		snprintf(name, sizeof(name), "tt_device_%" PRIu64 "_memory", claim->region);
	doctor_tell(doctor, DOCTOR_REGION_CLAIM, process->id.pid, process->user_id,
		    "%s of user %s claims that this process (%s) has %s", name, process->user,
		    shown, size);
}

static void doctor_look_at_claims(struct doctor *doctor)
{
	const struct snapshot *snapshot = doctor->snapshot;

	for (size_t i = 0; i < snapshot->process_count; i++) {
		const struct snapshot_process *process = &snapshot->processes[i];
		char shown[256], size[TEXT_NUMBER_SIZE];
		uint64_t bytes, buffers;

		if (doctor->only_pid && doctor->only_pid != process->id.pid)
			continue;
		text_escape(process->comm, shown, sizeof(shown));
		if (process->stale) {
			snapshot_process_totals(process, &bytes, &buffers);
			if (process->unproven)
				doctor_tell_claim(doctor, process, shown, text_size(bytes, size));
			else
				doctor_tell_stale(doctor, process, shown, text_size(bytes, size));
		}
		if (process->untracked)
			doctor_tell(doctor, DOCTOR_DEVICE_UNTRACKED, process->id.pid,
				    process->user_id, "(%s) has device %" PRIu32 " open", shown,
				    process->part_count
					    ? snapshot->devices[process->parts[0].row].device
					    : 0);
		if (process->differs)
			doctor_tell_difference(doctor, process);
		if (process->capacities_refused)
			doctor_tell(doctor, DOCTOR_CAPACITY_REFUSED, process->id.pid,
				    process->user_id,
				    "(%s) declares %zu capacit%s that no card has", shown,
				    process->capacities_refused,
				    process->capacities_refused == 1 ? "y" : "ies");
		if (process->alive && snapshot->card_count)
			doctor_tell_unmatched(doctor, process);
		doctor_tell_left(doctor, process);
	}
}

static void doctor_tell_limit(struct doctor *doctor, const struct snapshot_device *device,
			      enum snapshot_sensor sensor)
{
	static const struct {
		const char *name, *unit;
	} sensors[] = {
		[SNAPSHOT_TEMPERATURE] = {"its temperature", "degrees Celsius"},
		[SNAPSHOT_POWER] = {"its power", "W"},
		[SNAPSHOT_VOLTAGE] = {"its voltage", "V"},
		[SNAPSHOT_CURRENT] = {"its current", "A"},
	};

	if (condition_is_over(device, sensor))
		doctor_tell(doctor, DOCTOR_OVER_LIMIT, 0, 0,
			    "device %" PRIu32 ": %s is %g %s, the limit %g", device->device,
			    sensors[sensor].name, (double)device->telemetry.value[sensor] / 1000,
			    sensors[sensor].unit,
			    (double)device->condition.limits.value[sensor] / 1000);
}

static void doctor_look_at_cards(struct doctor *doctor)
{
	for (size_t i = 0; i < doctor->snapshot->device_count; i++) {
		const struct snapshot_device *device = &doctor->snapshot->devices[i];
		const struct snapshot_condition *condition = &device->condition;

		if (condition_words(condition->state))
			doctor_tell(doctor, DOCTOR_CARD_UNAVAILABLE, 0, 0,
				    "device %" PRIu32 " is %s", device->device,
				    condition_words(condition->state));
		for (uint32_t sensor = 0; sensor <= SNAPSHOT_CURRENT; sensor++)
			doctor_tell_limit(doctor, device, sensor);
		if (condition->has_trips && condition->trips)
			doctor_tell(doctor, DOCTOR_THERMAL_TRIP, 0, 0,
				    "device %" PRIu32 " switched itself off %" PRIu32 " time%s",
				    device->device, condition->trips,
				    condition->trips == 1 ? "" : "s");
		if (condition->outside)
			doctor_tell(doctor, DOCTOR_DEVICE_UNTRACKED, 0, 0,
				    "device %" PRIu32
				    " is opened by a process outside this pid namespace",
				    device->device);
	}
}

static void doctor_look_at_sums(struct doctor *doctor)
{
	for (size_t i = 0; i < doctor->snapshot->device_count; i++) {
		const struct snapshot_device *device = &doctor->snapshot->devices[i];

		if (device->summed)
			doctor_tell(doctor, DOCTOR_DEVICES_MANY, 0, 0,
				    "%" PRIu32 " devices of user %s are summed up in one row",
				    device->summed, device->declared_by);
	}
}

/* Reports which regions cannot be read, and why. */
static void doctor_look_at_regions(struct doctor *doctor)
{
	CLEANUP_CLOSEDIR DIR *listing = opendir(region_folder());
	CLEANUP_FREE struct region_name *names = NULL;
	size_t left_out = 0;
	int count = listing ? region_list(listing, doctor->snapshot, &names, &left_out) : 0;

	for (int i = 0; i < count; i++) {
		struct region_file file;
		struct region region;
		int r = region_read(dirfd(listing), names[i].text, &file, &region);

		if (r == REGION_CLOSED)
			doctor_tell(doctor, DOCTOR_REGION_UNREADABLE, 0, 0, "%s/%s %s",
				    region_folder(), names[i].text, region_strerror(r));
		else if (r != 0 && r != -ENOENT)
			doctor_tell(doctor, DOCTOR_REGION_BROKEN, 0, 0, "%s/%s %s", region_folder(),
				    names[i].text, region_strerror(r));
	}
	if (left_out)
		doctor_tell(doctor, DOCTOR_REGION_MANY, 0, 0,
			    "%zu of tt-metal's regions in %s are left out", left_out,
			    region_folder());
}

void doctor_look_at_sources(struct doctor *doctor)
{
	if (doctor->snapshot->card_count == 0 && !doctor->only_pid)
		doctor_tell(doctor, DOCTOR_DRIVER_NONE, 0, 0, "no card in %s/class/tenstorrent",
			    driver_sys_root());
	doctor_look_at_claims(doctor);
	if (doctor->only_pid)
		return;
	doctor_look_at_cards(doctor);
	doctor_look_at_sums(doctor);
	doctor_look_at_regions(doctor);
}
