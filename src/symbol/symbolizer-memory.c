/* SPDX-License-Identifier: Apache-2.0 */

/* A symbolizer cache with a book in place of the file, and a lock. */

#include "symbol/symbolizer-memory.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/bits.h"
#include "base/hash.h"
#include "symbol/symbolizer.h"

void symbolizer_memory_init(struct symbolizer_memory *memory)
{
	memory->cache = (struct symbolizer_cache){.places = NULL};
	(void)pthread_mutex_init(&memory->lock, NULL); /* cannot fail on Linux */
}

void symbolizer_memory_deinit(struct symbolizer_memory *memory)
{
	symbolizer_cache_deinit(&memory->cache);
	pthread_mutex_destroy(&memory->lock);
}

static struct symbolizer_key memory_key(const struct symbolizer_module *module, uint64_t address)
{
	/* A length that is too large is refused elsewhere. */
	size_t length = bits_min(module->build_id_length, sizeof(module->build_id));

	return (struct symbolizer_key){
		.file = {.inode = module->book},
		.address = address,
		.build = hash_bytes(module->path, strlen(module->path)) ^
			 hash_u64(hash_bytes(module->build_id, length)),
		.user = module->user,
	};
}

int symbolizer_memory_find(struct symbolizer_memory *memory, const struct symbolizer_module *module,
			   uint64_t address, struct symbolizer_answer *ret_answer)
{
	struct symbolizer_key key = memory_key(module, address);
	int r;

	pthread_mutex_lock(&memory->lock);
	r = symbolizer_cache_find(&memory->cache, &key, ret_answer->frames);
	pthread_mutex_unlock(&memory->lock);
	if (r < 0)
		return -EAGAIN;
	ret_answer->count = (size_t)r;
	return r > 0 ? 0 : -ENOENT;
}

/* Whether the same request would fail again: the file is missing or unreadable. */
static bool memory_is_final(int r)
{
	return r != -ETIMEDOUT && r != -EBUSY && r != -ECANCELED && r != -ENOMEM && r != -EPIPE &&
	       r != -EBADMSG && r != -EMFILE && r != -ENFILE;
}

void symbolizer_memory_put(struct symbolizer_memory *memory, const struct symbolizer_module *module,
			   uint64_t address, int r, const struct symbolizer_answer *answer)
{
	struct symbolizer_key key = memory_key(module, address);

	/* A file that is not held now says nothing about what the process had. */
	if (module->book == 0 || !memory_is_final(r) || (r < 0 && module->only_held))
		return;
	pthread_mutex_lock(&memory->lock);
	symbolizer_cache_put(&memory->cache, &key, r == 0 ? answer->frames : NULL,
			     r == 0 ? (uint32_t)answer->count : 0);
	pthread_mutex_unlock(&memory->lock);
}
