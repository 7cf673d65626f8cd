/* SPDX-License-Identifier: Apache-2.0 */

/* Sources that contradict each other: what is counted, what is only shown. */

#include "model/resolve-claims.h"

#include <string.h>

#include "base/testing/unit.h"
#include "model/snapshot.h"
#include "model/types.h"

#define CHIP UINT64_C(0x1122334455667788)
#define OTHER_CHIP UINT64_C(0x99aabbccddeeff00)
#define ALL_TYPES UINT32_C(0x7f)

static struct snapshot *start(void)
{
	struct snapshot *snapshot = snapshot_new(1);

	assert(snapshot);
	return snapshot;
}

static struct snapshot_process identity(uint32_t pid, bool alive, const char *source)
{
	return (struct snapshot_process){
		.id.pid = pid,
		.id.start_ticks = alive ? pid * 10 : 0,
		.comm = "test",
		.user = "me",
		.source = source,
		.alive = alive,
		.exact = true,
	};
}

static void book(struct snapshot *snapshot, uint32_t pid, uint32_t device, uint64_t id,
		 uint64_t dram)
{
	struct snapshot_process process = identity(pid, true, "book");
	struct snapshot_memory memory = {.used = dram, .buffers = 1, .peak = dram};
	struct snapshot_part *part;
	uint32_t index;

	assert(snapshot_add_process(snapshot, &process, &index) == 0);
	part = snapshot_part(snapshot, index, device);
	assert(part);
	part->facts.unique_id = id;
	snapshot_add_memory(&part->memory[TYPES_DRAM], &memory);
}

static void region(struct snapshot *snapshot, uint32_t pid, bool alive, uint32_t device,
		   uint64_t id, uint64_t dram)
{
	struct snapshot_claim claim = {
		.process = identity(pid, alive, "tt-metal"),
		.device = device,
		.facts = {.unique_id = id},
		.types = ALL_TYPES,
		.used = {[TYPES_DRAM] = dram},
		.last_ns = 7,
	};

	claim.process.stale = !alive;
	assert(snapshot_add_claim(snapshot, &claim) == 0);
}

static void opened(struct snapshot *snapshot, uint32_t pid, uint32_t device, uint64_t id)
{
	struct snapshot_claim claim = {
		.process = identity(pid, true, "driver"),
		.device = device,
		.facts = {.unique_id = id},
		.is_open_only = true,
	};

	claim.process.untracked = true;
	assert(snapshot_add_claim(snapshot, &claim) == 0);
}

static void card(struct snapshot *snapshot, uint32_t number, uint64_t id, uint64_t serial)
{
	struct snapshot_card card = {
		.number = number, .unique_id = id, .serial = serial, .card = "n150"};

	assert(snapshot_add_card(snapshot, &card) == 0);
}

static uint64_t total(const struct snapshot *snapshot)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < snapshot->device_count; i++) {
		for (uint32_t type = 0; type < BOOK_TYPES; type++)
			sum += snapshot->devices[i].memory[type].used;
	}
	return sum;
}

UNIT(a_process_with_book_and_region_counts_once)
{
	struct snapshot *snapshot = start();

	book(snapshot, 10, 0, CHIP, 100);
	region(snapshot, 10, true, 0, CHIP, 100);
	opened(snapshot, 10, 0, CHIP);
	assert(snapshot_finish(snapshot) == 0);
	assert(snapshot->process_count == 1 && snapshot->device_count == 1);
	assert(total(snapshot) == 100);
	assert(snapshot->processes[0].parts[0].claimed && !snapshot->processes[0].differs);
	assert(snapshot->note_count == 0);
	snapshot_free(snapshot);
}

UNIT(the_book_wins_and_the_difference_shows)
{
	struct snapshot *snapshot = start();
	const struct snapshot_part *part;

	book(snapshot, 10, 0, CHIP, 100);
	region(snapshot, 10, true, 3, CHIP, 175); /* another number, the same chip */
	assert(snapshot_finish(snapshot) == 0);
	part = &snapshot->processes[0].parts[0];
	assert(snapshot->processes[0].part_count == 1 && total(snapshot) == 100);
	assert(part->differs && snapshot->processes[0].differs);
	assert(part->claimed_used[TYPES_DRAM] == 175);
	assert(snapshot->note_count == 1 && strstr(snapshot->notes[0], "disagree"));
	snapshot_free(snapshot);
}

UNIT(types_that_a_region_does_not_tell_are_not_compared)
{
	struct snapshot *snapshot = start();

	book(snapshot, 10, 0, CHIP, 100);
	region(snapshot, 10, true, 0, CHIP, 0);
	snapshot->claims[0].types = UINT32_C(1) << TYPES_L1;
	assert(snapshot_finish(snapshot) == 0);
	assert(!snapshot->processes[0].differs);
	snapshot_free(snapshot);
}

UNIT(a_region_of_a_chip_that_the_book_does_not_know_is_counted)
{
	struct snapshot *snapshot = start();

	book(snapshot, 10, 0, CHIP, 100);
	region(snapshot, 10, true, 1, OTHER_CHIP, 50);
	assert(snapshot_finish(snapshot) == 0);
	assert(snapshot->device_count == 2 && total(snapshot) == 150);
	assert(snapshot->processes[0].part_count == 2 && !snapshot->processes[0].differs);
	assert(!snapshot->processes[0].parts[0].is_claim_only);
	assert(snapshot->processes[0].parts[1].is_claim_only);
	snapshot_free(snapshot);
}

/* The library is loaded, and nobody calls it. */
static uint32_t empty_book(struct snapshot *snapshot, uint32_t pid)
{
	struct snapshot_process process = identity(pid, true, "book");
	uint32_t index;

	assert(snapshot_add_process(snapshot, &process, &index) == 0);
	return index;
}

UNIT(an_empty_book_does_not_hide_the_region)
{
	struct snapshot *snapshot = start();
	const struct snapshot_part *part;

	(void)empty_book(snapshot, 10);
	region(snapshot, 10, true, 0, CHIP, 50);
	opened(snapshot, 10, 0, CHIP);
	assert(snapshot_finish(snapshot) == 0);
	assert(snapshot->process_count == 1 && total(snapshot) == 50);
	part = &snapshot->processes[0].parts[0];
	assert(part->is_region_counted && part->claimed && !part->differs);
	assert(part->memory[TYPES_DRAM].peak_is_unknown);
	assert(part->memory[TYPES_DRAM].bound == SNAPSHOT_EXACT);
	snapshot_free(snapshot);
}

UNIT(where_tracking_gave_up_the_larger_figure_is_a_lower_bound)
{
	struct snapshot *snapshot = start();
	const struct snapshot_process *process;

	book(snapshot, 10, 0, CHIP, 100);
	snapshot->processes[0].gave_up = "no idea";
	region(snapshot, 10, true, 0, CHIP, 150);
	opened(snapshot, 10, 0, CHIP);
	book(snapshot, 11, 0, CHIP, 100);
	snapshot->processes[1].gave_up = "no idea";
	region(snapshot, 11, true, 0, CHIP, 50);
	assert(snapshot_finish(snapshot) == 0);
	assert(total(snapshot) == 250);
	assert(snapshot->devices[0].memory[TYPES_DRAM].bound == SNAPSHOT_AT_LEAST);
	process = &snapshot->processes[0];
	assert(process->part_count == 1 && !process->exact && !process->differs);
	assert(process->parts[0].memory[TYPES_DRAM].used == 150);
	snapshot_free(snapshot);
}

UNIT(a_device_that_is_open_where_tracking_gave_up_has_at_least_nothing)
{
	struct snapshot *snapshot = start();
	const struct snapshot_process *process;
	uint32_t index = empty_book(snapshot, 10);

	snapshot->processes[index].gave_up = "no idea";
	opened(snapshot, 10, 0, CHIP);
	(void)empty_book(snapshot, 11);
	opened(snapshot, 11, 0, CHIP);
	assert(snapshot_finish(snapshot) == 0);
	process = &snapshot->processes[0];
	assert(process->part_count == 1 && !process->untracked);
	assert(process->parts[0].memory[TYPES_L1].bound == SNAPSHOT_AT_LEAST);
	assert(snapshot->devices[0].memory[TYPES_L1].bound == SNAPSHOT_AT_LEAST);
	assert(snapshot->processes[1].part_count == 0);
	snapshot_free(snapshot);
}

UNIT(a_book_without_ids_is_compared_by_number)
{
	struct snapshot *snapshot = start();

	book(snapshot, 10, 0, 0, 100);
	region(snapshot, 10, true, 0, CHIP, 100);
	assert(snapshot_finish(snapshot) == 0);
	assert(snapshot->processes[0].part_count == 1 && total(snapshot) == 100);
	assert(!snapshot->processes[0].differs);
	snapshot_free(snapshot);
}

UNIT(a_region_alone_is_counted_and_has_no_peak)
{
	struct snapshot *snapshot = start();

	region(snapshot, 10, true, 0, CHIP, 100);
	region(snapshot, 10, true, 1, OTHER_CHIP, 20);
	region(snapshot, 11, true, 0, CHIP, 3);
	assert(snapshot_finish(snapshot) == 0);
	assert(snapshot->process_count == 2 && snapshot->device_count == 2);
	assert(total(snapshot) == 123 && snapshot->devices[0].processes == 2);
	assert(snapshot->devices[1].memory[TYPES_DRAM].peak_is_unknown);
	assert(strcmp(snapshot->processes[0].source, "tt-metal") == 0);
	assert(snapshot->processes[0].last_ns == 7);
	snapshot_free(snapshot);
}

UNIT(the_same_claim_twice_counts_once)
{
	struct snapshot *snapshot = start();

	region(snapshot, 10, true, 0, CHIP, 100);
	region(snapshot, 10, true, 0, CHIP, 100);
	assert(snapshot_finish(snapshot) == 0);
	assert(total(snapshot) == 100 && snapshot->processes[0].part_count == 1);
	snapshot_free(snapshot);
}

UNIT(the_dead_are_stale_and_never_counted)
{
	struct snapshot *snapshot = start();

	region(snapshot, 10, false, 0, CHIP, 100);
	region(snapshot, 11, true, 0, CHIP, 1);
	assert(snapshot_finish(snapshot) == 0);
	assert(snapshot->process_count == 2 && snapshot->processes[0].stale);
	assert(snapshot->processes[0].parts[0].memory[TYPES_DRAM].used == 100);
	assert(total(snapshot) == 1 && snapshot->exact);
	snapshot_free(snapshot);
}

/* The pid was reused by another process. */
UNIT(another_process_of_the_same_pid_is_another_process)
{
	struct snapshot *snapshot = start();

	book(snapshot, 10, 0, CHIP, 5);
	region(snapshot, 10, true, 0, CHIP, 100);
	snapshot->claims[0].process.id.start_ticks = 999;
	assert(snapshot_finish(snapshot) == 0);
	assert(snapshot->process_count == 2 && total(snapshot) == 105);
	snapshot_free(snapshot);
}

UNIT(a_process_that_only_opened_the_device_is_untracked)
{
	struct snapshot *snapshot = start();

	card(snapshot, 4, CHIP, 1);
	opened(snapshot, 10, 4, CHIP);
	opened(snapshot, 10, 4, CHIP);
	opened(snapshot, 11, 4, CHIP);
	region(snapshot, 11, true, 0, CHIP, 9);
	assert(snapshot_finish(snapshot) == 0);
	assert(snapshot->process_count == 2 && snapshot->device_count == 1);
	assert(snapshot->devices[0].processes == 1 && snapshot->devices[0].untracked == 1);
	assert(snapshot->devices[0].device == 4 && snapshot->devices[0].present);
	assert(!snapshot->processes[0].untracked && snapshot->processes[1].untracked);
	assert(snapshot->processes[1].part_count == 1 && total(snapshot) == 9);
	snapshot_free(snapshot);
}

UNIT(ids_made_of_the_serial_are_those_of_the_chip)
{
	struct snapshot *snapshot = start();
	uint64_t serial = UINT64_C(0x0100014511b20aa1);

	card(snapshot, 0, CHIP, serial);
	card(snapshot, 1, OTHER_CHIP, serial + 1);
	region(snapshot, 10, true, 0, serial << 8, 30);
	book(snapshot, 11, 0, serial << 8, 12);
	region(snapshot, 12, true, 0, serial << 8 | 1, 8); /* the remote one of the board */
	assert(snapshot_finish(snapshot) == 0);
	assert(snapshot->device_count == 3);
	assert(snapshot->devices[0].unique_id == CHIP || snapshot->devices[1].unique_id == CHIP);
	for (size_t i = 0; i < 3; i++) {
		if (snapshot->devices[i].unique_id == CHIP)
			assert(snapshot->devices[i].memory[TYPES_DRAM].used == 42);
	}
	snapshot_free(snapshot);
}

UNIT(chips_of_one_board_are_known_by_their_place)
{
	struct snapshot *snapshot = start();

	card(snapshot, 0, CHIP, 5);
	card(snapshot, 1, OTHER_CHIP, 5);
	region(snapshot, 10, true, 0, 5 << 8 | 1, 30);
	assert(snapshot_finish(snapshot) == 0);
	assert(snapshot->device_count == 2);
	assert(snapshot->devices[1].memory[TYPES_DRAM].used == 30);
	snapshot_free(snapshot);
}

UNIT(cards_without_ids_are_known_by_number)
{
	struct snapshot *snapshot = start();

	card(snapshot, 0, 0, 0);
	card(snapshot, 1, 0, 0);
	book(snapshot, 10, 1, 0, 30);
	assert(snapshot_finish(snapshot) == 0);
	assert(snapshot->device_count == 2);
	assert(snapshot->devices[1].memory[TYPES_DRAM].used == 30 && snapshot->devices[1].present);
	assert(snapshot->devices[1].joined == SNAPSHOT_JOINED_NUMBER);
	/* What no process declared is known from the card. */
	assert(snapshot->devices[0].memory[TYPES_DRAM].capacity == UINT64_C(12) << 30);
	assert(snapshot->devices[0].memory[TYPES_L1].capacity == UINT64_C(72) * 1464 * 1024);
	assert(snapshot->devices[0].cores == 72);
	assert(strcmp(snapshot->devices[0].arch, "wormhole_b0") == 0);
	snapshot_free(snapshot);
}

UNIT(two_cards_with_one_id_stay_two)
{
	struct snapshot *snapshot = start();

	card(snapshot, 0, CHIP, 1);
	card(snapshot, 1, CHIP, 1);
	assert(snapshot_finish(snapshot) == 0);
	assert(snapshot->device_count == 2);
	snapshot_free(snapshot);
}

UNIT(sums_stop_at_the_top)
{
	struct snapshot *snapshot = start();

	region(snapshot, 10, true, 0, CHIP, UINT64_MAX);
	region(snapshot, 11, true, 0, CHIP, UINT64_MAX);
	assert(snapshot_finish(snapshot) == 0);
	assert(snapshot->devices[0].memory[TYPES_DRAM].used == UINT64_MAX);
	snapshot_free(snapshot);
}

UNIT(a_device_says_who_is_only_in_its_region)
{
	struct snapshot *snapshot = start();

	region(snapshot, 10, false, 0, CHIP, 100);
	region(snapshot, 11, true, 1, OTHER_CHIP, 50);
	assert(snapshot_finish(snapshot) == 0);
	assert(snapshot->device_count == 2 && total(snapshot) == 50);
	assert(snapshot->devices[0].closed && snapshot->devices[0].stale == 1);
	assert(!snapshot->devices[1].closed && snapshot->devices[1].stale == 0);
	snapshot_free(snapshot);
}

UNIT(a_process_that_has_nothing_there_yet_means_the_only_device_of_that_number)
{
	struct snapshot *snapshot = start();
	uint32_t row = 9;

	book(snapshot, 10, 0, CHIP, 100);
	book(snapshot, 11, 5, CHIP, 100);
	book(snapshot, 12, 1, OTHER_CHIP, 50);
	assert(snapshot_finish(snapshot) == 0 && snapshot->device_count == 2);
	assert(snapshot_find_row(snapshot, 1, 5, &row) && row == 0);
	assert(snapshot_find_row(snapshot, 0, 1, &row) && row == 1);
	assert(!snapshot_find_row(snapshot, 0, 7, &row));
	snapshot_free(snapshot);
}

/* As many as anybody can put into regions: each process is found again, in the order of the rows. */
UNIT(a_snapshot_full_of_rows_of_ended_processes_is_resolved)
{
	struct snapshot *snapshot = start();
	uint32_t count = SNAPSHOT_CLAIMS_MAX / 2;

	book(snapshot, 5, 0, CHIP, 100);
	for (uint32_t i = 0; i < 2 * count; i++)
		region(snapshot, 1 + i % count, false, i / count, i < count ? CHIP : OTHER_CHIP, i);
	assert(snapshot_finish(snapshot) == 0);
	assert(snapshot->process_count == 1 + count && total(snapshot) == 100);
	assert(snapshot->processes[0].id.pid == 5 && snapshot->processes[0].part_count == 1);
	for (uint32_t i = 0; i < count; i++) {
		const struct snapshot_process *process = &snapshot->processes[1 + i];

		assert(process->id.pid == 1 + i && process->stale && process->part_count == 2);
		assert(process->parts[1].memory[TYPES_DRAM].used == count + i);
	}
	snapshot_free(snapshot);
}

static uint32_t bound(const struct snapshot *snapshot)
{
	return snapshot->devices[0].memory[TYPES_DRAM].bound;
}

UNIT(a_region_that_does_not_see_all_threads_gives_a_lower_bound)
{
	struct snapshot *snapshot = start();

	region(snapshot, 10, true, 0, CHIP, 100);
	snapshot->claims[0].bound = SNAPSHOT_AT_LEAST;
	snapshot->claims[0].types = UINT32_C(1) << TYPES_DRAM;
	assert(snapshot_finish(snapshot) == 0);
	assert(bound(snapshot) == SNAPSHOT_AT_LEAST && !snapshot->exact);
	assert(!snapshot->processes[0].exact);
	assert(snapshot->processes[0].parts[0].memory[TYPES_DRAM].bound == SNAPSHOT_AT_LEAST);
	assert(snapshot->processes[0].parts[0].memory[TYPES_KERNEL].bound == SNAPSHOT_EXACT);
	assert(snapshot->note_count == 1 && strstr(snapshot->notes[0], "the thread that opened"));
	assert(!strstr(snapshot->notes[0], "circular"));
	snapshot_free(snapshot);
}

UNIT(circular_buffers_of_such_a_region_are_noted)
{
	struct snapshot *snapshot = start();

	region(snapshot, 10, true, 0, CHIP, 100);
	snapshot->claims[0].bound = SNAPSHOT_AT_LEAST;
	snapshot->claims[0].used[TYPES_CB] = 1;
	assert(snapshot_finish(snapshot) == 0);
	assert(snapshot->note_count == 1 && strstr(snapshot->notes[0], "ten times a second"));
	snapshot_free(snapshot);
}

UNIT(the_book_stays_exact_whatever_the_region_is)
{
	struct snapshot *snapshot = start();

	book(snapshot, 10, 0, CHIP, 100);
	region(snapshot, 10, true, 0, CHIP, 100);
	snapshot->claims[0].bound = SNAPSHOT_AT_LEAST;
	snapshot->claims[0].region_is_private = true;
	assert(snapshot_finish(snapshot) == 0);
	assert(bound(snapshot) == SNAPSHOT_EXACT && snapshot->exact);
	assert(snapshot->note_count == 0);
	snapshot_free(snapshot);
}

UNIT(a_full_region_bounds_the_device_and_not_its_processes)
{
	for (unsigned int alive = 0; alive < 2; alive++) {
		struct snapshot *snapshot = start();

		region(snapshot, 10, alive, 0, CHIP, 100);
		region(snapshot, 11, alive, 0, CHIP, 100);
		snapshot->claims[0].region_is_full = snapshot->claims[1].region_is_full = true;
		snapshot->claims[0].region = snapshot->claims[1].region = 77;
		assert(snapshot_finish(snapshot) == 0);
		assert(bound(snapshot) == SNAPSHOT_AT_LEAST && !snapshot->exact);
		assert(snapshot->processes[0].exact);
		assert(snapshot->processes[0].parts[0].memory[TYPES_DRAM].bound == SNAPSHOT_EXACT);
		assert(snapshot->note_count == 1 && strstr(snapshot->notes[0], "tt_device_77_"));
		snapshot_free(snapshot);
	}
}

/* Other users have no rows in it; whether there are any, only the driver's list tells. */
UNIT(a_private_region_is_exact_only_if_nobody_else_has_the_device_open)
{
	struct snapshot *snapshot = start();

	region(snapshot, 10, true, 0, CHIP, 100);
	snapshot->claims[0].region_is_private = true;
	assert(snapshot_finish(snapshot) == 0);
	assert(bound(snapshot) == SNAPSHOT_AT_LEAST); /* there is no list */
	snapshot_free(snapshot);

	for (unsigned int others = 0; others < 2; others++) {
		snapshot = start();
		card(snapshot, 0, CHIP, 5);
		region(snapshot, 10, true, 0, CHIP, 100);
		snapshot->claims[0].region_is_private = true;
		opened(snapshot, 10, 0, CHIP);
		if (others)
			opened(snapshot, 20, 0, CHIP);
		assert(snapshot_finish(snapshot) == 0);
		assert(bound(snapshot) == (others ? SNAPSHOT_AT_LEAST : SNAPSHOT_EXACT));
		assert(snapshot->exact == !others && snapshot->processes[0].exact);
		snapshot_free(snapshot);
	}
}

/* It is in no list, and used through any card. */
UNIT(a_remote_chip_is_exact_only_if_nobody_else_has_any_card_open)
{
	for (unsigned int others = 0; others < 2; others++) {
		struct snapshot *snapshot = start();

		card(snapshot, 0, CHIP, 5);
		region(snapshot, 10, true, 1, OTHER_CHIP, 100);
		snapshot->claims[0].region_is_private = true;
		opened(snapshot, 10, 0, CHIP);
		if (others)
			opened(snapshot, 20, 0, CHIP);
		assert(snapshot_finish(snapshot) == 0);
		for (size_t i = 0; i < snapshot->device_count; i++) {
			if (snapshot->devices[i].unique_id == OTHER_CHIP)
				assert(snapshot->devices[i].memory[TYPES_DRAM].bound ==
				       (others ? SNAPSHOT_AT_LEAST : SNAPSHOT_EXACT));
		}
		snapshot_free(snapshot);
	}
}
