/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The open connections, and how long they may take. The HTTP library ends idle connections, but one
 * that moves a byte every few seconds would stay forever. So each visit has a deadline for its
 * request and then for its answer. When few places are left, deadlines are much shorter for clients
 * that have not sent a request yet or read too slowly.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/quota.h"

#define CONNECTION_LIMITS_CROWD (CONNECTION_LIMITS_VISITS_MAX * 3 / 8) /* crowded from here on */
#define CONNECTION_LIMITS_REQUEST_S 10u /* until a request is complete */
#define CONNECTION_LIMITS_REQUEST_CROWD_S 1u
#define CONNECTION_LIMITS_ANSWER_S 60u /* until an answer is read */
#define CONNECTION_LIMITS_ANSWER_CROWD_S 10u

struct connection_limits;

enum connection_limits_state {
	CONNECTION_LIMITS_ASKING,    /* the request is not complete */
	CONNECTION_LIMITS_WAITING,   /* for our answer: no limit */
	CONNECTION_LIMITS_READING,   /* reads the answer */
	CONNECTION_LIMITS_LISTENING, /* subscribed to the stream: no limit */
};

struct connection_limits_visit;

/* @answer_ms: until an answer is read; 0 = CONNECTION_LIMITS_ANSWER_S. */
int connection_limits_new(struct connection_limits **ret_limits, uint32_t answer_ms);
struct connection_limits *connection_limits_free(struct connection_limits *connection_limits);

/* Called when a connection begins and ends; the HTTP library keeps @fd. NULL: no memory. */
struct connection_limits_visit *connection_limits_enter(struct connection_limits *connection_limits,
							int fd);
void connection_limits_leave(struct connection_limits_visit *visit);

/* Restarts the time limit. */
void connection_limits_set(struct connection_limits_visit *visit,
			   enum connection_limits_state state);

/* Ends a connection from any thread; the thread that serves the socket then finds it broken. */
void connection_limits_throw_out(struct connection_limits_visit *visit);

/* Whether the peer has closed it: the HTTP library does not watch a suspended connection. */
bool connection_limits_has_left(struct connection_limits_visit *visit);

/* Connections that were ended because they took too long. */
uint64_t connection_limits_thrown_out(struct connection_limits *connection_limits);
