/* SPDX-License-Identifier: Apache-2.0 */

/* Processes are sorted by user: a user's bound is over all of them. */

#include "model/cards/declared.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "model/snapshot.h"
#include "model/types.h"

static uint64_t declared_most(uint32_t type)
{
	return type == TYPES_SYSTEM_MEMORY ? DECLARED_HOST_MAX : DECLARED_CARD_MAX;
}

static void declared_refuse_part(struct snapshot_process *process, struct snapshot_part *part)
{
	struct snapshot_facts *facts = &part->facts;

	if ((facts->unique_id & DECLARED_SUM_ID) == DECLARED_SUM_ID)
		facts->unique_id = 0;
	for (uint32_t type = 0; type < BOOK_TYPES; type++) {
		if (facts->capacity[type] <= declared_most(type))
			continue;
		facts->capacity[type] = 0;
		facts->windows[type] = (struct snapshot_window){0};
		process->capacities_refused++;
	}
}

void declared_refuse(struct snapshot *snapshot)
{
	for (size_t i = 0; i < snapshot->process_count; i++) {
		struct snapshot_process *process = &snapshot->processes[i];

		for (size_t k = 0; k < process->part_count; k++)
			declared_refuse_part(process, &process->parts[k]);
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

static size_t declared_count(const struct snapshot_process *process)
{
	size_t count = 0;

	for (size_t i = 0; i < process->part_count; i++)
		count += declared_is_loose(&process->parts[i]);
	return count;
}

static void declared_add(struct snapshot_part *sum, const struct snapshot_part *part)
{
	bool is_first = sum->summed++ == 0;

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
static void declared_fold(struct snapshot *snapshot, struct snapshot_process *process, size_t keep)
{
	struct snapshot_part sum = {
		.card = SNAPSHOT_NO_CARD,
		.joined = SNAPSHOT_BY_NUMBER,
		.is_joined = true,
		.facts.unique_id = DECLARED_SUM_ID | process->user_id,
	};
	size_t count = 0, seen = 0;

	for (size_t i = 0; i < process->part_count; i++) {
		if (declared_is_loose(&process->parts[i]) && seen++ >= keep)
			declared_add(&sum, &process->parts[i]);
		else
			process->parts[count++] = process->parts[i];
	}
	process->parts[count++] = sum;
	process->part_count = count;
	snapshot->devices_summed += sum.summed;
}

static void declared_fold_user(struct snapshot *snapshot, const uint32_t *list, size_t count)
{
	size_t all = 0, least = 0, room;

	for (size_t i = 0; i < count; i++) {
		size_t loose = declared_count(&snapshot->processes[list[i]]);

		all += loose;
		least += bits_min(loose, DECLARED_PROCESS_MIN);
	}
	if (all <= DECLARED_USER_MAX)
		return;
	room = DECLARED_USER_MAX - bits_min(least, DECLARED_USER_MAX);
	for (size_t i = 0; i < count; i++) {
		struct snapshot_process *process = &snapshot->processes[list[i]];
		size_t loose = declared_count(process);
		size_t keep = bits_min(loose, DECLARED_PROCESS_MIN);
		size_t more = bits_min(loose - keep, room);

		room -= more;
		if (keep + more < loose)
			declared_fold(snapshot, process, keep + more);
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
		return x < y ? -1 : 1;
	return (a > b) - (a < b);
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
	return 0;
}
