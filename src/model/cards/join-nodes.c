/* SPDX-License-Identifier: Apache-2.0 */

/* The nodes that a process has open, and which of its devices each of them is. */

#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "model/cards/join-private.h"
#include "model/cards/numbering.h"
#include "model/snapshot.h"

uint32_t join_card_of(const struct join *join, uint64_t number)
{
	for (size_t i = 0; i < join->snapshot->card_count; i++) {
		if (join->snapshot->cards[i].number == number)
			return (uint32_t)i;
	}
	return SNAPSHOT_NO_CARD;
}

bool join_is_open(const struct join_who *who, uint32_t card)
{
	for (size_t i = 0; i < who->open_count; i++) {
		if (who->open[i] == card)
			return true;
	}
	return false;
}

/* Whether the process has all of these cards open. */
static bool join_are_open(const struct join_who *who, const struct numbering *cards)
{
	for (size_t i = 0; i < cards->count; i++) {
		if (!join_is_open(who, cards->cards[i]))
			return false;
	}
	return cards->count > 0;
}

/*
 * Leaves of the open cards those that TT_VISIBLE_DEVICES names. What contradicts the open nodes is not
 * believed: it may have been changed since, and in a container an index counts other cards.
 */
static void join_leave_visible(const struct join *join, struct join_who *who)
{
	const struct numbering *const readings[] = {&join->present, &join->all, NULL};
	const char *list = who->process->visible;
	struct numbering visible = {.cards = who->nodes};
	bool is_new = who->process->umd >= NUMBERING_VERSION(0, 9, 3);
	bool is_old = who->process->umd && !is_new, is_fitting = false;

	if (!list || who->process->untracked)
		return;
	/* What is gone may have been there when the process started. */
	for (int i = is_old ? 2 : 0; !is_fitting && i < (is_new ? 2 : 3); i++)
		is_fitting = numbering_visible(join->snapshot, readings[i], list, &visible) &&
			     join_are_open(who, &visible);
	if (!is_fitting)
		return;
	memcpy(who->open, visible.cards, visible.count * sizeof(*who->open));
	who->open_count = visible.count;
}

/*
 * Numbers the open nodes as UMD does. Of a node that was removed and whose card is not known any more,
 * only its number tells the place.
 */
void join_number_nodes(const struct join *join, struct join_who *who)
{
	enum numbering_order order =
		who->lost_count ? NUMBERING_NODE : numbering_order(who->process->umd);
	struct numbering open = {.cards = who->open};
	size_t lost = 0;

	join_leave_visible(join, who);
	open.count = who->open_count;
	who->node_count = 0;
	if (numbering_sort(join->snapshot, order, &open) == NUMBERING_BUS && !who->process->umd &&
	    !who->process->untracked)
		who->is_guess = numbering_differs(join->snapshot, &open);
	for (size_t i = 0; i < open.count; i++) {
		uint32_t number = join->snapshot->cards[open.cards[i]].number;

		for (; lost < who->lost_count && who->lost[lost] < number; lost++)
			who->nodes[who->node_count++] = SNAPSHOT_NO_CARD;
		who->nodes[who->node_count++] = open.cards[i];
	}
	for (; lost < who->lost_count; lost++)
		who->nodes[who->node_count++] = SNAPSHOT_NO_CARD;
}

static bool join_is_claim_of(const struct snapshot_claim *claim,
			     const struct snapshot_process *process)
{
	return process_id_equal(claim->process.id, process->id);
}

/* The first claim of a pid, by binary search. */
static size_t join_from(const struct join *join, uint32_t pid)
{
	size_t from = 0, to = join->claim_count;

	while (from < to) {
		size_t middle = from + (to - from) / 2;

		if (join->snapshot->claims[join->by_pid[middle]].process.id.pid < pid)
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

/* The card that a node was, before it was removed. */
uint32_t join_card_before(const struct join *join, const struct snapshot_left *left)
{
	const struct snapshot *snapshot = join->snapshot;

	for (size_t i = 0; i < snapshot->card_count; i++) {
		const struct snapshot_card *card = &snapshot->cards[i];

		if (left->bus
			    ? card->bus && strcmp(card->bus, left->bus) == 0
			    : card->number == left->node && card->condition.state == SNAPSHOT_GONE)
			return (uint32_t)i;
	}
	return left->bus ? SNAPSHOT_NO_CARD : join_card_of(join, left->node);
}

bool join_is_of(const struct snapshot_left *left, const struct snapshot_process *process)
{
	return process_id_equal(left->process, process->id) && left->node != UINT32_MAX;
}

static int join_compare_numbers(const void *left, const void *right)
{
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;

	return bits_compare(a, b);
}

/* Nodes that were removed keep their places in the order. */
static void join_learn_removed(const struct join *join, struct join_who *who)
{
	for (size_t i = 0; i < join->snapshot->left_count; i++) {
		const struct snapshot_left *left = &join->snapshot->left[i];
		uint32_t card;

		if (left->device != UINT32_MAX || !join_is_of(left, who->process))
			continue;
		card = join_card_before(join, left);
		if (card != SNAPSHOT_NO_CARD && !join_is_open(who, card)) {
			who->open[who->open_count++] = card;
			who->removed[card] = true;
		} else if (card == SNAPSHOT_NO_CARD && who->lost_count < JOIN_LOST_MAX) {
			who->lost[who->lost_count++] = left->node;
		}
	}
	qsort(who->lost, who->lost_count, sizeof(*who->lost), join_compare_numbers);
}

void join_learn(const struct join *join, const struct snapshot_process *process,
		struct join_who *ret_who)
{
	size_t from = join_from(join, process->id.pid), end = from;

	/* Not all of it: there are a thousand processes, and mostly few cards or none. */
	ret_who->process = process;
	ret_who->claims = NULL;
	ret_who->claim_count = ret_who->open_count = ret_who->lost_count = 0;
	ret_who->is_guess = false;
	ret_who->open_known = process->nodes_known;
	memset(ret_who->used, 0, join->snapshot->card_count * sizeof(*ret_who->used));
	memset(ret_who->removed, 0, join->snapshot->card_count * sizeof(*ret_who->removed));
	if (!process->alive)
		return;
	while (end < join->claim_count &&
	       join_is_claim_of(&join->snapshot->claims[join->by_pid[end]], process)) {
		const struct snapshot_claim *claim = &join->snapshot->claims[join->by_pid[end++]];
		uint32_t card =
			claim->is_open_only ? join_card_of(join, claim->device) : SNAPSHOT_NO_CARD;

		if (card != SNAPSHOT_NO_CARD && !join_is_open(ret_who, card))
			ret_who->open[ret_who->open_count++] = card;
	}
	ret_who->claims = join->by_pid + from;
	ret_who->claim_count = end - from;
	join_learn_removed(join, ret_who);
	ret_who->open_known = ret_who->open_known || ret_who->open_count > 0;
}
