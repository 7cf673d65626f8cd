/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The full-screen view, from start to quit. */

#include <stdbool.h>
#include <stdint.h>

#include "base/process-id.h"
#include "model/filter.h"
#include "tui/poller.h"

struct model_recording;

struct tui_options {
	uint32_t refresh_ms;
	struct filter filter; /* devices */
	bool all;             /* include closed devices and ended processes */
	bool ascii;           /* even if the terminal could show more */
	bool colours;
	const struct model_recording *recording; /* NULL = this machine, now */
	uint64_t at_ns;                          /* the first moment of it */
	bool (*is_stopped)(void);                /* a signal asks to end */
	void *context;                           /* of those below */
	/* Sends a signal to the process that started then, or asks whether it may (0). Negative errno. */
	int (*send)(void *context, struct process_id process, int signal);
	uint32_t (*parent_of)(void *context, uint32_t pid); /* its parent; 0 = none */
};

/*
 * Runs until the user quits. @feeds: for totals and for details; they are consumed in any case. 0,
 * a terminal_outcome, or a negative errno.
 */
int tui_run(const struct tui_options *options, const struct poller_feed feeds[2]);
