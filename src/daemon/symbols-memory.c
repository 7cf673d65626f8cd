/* SPDX-License-Identifier: Apache-2.0 */

/* The cache once more, with a book in place of the file, and a lock. */

#include "daemon/symbols-memory.h"

#include <errno.h>
#include <string.h>

#include "base/hash.h"
#include "daemon/symbols.h"

void symbols_memory_init(struct symbols_memory *memory)
{
	memory->cache = (struct symbols_cache){.places = NULL};
	(void)pthread_mutex_init(&memory->lock, NULL); /* cannot fail on Linux */
}

void symbols_memory_deinit(struct symbols_memory *memory)
{
	symbols_cache_deinit(&memory->cache);
	pthread_mutex_destroy(&memory->lock);
}

static struct symbols_key memory_key(const struct symbols_module *module, uint64_t address)
{
	return (struct symbols_key){
		.file = {.inode = module->book},
		.address = address,
		.build = hash_bytes(module->path, strlen(module->path)) ^
			 hash_u64(hash_bytes(module->build_id, module->build_id_length)),
		.user = module->user,
	};
}

int symbols_memory_find(struct symbols_memory *memory, const struct symbols_module *module,
			uint64_t address, struct symbols_answer *ret_answer)
{
	struct symbols_key key = memory_key(module, address);
	int r;

	pthread_mutex_lock(&memory->lock);
	r = symbols_cache_find(&memory->cache, &key, ret_answer->frames);
	pthread_mutex_unlock(&memory->lock);
	if (r < 0)
		return -EAGAIN;
	ret_answer->count = (size_t)r;
	return r > 0 ? 0 : -ENOENT;
}

void symbols_memory_put(struct symbols_memory *memory, const struct symbols_module *module,
			uint64_t address, const struct symbols_answer *answer)
{
	struct symbols_key key = memory_key(module, address);

	pthread_mutex_lock(&memory->lock);
	symbols_cache_put(&memory->cache, &key, answer ? answer->frames : NULL,
			  answer ? (uint32_t)answer->count : 0);
	pthread_mutex_unlock(&memory->lock);
}
