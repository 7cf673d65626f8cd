/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The peak of each device while the daemon has been running. A book knows the peak of its process,
 * but not that of two processes together, and a region knows none. So the largest figure of all
 * snapshots counts, and it stays when a process exits.
 */

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"

struct peaks_device;
struct snapshot;

#define PEAKS_MAX 4096u /* devices; any beyond it have only the peaks in their snapshots */
#define PEAKS_KEEP_NS (60 * NS_PER_S) /* that one not seen for so long may make room for another */

struct peaks {
	pthread_mutex_t lock; /* held only briefly */
	struct peaks_device *devices;
	size_t count, capacity;
};

void peaks_init(struct peaks *peaks);
void peaks_deinit(struct peaks *peaks);

/* Updates the peaks from a finished snapshot and writes them into it. From any thread. */
void peaks_apply(struct peaks *peaks, struct snapshot *snapshot);
