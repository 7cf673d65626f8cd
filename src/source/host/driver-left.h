/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Processes that still have a node open which the driver has removed: the name of their descriptor
 * ends in " (deleted)". Their card may be back, but not for them. Nodes are in /dev, or in
 * TTMEM_DEV_ROOT (for tests).
 */

#include <stddef.h>
#include <stdint.h>

struct pid_cache;
struct snapshot;

#define DRIVER_LEFT_MAX 64u /* processes whose descriptors are looked at in one reading */

/* Pids of openers of the nodes that are there. */
struct driver_openers {
	uint32_t *pids;
	size_t count, capacity;
};

/* 0 or -ENOMEM. */
int driver_left_note_openers(struct driver_openers *openers, const uint32_t *pids, size_t count);

/*
 * Looks at the processes in @snapshot and in its claims that have memory of a device and are none
 * of the openers: usually there is none. 0 or -ENOMEM.
 */
int driver_left_collect(struct pid_cache *pid_cache, struct driver_openers *openers,
			struct snapshot *snapshot);
