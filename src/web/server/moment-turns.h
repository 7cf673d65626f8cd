/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How many moments of the past a user has asked for that are not answered yet; or details of that
 * user's own processes. Each may take long, and all wait in one queue: so nobody gets more than a part
 * of it. For one thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MOMENT_TURNS_USER_MAX 8u   /* what a page with two cursors asks for at once */
#define MOMENT_TURNS_USERS_MAX 32u /* who ask at a time */

struct moment_turns {
	struct moment_turns_user {
		uint32_t user;
		uint32_t count;
	} list[MOMENT_TURNS_USERS_MAX];
	size_t count;
};

/* False: the user has to wait for an answer first, or too many users ask. */
bool moment_turns_take(struct moment_turns *turns, uint32_t user);
void moment_turns_leave(struct moment_turns *turns, uint32_t user);
