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
	/* Never change while it runs. */
	struct web_provider provider;
	uint32_t metrics_processes;
	struct auth auth;
	char address[ADDRESS_TEXT_SIZE];
	struct MHD_Daemon *server;
	struct connection_limits *connection_limits;
	struct worker *totals;  /* its thread asks for totals, and feeds the stream */
	struct worker *details; /* for all that takes longer */
	struct stream *stream;

	struct body_purse purse;
	bool closing;        /* atomic */
	uint64_t answers[6]; /* atomic; by the first digit of their status */

	/* Of the thread of totals: */
	struct snapshot *shared; /* who came before it was begun may have it; NULL = none */
	uint64_t shared_ns;      /* when it was begun, CLOCK_MONOTONIC */
	uint64_t shared_took_ns;
	struct tally *told; /* counters as they were told last */
	struct web_health *health;
};
