/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The daemon's side of the process that reads ELF files: waits for an answer or until told to stop.
 */

#include <stdint.h>

#include "base/process/child.h"
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
	uint64_t starts[SYMBOLIZER_STARTS_MAX]; /* when the last processes were started */
	uint64_t started, lost;                 /* atomic */

	/* Managed by the pool; empty once the process has ended. */
	struct symbolizer_file files[SYMBOLIZER_FILES];
	size_t next_file;
	uint64_t used; /* the number of its last request, counted by the pool */
};

/* @config must outlive the worker. */
void symbolizer_worker_init(struct symbolizer_worker *worker,
			    const struct symbolizer_config *config);

/*
 * Sends a request on behalf of @user; the caller fills in the kind of @request and what belongs to
 * it. 0; -EBUSY if too many processes were started recently; -ETIMEDOUT, -EPIPE, -EBADMSG: the
 * process was lost on this file; -ECANCELED: told to stop; or another negative errno.
 */
int symbolizer_worker_ask(struct symbolizer_worker *worker, uint32_t user,
			  struct symbolizer_wire_request *request,
			  const int files[SYMBOLIZER_WIRE_FILES],
			  struct symbolizer_wire_answer *ret_answer);

/* Ends the process, if there is one. */
void symbolizer_worker_end(struct symbolizer_worker *worker);
