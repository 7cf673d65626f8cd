/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What each user holds on each device: the processes of a snapshot, added up. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/amount.h"
#include "model/types.h"

struct filter;
struct snapshot;

struct by_user_row {
	const char *user;
	uint32_t user_id;
	uint32_t device;  /* its row in the snapshot */
	size_t processes; /* of the user, on the device */
	size_t untracked; /* of them: their memory is not known */
	struct snapshot_memory memory[BOOK_TYPES];
	uint64_t total; /* of the user on all devices: the order */
};

struct by_user {
	struct by_user_row *rows; /* who holds the most first, then by device */
	size_t count, capacity;
};

#define BY_USER_NULL ((struct by_user){.rows = NULL})

/* @ended: exited processes too. The caller deinits the list in any case. 0 or -ENOMEM. */
int by_user_add(struct by_user *list, const struct snapshot *snapshot, const struct filter *filter,
		bool ended);
void by_user_deinit(struct by_user *list);

/* Of one kind of memory as users count it; see amount.h. */
struct snapshot_memory by_user_amount(const struct by_user_row *row, uint32_t folded);
