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

#define CONNECTION_LIMITS_VISITS_MAX 256u
#define CONNECTION_LIMITS_CROWD \
	(CONNECTION_LIMITS_VISITS_MAX * 3 / 4) /* from then on it is crowded */
#define CONNECTION_LIMITS_REQUEST_S 10u        /* for a request to be complete */
#define CONNECTION_LIMITS_REQUEST_CROWD_S 1u
#define CONNECTION_LIMITS_ANSWER_S 60u /* for an answer to be read */
#define CONNECTION_LIMITS_ANSWER_CROWD_S 10u

struct connection_limits;

enum connection_limits_state {
	CONNECTION_LIMITS_ASKING,    /* its request is not complete */
	CONNECTION_LIMITS_WAITING,   /* for our answer: takes what it takes */
	CONNECTION_LIMITS_READING,   /* the answer */
	CONNECTION_LIMITS_LISTENING, /* to the stream: no end */
};

struct connection_limits_visit;

/* @answer_ms: for an answer to be read; 0 = CONNECTION_LIMITS_ANSWER_S. */
int connection_limits_new(struct connection_limits **ret_door, uint32_t answer_ms);
struct connection_limits *connection_limits_free(struct connection_limits *connection_limits);

/* A connection begins and ends; @fd stays the HTTP library's. NULL: no memory. */
struct connection_limits_visit *connection_limits_enter(struct connection_limits *connection_limits,
							int fd);
void connection_limits_leave(struct connection_limits_visit *visit);

/* Time starts again with each state. */
void connection_limits_set(struct connection_limits_visit *visit,
			   enum connection_limits_state state);

/* Ends a connection from any thread; whoever serves the socket then finds it broken. */
void connection_limits_throw_out(struct connection_limits_visit *visit);

/* Whether the other side has closed it: one that waits for us is not looked at by the HTTP library. */
bool connection_limits_has_left(struct connection_limits_visit *visit);

/* Connections that were ended because they took too long. */
uint64_t connection_limits_thrown_out(struct connection_limits *connection_limits);
