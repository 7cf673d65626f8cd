/* SPDX-License-Identifier: Apache-2.0 */

/* What processes declare, and how much of it others have to look at. */

#include "model/cards/declared.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/testing/unit.h"
#include "model/snapshot.h"
#include "model/types.h"

static uint32_t process(struct snapshot *snapshot, uint32_t pid, uint32_t user)
{
	struct snapshot_process identity = {
		.id.pid = pid,
		.ns_pid = pid,
		.id.start_ticks = pid,
		.comm = "p",
		.user_id = user,
		.maker_id = user,
		.source = "book",
		.alive = true,
		.exact = true,
	};
	char name[32];
	uint32_t index;

	snprintf(name, sizeof(name), "user%u", user);
	identity.user = snapshot_text(snapshot, name, strlen(name));
	assert(snapshot_add_process(snapshot, &identity, &index) == 0);
	return index;
}

static struct snapshot_part *declare(struct snapshot *snapshot, uint32_t index, uint32_t device,
				     uint64_t id, uint64_t capacity)
{
	struct snapshot_part *part = snapshot_part(snapshot, index, device);

	assert(part);
	part->facts.declared = true;
	part->facts.unique_id = id;
	part->facts.card = "evilcard";
	part->facts.capacity[TYPES_DRAM] = capacity;
	part->memory[TYPES_DRAM].used = 10;
	part->memory[TYPES_DRAM].buffers = 1;
	return part;
}

static uint64_t used(const struct snapshot *snapshot)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < snapshot->device_count; i++)
		sum += snapshot->devices[i].memory[TYPES_DRAM].used;
	return sum;
}

UNIT(sizes_that_no_card_has_are_refused_and_counted)
{
	struct snapshot *snapshot = snapshot_new(1);
	uint32_t mallory = process(snapshot, 10, 1000);
	struct snapshot_part *part = declare(snapshot, mallory, 0, 5, UINT64_C(1) << 63);

	part->facts.capacity[TYPES_SYSTEM_MEMORY] = DECLARED_HOST_MAX;
	part->facts.capacity[TYPES_L1] = DECLARED_CARD_MAX + 1;
	declare(snapshot, mallory, 1, 6, DECLARED_CARD_MAX);
	assert(snapshot_finish(snapshot) == 0);
	assert(snapshot->capacities_refused == 2);
	assert(snapshot->processes[mallory].capacities_refused == 2);
	assert(snapshot->devices[0].memory[TYPES_DRAM].capacity == 0);
	assert(snapshot->devices[0].memory[TYPES_SYSTEM_MEMORY].capacity == DECLARED_HOST_MAX);
	assert(snapshot->devices[1].memory[TYPES_DRAM].capacity == DECLARED_CARD_MAX);
	assert(snapshot->note_count == 1 && strstr(snapshot->notes[0], "2 declared capacities"));
	snapshot_free(snapshot);
}

/* Two processes declare one card: user 1000's with 100 bytes, and another. */
static struct snapshot *declared_twice(uint32_t user, uint64_t capacity)
{
	struct snapshot *snapshot = snapshot_new(1);

	declare(snapshot, process(snapshot, 10, 1000), 0, 5, 100);
	declare(snapshot, process(snapshot, 11, user), 0, 5, capacity);
	assert(snapshot_finish(snapshot) == 0);
	return snapshot;
}

UNIT(what_one_user_declares_is_that_users_word)
{
	struct snapshot *snapshot = declared_twice(1000, 100);

	assert(strcmp(snapshot->devices[0].declared_by, "user1000") == 0);
	assert(snapshot->devices[0].declarer_id == 1000);
	assert(strcmp(snapshot->devices[0].card, "evilcard") == 0);
	snapshot_free(snapshot);
}

UNIT(what_two_users_declare_alike_is_nobodys_word)
{
	struct snapshot *snapshot = declared_twice(1001, 100);

	assert(!snapshot->devices[0].declared_by);
	assert(snapshot->devices[0].memory[TYPES_DRAM].capacity == 100);
	snapshot_free(snapshot);
}

/* Whoever started first, or has the lowest pid. */
UNIT(no_user_speaks_for_another)
{
	for (uint32_t first = 0; first < 2; first++) {
		struct snapshot *snapshot = snapshot_new(1);
		struct snapshot_part *part;

		declare(snapshot, process(snapshot, 10, 1000 + first), 0, 5, 100);
		part = declare(snapshot, process(snapshot, 11, 1001 - first), 0, 5, 200);
		part->facts.card = "n150";
		part->facts.remote = true;
		assert(snapshot_finish(snapshot) == 0);
		assert(snapshot->device_count == 1 && !snapshot->devices[0].declared_by);
		assert(!snapshot->devices[0].card && !snapshot->devices[0].remote);
		assert(snapshot->devices[0].memory[TYPES_DRAM].capacity == 0);
		assert(used(snapshot) == 20);
		snapshot_free(snapshot);
	}
}

UNIT(of_one_users_processes_the_first_is_believed)
{
	struct snapshot *snapshot = declared_twice(1000, 200);

	assert(snapshot->devices[0].memory[TYPES_DRAM].capacity == 100);
	snapshot_free(snapshot);
}

UNIT(the_drivers_card_is_nobodys_word)
{
	const struct snapshot_card card = {
		.number = 0, .unique_id = 5, .card = "n150", .condition.state = SNAPSHOT_PRESENT};
	struct snapshot *snapshot = snapshot_new(1);

	assert(snapshot_add_card(snapshot, &card) == 0);
	declare(snapshot, process(snapshot, 10, 1000), 0, 5, 100);
	assert(snapshot_finish(snapshot) == 0);
	assert(!snapshot->devices[0].declared_by && strcmp(snapshot->devices[0].card, "n150") == 0);
	snapshot_free(snapshot);
}

/* @ids_apart: every process makes up other ids. */
static void crowd(struct snapshot *snapshot, uint32_t user, uint32_t count, bool ids_apart)
{
	for (uint32_t i = 0; i < count; i++) {
		uint32_t index = process(snapshot, user + i, user);

		for (uint32_t device = 0; device < BOOK_DEVICES; device++)
			declare(snapshot, index, device,
				(ids_apart ? (i + 1) << 16 : 0) + user * UINT64_C(0x100000000) +
					device + 1,
				0);
	}
}

static size_t parts(const struct snapshot *snapshot, uint32_t user)
{
	size_t count = 0;

	for (size_t i = 0; i < snapshot->process_count; i++) {
		if (snapshot->processes[i].user_id == user)
			count += snapshot->processes[i].part_count;
	}
	return count;
}

UNIT(a_user_has_a_bound_of_devices_and_totals_stay_exact)
{
	for (unsigned int apart = 0; apart < 2; apart++) {
		struct snapshot *snapshot = snapshot_new(1);
		size_t summed = 0, rows = 0;

		crowd(snapshot, 100000, 20, apart);
		declare(snapshot, process(snapshot, 5, 1001), 3, 77, 100);
		assert(snapshot_finish(snapshot) == 0);
		assert(used(snapshot) == 10 * (20 * BOOK_DEVICES + 1));
		assert(parts(snapshot, 100000) == DECLARED_USER_MAX + 20);
		assert(parts(snapshot, 1001) == 1);
		assert(snapshot->device_count <= DECLARED_USER_MAX + 2);
		for (size_t i = 0; i < snapshot->device_count; i++) {
			const struct snapshot_device *row = &snapshot->devices[i];

			summed += row->summed;
			rows += row->summed > 0;
			if (row->summed)
				assert(strcmp(row->declared_by, "user100000") == 0);
		}
		assert(rows == 1 && summed == 20 * BOOK_DEVICES - DECLARED_USER_MAX);
		assert(snapshot->devices_summed == summed);
		snapshot_free(snapshot);
	}
}

UNIT(every_process_keeps_some_rows)
{
	struct snapshot *snapshot = snapshot_new(1);
	uint32_t row;

	crowd(snapshot, 100000, 200, true);
	assert(snapshot_finish(snapshot) == 0);
	for (size_t i = 0; i < snapshot->process_count; i++)
		assert(snapshot->processes[i].part_count == DECLARED_PROCESS_MIN + 1);
	assert(snapshot_find_row(snapshot, 0, 1000, &row) && snapshot->devices[row].summed);
	assert(snapshot_find_row(snapshot, 0, 0, &row) && !snapshot->devices[row].summed);
	snapshot_free(snapshot);
}

UNIT(as_many_as_a_user_may_have_are_left_alone)
{
	struct snapshot *snapshot = snapshot_new(1);

	crowd(snapshot, 1000, 1, true);
	crowd(snapshot, 5000, 1, true);
	assert(snapshot_finish(snapshot) == 0);
	assert(snapshot->device_count == 2 * BOOK_DEVICES && snapshot->devices_summed == 0);
	snapshot_free(snapshot);
}

UNIT(nobody_declares_the_sum_of_another)
{
	struct snapshot *snapshot = snapshot_new(1);

	declare(snapshot, process(snapshot, 10, 1000), 0, DECLARED_SUM_ID | 1001, 100);
	assert(snapshot_finish(snapshot) == 0);
	assert(snapshot->devices[0].unique_id == 0 && snapshot->devices[0].by_number);
	snapshot_free(snapshot);
}

/* As a source does it that knows an earlier snapshot: see source/books/book-rest.h. */
static void sum_early(struct snapshot *snapshot, uint32_t index, size_t keep)
{
	struct snapshot_process *process = &snapshot->processes[index];
	struct snapshot_part sum = {0};

	for (size_t i = keep; i < process->part_count; i++)
		declared_add(&sum, &process->parts[i]);
	process->part_count = keep;
	declared_sign(&sum, process->user_id);
	assert(snapshot_add_sum(snapshot, index, &sum) == 0);
}

/* With too few, enough, and too many parts left for the rule. */
UNIT(what_was_summed_up_before_makes_no_difference)
{
	static const size_t keeps[] = {8, 100, 1000};

	for (size_t k = 0; k < 3; k++) {
		struct snapshot *snapshot = snapshot_new(1), *plain = snapshot_new(1);

		crowd(snapshot, 100000, 20, true);
		crowd(plain, 100000, 20, true);
		for (uint32_t i = 1; i < 20; i++)
			sum_early(snapshot, i, keeps[k]);
		/* A part that is added later comes before the sum. */
		declare(snapshot, 3, 5000, 999, 0);
		declare(plain, 3, 5000, 999, 0);
		assert(snapshot_finish(snapshot) == 0 && snapshot_finish(plain) == 0);
		assert(used(snapshot) == used(plain));
		assert(snapshot->devices_summed == plain->devices_summed);
		assert(snapshot->device_count == plain->device_count);
		for (size_t i = 0; i < 20; i++) {
			const struct snapshot_process *a = &snapshot->processes[i];
			const struct snapshot_process *b = &plain->processes[i];

			assert(a->loose == b->loose && a->loose_rows == b->loose_rows);
			assert(a->part_count == b->part_count);
			for (size_t n = 0; n < a->part_count; n++) {
				assert(a->parts[n].device == b->parts[n].device);
				assert(a->parts[n].summed == b->parts[n].summed);
				assert(a->parts[n].memory[TYPES_DRAM].used ==
				       b->parts[n].memory[TYPES_DRAM].used);
			}
		}
		snapshot_free(snapshot);
		snapshot_free(plain);
	}
}
