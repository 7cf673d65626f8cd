/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Resolving claims, in this order:
 *
 *	devices	of processes that report themselves are joined to cards, also by means of claims
 *	regions	of a process with a book: compared; counted only where the book has nothing, or gave up
 *		of another living process: counted
 *		of one that has exited: shown as stale, never counted
 *		of one that is not known to have written it: likewise, as a claim
 *	driver	of a process about which nothing else is known: open, untracked
 *
 * What a region reports may be less than what there is: early writers do not see all threads, a
 * table of processes may be full, and other users have no rows in a private one. The first bounds
 * the process's figures, the others only the device's.
 *
 * A region is compared with the book's part of the same chip. Its device number is the one of its
 * latest writer, so numbers decide only where the book has no id.
 */

#include "model/resolve-claims.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/bits.h"
#include "model/cards/join.h"
#include "model/merge.h"
#include "model/snapshot.h"
#include "model/types.h"

#define RESOLVE_NONE SIZE_MAX

static size_t resolve_find(const struct snapshot *snapshot, const struct snapshot_process *who)
{
	struct snapshot_search search = {.pid = who->id.pid};
	const struct snapshot_process *process;

	while ((process = snapshot_next_process(snapshot, &search))) {
		/* Of the dead a region tells no start. */
		if (process->alive == who->alive &&
		    (!who->alive || process_id_equal(process->id, who->id)))
			return (size_t)(process - snapshot->processes);
	}
	return RESOLVE_NONE;
}

static struct snapshot_part *resolve_part(struct snapshot_process *process,
					  const struct snapshot_claim *claim)
{
	for (size_t i = 0; i < process->part_count; i++) {
		struct snapshot_part *part = &process->parts[i];
		bool both = part->facts.unique_id && claim->facts.unique_id;

		if (part->summed)
			continue;
		if (both ? part->facts.unique_id == claim->facts.unique_id
			 : part->device == claim->device)
			return part;
	}
	return NULL;
}

static struct snapshot_part *resolve_add_part(struct snapshot *snapshot, size_t index,
					      const struct snapshot_claim *claim)
{
	struct snapshot_part *part = snapshot_add_part(snapshot, (uint32_t)index, claim->device);

	if (!part)
		return NULL;
	part->facts = claim->facts;
	part->is_claim = true;
	for (uint32_t type = 0; type < BOOK_TYPES; type++)
		part->memory[type].peak_is_unknown = true;
	return part;
}

/* Whether the book has never reported anything about the device. */
static bool resolve_is_silent(const struct snapshot_part *part)
{
	for (uint32_t type = 0; type < BOOK_TYPES; type++) {
		const struct snapshot_memory *memory = &part->memory[type];

		if (memory->allocs | memory->frees | memory->buffers | memory->hooked)
			return false;
	}
	return true;
}

/* tt-metal's own word, where the book's is missing or not all. */
static void resolve_take(struct snapshot_process *process, struct snapshot_part *part,
			 const struct snapshot_claim *claim)
{
	uint32_t bound = process->gave_up ? SNAPSHOT_AT_LEAST : claim->bound;

	part->is_region_counted = true;
	process->last_ns = bits_max(process->last_ns, claim->last_ns);
	if (bound != SNAPSHOT_EXACT)
		process->exact = false;
	for (uint32_t type = 0; type < BOOK_TYPES; type++) {
		struct snapshot_memory *memory = &part->memory[type];

		if (!(claim->types & UINT32_C(1) << type))
			continue;
		memory->bound = merge_bound(memory->bound, bound);
		if (claim->used[type] <= memory->used)
			continue;
		memory->used = claim->used[type];
		memory->occupied = (struct snapshot_occupied){0};
		memory->peak_is_unknown = true;
		memory->last_ns = bits_max(memory->last_ns, claim->last_ns);
	}
}

/* The process has a book, which is what counts where it says anything, whatever the region says. */
static int resolve_compare(struct snapshot *snapshot, size_t index,
			   const struct snapshot_claim *claim)
{
	struct snapshot_process *process = &snapshot->processes[index];
	struct snapshot_part *part = resolve_part(process, claim);

	if (!part) {
		part = resolve_add_part(snapshot, index, claim);
		if (!part)
			return -ENOMEM;
		part->is_claim_only = true;
	}
	part->claimed = true;
	if (process->gave_up || resolve_is_silent(part))
		resolve_take(process, part, claim);
	for (uint32_t type = 0; type < BOOK_TYPES; type++) {
		part->claimed_used[type] = claim->used[type];
		if (!part->is_region_counted && claim->types & UINT32_C(1) << type &&
		    part->memory[type].used != claim->used[type])
			part->differs = process->differs = true;
	}
	return 0;
}

/* A device that a process has open whose tracking gave up: nobody knows how much it has there. */
static int resolve_open(struct snapshot *snapshot, size_t index, const struct snapshot_claim *claim)
{
	struct snapshot_process *process = &snapshot->processes[index];
	struct snapshot_part *part;

	if (!process->gave_up || !claim->process.alive || resolve_part(process, claim))
		return 0;
	part = resolve_add_part(snapshot, index, claim);
	if (!part)
		return -ENOMEM;
	part->is_claim_only = true;
	for (uint32_t type = 0; type < BOOK_TYPES; type++)
		part->memory[type].bound = SNAPSHOT_AT_LEAST;
	return 0;
}

static int resolve_count(struct snapshot *snapshot, size_t index,
			 const struct snapshot_claim *claim)
{
	struct snapshot_process *process = &snapshot->processes[index];
	struct snapshot_part *part = resolve_part(process, claim);

	if (part)
		return 0; /* reported twice: the first is as good */
	part = resolve_add_part(snapshot, index, claim);
	if (!part)
		return -ENOMEM;
	process->last_ns = bits_max(process->last_ns, claim->last_ns);
	for (uint32_t type = 0; type < BOOK_TYPES; type++) {
		part->memory[type].used = claim->used[type];
		part->memory[type].last_ns = claim->used[type] ? claim->last_ns : 0;
		if (claim->types & UINT32_C(1) << type)
			part->memory[type].bound = claim->bound;
	}
	if (claim->bound != SNAPSHOT_EXACT)
		process->exact = false;
	return 0;
}

/* @known: the number of processes that report themselves. */
static int resolve_claim(struct snapshot *snapshot, const struct snapshot_claim *claim,
			 size_t known)
{
	size_t index = resolve_find(snapshot, &claim->process);
	uint32_t added;
	int r;

	if (index != RESOLVE_NONE && index < known && claim->is_open_only)
		return resolve_open(snapshot, index, claim);
	if (index != RESOLVE_NONE && index < known)
		return claim->process.alive ? resolve_compare(snapshot, index, claim) : 0;
	if (index == RESOLVE_NONE) {
		r = snapshot_add_process(snapshot, &claim->process, &added);
		if (r < 0)
			return r;
		index = added;
		snapshot->processes[index].books = 0;
	}
	snapshot->processes[index].unproven |= claim->process.unproven;
	if (claim->is_open_only)
		snapshot->processes[index].is_opener = true;
	/* A region makes a process tracked, whatever else it has open. */
	if (claim->is_open_only && !snapshot->processes[index].untracked)
		return 0;
	return resolve_count(snapshot, index, claim);
}

int resolve_claims(struct snapshot *snapshot, struct join *join)
{
	size_t known = snapshot->process_count, differing = 0;
	int r = 0;

	for (size_t i = 0; i < snapshot->claim_count; i++) {
		uint64_t *id = &snapshot->claims[i].facts.unique_id;

		*id = join_id(join, *id);
	}
	join_all(join);
	for (unsigned int round = 0; round < 2; round++) {
		for (size_t i = 0; r == 0 && i < snapshot->claim_count; i++) {
			if (snapshot->claims[i].is_open_only == (round == 1))
				r = resolve_claim(snapshot, &snapshot->claims[i], known);
		}
	}
	for (size_t i = 0; i < known; i++)
		differing += snapshot->processes[i].differs;
	if (differing)
		snapshot_note(snapshot,
			      "%zu process%s: book and tt-metal's region disagree; the book is "
			      "counted",
			      differing, differing == 1 ? "" : "es");
	join_all(join); /* what was added */
	join_name_cards(join);
	return r;
}

/* What is noted about all regions together. */
struct resolve_regions {
	size_t untracked;         /* processes */
	size_t bounded, with_cbs; /* rows that are counted */
	const struct snapshot_claim *full;
};

/*
 * Whether other processes may use the device without a row in the region. In a private region no
 * other user has one, so this is known only from the driver's list of those that have it open. A
 * remote chip is not in it, but can be used through any card: @untracked processes have one open.
 */
static bool resolve_lacks_others(const struct snapshot_claim *claim,
				 const struct snapshot_process *process,
				 const struct snapshot_device *row, size_t untracked)
{
	if (claim->region_is_full)
		return true;
	if (!claim->region_is_private || !process->alive || process->books > 0)
		return false;
	if (!process->is_opener)
		return true; /* the driver's list is not known */
	return row->present ? row->untracked > 0 : untracked > 0;
}

static void resolve_bound(struct snapshot *snapshot, const struct snapshot_claim *claim,
			  struct resolve_regions *regions)
{
	size_t index = resolve_find(snapshot, &claim->process);
	const struct snapshot_process *process;
	const struct snapshot_part *part = NULL;
	struct snapshot_device *row;

	if (index != RESOLVE_NONE)
		part = resolve_part(&snapshot->processes[index], claim);
	if (!part)
		return;
	process = &snapshot->processes[index];
	if (process->alive && process->books == 0 && claim->bound != SNAPSHOT_EXACT) {
		regions->bounded++;
		regions->with_cbs += claim->used[TYPES_CB] > 0;
	}
	row = &snapshot->devices[part->row];
	if (!resolve_lacks_others(claim, process, row, regions->untracked))
		return;
	snapshot->exact = false;
	for (uint32_t type = 0; type < BOOK_TYPES; type++) {
		if (claim->types & UINT32_C(1) << type)
			row->memory[type].bound =
				merge_bound(row->memory[type].bound, SNAPSHOT_AT_LEAST);
	}
}

static void resolve_note_full(struct snapshot *snapshot, const struct snapshot_claim *claim,
			      struct resolve_regions *regions)
{
	if (!claim->region_is_full)
		return;
	/* The rows of a region follow each other. */
	if (!regions->full || regions->full->region != claim->region)
		snapshot_note(snapshot,
			      "tt_device_%" PRIu64 "_memory has no row left for a further process: "
			      "what others hold is not known",
			      claim->region);
	regions->full = claim;
}

void resolve_bounds(struct snapshot *snapshot)
{
	struct resolve_regions regions = {0};

	for (size_t i = 0; i < snapshot->process_count; i++)
		regions.untracked += snapshot->processes[i].untracked;
	for (size_t i = 0; i < snapshot->claim_count; i++) {
		if (snapshot->claims[i].is_open_only)
			continue;
		resolve_bound(snapshot, &snapshot->claims[i], &regions);
		resolve_note_full(snapshot, &snapshot->claims[i], &regions);
	}
	if (regions.bounded)
		snapshot_note(
			snapshot,
			"%zu row%s of tt-metal's regions before version 4: only the thread that "
			"opened the device is seen%s",
			regions.bounded, regions.bounded == 1 ? "" : "s",
			regions.with_cbs ? ", and circular buffers at most ten times a second"
					 : "");
}
