/* SPDX-License-Identifier: Apache-2.0 */

/* Users who wait for something; there are few of them. */

#include "web/server/moment-turns.h"

static struct moment_turns_user *moment_turns_find(struct moment_turns *turns, uint32_t user)
{
	for (size_t i = 0; i < turns->count; i++) {
		if (turns->list[i].user == user)
			return &turns->list[i];
	}
	return NULL;
}

bool moment_turns_take(struct moment_turns *turns, uint32_t user)
{
	struct moment_turns_user *one = moment_turns_find(turns, user);

	if (!one) {
		if (turns->count == MOMENT_TURNS_USERS_MAX)
			return false;
		one = &turns->list[turns->count++];
		*one = (struct moment_turns_user){.user = user};
	}
	if (one->count == MOMENT_TURNS_USER_MAX)
		return false;
	one->count++;
	return true;
}

void moment_turns_leave(struct moment_turns *turns, uint32_t user)
{
	struct moment_turns_user *one = moment_turns_find(turns, user);

	if (one && --one->count == 0)
		*one = turns->list[--turns->count];
}
