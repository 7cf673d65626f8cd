/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Processes that ended before they could be followed. Only the daemon knows of them, because it gets each book
 * when a process starts; where it runs, it is asked for those that have ended.
 */

#include <stdint.h>
#include <stdio.h>

struct daemon_client;
struct filter;

#define WATCH_UNSEEN_PIDS 4096u /* the last ones; a pid is not used again that soon */

struct watch_unseen {
	uint64_t since_ns; /* CLOCK_REALTIME: the watch began */
	uint64_t next_ns;  /* CLOCK_MONOTONIC: of the next question */
	uint64_t count;
	uint32_t pids[WATCH_UNSEEN_PIDS]; /* seen, or reported */
};

/* Its events are shown. */
void watch_unseen_add(struct watch_unseen *unseen, uint32_t pid);

/* The line about one of them. @comm: any text. */
void watch_unseen_put(FILE *out, uint32_t pid, const char *comm);

/* Asks, if it is time to, and reports on standard error. */
void watch_unseen_tell(struct watch_unseen *unseen, struct daemon_client *remote,
		       const struct filter *filter);
