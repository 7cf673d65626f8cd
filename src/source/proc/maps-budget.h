/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How much of lists of mappings is read. Anybody can start processes with lists of many megabytes
 * and name them in a region, so each user has a share: what one user's processes cost is not taken
 * from another's. One budget is for one snapshot, or one search for books.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/bits.h"
#include "base/quota.h"

#define MAPS_BUDGET_ONE (2u << 20)   /* bytes of one process's list */
#define MAPS_BUDGET_SHARE (8u << 20) /* bytes for one key */
#define MAPS_BUDGET_ALL (128u << 20) /* bytes for all */
#define MAPS_BUDGET_KEYS 512u        /* further ones get nothing */

#define MAPS_BUDGET                                \
	((struct quota){.total = MAPS_BUDGET_ALL,  \
			.each = MAPS_BUDGET_SHARE, \
			.users_max = MAPS_BUDGET_KEYS})

/* Whose share: that of a process's user, for a file of @owner. */
static inline uint64_t maps_budget_key(uint32_t user, uint32_t owner)
{
	return (uint64_t)owner << 32 | user;
}

/* How many bytes of one list may be read now; 0 = none. What was read is then added: quota_add(). */
static inline size_t maps_budget_left(const struct quota *budget, uint64_t key)
{
	return bits_min(quota_room(budget, key), MAPS_BUDGET_ONE);
}
