/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Answers that were given before. What was found out for one user is never told to another: a file may say
 * what its maker likes, also that it is a build of something else. So the key is the user and the file
 * itself, not its build id alone. For one thread at a time.
 */

#include <stddef.h>
#include <stdint.h>

#include "symbol/resolve.h"
#include "symbol/symbolizer-open.h"

#define SYMBOLIZER_CACHE_PLACES 65536u
#define SYMBOLIZER_CACHE_BYTES (16u << 20) /* of answers; beyond it all are forgotten */

struct symbolizer_cache_entry;

/* No holes: compared as bytes. */
struct symbolizer_key {
	struct symbolizer_identity file;
	uint64_t address;
	uint64_t build; /* hash of the build id that the file was expected to have; 0 = any */
	uint32_t user;
	uint32_t reserved; /* 0 */
};

_Static_assert(sizeof(struct symbolizer_key) == 64, "key without holes");

struct symbolizer_cache {
	struct symbolizer_cache_entry **places; /* NULL until the first answer */
	size_t bytes;
};

void symbolizer_cache_deinit(struct symbolizer_cache *cache);

/* How many frames, which may be 0: known not to be known. -ENOENT: never asked. */
int symbolizer_cache_find(const struct symbolizer_cache *cache, const struct symbolizer_key *key,
			  struct resolve_frame *ret_frames);

/* Without memory it is not kept. */
void symbolizer_cache_put(struct symbolizer_cache *cache, const struct symbolizer_key *key,
			  const struct resolve_frame *frames, uint32_t count);
