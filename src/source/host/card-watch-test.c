/* SPDX-License-Identifier: Apache-2.0 */

/* What is remembered of cards over resets, removals and a heartbeat that stops. */

#include "source/host/card-watch.h"

#include <string.h>

#include "base/clock.h"
#include "base/testing/unit.h"
#include "model/snapshot.h"
#include "model/types.h"

#define CHIP UINT64_C(0xc1)
#define BUS "0000:01:00.0"

static const struct snapshot_card whole = {
	.unique_id = CHIP,
	.serial = 0x51,
	.arch = "wormhole_b0",
	.card = "n150",
	.bus = BUS,
	.firmware = "18.6.0.0",
	.condition.state = SNAPSHOT_PRESENT,
};

static const struct snapshot_card resetting = {
	.arch = "wormhole_b0", .bus = BUS, .condition.state = SNAPSHOT_IN_RESET};

static uint64_t lateness_ns; /* how long readings take */

/* One reading: the card if there is one, and a process that holds @used of it. */
static struct snapshot *look(struct card_watch *watch, uint64_t now_ns,
			     const struct snapshot_card *card, uint64_t used)
{
	const struct snapshot_process who = {
		.id.pid = 10, .id.start_ticks = 3, .alive = true, .exact = true};
	struct snapshot *snapshot = snapshot_new(1);
	struct snapshot_part *part;
	uint32_t index;

	assert(snapshot);
	if (card)
		assert(snapshot_add_card(snapshot, card) == 0);
	assert(card_watch_apply(watch, now_ns - lateness_ns, now_ns, snapshot) == 0);
	assert(snapshot_add_process(snapshot, &who, &index) == 0);
	part = snapshot_part(snapshot, index, 0);
	assert(part);
	part->facts.unique_id = CHIP;
	part->memory[TYPES_DRAM].used = used;
	assert(snapshot_finish(snapshot) == 0);
	card_watch_learn(watch, snapshot);
	assert(snapshot->device_count == 1);
	return snapshot;
}

/* Checks one reading: state of the device, its used bytes, and whether the process's are stale. */
static void expect(struct card_watch *watch, const struct snapshot_card *card, uint64_t used,
		   uint32_t state, bool is_left)
{
	static uint64_t now_ns = NS_PER_S;
	struct snapshot *snapshot = look(watch, now_ns += NS_PER_S, card, used);
	const struct snapshot_device *device = &snapshot->devices[0];

	assert(device->condition.state == state);
	assert(device->unique_id == CHIP && strcmp(device->card, "n150") == 0);
	assert(device->serial == 0x51 && strcmp(device->bus, BUS) == 0);
	assert(device->present == (state != SNAPSHOT_GONE));
	assert(device->memory[TYPES_DRAM].used == (is_left ? 0 : used));
	assert(snapshot->processes[0].parts[0].before_reset == is_left);
	snapshot_free(snapshot);
}

UNIT(a_card_in_reset_keeps_its_identity)
{
	struct card_watch *watch;

	assert(card_watch_new(&watch) == 0);
	expect(watch, &whole, 0, SNAPSHOT_PRESENT, false);
	expect(watch, &resetting, 0, SNAPSHOT_IN_RESET, false);
	expect(watch, &whole, 0, SNAPSHOT_PRESENT, false);
	card_watch_free(watch);
}

UNIT(memory_held_at_a_reset_is_stale_until_it_is_freed)
{
	struct card_watch *watch;

	assert(card_watch_new(&watch) == 0);
	expect(watch, &whole, 4096, SNAPSHOT_PRESENT, false);
	expect(watch, &resetting, 4096, SNAPSHOT_IN_RESET, true);
	expect(watch, &resetting, 4096, SNAPSHOT_IN_RESET, true);
	expect(watch, &whole, 4096, SNAPSHOT_PRESENT, true);
	expect(watch, &whole, 4096, SNAPSHOT_PRESENT, true);
	expect(watch, &whole, 0, SNAPSHOT_PRESENT, true); /* learnt after it is shown */
	expect(watch, &whole, 512, SNAPSHOT_PRESENT, false);
	card_watch_free(watch);
}

UNIT(memory_of_a_card_that_was_in_reset_from_the_start_stays_stale)
{
	struct snapshot_card known = whole;
	struct card_watch *watch;

	known.condition.state = SNAPSHOT_IN_RESET;
	assert(card_watch_new(&watch) == 0);
	expect(watch, &known, 4096, SNAPSHOT_IN_RESET, true);
	expect(watch, &known, 4096, SNAPSHOT_IN_RESET, true);
	expect(watch, &whole, 4096, SNAPSHOT_PRESENT, true);
	expect(watch, &whole, 0, SNAPSHOT_PRESENT, true); /* learnt after it is shown */
	expect(watch, &whole, 512, SNAPSHOT_PRESENT, false);
	card_watch_free(watch);
}

/* In a reset that nobody saw begin, a card has no identity: only its number could be the process's. */
UNIT(a_number_alone_makes_nothing_stale)
{
	const struct snapshot_card unknown = {
		.number = 0, .bus = BUS, .condition.state = SNAPSHOT_IN_RESET};
	struct card_watch *watch;

	assert(card_watch_new(&watch) == 0);
	for (uint64_t second = 1; second < 4; second++) {
		struct snapshot *snapshot = snapshot_new(1);
		const struct snapshot_process who = {
			.id.pid = 10, .id.start_ticks = 3, .alive = true, .exact = true};
		uint32_t index;

		assert(snapshot && snapshot_add_card(snapshot, &unknown) == 0);
		assert(card_watch_apply(watch, second * NS_PER_S, second * NS_PER_S, snapshot) ==
		       0);
		assert(snapshot_add_process(snapshot, &who, &index) == 0);
		snapshot_part(snapshot, index, 0)->memory[TYPES_DRAM].used = 4096;
		assert(snapshot_finish(snapshot) == 0);
		card_watch_learn(watch, snapshot);
		assert(!snapshot->processes[0].parts[0].before_reset);
		snapshot_free(snapshot);
	}
	card_watch_free(watch);
}

UNIT(a_removed_card_is_gone_and_its_memory_stale_when_it_is_back)
{
	struct snapshot_card elsewhere = whole;
	struct card_watch *watch;

	elsewhere.number = 5;
	assert(card_watch_new(&watch) == 0);
	expect(watch, &whole, 4096, SNAPSHOT_PRESENT, false);
	expect(watch, NULL, 4096, SNAPSHOT_GONE, true);
	expect(watch, NULL, 4096, SNAPSHOT_GONE, true);
	expect(watch, &elsewhere, 4096, SNAPSHOT_PRESENT, true);
	card_watch_free(watch);
}

UNIT(a_card_that_returns_in_another_slot_is_not_gone)
{
	struct snapshot_card moved = whole;
	struct card_watch *watch;
	struct snapshot *snapshot;

	moved.bus = "0000:02:00.0";
	assert(card_watch_new(&watch) == 0);
	expect(watch, &whole, 4096, SNAPSHOT_PRESENT, false);
	snapshot = look(watch, 2 * NS_PER_S, &moved, 4096);
	assert(snapshot->card_count == 1);
	assert(snapshot->devices[0].condition.state == SNAPSHOT_PRESENT);
	assert(snapshot->processes[0].parts[0].before_reset);
	snapshot_free(snapshot);
	card_watch_free(watch);
}

UNIT(a_gone_card_is_forgotten_after_a_while)
{
	struct card_watch *watch;
	struct snapshot *snapshot;

	assert(card_watch_new(&watch) == 0);
	snapshot_free(look(watch, 1, &whole, 0));
	snapshot_free(look(watch, 2, NULL, 0));
	snapshot = look(watch, 1 + CARD_WATCH_KEEP_NS, NULL, 0);
	assert(snapshot->card_count == 1);
	snapshot_free(snapshot);
	snapshot = look(watch, 2 + CARD_WATCH_KEEP_NS, NULL, 0);
	assert(snapshot->card_count == 0);
	snapshot_free(snapshot);
	card_watch_free(watch);
}

static uint32_t beat(struct card_watch *watch, uint64_t now_ns, uint32_t heartbeat)
{
	struct snapshot_card card = whole;
	struct snapshot *snapshot;
	uint32_t state;

	card.condition.has_heartbeat = true;
	card.condition.heartbeat = heartbeat;
	snapshot = look(watch, now_ns, &card, 0);
	state = snapshot->devices[0].condition.state;
	snapshot_free(snapshot);
	return state;
}

UNIT(a_heartbeat_that_stands_still_is_no_answer)
{
	struct card_watch *watch;

	assert(card_watch_new(&watch) == 0);
	assert(beat(watch, 1, 7) == SNAPSHOT_PRESENT);
	assert(beat(watch, CARD_WATCH_STILL_NS, 7) == SNAPSHOT_PRESENT); /* not for long enough */
	assert(beat(watch, 1 + CARD_WATCH_STILL_NS, 7) == SNAPSHOT_NOT_ANSWERING);
	assert(beat(watch, 2 + CARD_WATCH_STILL_NS, 8) == SNAPSHOT_PRESENT);
	snapshot_free(look(watch, 3 + CARD_WATCH_STILL_NS, &whole, 0)); /* it tells no heartbeat */
	assert(beat(watch, 9 * CARD_WATCH_STILL_NS, 8) == SNAPSHOT_PRESENT);
	card_watch_free(watch);
}

/* One reading of a card with these counters, whose memory was held before. */
static bool is_left(struct card_watch *watch, const struct snapshot_card *card)
{
	static uint64_t now_ns = NS_PER_S;
	struct snapshot *snapshot = look(watch, now_ns += NS_PER_S, card, 4096);
	bool left = snapshot->processes[0].parts[0].before_reset;

	assert(snapshot->devices[0].condition.state == SNAPSHOT_PRESENT);
	assert(snapshot->devices[0].memory[TYPES_DRAM].used == (left ? 0 : 4096));
	snapshot_free(snapshot);
	return left;
}

/* Whether memory is stale after the heartbeat went @from one value @to another in a second. */
static bool is_reset_by_beats(uint32_t from, uint32_t to)
{
	struct snapshot_card card = whole;
	struct card_watch *watch;
	bool left;

	assert(card_watch_new(&watch) == 0);
	card.condition.has_heartbeat = true;
	card.condition.heartbeat = from;
	assert(!is_left(watch, &card));
	card.condition.heartbeat = to;
	left = is_left(watch, &card);
	card.condition.heartbeat++;
	assert(is_left(watch, &card) == left); /* and stays so */
	card_watch_free(watch);
	return left;
}

UNIT(a_heartbeat_that_starts_anew_shows_a_reset_between_two_readings)
{
	assert(is_reset_by_beats(5000, 3));
	assert(is_reset_by_beats(5000, 4999));
	assert(is_reset_by_beats(UINT32_MAX / 2, 0));
	assert(!is_reset_by_beats(5000, 5010));
	assert(!is_reset_by_beats(5000, 15000));         /* it counts fast */
	assert(!is_reset_by_beats(UINT32_MAX - 2, 7));   /* it wraps around */
	assert(is_reset_by_beats(5000, 3000000000));     /* it starts anywhere */
	assert(!is_reset_by_beats(0, CARD_WATCH_BEATS)); /* a reading may come late */
}

/* A chip off the bus is read as ones; its count tells what has happened to it meanwhile. */
UNIT(a_heartbeat_is_compared_over_a_time_without_answers)
{
	struct snapshot_card card = whole, silent = whole;

	card.condition.has_heartbeat = true;
	silent.condition.state = SNAPSHOT_NOT_ANSWERING;
	for (uint32_t after = 3; after <= 5001; after += 4998) {
		struct card_watch *watch;

		assert(card_watch_new(&watch) == 0);
		card.condition.heartbeat = 5000;
		assert(!is_left(watch, &card));
		expect(watch, &silent, 4096, SNAPSHOT_NOT_ANSWERING, false);
		card.condition.heartbeat = after;
		assert(is_left(watch, &card) == (after < 5000));
		card_watch_free(watch);
	}
}

UNIT(a_card_that_has_switched_itself_off_was_reset)
{
	struct snapshot_card card = whole;
	struct card_watch *watch;

	card.condition.has_trips = true;
	card.condition.trips = 1;
	assert(card_watch_new(&watch) == 0);
	assert(!is_left(watch, &card));
	card.condition.trips = 0; /* firmware that starts does not know yet */
	assert(!is_left(watch, &card));
	card.condition.trips = 1;
	assert(!is_left(watch, &card));
	card.condition.trips = 2;
	assert(is_left(watch, &card));
	card_watch_free(watch);
}

UNIT(a_card_that_was_registered_again_was_removed)
{
	struct snapshot_card card = whole;
	struct card_watch *watch;

	card.folder = 70;
	assert(card_watch_new(&watch) == 0);
	assert(!is_left(watch, &card));
	card.folder = 0; /* not known, as to another reader */
	assert(!is_left(watch, &card));
	card.folder = 70;
	assert(!is_left(watch, &card));
	card.folder = 71;
	assert(is_left(watch, &card));
	card_watch_free(watch);
}

/* Of two threads the one that read first may be the second to tell. */
UNIT(a_reading_that_overlaps_the_last_one_shows_no_reset)
{
	struct snapshot_card card = whole;
	struct card_watch *watch;

	card.condition.has_heartbeat = true;
	card.condition.heartbeat = 5000;
	assert(card_watch_new(&watch) == 0);
	assert(!is_left(watch, &card));
	lateness_ns = 2 * NS_PER_S; /* it began before that one was applied */
	card.condition.heartbeat = 4999;
	assert(!is_left(watch, &card));
	lateness_ns = 0;
	card.condition.heartbeat = 5001;
	assert(!is_left(watch, &card)); /* and is not what the next is compared with */
	card.condition.heartbeat = 5000;
	assert(is_left(watch, &card));
	card_watch_free(watch);
}

UNIT(who_takes_memory_after_a_reset_has_it)
{
	struct snapshot_card card = whole;
	struct card_watch *watch;

	card.condition.has_heartbeat = true;
	card.condition.heartbeat = 5000;
	assert(card_watch_new(&watch) == 0);
	expect(watch, &card, 0, SNAPSHOT_PRESENT, false); /* nobody held anything */
	card.condition.heartbeat = 1;
	expect(watch, &card, 4096, SNAPSHOT_PRESENT, false);
	card_watch_free(watch);
}

UNIT(one_without_a_bus_address_is_known_by_its_number)
{
	struct snapshot_card card = whole, empty = resetting;
	struct card_watch *watch;
	struct snapshot *snapshot;

	card.bus = empty.bus = NULL;
	card.number = empty.number = 3;
	assert(card_watch_new(&watch) == 0);
	snapshot_free(look(watch, 1, &card, 0));
	snapshot = look(watch, 2, &empty, 0);
	assert(snapshot->devices[0].unique_id == CHIP && !snapshot->devices[0].bus);
	snapshot_free(snapshot);
	card_watch_free(watch);
}
