/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Processes are sorted by user: a user's bound is over all of them. Not a struct quota: some rows are kept
 * for each process before the rest is given out.
 */

#include "model/cards/declared.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/hash.h"
#include "model/cards/join.h"
#include "model/snapshot.h"
#include "model/types.h"

static uint64_t declared_most(uint32_t type)
{
	return type == TYPES_SYSTEM_MEMORY ? DECLARED_HOST_MAX : DECLARED_CARD_MAX;
}

size_t declared_refuse_part(struct snapshot_part *part)
{
	struct snapshot_facts *facts = &part->facts;
	size_t refused = 0;

	if (part->summed)
		return 0;
	if ((facts->unique_id & DECLARED_SUM_ID) == DECLARED_SUM_ID)
		facts->unique_id = 0;
	for (uint32_t type = 0; type < BOOK_TYPES; type++) {
		if (facts->capacity[type] <= declared_most(type))
			continue;
		facts->capacity[type] = 0;
		facts->windows[type] = (struct snapshot_window){0};
		refused++;
	}
	return refused;
}

void declared_refuse(struct snapshot *snapshot)
{
	for (size_t i = 0; i < snapshot->process_count; i++) {
		struct snapshot_process *process = &snapshot->processes[i];

		for (size_t k = 0; k < process->part_count; k++)
			process->capacities_refused += declared_refuse_part(&process->parts[k]);
		snapshot->capacities_refused += process->capacities_refused;
	}
	if (snapshot->capacities_refused)
		snapshot_note(snapshot, "%zu declared capacit%s that no card has %s refused",
			      snapshot->capacities_refused,
			      snapshot->capacities_refused == 1 ? "y" : "ies",
			      snapshot->capacities_refused == 1 ? "is" : "are");
}

static bool declared_is_loose(const struct snapshot_part *part)
{
	return part->card == SNAPSHOT_NO_CARD && !part->before_reset;
}

/* Of one process: those with parts of their own, and all. */
static size_t declared_count(struct snapshot_process *process)
{
	size_t singles = 0;

	process->loose = 0;
	for (size_t i = 0; i < process->part_count; i++) {
		const struct snapshot_part *part = &process->parts[i];
		bool is_loose = declared_is_loose(part);

		process->loose += is_loose && part->summed ? part->summed : is_loose;
		singles += is_loose && !part->summed;
	}
	process->loose_rows = process->loose;
	return singles;
}

bool declared_may_be_card(const struct snapshot *snapshot, const struct snapshot_part *part)
{
	/* A process's nth device may be its nth node, whatever their numbers. */
	bool may_be = part->device < snapshot->card_count;

	for (size_t i = 0; !may_be && i < snapshot->card_count; i++) {
		const struct snapshot_card *card = &snapshot->cards[i];
		uint64_t id = part->facts.unique_id;

		may_be = card->number == part->device ||
			 (id && (card->unique_id == id || join_is_board(card, id)));
	}
	return may_be;
}

uint64_t declared_cards(const struct snapshot *snapshot)
{
	uint64_t number = hash_u64(snapshot->card_count);

	for (size_t i = 0; i < snapshot->card_count; i++) {
		const struct snapshot_card *card = &snapshot->cards[i];

		number = hash_fold(number ^ card->unique_id ^ HASH_K0,
				   hash_u64(card->serial ^ hash_u64(card->number)));
	}
	return number;
}

void declared_sign(struct snapshot_part *sum, uint32_t user)
{
	sum->card = SNAPSHOT_NO_CARD;
	sum->joined = SNAPSHOT_BY_NUMBER;
	sum->is_joined = true;
	sum->facts.unique_id = DECLARED_SUM_ID | user;
}

void declared_add(struct snapshot_part *sum, const struct snapshot_part *part)
{
	bool is_first = sum->summed == 0;

	sum->summed += part->summed ? part->summed : 1;
	sum->device = is_first ? part->device : (uint32_t)bits_min(sum->device, part->device);
	/* Closed if all are. */
	if (is_first || !part->facts.closed_ns)
		sum->facts.closed_ns = part->facts.closed_ns;
	sum->differs = sum->differs || part->differs;
	for (uint32_t type = 0; type < BOOK_TYPES; type++) {
		snapshot_add_memory(&sum->memory[type], &part->memory[type]);
		sum->memory[type].peak = 0;
		sum->memory[type].peak_is_unknown = true;
	}
}

/* Keeps the first @keep loose parts; the others become one, in the place of the last of them. */
static void declared_fold(struct snapshot_process *process, size_t keep)
{
	struct snapshot_part sum = {0};
	size_t count = 0, seen = 0;

	declared_sign(&sum, process->user_id);
	for (size_t i = 0; i < process->part_count; i++) {
		if (process->parts[i].summed ||
		    (declared_is_loose(&process->parts[i]) && seen++ >= keep))
			declared_add(&sum, &process->parts[i]);
		else
			process->parts[count++] = process->parts[i];
	}
	process->parts[count++] = sum;
	process->part_count = count;
}

static void declared_keep(struct snapshot_process *process, size_t keep)
{
	size_t singles = declared_count(process);

	process->loose_rows = keep;
	if (keep < singles)
		declared_fold(process, keep);
}

static void declared_fold_user(struct snapshot *snapshot, const uint32_t *list, size_t count)
{
	size_t all = 0, least = 0, room;

	for (size_t i = 0; i < count; i++) {
		size_t loose;

		(void)declared_count(&snapshot->processes[list[i]]);
		loose = snapshot->processes[list[i]].loose;
		all += loose;
		least += bits_min(loose, DECLARED_PROCESS_MIN);
	}
	if (all <= DECLARED_USER_MAX)
		return;
	room = DECLARED_USER_MAX - bits_min(least, DECLARED_USER_MAX);
	for (size_t i = 0; i < count; i++) {
		struct snapshot_process *process = &snapshot->processes[list[i]];
		size_t keep = bits_min(process->loose, DECLARED_PROCESS_MIN);
		size_t more = bits_min(process->loose - keep, room);

		room -= more;
		declared_keep(process, keep + more);
	}
	snapshot_note(
		snapshot,
		"user %s: more than %u devices that no card stands for; the rest is summed up "
		"in one row",
		snapshot->processes[list[0]].user, DECLARED_USER_MAX);
}

static int declared_compare(const void *left, const void *right, void *context)
{
	const struct snapshot *snapshot = context;
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
	uint32_t x = snapshot->processes[a].user_id, y = snapshot->processes[b].user_id;

	if (x != y)
		return bits_compare(x, y);
	return bits_compare(a, b);
}

int declared_sum_up(struct snapshot *snapshot)
{
	CLEANUP_FREE uint32_t *list = calloc(snapshot->process_count + 1, sizeof(*list));
	size_t end;

	if (!list)
		return -ENOMEM;
	for (uint32_t i = 0; i < snapshot->process_count; i++)
		list[i] = i;
	qsort_r(list, snapshot->process_count, sizeof(*list), declared_compare, snapshot);
	for (size_t i = 0; i < snapshot->process_count; i = end) {
		end = i + 1;
		while (end < snapshot->process_count &&
		       snapshot->processes[list[end]].user_id ==
			       snapshot->processes[list[i]].user_id)
			end++;
		declared_fold_user(snapshot, list + i, end - i);
	}
	for (size_t i = 0; i < snapshot->process_count; i++) {
		const struct snapshot_process *process = &snapshot->processes[i];

		if (process->part_count)
			snapshot->devices_summed += process->parts[process->part_count - 1].summed;
	}
	return 0;
}
