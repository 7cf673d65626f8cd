/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How much of something that all users share one of them may have: no more than is then left for
 * all others. So one user alone gets half, as in the kernel module; the next one half of the rest,
 * and so on: however many users take all they can, there is something left for the next one.
 */

#include <stdint.h>

/* How much more a user may take who has @own, of @total, of which all users together have @used. */
static inline uint64_t share_room(uint64_t total, uint64_t used, uint64_t own)
{
	uint64_t rest = total > used ? total - used : 0;

	return rest > own ? (rest - own) / 2 : 0;
}
