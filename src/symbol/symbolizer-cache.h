/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Caches answers. An answer found for one user is never given to another: a file can claim
 * anything, including the build id of another program. So the key is the user and the file itself,
 * not the build id alone. One thread at a time.
 */

#include <stddef.h>
#include <stdint.h>

#include "symbol/resolve.h"
#include "symbol/symbolizer-open.h"

#define SYMBOLIZER_CACHE_PLACES 65536u
#define SYMBOLIZER_CACHE_BYTES (16u << 20) /* of answers; beyond this all are dropped */

struct symbolizer_cache_entry;

/* No padding: compared as bytes. */
struct symbolizer_key {
	struct symbolizer_identity file;
	uint64_t address;
	uint64_t build; /* hash of the expected build id; 0 = any */
	uint32_t user;
	uint32_t reserved; /* 0 */
};

_Static_assert(sizeof(struct symbolizer_key) == 64, "key without holes");

struct symbolizer_cache {
	struct symbolizer_cache_entry **places; /* NULL until the first answer */
	size_t bytes;
};

void symbolizer_cache_deinit(struct symbolizer_cache *cache);

/* The number of frames; 0: the address is known to have no name. -ENOENT: not cached. */
int symbolizer_cache_find(const struct symbolizer_cache *cache, const struct symbolizer_key *key,
			  struct resolve_frame *ret_frames);

/* Out of memory, nothing is stored. */
void symbolizer_cache_put(struct symbolizer_cache *cache, const struct symbolizer_key *key,
			  const struct resolve_frame *frames, uint32_t count);
