/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the daemon has recorded about an address: buffers left by ended processes, and incidents. */

#include <stdbool.h>
#include <stdint.h>

#include "base/pool.h"

struct daemon_client;
struct history_past;
struct json_t;
struct query;
struct snapshot;

struct history_daemon {
	const struct history_past *past; /* NULL = there is no daemon that remembers anything */

	/* Private. */
	struct json_t *document; /* owned; has the texts of the rows */
	struct pool rows;
};

/*
 * If a daemon should tell but does not, or not all, @snapshot gets a note and is no longer exact. 0 or a negative
 * errno.
 */
int history_daemon_ask(struct daemon_client *remote, const struct query *query,
		       struct snapshot *snapshot, struct history_daemon *ret_daemon);
void history_daemon_deinit(struct history_daemon *daemon);

/*
 * Prints it as text, without the incidents of live processes, which their books report. Return:
 * whether anything was printed.
 */
bool history_daemon_print(const struct history_past *past, const struct snapshot *snapshot,
			  uint64_t address, bool stacks);
