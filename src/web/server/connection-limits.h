/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Who is connected, and how long that may take. The HTTP library ends connections on which nothing
 * moves; one that moves a byte every few seconds would hold its place for ever. So each visit has a
 * time by which its request, and then its answer, must be through. When few places are left, those who
 * have not asked for anything yet, or read too slowly, make room much sooner.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DOOR_VISITS_MAX 256u
#define DOOR_CROWD (DOOR_VISITS_MAX * 3 / 4) /* from then on it is crowded */
#define DOOR_REQUEST_S 10u                   /* for a request to be complete */
#define DOOR_REQUEST_CROWD_S 1u
#define DOOR_ANSWER_S 60u /* for an answer to be read */
#define DOOR_ANSWER_CROWD_S 10u

struct door;

enum door_state {
	DOOR_ASKING,    /* its request is not complete */
	DOOR_WAITING,   /* for our answer: takes what it takes */
	DOOR_READING,   /* the answer */
	DOOR_LISTENING, /* to the stream: no end */
};

struct door_visit;

/* @answer_ms: for an answer to be read; 0 = DOOR_ANSWER_S. */
int door_new(struct door **ret_door, uint32_t answer_ms);
struct door *door_free(struct door *door);

/* A connection begins and ends; @fd stays the HTTP library's. NULL: no memory. */
struct door_visit *door_enter(struct door *door, int fd);
void door_leave(struct door_visit *visit);

/* Time starts again with each state. */
void door_set(struct door_visit *visit, enum door_state state);

/* Ends a connection from any thread; whoever serves the socket then finds it broken. */
void door_throw_out(struct door_visit *visit);

/* Whether the other side has closed it: one that waits for us is not looked at by the HTTP library. */
bool door_has_left(struct door_visit *visit);

/* Connections that were ended because they took too long. */
uint64_t door_thrown_out(struct door *door);
