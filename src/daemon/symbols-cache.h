/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Answers that were given before. What was found out for one user is never told to another: a file may say
 * what its maker likes, also that it is a build of something else. So the key is the user and the file
 * itself, not its build id alone. For one thread at a time.
 */

#include <stddef.h>
#include <stdint.h>

#include "daemon/symbols-open.h"
#include "symbol/resolve.h"

#define SYMBOLS_CACHE_PLACES 65536u
#define SYMBOLS_CACHE_BYTES (16u << 20) /* of answers; beyond it all are forgotten */

struct symbols_cache_entry;

/* No holes: compared as bytes. */
struct symbols_key {
	struct symbols_identity file;
	uint64_t address;
	uint64_t build; /* hash of the build id that the file was expected to have; 0 = any */
	uint32_t user;
	uint32_t reserved; /* 0 */
};

_Static_assert(sizeof(struct symbols_key) == 64, "key without holes");

struct symbols_cache {
	struct symbols_cache_entry **places; /* NULL until the first answer */
	size_t bytes;
};

void symbols_cache_deinit(struct symbols_cache *cache);

/* How many frames, which may be 0: known not to be known. -ENOENT: never asked. */
int symbols_cache_find(const struct symbols_cache *cache, const struct symbols_key *key,
		       struct resolve_frame *ret_frames);

/* Without memory it is not kept. */
void symbols_cache_put(struct symbols_cache *cache, const struct symbols_key *key,
		       const struct resolve_frame *frames, uint32_t count);
