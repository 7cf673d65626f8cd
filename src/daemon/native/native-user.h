/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The users of the native socket: what each has of what all share, and whose questions wait. The worker
 * answers one question after the other, and some take long. So its queue has only a few of each user, and
 * a user with many questions keeps others waiting no longer than one with few. For the loop's thread.
 */

#include <stdbool.h>
#include <stdint.h>

/*
 * Of a user, in the worker's queue: the one that it answers, and the next, so that it need not wait for
 * the loop.
 */
#define NATIVE_USER_QUESTIONS_MAX 2u

/* A question that may have to wait; embedded. */
struct native_turn {
	struct native_turn *next;
	bool is_waiting;
};

struct native_user {
	struct native_user *next;
	uint32_t uid;
	uint32_t connections;
	uint32_t at_work;            /* questions in the worker's queue */
	struct native_turn *waiting; /* for these, the oldest first */
	uint64_t held;               /* atomic: bytes of answers */
};

/* The user in the list at @users, added if need be; NULL: no memory. */
struct native_user *native_user_get(struct native_user **users, uint32_t uid);

/* Frees a user without connections. */
void native_user_put(struct native_user **users, struct native_user *user);

/* Waits behind the user's others. */
void native_user_wait(struct native_user *user, struct native_turn *turn);

/* Waits no longer; nothing if it does not. */
void native_user_leave(struct native_user *user, struct native_turn *turn);

/* Takes the oldest question that may go into the worker's queue, and counts it there; NULL: none may. */
struct native_turn *native_user_next(struct native_user *user);
