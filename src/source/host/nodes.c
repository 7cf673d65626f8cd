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

#include "base/bits.h"
#include "base/cleanup.h"
#include "model/cards/numbering.h"
#include "model/snapshot.h"
#include "source/host/driver.h"
#include "source/host/nodes-private.h"
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
		if (snapshot->claims[i].is_open_only && snapshot->claims[i].process.id.pid == pid)
			return true;
	}
	return false;
}

int nodes_claim(struct nodes_reader *nodes, const struct snapshot_process *process, size_t card)
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
	struct snapshot_left left = {
		.process = process->id, .device = UINT32_MAX, .node = UINT32_MAX};
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
	    (!is_wanted && nodes_is_listed(snapshot, process->id.pid, listed)))
		return 0;
	nodes_read(nodes, process->id.pid, &found);
	r = nodes_mark_left(nodes, process, &found);
	if (!is_wanted)
		return r;
	if (process_env_find(pid_cache_proc(nodes->pid_cache), process->id.pid,
			     "TT_VISIBLE_DEVICES", visible, sizeof(visible)))
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

		if (snapshot->claims[i].is_open_only || !process.alive || process.id.pid == last ||
		    nodes_is_listed(snapshot, process.id.pid, listed))
			continue;
		last = process.id.pid;
		nodes_read(nodes, last, &found);
		r = nodes_mark_left(nodes, &process, &found);
	}
	return r;
}

struct snapshot_card *nodes_card_of(struct snapshot *snapshot, const struct snapshot_claim *claim,
				    size_t *ret_index)
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
	uint32_t a = snapshot->claims[*(const uint32_t *)left].process.id.pid;
	uint32_t b = snapshot->claims[*(const uint32_t *)right].process.id.pid;

	return bits_compare(a, b);
}

/*
 * Doubts the claims about processes that do not have the node: its opener has ended, and another has
 * the pid now. Each process is read once, however many nodes it has open.
 */
static void nodes_judge(struct nodes_reader *nodes, struct nodes_openers *openers)
{
	struct snapshot *snapshot = nodes->snapshot;
	struct nodes_found found = {.is_known = false};
	bool is_close = false;

	qsort_r(openers->claims, openers->count, sizeof(*openers->claims), nodes_compare, snapshot);
	for (size_t i = 0; i < openers->count; i++) {
		const struct snapshot_claim *claim = &snapshot->claims[openers->claims[i]];
		struct snapshot_card *card;
		size_t index = 0;

		if (claim->process.id.pid != found.pid) {
			nodes_read(nodes, claim->process.id.pid, &found);
			is_close = false;
		}
		card = nodes_card_of(snapshot, claim, &index);
		if (card && found.is_known && !found.open[index] && !is_close) {
			nodes_read_closely(nodes, &found);
			is_close = true;
		}
		if (card && found.is_known && !found.open[index]) {
			card->condition.ended++;
			openers->doubted[openers->claims[i]] = true;
		}
		if (card && !found.is_known) {
			openers->unread[openers->claims[i]] = true;
			openers->has_unread = true;
		}
	}
}

/* Whether the driver lists the process for the card, without a doubt. */
static bool nodes_is_opener(const struct snapshot *snapshot, const struct nodes_openers *openers,
			    uint32_t pid, uint32_t number)
{
	for (size_t i = 0; i < openers->count; i++) {
		const struct snapshot_claim *claim = &snapshot->claims[openers->claims[i]];

		if (claim->process.id.pid == pid && claim->device == number &&
		    !openers->doubted[openers->claims[i]])
			return true;
	}
	return false;
}

/* Adds the cards whose openers have ended that a process has open. */
static int nodes_inherit(struct nodes_reader *nodes, const struct nodes_found *found,
			 struct nodes_openers *openers)
{
	struct snapshot *snapshot = nodes->snapshot;
	struct snapshot_process process;
	struct proc_facts facts;
	int r = 0;

	for (size_t i = 0; r == 0 && i < snapshot->card_count; i++) {
		if (!found->open[i] || !snapshot->cards[i].condition.ended ||
		    nodes_is_opener(snapshot, openers, found->pid, snapshot->cards[i].number))
			continue;
		r = pid_cache_find(nodes->pid_cache, found->pid, &facts, &process);
		if (r == 0) {
			openers->held[i] = true;
			r = nodes_claim(nodes, &process, i);
		}
		if (r == -ESRCH)
			r = 0; /* it has just exited */
	}
	return r;
}

/* A node whose opener has ended is held by a child, which is searched for among all processes. */
static int nodes_find_heirs(struct nodes_reader *nodes, struct nodes_openers *openers)
{
	CLEANUP_CLOSEDIR DIR *listing = NULL;
	uint32_t pid;
	int r = 0;

	listing = proc_list(pid_cache_proc(nodes->pid_cache), ".");
	openers->is_complete = listing != NULL;
	while (r == 0 && listing && (pid = proc_next(listing))) {
		struct nodes_found found;

		nodes_read(nodes, pid, &found);
		openers->is_complete = openers->is_complete && found.is_known;
		r = nodes_inherit(nodes, &found, openers);
	}
	return r;
}

/*
 * All processes were searched, and none but those that the driver lists has the card. What was closed
 * meanwhile is not listed any more. What is, is held in a way that files do not show: the driver's word
 * is kept.
 */
static int nodes_believe(struct nodes_reader *nodes, struct snapshot_card *card,
			 struct nodes_openers *openers)
{
	struct snapshot *snapshot = nodes->snapshot;
	const struct proc *proc = pid_cache_proc(nodes->pid_cache);
	CLEANUP_FREE uint32_t *pids = calloc(DRIVER_PIDS_MAX, sizeof(*pids));
	size_t count = 0, outside;
	int r = pids ? driver_read_pids(proc, card->number, pids, &count, &outside) : -ENOMEM;

	card->condition.ended = 0;
	for (size_t i = 0; i < bits_min(count, DRIVER_PIDS_MAX); i++) {
		bool is_known = false;

		for (size_t k = 0; k < openers->count; k++) {
			uint32_t index = openers->claims[k];
			const struct snapshot_claim *claim = &snapshot->claims[index];

			if (claim->device != card->number || claim->process.id.pid != pids[i])
				continue;
			openers->doubted[index] = false;
			is_known = true;
		}
		card->condition.ended += !is_known && proc_start_ticks(proc, pids[i]) == 0;
	}
	return r;
}

static bool nodes_has_ended(const struct snapshot *snapshot)
{
	for (size_t i = 0; i < snapshot->card_count; i++) {
		if (snapshot->cards[i].condition.ended)
			return true;
	}
	return false;
}

static void nodes_drop(struct snapshot *snapshot, const struct nodes_openers *openers)
{
	size_t kept = 0;

	for (size_t i = 0; i < snapshot->claim_count; i++) {
		if (i >= openers->claim_count || !openers->doubted[i])
			snapshot->claims[kept++] = snapshot->claims[i];
	}
	snapshot->claim_count = kept;
}

/* Drops the claims that are wrong. */
static int nodes_settle(struct nodes_reader *nodes, const struct nodes_teller *teller,
			struct nodes_openers *openers)
{
	struct snapshot *snapshot = nodes->snapshot;
	bool has_ended;
	int r = 0;

	nodes_judge(nodes, openers);
	has_ended = nodes_has_ended(snapshot);
	if (has_ended)
		r = nodes_find_heirs(nodes, openers);
	/* Processes may be hidden from all but root: then the search only seems to be complete. */
	if (r == 0 && teller &&
	    (openers->has_unread || (has_ended && (!openers->is_complete || geteuid() != 0))))
		r = nodes_ask(nodes, teller, openers);
	for (size_t i = 0; r == 0 && openers->is_complete && i < snapshot->card_count; i++) {
		if (snapshot->cards[i].condition.ended && !openers->held[i])
			r = nodes_believe(nodes, &snapshot->cards[i], openers);
	}
	nodes_drop(snapshot, openers);
	return r;
}

static int nodes_check_openers(struct nodes_reader *nodes, const struct nodes_teller *teller)
{
	struct snapshot *snapshot = nodes->snapshot;
	CLEANUP_FREE uint32_t *claims = calloc(snapshot->claim_count + 1, sizeof(*claims));
	CLEANUP_FREE bool *doubted = calloc(snapshot->claim_count + 1, sizeof(*doubted));
	CLEANUP_FREE bool *unread = calloc(snapshot->claim_count + 1, sizeof(*unread));
	struct nodes_openers openers = {
		.claims = claims,
		.doubted = doubted,
		.unread = unread,
		.claim_count = snapshot->claim_count,
	};

	if (!claims || !doubted || !unread)
		return -ENOMEM;
	for (size_t i = 0; i < snapshot->claim_count; i++) {
		if (snapshot->claims[i].is_open_only)
			claims[openers.count++] = (uint32_t)i;
	}
	return nodes_settle(nodes, teller, &openers);
}

int nodes_check(struct pid_cache *pid_cache, const struct nodes_teller *teller,
		struct snapshot *snapshot)
{
	struct nodes_reader nodes;
	size_t listed;
	int r;

	/* Without a driver nobody can have one of its nodes. */
	if ((snapshot->card_count == 0 &&
	     faccessat(pid_cache_proc(pid_cache)->root, "driver/tenstorrent", F_OK, 0) < 0) ||
	    !nodes_reader_begin(&nodes, pid_cache, snapshot))
		return 0;
	r = nodes_check_openers(&nodes, teller);
	listed = snapshot->claim_count;
	for (size_t i = 0; r == 0 && i < snapshot->process_count; i++)
		r = nodes_look(&nodes, i, listed);
	return r < 0 ? r : nodes_look_at_regions(&nodes, listed);
}
