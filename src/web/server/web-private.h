/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the parts of the server share; nobody else includes this. */

#include <stdbool.h>
#include <stdint.h>

#include "web/server/address.h"
#include "web/server/auth.h"
#include "web/server/body.h"
#include "web/server/web.h"

struct MHD_Daemon;
struct connection_limits;
struct worker;
struct stream;

struct web {
	/* Constant while it runs. */
	struct web_provider provider;
	uint32_t metrics_processes;
	struct auth auth;
	bool is_private;
	char address[ADDRESS_TEXT_SIZE];
	struct MHD_Daemon *server;
	struct connection_limits *connection_limits;
	struct accept_queue *accept_queue;
	struct worker *totals;  /* its thread takes totals and feeds the stream */
	struct worker *details; /* for everything that takes longer */
	struct worker *fleet;   /* waits for other machines; NULL = there is no fleet */
	struct stream *stream;

	/*
	 * Unanswered requests for moments of the past, or for details of the user's own processes. Each may
	 * take long, and all wait in one queue. Private to the thread that serves the sockets.
	 */
	struct quota moments;
	struct body_purse purse;
	bool closing;        /* atomic */
	uint64_t answers[6]; /* atomic; by the first digit of the status */

	/* Private to the thread of totals: */
	struct snapshot *shared; /* for requests older than its start; NULL = none */
	uint64_t shared_ns;      /* when it was started, CLOCK_MONOTONIC */
	uint64_t shared_took_ns;
	struct tally *told; /* counters as last reported */
	struct health *health;
};
