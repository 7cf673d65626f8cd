/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Which processes hold overlapping memory, for the notes of all snapshots. Finding them needs all
 * buffers, so the recorder does that when they have changed; snapshots that have only totals tell
 * what it found last.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/process-id.h"
#include "model/memory/overlap.h"

struct overlaps;
struct snapshot;

struct overlap_notes_pair {
	uint64_t device_uid; /* 0 = not known */
	uint32_t device;
	struct process_id first, second;
};

struct overlap_notes {
	pthread_mutex_t lock; /* held only briefly */
	struct overlap_notes_pair pairs[OVERLAP_PAIRS_MAX];
	size_t count;
	bool is_cut;
};

void overlap_notes_init(struct overlap_notes *notes);
void overlap_notes_deinit(struct overlap_notes *notes);

/* What was found in @snapshot; both NULL: there is nothing to compare any more. */
void overlap_notes_set(struct overlap_notes *notes, const struct snapshot *snapshot,
		       const struct overlaps *overlaps);

/* Adds the notes about processes that are still alive in a finished snapshot. From any thread. */
void overlap_notes_apply(struct overlap_notes *notes, struct snapshot *snapshot);
