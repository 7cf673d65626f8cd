/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Our end of the process that looks into ELF files: waits for it, or until it is told to stop.
 */

#include <stdint.h>

#include "base/child.h"
#include "symbol/symbolizer-wire.h"
#include "symbol/symbolizer.h"

/* A file that the process has open. */
struct symbolizer_file {
	uint64_t id; /* 0 = none */
	uint64_t size;
};

struct symbolizer_worker {
	const struct symbolizer_config *config;
	struct child child;
	int socket; /* -1 = there is no process */
	uint32_t user;
	uint32_t served;
	uint64_t serial;
	uint64_t starts[SYMBOLIZER_STARTS_MAX]; /* when the last ones were */
	uint64_t started, lost;                 /* atomic */

	/* The pool's; no files once the process is ended. */
	struct symbolizer_file files[SYMBOLIZER_FILES];
	size_t next_file;
	uint64_t used; /* the number of the last question */
};

/* @config must stay. */
void symbolizer_worker_init(struct symbolizer_worker *worker,
			    const struct symbolizer_config *config);

/*
 * Asks for @user; of @request kind and contents are the caller's. 0; -EBUSY if too many processes were started of late;
 * -ETIMEDOUT, -EPIPE, -EBADMSG: that file has cost us the process; -ECANCELED: to be stopped; or another
 * negative errno.
 */
int symbolizer_worker_ask(struct symbolizer_worker *worker, uint32_t user,
			  struct symbolizer_wire_request *request,
			  const int files[SYMBOLIZER_WIRE_FILES],
			  struct symbolizer_wire_answer *ret_answer);

/* Ends the process, if there is one. */
void symbolizer_worker_end(struct symbolizer_worker *worker);
