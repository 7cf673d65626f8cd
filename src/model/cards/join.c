/* SPDX-License-Identifier: Apache-2.0 */

/* The steps of the rule, from the strongest to the weakest. */

#include "model/cards/join.h"

#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "model/cards/join-private.h"
#include "model/cards/numbering.h"
#include "model/snapshot.h"

static const char *const join_names[SNAPSHOT_JOINED_WAYS] = {
	[SNAPSHOT_JOINED_UID] = "uid",       [SNAPSHOT_JOINED_BOARD] = "board",
	[SNAPSHOT_JOINED_REGION] = "region", [SNAPSHOT_JOINED_OPEN] = "open",
	[SNAPSHOT_JOINED_NUMBER] = "number", [SNAPSHOT_BY_NUMBER] = "by_number",
};

const char *join_name(uint32_t joined)
{
	return joined < SNAPSHOT_JOINED_WAYS ? join_names[joined] : NULL;
}

/* The place of a card on its board: chips of one board are numbered in order. */
static uint32_t join_place(const struct snapshot *snapshot, size_t index)
{
	uint32_t place = 0;

	for (size_t i = 0; i < index; i++)
		place += snapshot->cards[i].serial == snapshot->cards[index].serial;
	return place;
}

static int join_compare(const void *left, const void *right, void *context)
{
	const struct snapshot *snapshot = context;
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
	uint32_t p = snapshot->claims[a].process.id.pid, q = snapshot->claims[b].process.id.pid;

	if (p != q)
		return bits_compare(p, q);
	return bits_compare(a, b);
}

struct join *join_free(struct join *join)
{
	if (!join)
		return NULL;
	free(join->all.cards);
	free(join->present.cards);
	free(join->ids);
	free(join->places);
	free(join->taken);
	free(join->taken_by);
	free(join->by_pid);
	free(join);
	return NULL;
}

void join_cleanup(struct join **join)
{
	*join = join_free(*join);
}

struct join *join_new(struct snapshot *snapshot)
{
	struct join *join = calloc(1, sizeof(*join));

	if (!join)
		return NULL;
	join->snapshot = snapshot;
	join->all.cards = calloc(snapshot->card_count + 1, sizeof(*join->all.cards));
	join->present.cards = calloc(snapshot->card_count + 1, sizeof(*join->present.cards));
	join->ids = calloc(snapshot->card_count + 1, sizeof(*join->ids));
	join->places = calloc(snapshot->card_count + 1, sizeof(*join->places));
	join->taken = calloc(snapshot->card_count + 1, sizeof(*join->taken));
	join->taken_by = calloc(snapshot->card_count + 1, sizeof(*join->taken_by));
	join->by_pid = calloc(snapshot->claim_count + 1, sizeof(*join->by_pid));
	if (!join->all.cards || !join->present.cards || !join->ids || !join->places ||
	    !join->taken || !join->taken_by || !join->by_pid)
		return join_free(join);
	for (size_t i = 0; i < snapshot->card_count; i++) {
		const struct snapshot_card *card = &snapshot->cards[i];

		join->all.cards[join->all.count++] = (uint32_t)i;
		if (card->condition.state != SNAPSHOT_GONE)
			join->present.cards[join->present.count++] = (uint32_t)i;
		join->places[i] = join_place(snapshot, i);
		join->ids[i] = card->unique_id;
		if (!card->unique_id && card->serial)
			join->ids[i] = card->serial << 8 | join->places[i];
	}
	for (size_t i = 0; i < snapshot->claim_count; i++) {
		if (snapshot->claims[i].process.alive)
			join->by_pid[join->claim_count++] = (uint32_t)i;
	}
	qsort_r(join->by_pid, join->claim_count, sizeof(*join->by_pid), join_compare, snapshot);
	(void)numbering_sort(snapshot, NUMBERING_BUS, &join->all);
	(void)numbering_sort(snapshot, NUMBERING_BUS, &join->present);
	return join;
}

/* The card with that ASIC id, or else at that place of a board; SNAPSHOT_NO_CARD if there is none. */
static uint32_t join_find(const struct join *join, uint64_t id, uint32_t *ret_joined)
{
	const struct snapshot *snapshot = join->snapshot;

	*ret_joined = SNAPSHOT_JOINED_UID;
	for (size_t i = 0; id && i < snapshot->card_count; i++) {
		if (snapshot->cards[i].unique_id == id)
			return (uint32_t)i;
	}
	for (size_t i = 0; id && i < snapshot->card_count; i++) {
		if (join_is_board(&snapshot->cards[i], id) && join->places[i] == (id & 0xff)) {
			*ret_joined = SNAPSHOT_JOINED_BOARD;
			return (uint32_t)i;
		}
	}
	return SNAPSHOT_NO_CARD;
}

uint64_t join_id(const struct join *join, uint64_t id)
{
	uint32_t joined, card = join_find(join, id, &joined);

	return card == SNAPSHOT_NO_CARD ? id : join->ids[card];
}

const struct snapshot_card *join_board(const struct join *join, uint64_t id)
{
	for (size_t i = 0; id && i < join->snapshot->card_count; i++) {
		if (join_is_board(&join->snapshot->cards[i], id))
			return &join->snapshot->cards[i];
	}
	return NULL;
}

uint64_t join_card_id(const struct join *join, size_t card)
{
	return join->ids[card];
}

/* The id that a process of that user knows a card by which has none; 0 = none. */
static uint64_t join_taken(const struct join *join, const struct join_who *who, uint32_t card)
{
	return join->taken_by[card] == who->process->user_id ? join->taken[card] : 0;
}

static void join_set(struct join *join, struct join_who *who, struct snapshot_part *part,
		     uint32_t card, uint32_t joined)
{
	uint64_t *id = &part->facts.unique_id;

	part->card = card;
	part->joined = joined;
	part->unmatched = SNAPSHOT_MATCHED;
	who->used[card] = true;
	if (join->snapshot->cards[card].unique_id) {
		*id = join->snapshot->cards[card].unique_id;
	} else if (*id && joined > SNAPSHOT_JOINED_BOARD && !join->taken[card]) {
		join->taken[card] = *id;
		join->taken_by[card] = who->process->user_id;
	} else if (!*id) {
		*id = join_taken(join, who, card);
		*id = *id ? *id : join->ids[card];
	}
}

/* By an id: the one that the process declares, else that of its row in a region. */
static bool join_by_id(struct join *join, struct join_who *who, struct snapshot_part *part)
{
	uint32_t joined, card;

	part->joined = who->process->untracked ? SNAPSHOT_JOINED_OPEN
		       : part->is_claim        ? SNAPSHOT_JOINED_REGION
					       : SNAPSHOT_JOINED_UID;
	for (size_t i = 0; !part->facts.unique_id && i < who->claim_count; i++) {
		const struct snapshot_claim *claim = &join->snapshot->claims[who->claims[i]];

		if (!claim->is_open_only && claim->device == part->device) {
			part->facts.unique_id = claim->facts.unique_id;
			part->joined = SNAPSHOT_JOINED_REGION;
		}
	}
	card = join_find(join, part->facts.unique_id, &joined);
	if (card == SNAPSHOT_NO_CARD)
		return false;
	join_set(join, who, part, card, joined > part->joined ? joined : part->joined);
	return true;
}

/*
 * What a daemon has found out holds: it may read the descriptors of every process. Unless it does not
 * see our cards, or there are no ids by which to know the card that it means.
 */
static bool join_as_told(struct join *join, struct join_who *who, struct snapshot_part *part)
{
	uint32_t step, card = join_find(join, part->facts.unique_id, &step);
	bool is_unnamed = !part->facts.unique_id && part->joined != SNAPSHOT_BY_NUMBER;
	bool is_unseen =
		part->unmatched == SNAPSHOT_UNMATCHED_NUMBER && part->device < join->all.count;

	if (card == SNAPSHOT_NO_CARD && (is_unnamed || is_unseen))
		return false;
	if (card != SNAPSHOT_NO_CARD)
		join_set(join, who, part, card, part->joined);
	part->is_joined = true;
	return true;
}

/* Whether a part may be this card, as far as ids tell. */
static bool join_may_be(const struct join *join, const struct join_who *who,
			const struct snapshot_part *part, uint32_t card)
{
	uint64_t id = part->facts.unique_id, taken = join_taken(join, who, card);

	if (part->facts.remote || who->used[card])
		return false;
	return !id || (!join->snapshot->cards[card].unique_id && (!taken || taken == id));
}

static bool join_is_unplaced(const struct snapshot_part *part)
{
	return !part->is_joined && part->card == SNAPSHOT_NO_CARD && !part->facts.remote;
}

/*
 * A program may number all cards and have some of them open: if there are more devices than open nodes,
 * and each that is to be joined is open by that count.
 */
static bool join_numbers_all(const struct join *join, const struct join_who *who)
{
	bool is_beyond = false;

	for (size_t i = 0; i < who->process->part_count; i++) {
		const struct snapshot_part *part = &who->process->parts[i];

		if (!join_is_unplaced(part))
			continue;
		if (part->device >= join->all.count ||
		    !join_is_open(who, join->all.cards[part->device]))
			return false;
		is_beyond = is_beyond || part->device >= who->node_count;
	}
	return is_beyond;
}

/* All at once: the decision must not depend on which of them was joined first. */
static void join_by_nodes(struct join *join, struct join_who *who, struct snapshot_process *process)
{
	bool has_all;

	join_number_nodes(join, who);
	has_all = join_numbers_all(join, who);
	for (size_t i = 0; i < process->part_count; i++) {
		struct snapshot_part *part = &process->parts[i];
		uint32_t card = SNAPSHOT_NO_CARD;

		if (!join_is_unplaced(part) || (!has_all && part->device >= who->node_count))
			continue;
		card = has_all ? join->all.cards[part->device] : who->nodes[part->device];
		if (card == SNAPSHOT_NO_CARD) {
			part->before_reset = true;
		} else if (join_may_be(join, who, part, card)) {
			join_set(join, who, part, card, SNAPSHOT_JOINED_OPEN);
		}
	}
}

/* Why the part is not the card of its number; SNAPSHOT_MATCHED if it may be. */
static uint32_t join_contradiction(const struct join *join, const struct join_who *who,
				   const struct snapshot_part *part, uint32_t card)
{
	if (part->facts.remote)
		return SNAPSHOT_UNMATCHED_REMOTE;
	if (part->facts.unique_id && card != SNAPSHOT_NO_CARD &&
	    join->snapshot->cards[card].unique_id)
		return SNAPSHOT_UNMATCHED_ID;
	if (card == SNAPSHOT_NO_CARD)
		return part->facts.unique_id ? SNAPSHOT_UNMATCHED_ID : SNAPSHOT_UNMATCHED_NUMBER;
	if (!join_may_be(join, who, part, card))
		return SNAPSHOT_UNMATCHED_TAKEN;
	/* A device that was closed need not be open; two rows of one number could not be told apart. */
	if (!who->open_known || part->facts.closed_ns || !join->ids[card])
		return SNAPSHOT_MATCHED;
	return who->open_count ? SNAPSHOT_UNMATCHED_OPEN : SNAPSHOT_UNMATCHED_NO_NODE;
}

/*
 * The card that UMD gives the number, as far as the environment tells. Where there are not so many, a
 * program may count nodes. SNAPSHOT_NO_CARD = none.
 */
static uint32_t join_numbered(const struct join *join, struct join_who *who, uint32_t device)
{
	const struct numbering *cards = device < join->present.count ? &join->present : &join->all;
	struct numbering visible = {.cards = who->nodes};

	if (who->process->visible &&
	    numbering_visible(join->snapshot, &join->present, who->process->visible, &visible) &&
	    visible.count) {
		(void)numbering_sort(join->snapshot, NUMBERING_BUS, &visible);
		return device < visible.count ? visible.cards[device] : SNAPSHOT_NO_CARD;
	}
	return device < cards->count ? cards->cards[device] : join_card_of(join, device);
}

static void join_by_number(struct join *join, struct join_who *who, struct snapshot_part *part)
{
	uint32_t card = join_numbered(join, who, part->device);

	part->unmatched = join_contradiction(join, who, part, card);
	if (part->unmatched == SNAPSHOT_MATCHED) {
		who->is_guess = who->is_guess || numbering_differs(join->snapshot, &join->present);
		join_set(join, who, part, card, SNAPSHOT_JOINED_NUMBER);
	}
	if (part->unmatched != SNAPSHOT_MATCHED && !part->facts.unique_id)
		part->joined = SNAPSHOT_BY_NUMBER;
}

/* What it held of a card that was reset or removed is of that card still, where that was seen. */
static void join_as_before(struct join *join, struct join_who *who,
			   struct snapshot_process *process)
{
	for (size_t i = 0; i < join->snapshot->left_count; i++) {
		const struct snapshot_left *left = &join->snapshot->left[i];

		if (left->device == UINT32_MAX || !join_is_of(left, process))
			continue;
		for (size_t k = 0; k < process->part_count; k++) {
			struct snapshot_part *part = &process->parts[k];
			uint32_t card = join_card_before(join, left);

			if (part->device == left->device && join_is_unplaced(part) &&
			    card != SNAPSHOT_NO_CARD && join_may_be(join, who, part, card))
				join_set(join, who, part, card,
					 join_is_open(who, card) ? SNAPSHOT_JOINED_OPEN
								 : SNAPSHOT_JOINED_NUMBER);
		}
	}
}

static void join_process(struct join *join, struct snapshot_process *process)
{
	struct join_who who;
	size_t left = 0;

	for (size_t i = 0; i < process->part_count; i++)
		left += !process->parts[i].is_joined;
	if (!left)
		return;
	left = 0;
	join_learn(join, process, &who);
	for (size_t i = 0; i < process->part_count; i++) {
		struct snapshot_part *part = &process->parts[i];

		if (!part->is_joined)
			part->card = SNAPSHOT_NO_CARD;
		else if (part->card != SNAPSHOT_NO_CARD)
			who.used[part->card] = true;
	}
	for (size_t i = 0; i < process->part_count; i++) {
		struct snapshot_part *part = &process->parts[i];

		left += !part->is_joined && !(part->is_told && join_as_told(join, &who, part)) &&
			!join_by_id(join, &who, part);
	}
	if (left && process->alive)
		join_as_before(join, &who, process);
	if (left && who.open_count + who.lost_count)
		join_by_nodes(join, &who, process);
	for (size_t i = 0; i < process->part_count; i++) {
		struct snapshot_part *part = &process->parts[i];

		if (!part->is_joined && part->card == SNAPSHOT_NO_CARD)
			join_by_number(join, &who, part);
		if (part->card != SNAPSHOT_NO_CARD && who.removed[part->card])
			part->before_reset = true;
		part->is_joined = true;
	}
	join->guessed += process->alive && who.is_guess;
}

/* Says which order was applied, where another would give other results. */
static void join_note(struct join *join)
{
	if (join->guessed)
		snapshot_note(
			join->snapshot,
			"%zu process%s only numbers for devices: counted in the order of bus "
			"addresses, as UMD does since 0.9.2; nodes, or ASIC ids (an older UMD), "
			"are in another order here",
			join->guessed, join->guessed == 1 ? " gives" : "es give");
	join->guessed = 0;
}

void join_all(struct join *join)
{
	struct snapshot *snapshot = join->snapshot;

	for (size_t i = 0; i < snapshot->process_count; i++) {
		if (snapshot->processes[i].alive)
			join_process(join, &snapshot->processes[i]);
	}
	for (size_t i = 0; i < snapshot->process_count; i++) {
		if (!snapshot->processes[i].alive)
			join_process(join, &snapshot->processes[i]);
	}
	join_note(join);
}

void join_name_cards(struct join *join)
{
	struct snapshot *snapshot = join->snapshot;

	for (size_t i = 0; i < snapshot->process_count; i++) {
		for (size_t k = 0; k < snapshot->processes[i].part_count; k++) {
			struct snapshot_part *part = &snapshot->processes[i].parts[k];

			if (part->card != SNAPSHOT_NO_CARD && part->is_joined && !part->summed)
				part->facts.unique_id = join->ids[part->card];
		}
	}
}
