/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Who has cards open, from a reader that may see every process. It is queried after the driver's lists were
 * read: a process in such a list that it does not name has not got the node, or no longer has it.
 */

#include <errno.h>
#include <stdlib.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "source/host/driver.h"
#include "source/host/nodes-private.h"
#include "source/host/nodes-read.h"
#include "source/host/nodes.h"
#include "source/proc/pid-cache.h"

struct nodes_told {
	struct snapshot_claim *claims; /* sorted, each once */
	size_t count;
};

static int nodes_ask_compare(const void *left, const void *right)
{
	const struct snapshot_claim *a = left, *b = right;
	int r = process_id_compare(a->process.id, b->process.id);

	return r ? r : bits_compare(a->device, b->device);
}

/* A process is told once for each descriptor. */
static void nodes_ask_sort(struct nodes_told *told)
{
	size_t count = 0;

	if (told->count == 0)
		return;
	qsort(told->claims, told->count, sizeof(*told->claims), nodes_ask_compare);
	for (size_t i = 1; i < told->count; i++) {
		if (nodes_ask_compare(&told->claims[count], &told->claims[i]) != 0)
			told->claims[++count] = told->claims[i];
	}
	told->count = count + 1;
}

static bool nodes_is_told(const struct nodes_told *told, const struct snapshot_claim *claim)
{
	return told->count > 0 && bsearch(claim, told->claims, told->count, sizeof(*told->claims),
					  nodes_ask_compare) != NULL;
}

/* Doubts what could not be read and is not told, and only that. */
static void nodes_ask_judge(struct snapshot *snapshot, const struct nodes_told *told,
			    struct nodes_openers *openers)
{
	for (size_t i = 0; i < openers->count; i++) {
		uint32_t index = openers->claims[i];
		const struct snapshot_claim *claim = &snapshot->claims[index];
		struct snapshot_card *card;
		bool is_told = nodes_is_told(told, claim);
		size_t unused;

		card = nodes_card_of(snapshot, claim, &unused);
		if (!card)
			continue;
		if (openers->doubted[index] && is_told) {
			openers->doubted[index] = false;
			card->condition.ended -= card->condition.ended > 0;
		} else if (openers->unread[index] && !is_told) {
			openers->doubted[index] = true;
			card->condition.ended++;
		}
	}
}

/*
 * A process that is hidden from us, as by hidepid, counted as ended if the driver lists it: once for each of its
 * descriptors.
 */
static int nodes_ask_uncount(struct nodes_reader *nodes, struct snapshot_card *card, uint32_t pid)
{
	const struct proc *proc = pid_cache_proc(nodes->pid_cache);
	CLEANUP_FREE uint32_t *pids = NULL;
	size_t count = 0, outside;
	int r;

	if (!card->condition.ended || proc_start_ticks(proc, pid) != 0)
		return 0;
	pids = calloc(DRIVER_PIDS_MAX, sizeof(*pids));
	r = pids ? driver_read_pids(proc, card->number, pids, &count, &outside) : -ENOMEM;
	for (size_t i = 0; i < bits_min(count, DRIVER_PIDS_MAX); i++)
		card->condition.ended -= pids[i] == pid && card->condition.ended > 0;
	return r;
}

/* Of all that is told, what is known already. */
static bool *nodes_ask_known(const struct snapshot *snapshot, const struct nodes_told *told)
{
	bool *known = calloc(told->count + 1, sizeof(*known));

	for (size_t i = 0; known && told->count > 0 && i < snapshot->claim_count; i++) {
		const struct snapshot_claim *found = NULL;

		if (snapshot->claims[i].is_open_only)
			found = bsearch(&snapshot->claims[i], told->claims, told->count,
					sizeof(*found), nodes_ask_compare);
		if (found)
			known[found - told->claims] = true;
	}
	return known;
}

/* Adds the processes that we did not see, or that the driver does not list. */
static int nodes_ask_add(struct nodes_reader *nodes, const struct nodes_told *told,
			 struct nodes_openers *openers)
{
	struct snapshot *snapshot = nodes->snapshot;
	CLEANUP_FREE bool *known = nodes_ask_known(snapshot, told);
	int r = known ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < told->count; i++) {
		const struct snapshot_claim *claim = &told->claims[i];
		struct snapshot_card *card;
		size_t index;

		card = nodes_card_of(snapshot, claim, &index);
		if (!card || known[i])
			continue;
		r = nodes_ask_uncount(nodes, card, claim->process.id.pid);
		if (r == 0)
			r = nodes_claim(nodes, &claim->process, index);
		openers->held[index] = true;
	}
	return r;
}

int nodes_ask(struct nodes_reader *nodes, const struct nodes_teller *teller,
	      struct nodes_openers *openers)
{
	CLEANUP_FREE struct snapshot_claim *claims = NULL;
	struct nodes_told told = {0};
	int r = teller->openers(teller->context, nodes->snapshot, &claims, &told.count);

	if (r != 0)
		return r == -ENOMEM ? r : 0;
	told.claims = claims;
	nodes_ask_sort(&told);
	nodes_ask_judge(nodes->snapshot, &told, openers);
	return nodes_ask_add(nodes, &told, openers);
}
