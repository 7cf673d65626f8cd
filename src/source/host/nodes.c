/* SPDX-License-Identifier: Apache-2.0 */

/* Compares what the driver says with what the files of processes tell. */

#include "source/host/nodes.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "model/cards/numbering.h"
#include "model/snapshot.h"
#include "source/host/nodes-read.h"
#include "source/proc/pid-cache.h"
#include "source/proc/process-env.h"

#define NODES_VISIBLE_MAX 256u

/* Whether the process leaves a doubt which chips it uses. */
static bool nodes_are_wanted(const struct snapshot *snapshot,
			     const struct snapshot_process *process)
{
	for (size_t i = 0; i < process->part_count; i++) {
		uint64_t id = process->parts[i].facts.unique_id;
		bool is_found = false;

		for (size_t k = 0; id && k < snapshot->card_count; k++)
			is_found = is_found || snapshot->cards[k].unique_id == id;
		if (!is_found && !process->parts[i].facts.remote)
			return true;
	}
	return false;
}

/* Whether the driver lists the process as an opener. */
static bool nodes_is_listed(const struct snapshot *snapshot, uint32_t pid, size_t claims)
{
	for (size_t i = 0; i < claims; i++) {
		if (snapshot->claims[i].is_open_only && snapshot->claims[i].process.pid == pid)
			return true;
	}
	return false;
}

static int nodes_claim(struct nodes_reader *nodes, const struct snapshot_process *process,
		       size_t card)
{
	struct snapshot_claim claim = {
		.process = *process,
		.device = nodes->snapshot->cards[card].number,
		.facts = {.unique_id = nodes->snapshot->cards[card].unique_id},
		.is_open_only = true,
	};
	int r;

	/* As for snapshot_add_process(): without what the book says. */
	claim.process.parts = NULL;
	claim.process.part_count = claim.process.part_capacity = 0;
	claim.process.source = "driver";
	claim.process.untracked = true;
	r = snapshot_add_claim(nodes->snapshot, &claim);
	return r == -ENOBUFS ? 0 : r;
}

/*
 * The nodes that it has only as removed ones; join.h has which of its devices they are. Who has no other
 * has nothing on a card that is there.
 */
static int nodes_mark_left(struct nodes_reader *nodes, const struct snapshot_process *process,
			   const struct nodes_found *found)
{
	struct snapshot_left left = {.pid = process->pid,
				     .start_ticks = process->start_ticks,
				     .device = UINT32_MAX,
				     .node = UINT32_MAX};
	int r = 0;

	if (found->removed_count && !found->opened_count)
		r = snapshot_add_left(nodes->snapshot, &left);
	for (size_t i = 0; r == 0 && i < found->removed_count; i++) {
		bool is_back = false;

		for (size_t k = 0; k < found->opened_count; k++)
			is_back = is_back || found->opened[k] == found->removed[i];
		left.node = found->removed[i];
		if (!is_back)
			r = snapshot_add_left(nodes->snapshot, &left);
	}
	return r;
}

/* Versions of UMD number cards differently. Mappings are long lists: only where it matters. */
static uint32_t nodes_umd(struct nodes_reader *nodes, const struct nodes_found *found)
{
	uint32_t cards[NODES_NUMBERS_MAX];
	struct numbering open = {.cards = cards};

	for (size_t i = 0; i < nodes->snapshot->card_count && open.count < NODES_NUMBERS_MAX; i++) {
		if (found->open[i])
			cards[open.count++] = (uint32_t)i;
	}
	(void)numbering_sort(nodes->snapshot, NUMBERING_BUS, &open);
	return numbering_differs(nodes->snapshot, &open) ? nodes_read_umd(nodes, found->pid) : 0;
}

/* A process that reports itself. @listed: claims that are the driver's. */
static int nodes_look(struct nodes_reader *nodes, size_t index, size_t listed)
{
	struct snapshot *snapshot = nodes->snapshot;
	struct snapshot_process *process = &snapshot->processes[index];
	bool is_wanted = nodes_are_wanted(snapshot, process);
	char visible[NODES_VISIBLE_MAX];
	struct nodes_found found;
	int r;

	/* The driver forgets who has a node that was removed. */
	if (!process->alive || !process->part_count ||
	    (!is_wanted && nodes_is_listed(snapshot, process->pid, listed)))
		return 0;
	nodes_read(nodes, process->pid, &found);
	r = nodes_mark_left(nodes, process, &found);
	if (!is_wanted)
		return r;
	if (process_env_find(pid_cache_proc(nodes->pid_cache), process->pid, "TT_VISIBLE_DEVICES",
			     visible, sizeof(visible)))
		process->visible = snapshot_text(snapshot, visible, strlen(visible));
	process->nodes_known = found.is_known;
	process->umd = nodes_umd(nodes, &found);
	for (size_t i = 0; r == 0 && found.is_known && i < snapshot->card_count; i++) {
		if (found.open[i])
			r = nodes_claim(nodes, process, i);
	}
	return r;
}

/* Those that only a region names; the claims are not processes yet. */
static int nodes_look_at_regions(struct nodes_reader *nodes, size_t listed)
{
	struct snapshot *snapshot = nodes->snapshot;
	uint32_t last = 0;
	int r = 0;

	for (size_t i = 0; r == 0 && i < listed; i++) {
		const struct snapshot_process process = snapshot->claims[i].process;
		struct nodes_found found;

		if (snapshot->claims[i].is_open_only || !process.alive || process.pid == last ||
		    nodes_is_listed(snapshot, process.pid, listed))
			continue;
		last = process.pid;
		nodes_read(nodes, last, &found);
		r = nodes_mark_left(nodes, &process, &found);
	}
	return r;
}

/* The card of an opener's claim; NULL if it is not there any more. */
static struct snapshot_card *nodes_card_of(struct snapshot *snapshot,
					   const struct snapshot_claim *claim, size_t *ret_index)
{
	for (size_t i = 0; i < snapshot->card_count; i++) {
		if (snapshot->cards[i].number == claim->device &&
		    snapshot->cards[i].condition.state != SNAPSHOT_GONE) {
			*ret_index = i;
			return &snapshot->cards[i];
		}
	}
	return NULL;
}

static int nodes_compare(const void *left, const void *right, void *context)
{
	const struct snapshot *snapshot = context;
	uint32_t a = snapshot->claims[*(const uint32_t *)left].process.pid;
	uint32_t b = snapshot->claims[*(const uint32_t *)right].process.pid;

	return (a > b) - (a < b);
}

/*
 * Marks the driver's claims about processes that do not have the node open: others have the pid now.
 * Each process is read once, however many nodes it has open.
 */
static void nodes_judge(struct nodes_reader *nodes, uint32_t *openers, size_t count, bool *wrong)
{
	struct snapshot *snapshot = nodes->snapshot;
	struct nodes_found found = {.is_known = false};

	qsort_r(openers, count, sizeof(*openers), nodes_compare, snapshot);
	for (size_t i = 0; i < count; i++) {
		const struct snapshot_claim *claim = &snapshot->claims[openers[i]];
		struct snapshot_card *card;
		size_t index = 0;

		if (claim->process.pid != found.pid)
			nodes_read(nodes, claim->process.pid, &found);
		card = nodes_card_of(snapshot, claim, &index);
		if (card && found.is_known && !found.open[index]) {
			card->condition.ended++;
			wrong[openers[i]] = true;
		}
	}
}

static int nodes_drop(struct nodes_reader *nodes)
{
	struct snapshot *snapshot = nodes->snapshot;
	CLEANUP_FREE uint32_t *openers = calloc(snapshot->claim_count + 1, sizeof(*openers));
	CLEANUP_FREE bool *wrong = calloc(snapshot->claim_count + 1, sizeof(*wrong));
	size_t count = 0;

	if (!openers || !wrong)
		return -ENOMEM;
	for (size_t i = 0; i < snapshot->claim_count; i++) {
		if (snapshot->claims[i].is_open_only)
			openers[count++] = (uint32_t)i;
	}
	nodes_judge(nodes, openers, count, wrong);
	count = 0;
	for (size_t i = 0; i < snapshot->claim_count; i++) {
		if (!wrong[i])
			snapshot->claims[count++] = snapshot->claims[i];
	}
	snapshot->claim_count = count;
	return 0;
}

/* Adds the cards whose openers have ended that a process has open. */
static int nodes_inherit(struct nodes_reader *nodes, const struct nodes_found *found,
			 bool is_held[SNAPSHOT_CARDS_MAX])
{
	struct snapshot *snapshot = nodes->snapshot;
	struct snapshot_process process;
	struct proc_facts facts;
	int r = 0;

	for (size_t i = 0; r == 0 && i < snapshot->card_count; i++) {
		if (!found->open[i] || !snapshot->cards[i].condition.ended)
			continue;
		r = pid_cache_find(nodes->pid_cache, found->pid, &facts, &process);
		if (r == 0) {
			is_held[i] = true;
			r = nodes_claim(nodes, &process, i);
		}
		if (r == -ESRCH)
			r = 0; /* it has just exited */
	}
	return r;
}

/*
 * A node whose opener has ended is held by a child. It is searched for among all processes; if all of
 * them could be searched and none has it, it was closed between two readings.
 */
static int nodes_find_heirs(struct nodes_reader *nodes)
{
	struct snapshot *snapshot = nodes->snapshot;
	CLEANUP_CLOSEDIR DIR *listing = NULL;
	bool is_held[SNAPSHOT_CARDS_MAX] = {false}, is_complete = true, has_ended = false;
	uint32_t pid;
	int r = 0;

	for (size_t i = 0; i < snapshot->card_count; i++)
		has_ended = has_ended || snapshot->cards[i].condition.ended;
	if (!has_ended)
		return 0;
	listing = proc_list(pid_cache_proc(nodes->pid_cache), ".");
	while (r == 0 && listing && (pid = proc_next(listing))) {
		struct nodes_found found;

		nodes_read(nodes, pid, &found);
		is_complete = is_complete && found.is_known;
		r = nodes_inherit(nodes, &found, is_held);
	}
	for (size_t i = 0; listing && is_complete && i < snapshot->card_count; i++) {
		if (!is_held[i])
			snapshot->cards[i].condition.ended = 0;
	}
	return r;
}

int nodes_check(struct pid_cache *pid_cache, struct snapshot *snapshot)
{
	struct nodes_reader nodes;
	size_t listed;
	int r;

	/* Without a driver nobody can have one of its nodes. */
	if ((snapshot->card_count == 0 &&
	     faccessat(pid_cache_proc(pid_cache)->root, "driver/tenstorrent", F_OK, 0) < 0) ||
	    !nodes_reader_begin(&nodes, pid_cache, snapshot))
		return 0;
	r = nodes_drop(&nodes);
	if (r == 0)
		r = nodes_find_heirs(&nodes);
	listed = snapshot->claim_count;
	for (size_t i = 0; r == 0 && i < snapshot->process_count; i++)
		r = nodes_look(&nodes, i, listed);
	return r < 0 ? r : nodes_look_at_regions(&nodes, listed);
}
