/* SPDX-License-Identifier: Apache-2.0 */

/* The steps of the rule, from the strongest to the weakest. */

#include "model/cards/join.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "model/snapshot.h"

struct join {
	struct snapshot *snapshot;
	uint64_t *ids;    /* of each card: ASIC id, serial << 8 | place, or 0 */
	uint32_t *places; /* of each card on its board */
	uint64_t *taken;  /* of each card: the id that a process gave it, 0 = none */
	uint32_t *by_pid; /* claims of living processes, sorted by pid */
	size_t claim_count;
};

/* What is known about one process. */
struct join_who {
	const struct snapshot_process *process;
	const uint32_t *claims;
	size_t claim_count;
	uint32_t open[SNAPSHOT_CARDS_MAX]; /* cards, in the order of their numbers */
	size_t open_count;
	bool open_known; /* there are no others */
	bool used[SNAPSHOT_CARDS_MAX];
};

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
	uint32_t p = snapshot->claims[a].process.pid, q = snapshot->claims[b].process.pid;

	if (p != q)
		return p < q ? -1 : 1;
	return (a > b) - (a < b);
}

struct join *join_free(struct join *join)
{
	if (!join)
		return NULL;
	free(join->ids);
	free(join->places);
	free(join->taken);
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
	join->ids = calloc(snapshot->card_count + 1, sizeof(*join->ids));
	join->places = calloc(snapshot->card_count + 1, sizeof(*join->places));
	join->taken = calloc(snapshot->card_count + 1, sizeof(*join->taken));
	join->by_pid = calloc(snapshot->claim_count + 1, sizeof(*join->by_pid));
	if (!join->ids || !join->places || !join->taken || !join->by_pid)
		return join_free(join);
	for (size_t i = 0; i < snapshot->card_count; i++) {
		const struct snapshot_card *card = &snapshot->cards[i];

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
	return join->taken[card] ? join->taken[card] : join->ids[card];
}

static void join_set(struct join *join, struct join_who *who, struct snapshot_part *part,
		     uint32_t card, uint32_t joined)
{
	part->card = card;
	part->joined = joined;
	part->unmatched = SNAPSHOT_MATCHED;
	who->used[card] = true;
	/* A card without an id of its own gets that of the first process that knows one. */
	if (!join->snapshot->cards[card].unique_id && part->facts.unique_id &&
	    joined > SNAPSHOT_JOINED_BOARD && !join->taken[card])
		join->taken[card] = part->facts.unique_id;
	part->facts.unique_id = join_card_id(join, card);
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

static uint32_t join_card_of(const struct join *join, uint64_t number)
{
	for (size_t i = 0; i < join->snapshot->card_count; i++) {
		if (join->snapshot->cards[i].number == number)
			return (uint32_t)i;
	}
	return SNAPSHOT_NO_CARD;
}

/*
 * What a daemon has found out holds: it may read the descriptors of every process. Unless it does not
 * see our cards, or there are no ids by which to know the card that it means.
 */
static bool join_as_told(struct join *join, struct join_who *who, struct snapshot_part *part)
{
	uint32_t step, card = join_find(join, part->facts.unique_id, &step);
	bool is_unnamed = !part->facts.unique_id && part->joined != SNAPSHOT_BY_NUMBER;
	bool is_unseen = part->unmatched == SNAPSHOT_UNMATCHED_NUMBER &&
			 join_card_of(join, part->device) != SNAPSHOT_NO_CARD;

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
	uint64_t id = part->facts.unique_id;

	if (part->facts.remote || who->used[card])
		return false;
	return !id || (!join->snapshot->cards[card].unique_id &&
		       (!join->taken[card] || join->taken[card] == id));
}

static bool join_is_open(const struct join_who *who, uint32_t card)
{
	for (size_t i = 0; i < who->open_count; i++) {
		if (who->open[i] == card)
			return true;
	}
	return false;
}

/* The nth number of TT_VISIBLE_DEVICES as a card; SNAPSHOT_NO_CARD if it has not so many. */
static uint32_t join_visible(const struct join *join, const char *list, uint32_t n)
{
	for (;;) {
		size_t length = strcspn(list, ",");
		char word[16] = {0};
		uint64_t number;

		if (n == 0) {
			if (length == 0 || length >= sizeof(word))
				return SNAPSHOT_NO_CARD;
			memcpy(word, list, length);
			return text_parse_u64(word, &number) < 0 ? SNAPSHOT_NO_CARD
								 : join_card_of(join, number);
		}
		if (!list[length])
			return SNAPSHOT_NO_CARD;
		list += length + 1;
		n--;
	}
}

/* Whether every device that is still to be joined has the number of an open node. */
static bool join_numbers_are_nodes(const struct join *join, const struct join_who *who)
{
	for (size_t i = 0; i < who->process->part_count; i++) {
		const struct snapshot_part *part = &who->process->parts[i];
		uint32_t card = join_card_of(join, part->device);

		if (!part->is_joined && part->card == SNAPSHOT_NO_CARD && !part->facts.remote &&
		    (card == SNAPSHOT_NO_CARD || !join_is_open(who, card)))
			return false;
	}
	return true;
}

/* The open node that a device must be, SNAPSHOT_NO_CARD if there is none. */
static uint32_t join_node(const struct join *join, const struct join_who *who,
			  const struct snapshot_part *part)
{
	uint32_t card = SNAPSHOT_NO_CARD;

	if (who->process->visible && !who->process->untracked)
		card = join_visible(join, who->process->visible, part->device);
	if (card != SNAPSHOT_NO_CARD && join_is_open(who, card))
		return card;
	if (join_numbers_are_nodes(join, who))
		return join_card_of(join, part->device);
	return part->device < who->open_count ? who->open[part->device] : SNAPSHOT_NO_CARD;
}

/* All at once: the decision must not depend on which of them was joined first. */
static void join_by_nodes(struct join *join, struct join_who *who, struct snapshot_process *process)
{
	CLEANUP_FREE uint32_t *nodes = calloc(process->part_count + 1, sizeof(*nodes));

	for (size_t i = 0; nodes && i < process->part_count; i++)
		nodes[i] = join_node(join, who, &process->parts[i]);
	for (size_t i = 0; nodes && i < process->part_count; i++) {
		struct snapshot_part *part = &process->parts[i];

		if (!part->is_joined && part->card == SNAPSHOT_NO_CARD &&
		    nodes[i] != SNAPSHOT_NO_CARD && join_may_be(join, who, part, nodes[i]))
			join_set(join, who, part, nodes[i], SNAPSHOT_JOINED_OPEN);
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

static void join_by_number(struct join *join, struct join_who *who, struct snapshot_part *part)
{
	uint32_t card = join_card_of(join, part->device);

	part->unmatched = join_contradiction(join, who, part, card);
	if (part->unmatched == SNAPSHOT_MATCHED)
		join_set(join, who, part, card, SNAPSHOT_JOINED_NUMBER);
	else if (!part->facts.unique_id)
		part->joined = SNAPSHOT_BY_NUMBER;
}

static bool join_is_claim_of(const struct snapshot_claim *claim,
			     const struct snapshot_process *process)
{
	return claim->process.pid == process->pid &&
	       claim->process.start_ticks == process->start_ticks;
}

/* The first claim of a pid, by binary search. */
static size_t join_from(const struct join *join, uint32_t pid)
{
	size_t from = 0, to = join->claim_count;

	while (from < to) {
		size_t middle = from + (to - from) / 2;

		if (join->snapshot->claims[join->by_pid[middle]].process.pid < pid)
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

static int join_compare_cards(const void *left, const void *right)
{
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;

	return (a > b) - (a < b);
}

/* Collects what sources say about the process. */
static void join_learn(const struct join *join, const struct snapshot_process *process,
		       struct join_who *ret_who)
{
	size_t from = join_from(join, process->pid), end = from;

	/* Not all of it: there are a thousand processes, and mostly few cards or none. */
	ret_who->process = process;
	ret_who->claims = NULL;
	ret_who->claim_count = ret_who->open_count = 0;
	ret_who->open_known = process->nodes_known;
	memset(ret_who->used, 0, join->snapshot->card_count * sizeof(*ret_who->used));
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
	ret_who->open_known = ret_who->open_known || ret_who->open_count > 0;
	/* Cards are sorted by number. */
	qsort(ret_who->open, ret_who->open_count, sizeof(*ret_who->open), join_compare_cards);
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
	if (left && who.open_count)
		join_by_nodes(join, &who, process);
	for (size_t i = 0; i < process->part_count; i++) {
		struct snapshot_part *part = &process->parts[i];

		if (!part->is_joined && part->card == SNAPSHOT_NO_CARD)
			join_by_number(join, &who, part);
		part->is_joined = true;
	}
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
}
