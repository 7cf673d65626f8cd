/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The daemon's end of the process that looks into ELF files. All of it runs in the thread for symbols and
 * waits there, for the process or until it is told to stop.
 */

#include <stdint.h>

#include "base/child.h"
#include "daemon/symbols-wire.h"
#include "daemon/symbols.h"

struct symbols_worker {
	const struct symbols_config *config;
	struct loop *loop; /* never turned: a child needs one */
	struct child child;
	int socket;  /* -1 = there is no process */
	int stop_fd; /* the owner's: readable when nothing is to be waited for any more */
	uint32_t user;
	uint32_t served;
	uint64_t serial;
	uint64_t starts[SYMBOLS_STARTS_MAX]; /* when the last ones were */
	uint64_t started, lost;              /* atomic */
};

/* @config must stay. 0 or a negative errno. */
int symbols_worker_init(struct symbols_worker *worker, const struct symbols_config *config,
			int stop_fd);
void symbols_worker_deinit(struct symbols_worker *worker);

/*
 * Asks what is at @address of a file for @user. 0; -EBUSY if too many processes were started of late;
 * -ETIMEDOUT, -EPIPE, -EBADMSG: that file has cost us the process; -ECANCELED: to be stopped; or another
 * negative errno.
 */
int symbols_worker_ask(struct symbols_worker *worker, uint32_t user, uint64_t address,
		       const int files[SYMBOLS_WIRE_FILES], struct symbols_wire_answer *ret_answer);

/* Ends the process, if there is one. */
void symbols_worker_end(struct symbols_worker *worker);
