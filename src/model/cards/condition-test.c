/* SPDX-License-Identifier: Apache-2.0 */

/* States in words, limits, and parts from before a reset. */

#include "model/cards/condition.h"

#include <string.h>

#include "base/bits.h"
#include "base/testing/unit.h"
#include "model/types.h"

#define CHIP 0xc1

static uint32_t add_process(struct snapshot *snapshot, uint32_t pid, uint64_t used)
{
	const struct snapshot_process who = {
		.id.pid = pid, .id.start_ticks = pid, .alive = true, .exact = true};
	struct snapshot_part *part;
	uint32_t index;

	assert(snapshot_add_process(snapshot, &who, &index) == 0);
	part = snapshot_part(snapshot, index, 0);
	assert(part);
	part->facts.unique_id = CHIP;
	part->memory[TYPES_DRAM].used = used;
	part->memory[TYPES_DRAM].buffers = 1;
	return index;
}

static void add_card(struct snapshot *snapshot, uint32_t state)
{
	const struct snapshot_card card = {
		.unique_id = CHIP, .card = "n150", .bus = "0000:01:00.0", .condition.state = state};

	assert(snapshot_add_card(snapshot, &card) == 0);
}

UNIT(every_state_has_a_name)
{
	assert(!condition_state(SNAPSHOT_STATE_UNKNOWN) && !condition_state(77));
	assert(strcmp(condition_state(SNAPSHOT_PRESENT), "present") == 0);
	assert(strcmp(condition_state(SNAPSHOT_IN_RESET), "in_reset") == 0);
	assert(strcmp(condition_state(SNAPSHOT_NOT_ANSWERING), "not_answering") == 0);
	assert(strcmp(condition_state(SNAPSHOT_GONE), "gone") == 0);
	assert(!condition_words(SNAPSHOT_PRESENT) && !condition_words(77));
	assert(strcmp(condition_words(SNAPSHOT_IN_RESET), "in reset") == 0);
}

UNIT(a_value_is_over_a_limit_only_if_both_are_known)
{
	struct snapshot_device device = {
		.telemetry.value[SNAPSHOT_POWER] = 301,
		.condition.limits.value[SNAPSHOT_POWER] = 300,
	};
	const uint32_t bit = 1u << SNAPSHOT_POWER;

	assert(!condition_is_over(&device, SNAPSHOT_POWER));
	device.telemetry.known = bit;
	assert(!condition_is_over(&device, SNAPSHOT_POWER));
	device.condition.limits.known = bit;
	assert(condition_is_over(&device, SNAPSHOT_POWER));
	assert(!condition_is_over(&device, SNAPSHOT_TEMPERATURE));
	device.telemetry.value[SNAPSHOT_POWER] = 300;
	assert(!condition_is_over(&device, SNAPSHOT_POWER));
}

UNIT(memory_from_before_a_reset_is_not_counted_on_the_card)
{
	const struct snapshot_left left = {.process.pid = 10, .process.start_ticks = 10};
	struct snapshot *snapshot = snapshot_new(1);

	assert(snapshot);
	add_card(snapshot, SNAPSHOT_PRESENT);
	add_process(snapshot, 10, 1000);
	add_process(snapshot, 11, 24);
	assert(snapshot_add_left(snapshot, &left) == 0);
	assert(snapshot_finish(snapshot) == 0);
	assert(snapshot->device_count == 1 && snapshot->devices[0].memory[TYPES_DRAM].used == 24);
	assert(snapshot->devices[0].processes == 1 && snapshot->devices[0].before_reset == 1);
	assert(snapshot->devices[0].condition.state == SNAPSHOT_PRESENT);
	assert(snapshot->processes[0].parts[0].before_reset);
	assert(snapshot->processes[0].parts[0].memory[TYPES_DRAM].used == 1000);
	assert(!snapshot->processes[1].parts[0].before_reset);
	assert(snapshot->note_count == 1 && strstr(snapshot->notes[0], "stale after reset"));
	snapshot_free(snapshot);
}

UNIT(memory_of_a_card_that_is_away_is_from_before)
{
	static const uint32_t states[] = {SNAPSHOT_PRESENT, SNAPSHOT_NOT_ANSWERING,
					  SNAPSHOT_IN_RESET, SNAPSHOT_GONE};

	for (size_t i = 0; i < ARRAY_SIZE(states); i++) {
		struct snapshot *snapshot = snapshot_new(1);

		assert(snapshot);
		add_card(snapshot, states[i]);
		add_process(snapshot, 10, 1000);
		add_process(snapshot, 11, 0);
		assert(snapshot_finish(snapshot) == 0 && snapshot->device_count == 1);
		assert(snapshot->processes[0].parts[0].before_reset == (i >= 2));
		assert(!snapshot->processes[1].parts[0].before_reset);
		assert(snapshot->devices[0].memory[TYPES_DRAM].used == (i >= 2 ? 0 : 1000));
		snapshot_free(snapshot);
	}
}

UNIT(a_number_alone_is_no_reason_to_call_memory_lost)
{
	const struct snapshot_card card = {.condition.state = SNAPSHOT_IN_RESET};
	struct snapshot *snapshot = snapshot_new(1);

	assert(snapshot && snapshot_add_card(snapshot, &card) == 0);
	add_process(snapshot, 10, 1000);
	snapshot->processes[0].parts[0].facts.unique_id = 0;
	assert(snapshot_finish(snapshot) == 0);
	assert(snapshot->processes[0].parts[0].joined == SNAPSHOT_JOINED_NUMBER);
	assert(!snapshot->processes[0].parts[0].before_reset);
	snapshot_free(snapshot);
}

UNIT(another_process_with_the_same_pid_is_not_marked)
{
	const struct snapshot_left left = {.process.pid = 10, .process.start_ticks = 9};
	const struct snapshot_left other = {
		.process.pid = 10, .process.start_ticks = 10, .device = 1};
	struct snapshot *snapshot = snapshot_new(1);

	assert(snapshot);
	add_process(snapshot, 10, 1000);
	assert(snapshot_add_left(snapshot, &left) == 0 && snapshot_add_left(snapshot, &other) == 0);
	assert(snapshot_finish(snapshot) == 0);
	assert(!snapshot->processes[0].parts[0].before_reset && snapshot->note_count == 0);
	snapshot_free(snapshot);
}

UNIT(a_device_that_only_holders_from_before_have_is_gone)
{
	const struct snapshot_left left = {
		.process.pid = 10, .process.start_ticks = 10, .device = UINT32_MAX};
	struct snapshot *snapshot = snapshot_new(1);

	assert(snapshot);
	add_process(snapshot, 10, 1000);
	assert(snapshot_add_left(snapshot, &left) == 0);
	assert(snapshot_finish(snapshot) == 0);
	assert(snapshot->devices[0].condition.state == SNAPSHOT_GONE);
	assert(!snapshot->devices[0].present && snapshot->note_count == 2);
	assert(strcmp(snapshot->notes[0], "device 0 is gone") == 0);
	snapshot_free(snapshot);
}

UNIT(a_gone_card_keeps_its_row)
{
	struct snapshot *snapshot = snapshot_new(1);

	assert(snapshot);
	add_card(snapshot, SNAPSHOT_GONE);
	add_process(snapshot, 10, 1000);
	assert(snapshot_finish(snapshot) == 0);
	assert(snapshot->device_count == 1 && !snapshot->devices[0].present);
	assert(snapshot->devices[0].condition.state == SNAPSHOT_GONE);
	assert(strcmp(snapshot->devices[0].card, "n150") == 0);
	snapshot_free(snapshot);
}

UNIT(a_card_opened_from_outside_is_not_free)
{
	const struct snapshot_card card = {.unique_id = CHIP,
					   .condition = {.state = SNAPSHOT_PRESENT, .outside = 2}};
	struct snapshot *snapshot = snapshot_new(1);

	assert(snapshot && snapshot_add_card(snapshot, &card) == 0);
	assert(snapshot_finish(snapshot) == 0);
	assert(!snapshot->devices[0].closed && snapshot->note_count == 1);
	assert(strstr(snapshot->notes[0], "outside this pid namespace"));
	snapshot_free(snapshot);
}
