/* SPDX-License-Identifier: Apache-2.0 */

/* Nobody takes all of the queue. */

#include "web/server/moment-turns.h"

#include "base/testing/unit.h"

UNIT(a_user_has_so_many_turns_and_others_have_theirs)
{
	struct moment_turns turns = {0};

	for (uint32_t i = 0; i < MOMENT_TURNS_USER_MAX; i++)
		assert(moment_turns_take(&turns, 1));
	assert(!moment_turns_take(&turns, 1));
	assert(moment_turns_take(&turns, 2));
	moment_turns_leave(&turns, 1);
	assert(moment_turns_take(&turns, 1));
	assert(!moment_turns_take(&turns, 1));
}

UNIT(there_are_so_many_users_and_who_has_nothing_left_is_none)
{
	struct moment_turns turns = {0};

	for (uint32_t user = 0; user < MOMENT_TURNS_USERS_MAX; user++)
		assert(moment_turns_take(&turns, user));
	assert(!moment_turns_take(&turns, MOMENT_TURNS_USERS_MAX));
	assert(moment_turns_take(&turns, 0));
	moment_turns_leave(&turns, 5);
	assert(moment_turns_take(&turns, MOMENT_TURNS_USERS_MAX));
	moment_turns_leave(&turns, 5); /* has none */
	assert(turns.count == MOMENT_TURNS_USERS_MAX);
}
