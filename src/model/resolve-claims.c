/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Resolving claims, in this order:
 *
 *	devices	of processes that report themselves are joined to cards, also by means of claims
 *	regions	of a process with a book: compared, never counted
 *		of another living process: counted
 *		of one that has exited: shown as stale, never counted
 *	driver	of a process about which nothing else is known: open, untracked
 *
 * A region is compared with the book's part of the same chip. Its device number is the one of its
 * latest writer, so numbers decide only where the book has no id.
 */

#include "model/resolve-claims.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bits.h"
#include "model/join.h"
#include "model/snapshot.h"

#define RESOLVE_NONE SIZE_MAX

static size_t resolve_find(const struct snapshot *snapshot, const struct snapshot_process *who)
{
	struct snapshot_search search = {.pid = who->pid};
	const struct snapshot_process *process;

	while ((process = snapshot_next_process(snapshot, &search))) {
		/* Of the dead a region tells no start. */
		if (process->alive == who->alive &&
		    (!who->alive || process->start_ticks == who->start_ticks))
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

/* The process has a book, which is what counts, whatever the region says. */
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
	for (uint32_t type = 0; type < BOOK_TYPES; type++) {
		part->claimed_used[type] = claim->used[type];
		if (claim->types & UINT32_C(1) << type &&
		    part->memory[type].used != claim->used[type])
			part->differs = process->differs = true;
	}
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
	}
	return 0;
}

/* @known: the number of processes that report themselves. */
static int resolve_claim(struct snapshot *snapshot, const struct snapshot_claim *claim,
			 size_t known)
{
	size_t index = resolve_find(snapshot, &claim->process);
	uint32_t added;
	int r;

	if (index != RESOLVE_NONE && index < known)
		return claim->is_open_only || !claim->process.alive
			       ? 0
			       : resolve_compare(snapshot, index, claim);
	if (index == RESOLVE_NONE) {
		r = snapshot_add_process(snapshot, &claim->process, &added);
		if (r < 0)
			return r;
		index = added;
		snapshot->processes[index].books = 0;
	}
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
	return r;
}
