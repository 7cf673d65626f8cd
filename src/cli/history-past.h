/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the daemon has recorded about an address: buffers left by ended processes, and incidents. */

#include <stdbool.h>
#include <stdint.h>

struct query;
struct daemon_client;
struct snapshot;

/* Rows of the leaks and of the incidents document, each a JSON array. */
struct history_past {
	char *leaks;
	char *incidents;
};

/*
 * Without a daemon that remembers anything both lists are NULL. If it should but does not tell, or
 * not all, @snapshot gets a note and is no longer exact. 0 or a negative errno.
 */
int history_past_ask(struct daemon_client *remote, const struct query *query,
		     struct snapshot *snapshot, struct history_past *ret_past);
void history_past_deinit(struct history_past *past);

/*
 * Prints it as text, without the incidents of live processes, which their books report. Return:
 * whether anything was printed.
 */
bool history_past_print(const struct history_past *past, const struct snapshot *snapshot);
