/* SPDX-License-Identifier: Apache-2.0 */

/* Lists without an end pointer: a user has at most NATIVE_USER_CONNECTIONS_MAX questions. */

#include "daemon/native/native-user.h"

#include <stdlib.h>

struct native_user *native_user_get(struct native_user **users, uint32_t uid)
{
	struct native_user *user = *users;

	while (user && user->uid != uid)
		user = user->next;
	if (user)
		return user;
	user = calloc(1, sizeof(*user));
	if (!user)
		return NULL;
	user->uid = uid;
	user->next = *users;
	*users = user;
	return user;
}

void native_user_put(struct native_user **users, struct native_user *user)
{
	struct native_user **place = users;

	if (user->connections > 0)
		return;
	while (*place != user)
		place = &(*place)->next;
	*place = user->next;
	free(user);
}

void native_user_wait(struct native_user *user, struct native_turn *turn)
{
	struct native_turn **place = &user->waiting;

	while (*place)
		place = &(*place)->next;
	*turn = (struct native_turn){.is_waiting = true};
	*place = turn;
}

void native_user_leave(struct native_user *user, struct native_turn *turn)
{
	struct native_turn **place = &user->waiting;

	if (!turn->is_waiting)
		return;
	while (*place != turn)
		place = &(*place)->next;
	*place = turn->next;
	turn->is_waiting = false;
}

struct native_turn *native_user_next(struct native_user *user)
{
	struct native_turn *turn = user->waiting;

	if (!turn || user->at_work == NATIVE_USER_QUESTIONS_MAX)
		return NULL;
	native_user_leave(user, turn);
	user->at_work++;
	return turn;
}
