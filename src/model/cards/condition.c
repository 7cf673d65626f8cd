/* SPDX-License-Identifier: Apache-2.0 */

/* Conditions of cards. */

#include "model/cards/condition.h"

#include <inttypes.h>
#include <stddef.h>

#include "base/bits.h"
#include "model/amount.h"

const char *condition_state(uint32_t state)
{
	static const char *const names[] = {
		[SNAPSHOT_PRESENT] = "present",
		[SNAPSHOT_IN_RESET] = "in_reset",
		[SNAPSHOT_NOT_ANSWERING] = "not_answering",
		[SNAPSHOT_GONE] = "gone",
	};

	return state < ARRAY_SIZE(names) ? names[state] : NULL;
}

const char *condition_words(uint32_t state)
{
	static const char *const words[] = {
		[SNAPSHOT_IN_RESET] = "in reset",
		[SNAPSHOT_NOT_ANSWERING] = "not answering",
		[SNAPSHOT_GONE] = "gone",
	};

	return state < ARRAY_SIZE(words) ? words[state] : NULL;
}

bool condition_is_over(const struct snapshot_device *device, enum snapshot_sensor sensor)
{
	const struct snapshot_telemetry *limits = &device->condition.limits;
	uint32_t bit = UINT32_C(1) << sensor;

	return device->telemetry.known & limits->known & bit &&
	       device->telemetry.value[sensor] > limits->value[sensor];
}

bool condition_is_away(uint32_t state)
{
	return state == SNAPSHOT_IN_RESET || state == SNAPSHOT_GONE;
}

/*
 * Nobody can take memory of a card that is away: it is from before, even if nobody saw that. A number
 * alone is no reason to call memory lost.
 */
static void condition_mark_away(const struct snapshot *snapshot, struct snapshot_process *process)
{
	for (size_t i = 0; process->alive && i < process->part_count; i++) {
		struct snapshot_part *part = &process->parts[i];

		if (part->card < snapshot->card_count && part->joined < SNAPSHOT_JOINED_NUMBER &&
		    condition_is_away(snapshot->cards[part->card].condition.state) &&
		    amount_of_part(part, AMOUNT_ALL).used)
			part->before_reset = true;
	}
}

void condition_mark_left(struct snapshot *snapshot)
{
	for (size_t i = 0; snapshot->card_count && i < snapshot->process_count; i++)
		condition_mark_away(snapshot, &snapshot->processes[i]);
	for (size_t i = 0; i < snapshot->left_count; i++) {
		const struct snapshot_left *left = &snapshot->left[i];
		struct snapshot_search search = {.pid = left->process.pid};
		struct snapshot_process *process;

		while ((process = snapshot_next_process(snapshot, &search))) {
			if (!process->alive || !process_id_equal(process->id, left->process))
				continue;
			for (size_t k = 0; k < process->part_count; k++) {
				const struct snapshot_part *part = &process->parts[k];

				if (!part->summed &&
				    (left->node == UINT32_MAX || part->device == left->device))
					process->parts[k].before_reset = true;
			}
		}
	}
}

void condition_finish(struct snapshot *snapshot)
{
	uint32_t left = 0;

	for (size_t i = 0; i < snapshot->device_count; i++) {
		struct snapshot_device *device = &snapshot->devices[i];
		struct snapshot_condition *condition = &device->condition;

		left += device->before_reset;
		/* Whoever has it had it from a card that was removed, and no card is it now. */
		if (condition->state == SNAPSHOT_STATE_UNKNOWN && device->before_reset &&
		    !device->processes)
			condition->state = SNAPSHOT_GONE;
		if (condition_words(condition->state))
			snapshot_note(snapshot, "device %" PRIu32 " is %s", device->device,
				      condition_words(condition->state));
		if (condition->ended)
			snapshot_note(snapshot,
				      "device %" PRIu32 " was opened by a process that has ended; "
				      "who inherited the node from it still has it open",
				      device->device);
		if (condition->outside)
			snapshot_note(snapshot,
				      "device %" PRIu32 " is opened by a process outside this pid "
				      "namespace, of which nothing can be seen from here",
				      device->device);
	}
	if (left)
		snapshot_note(snapshot,
			      "stale after reset (marked \"reset\"): what a process held when its "
			      "card was reset or removed is not counted on the card that is there "
			      "now");
}
