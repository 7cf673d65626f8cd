/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The processes that read files. Reopening a file for each request would take too long, so a
 * process keeps a few open; with many files, or files of several users, there can be several
 * processes.
 */

#include <stdint.h>

#include "symbol/symbolizer-cache.h"
#include "symbol/symbolizer-worker.h"

struct symbolizer_pool {
	const struct symbolizer_config *config;
	struct symbolizer_worker workers[SYMBOLIZER_PROCESSES_MAX];
	uint64_t asked;
};

/* @config must outlive the pool. */
void symbolizer_pool_init(struct symbolizer_pool *pool, const struct symbolizer_config *config);

/* Like symbolizer_worker_ask(), with the best process for the request. */
int symbolizer_pool_ask(struct symbolizer_pool *pool, const struct symbolizer_key *key,
			const int files[SYMBOLIZER_WIRE_FILES],
			struct symbolizer_wire_answer *ret_answer);

/* Ends all processes. */
void symbolizer_pool_end(struct symbolizer_pool *pool);

/* Adds to the counts. Any thread may call this. */
void symbolizer_pool_count(const struct symbolizer_pool *pool,
			   struct symbolizer_counts *ret_counts);
