/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The devices that a Device or MeshDevice of tt-metal stands for, by number. A mesh's buffer is told once
 * and lies on all of them. Asking tt-metal takes memory and time, so the answer is kept until something
 * is closed: from then on an object may be another one at the same address.
 */

#include <stdbool.h>
#include <stdint.h>

struct metal_names;

struct metal_target {
	const void *device;
	uint32_t references;
	uint32_t count;
	struct metal_target *next;
	bool is_current; /* not beside references: one load of both would wait for the last store */
	uint32_t ids[];
};

/* Takes a reference. NULL: it has to be asked. With the lock held. */
struct metal_target *metal_target_known(const void *device);

/* Takes a reference. NULL: out of memory, or refused. Without the lock. */
struct metal_target *metal_target_get(const struct metal_names *names, const void *device);

/* Whether both stand for a device. */
bool metal_target_shares(const struct metal_target *a, const struct metal_target *b);

/* With the lock held. */
void metal_target_put(struct metal_target *target);

/* Something is closed: all answers are old. With the lock held. */
void metal_target_expire(void);

/* In a forked child, with the lock held. */
void metal_target_forget(void);
