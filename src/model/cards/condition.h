/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How a card does: its state in words, sensors beyond their limits, and whose memory is from before
 * a reset.
 */

#include <stdbool.h>
#include <stdint.h>

#include "model/snapshot.h"

/* As documents have it; NULL = not known. */
const char *condition_state(uint32_t state);

/* As people read it, "in reset"; NULL for a card that is simply there, or of which nothing is known. */
const char *condition_words(uint32_t state);

/* Whether the sensor has a value, a limit, and the value is beyond it. */
bool condition_is_over(const struct snapshot_device *device, enum snapshot_sensor sensor);

/* In reset or gone: what processes show of it is no longer there. */
bool condition_is_away(uint32_t state);

/* Before devices are merged: marks the parts in snapshot->left, and those on cards that are away. */
void condition_mark_left(struct snapshot *snapshot);

/* After that: the state of devices that no card stands for, and notes on what is not as usual. */
void condition_finish(struct snapshot *snapshot);
