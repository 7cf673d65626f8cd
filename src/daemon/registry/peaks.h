/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The most that each device ever held while the daemon ran. A book knows the peak of its process, but not
 * that of two processes together, and a region knows none; so the largest figure of all snapshots counts,
 * and a process that ends takes nothing of it away.
 */

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

struct peaks_device;
struct snapshot;

#define PEAKS_MAX 4096u /* devices; those beyond it have only the peaks that their snapshots tell */

struct peaks {
	pthread_mutex_t lock; /* held for moments only */
	struct peaks_device *devices;
	size_t count, capacity;
};

void peaks_init(struct peaks *peaks);
void peaks_deinit(struct peaks *peaks);

/* Learns from a finished snapshot and puts the peaks into it. From any thread. */
void peaks_apply(struct peaks *peaks, struct snapshot *snapshot);
