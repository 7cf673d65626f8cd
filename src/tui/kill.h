/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Ending a process: it is asked for, confirmed, sent, and the user is told what became of it. The model
 * only keeps where this stands; tui.c sends the signal.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/process-id.h"

struct model;

#define KILL_NAME_SIZE 96
#define KILL_PATIENCE_NS UINT64_C(5000000000) /* then the user is told that it is still there */

struct kill_state {
	bool wants; /* a request to tui.c: send @signal; 0 only asks whether that is permitted */
	bool asks;  /* the next key is the answer */
	bool waits; /* a signal was sent; has it ended? */
	struct process_id process;
	int signal;
	uint64_t sent_ns;          /* CLOCK_MONOTONIC */
	char name[KILL_NAME_SIZE]; /* "python[1234] of ann"; any text */
};

/* The user wants to end the selected process. */
void kill_request(struct model *model);

/* What sending the signal came to: 0 or a negative errno. */
void kill_result(struct model *model, int result);

/* The answer to the question. */
void kill_answer(struct model *model, uint32_t key);

/* Tells whether the process has ended, once there are new totals. */
void kill_watch(struct model *model);
