/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The processes that read files. Rereading a file for each request would take too long, so a
 * process keeps a few open; whoever has many files, or files of several users, can have several processes.
 */

#include <stdint.h>

#include "symbol/symbolizer-cache.h"
#include "symbol/symbolizer-worker.h"

struct symbolizer_pool {
	const struct symbolizer_config *config;
	struct symbolizer_worker workers[SYMBOLIZER_PROCESSES_MAX];
	uint64_t asked;
};

/* @config must stay. */
void symbolizer_pool_init(struct symbolizer_pool *pool, const struct symbolizer_config *config);

/* As symbolizer_worker_ask(), by the process that suits best. */
int symbolizer_pool_ask(struct symbolizer_pool *pool, const struct symbolizer_key *key,
			const int files[SYMBOLIZER_WIRE_FILES],
			struct symbolizer_wire_answer *ret_answer);

/* Ends all processes. */
void symbolizer_pool_end(struct symbolizer_pool *pool);

/* Adds to the counts. From any thread. */
void symbolizer_pool_count(const struct symbolizer_pool *pool,
			   struct symbolizer_counts *ret_counts);
