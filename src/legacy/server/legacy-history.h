/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What happened to each buffer, for "--log-history": the lines that only allocation_server_enhanced
 * printed. Memory is bounded, for each user and by the number of users, and no user's events make those of
 * another one be forgotten; only if there are more users than that, the one goes who has been quiet for
 * longest. A buffer is a process, a device, a type and an address.
 *
 * May be used by several threads.
 */

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "answers/seed-lines.h"

#define LEGACY_HISTORY_USERS 16u      /* each takes up to 11 MB */
#define LEGACY_HISTORY_BUFFERS 65536u /* of a user; the one that came first goes first */
#define LEGACY_HISTORY_EVENTS 262144u /* of a user */
#define LEGACY_HISTORY_SHOWN 5u /* events of a buffer in a line's company, as in the old server */

/* The lines of one event: its own, and those of the buffer's history. */
#define LEGACY_HISTORY_SIZE (SEED_LINES_SIZE * 3)

struct legacy_history;

struct legacy_history_key {
	uint32_t uid; /* who made the process's book */
	uint32_t pid;
	uint32_t device;
	uint32_t type;
	uint64_t address;
};

/* NULL: no memory. */
struct legacy_history *legacy_history_new(void);
struct legacy_history *legacy_history_free(struct legacy_history *history);

/* Adds the event and writes its lines. @history may be NULL: then as seed_lines_event(). */
size_t legacy_history_event(struct legacy_history *history, const struct seed_lines_event *event,
			    char ret_text[LEGACY_HISTORY_SIZE]);

/* The last events of a buffer, below its line in the dump; nothing if none is known. */
void legacy_history_put(struct legacy_history *history, FILE *out,
			const struct legacy_history_key *key);

/* How many buffers were freed when they were free already; @history may be NULL. */
size_t legacy_history_double_freed(struct legacy_history *history);
/* A list of them, with all events that are known. */
void legacy_history_put_double_freed(struct legacy_history *history, FILE *out);
