/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How a question is answered: from memory, else by the process, first with the module and then, if that
 * has no debug information, together with the file that has. Runs in the thread for symbols only.
 */

#include <stdint.h>

#include "daemon/symbols-cache.h"
#include "daemon/symbols-open.h"
#include "daemon/symbols-worker.h"
#include "daemon/symbols.h"

#define SYMBOLS_LOOKUP_PAIRS 8u    /* files whose debug information stays open */
#define SYMBOLS_LOOKUP_BAD_MAX 64u /* files that cost us a process */
#define SYMBOLS_LOOKUP_BAD_S 60u   /* for so long they are not tried again */
#define SYMBOLS_LOOKUP_BAD_USER 4u /* so many of them, and their user's are not tried either */

/* A module and the file with its debug information. */
struct symbols_pair {
	struct symbols_identity module;
	uint32_t user;
	int debug; /* -1 = this place is free */
};

struct symbols_bad {
	struct symbols_identity module;
	uint32_t user;
	uint64_t until_ns;
};

struct symbols_lookup {
	const struct symbols_config *config;
	struct symbols_worker worker;
	struct symbols_cache cache;
	struct symbols_pair pairs[SYMBOLS_LOOKUP_PAIRS];
	size_t next_pair;
	struct symbols_bad bad[SYMBOLS_LOOKUP_BAD_MAX];
	size_t next_bad;
	uint64_t cached; /* atomic */
};

/* @config must stay. 0 or a negative errno. */
int symbols_lookup_init(struct symbols_lookup *lookup, const struct symbols_config *config,
			int stop_fd);
void symbols_lookup_deinit(struct symbols_lookup *lookup);

/* As symbols_resolve(). */
int symbols_lookup_find(struct symbols_lookup *lookup, const struct symbols_module *module,
			uint64_t address, struct symbols_answer *ret_answer);

/* Lets go of all but what is known. */
void symbols_lookup_rest(struct symbols_lookup *lookup);

/* All but how often it was asked. From any thread. */
void symbols_lookup_counts(const struct symbols_lookup *lookup, struct symbols_counts *ret_counts);
