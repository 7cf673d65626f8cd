/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Whether the figures are plausible: what the old guide "KB instead of MB" asked people to check by
 * hand.
 */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <ttmem/ttmem.h>

#include "base/text.h"
#include "cli/common/session.h"
#include "cli/doctor/doctor.h"
#include "model/merge.h"
#include "model/snapshot.h"
#include "source/books/scan.h"
#include "source/proc/process-env.h"

#define DOCTOR_SMALL (UINT64_C(1) << 20) /* less, with a device open, means a mistake somewhere */
#define DOCTOR_MUCH (UINT64_C(16) << 20) /* a peak worth mentioning */
#define DOCTOR_FRACTION 10u              /* less than this fraction of the peak now */

/* Sums over the devices of a process. */
struct doctor_sums {
	uint64_t used, peak, dram, unknown_frees;
	uint64_t on_chip; /* not 0: it ever had something there */
	bool device_open; /* as it declared */
	bool declares;
	bool peak_is_known;
	bool is_confirmed; /* tt-metal's own region has the same figures */
	bool has_reported; /* a buffer, ever; or tt-metal's region does */
};

static void doctor_sum(const struct snapshot_process *process, struct doctor_sums *ret_sums)
{
	struct doctor_sums sums = {.peak_is_known = true,
				   .is_confirmed = process->part_count > 0,
				   .unknown_frees = process->stray_frees,
				   .has_reported = process->stray_frees > 0};

	for (size_t i = 0; i < process->part_count; i++) {
		const struct snapshot_part *part = &process->parts[i];

		sums.is_confirmed &= part->claimed && !part->differs;
		sums.has_reported |= part->claimed;
		sums.declares |= part->facts.declared;
		sums.device_open |= part->facts.declared && !part->facts.closed_ns;
		for (uint32_t type = 0; type < BOOK_TYPES; type++) {
			const struct snapshot_memory *memory = &part->memory[type];

			sums.used = merge_add(sums.used, memory->used);
			sums.peak = merge_add(sums.peak, memory->peak);
			sums.has_reported |=
				memory->allocs | memory->unknown_frees | memory->hooked;
			sums.peak_is_known &= !memory->peak_is_unknown;
			sums.unknown_frees = merge_add(sums.unknown_frees, memory->unknown_frees);
			if (type == TTMEM_DRAM)
				sums.dram = merge_add(sums.dram, memory->used);
			else if (type == TTMEM_L1 || type == TTMEM_L1_SMALL || type == TTMEM_CB)
				sums.on_chip |= memory->allocs | memory->used;
		}
	}
	*ret_sums = sums;
}

/*
 * A process that declares no device is taken to use one while it holds something there. What it
 * held before may have been enough.
 */
static bool doctor_holds_little(const struct doctor_sums *sums)
{
	return !sums->declares && sums->used > 0 && sums->used < DOCTOR_SMALL &&
	       (!sums->peak_is_known || sums->peak < DOCTOR_SMALL);
}

/*
 * Whether little is known to be all: the preload library sees every buffer of tt-metal or says that it does
 * not, and what tt-metal's own region confirms is not missing.
 */
static bool doctor_is_right(const struct doctor *doctor, const struct snapshot_process *process,
			    const struct doctor_sums *sums)
{
	struct process_env inside;

	if (sums->used == 0 || sums->unknown_frees || process->gave_up)
		return false;
	return sums->is_confirmed || (process_env_read(&session_scan(doctor->session)->proc,
						       process->id.pid, &inside) == 0 &&
				      inside.has_metal_front && inside.has_metal);
}

/* Of a process that declares its device, total-small says it; metal-untracked knows more. */
static bool doctor_is_silent(const struct doctor *doctor, const struct snapshot_process *process,
			     const struct doctor_sums *sums)
{
	return process->exact && !sums->has_reported && strcmp(process->source, "tt-metal") != 0 &&
	       doctor_count_nodes(doctor->snapshot, process) > 0 &&
	       !doctor_has_told(doctor, DOCTOR_METAL_UNTRACKED, process->id.pid);
}

static void doctor_judge(struct doctor *doctor, const struct snapshot_process *process)
{
	char used[TEXT_NUMBER_SIZE], peak[TEXT_NUMBER_SIZE], comm[TEXT_ESCAPE_SIZE(64)];
	struct doctor_sums sums;

	text_fit(process->comm, 32, comm, sizeof(comm));
	doctor_sum(process, &sums);
	text_size(sums.used, used);
	/* A region may be inexact although no event was lost. */
	if (!process->exact && !process->gave_up && strcmp(process->source, "tt-metal") != 0)
		doctor_tell(doctor, DOCTOR_EVENTS_LOST, process->id.pid, process->user_id,
			    "%s: events were lost: room %" PRIu64 ", lock %" PRIu64
			    ", reentry %" PRIu64 ", device %" PRIu64 ", type %" PRIu64
			    ", size %" PRIu64 ", arguments %" PRIu64 ", paused %" PRIu64,
			    comm, process->rejected.room, process->rejected.lock,
			    process->rejected.reentry, process->rejected.device,
			    process->rejected.type, process->rejected.size,
			    process->rejected.arguments, process->rejected.paused);
	if (sums.peak_is_known && sums.peak >= DOCTOR_MUCH &&
	    sums.used < sums.peak / DOCTOR_FRACTION)
		doctor_tell(doctor, DOCTOR_PEAK_PAST, process->id.pid, process->user_id,
			    "%s holds %s now, and held %s at most", comm, used,
			    text_size(sums.peak, peak));
	else if (doctor_is_right(doctor, process, &sums))
		; /* little, and known to be all */
	else if (sums.device_open && sums.used < DOCTOR_SMALL)
		doctor_tell(doctor, DOCTOR_TOTAL_SMALL, process->id.pid, process->user_id,
			    "%s has a device open and holds %s in all", comm, used);
	else if (doctor_holds_little(&sums))
		doctor_tell(doctor, DOCTOR_TOTAL_SMALL, process->id.pid, process->user_id,
			    "%s holds %s in all%s", comm, used,
			    sums.peak_is_known ? ", and never held 1 MiB" : "");
	else if (doctor_is_silent(doctor, process, &sums))
		doctor_tell(doctor, DOCTOR_NOTHING_REPORTED, process->id.pid, process->user_id,
			    "%s has a device open and a book, and never reported a buffer", comm);
	/* A region of tt-metal reports present use, not past use. */
	if (sums.dram > 0 && sums.on_chip == 0 && strcmp(process->source, "tt-metal") != 0)
		doctor_tell(doctor, DOCTOR_DRAM_ONLY, process->id.pid, process->user_id,
			    "%s holds %s of DRAM and never had a buffer in L1", comm,
			    text_size(sums.dram, used));
	if (sums.unknown_frees)
		doctor_tell(doctor, DOCTOR_FREES_UNKNOWN, process->id.pid, process->user_id,
			    "%s freed %" PRIu64 " buffer%s that %s never reported", comm,
			    sums.unknown_frees, sums.unknown_frees == 1 ? "" : "s",
			    sums.unknown_frees == 1 ? "was" : "were");
}

void doctor_look_at_memory(struct doctor *doctor)
{
	const struct snapshot *snapshot = doctor->snapshot;

	for (size_t i = 0; i < snapshot->process_count; i++) {
		if (snapshot->processes[i].alive && !snapshot->processes[i].untracked &&
		    (!doctor->only_pid || doctor->only_pid == snapshot->processes[i].id.pid))
			doctor_judge(doctor, &snapshot->processes[i]);
	}
}
