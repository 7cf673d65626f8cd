/* SPDX-License-Identifier: Apache-2.0 */

/* Chooses the process for a request. */

#include "symbol/symbolizer-pool.h"

#include <stdbool.h>

#include "base/hash.h"

/* From worst to best. */
enum pool_rank {
	POOL_OTHERS, /* serves another user and would have to be ended */
	POOL_FULL,   /* would have to close another file */
	POOL_NONE,   /* not started yet */
	POOL_ROOM,   /* has room for the file */
	POOL_OPEN,   /* has the file open */
};

void symbolizer_pool_init(struct symbolizer_pool *pool, const struct symbolizer_config *config)
{
	*pool = (struct symbolizer_pool){.config = config};
	for (uint32_t i = 0; i < SYMBOLIZER_PROCESSES_MAX; i++)
		symbolizer_worker_init(&pool->workers[i], config);
}

void symbolizer_pool_end(struct symbolizer_pool *pool)
{
	for (uint32_t i = 0; i < SYMBOLIZER_PROCESSES_MAX; i++)
		symbolizer_worker_end(&pool->workers[i]);
}

static enum pool_rank pool_rank(const struct symbolizer_worker *worker, uint32_t user,
				const struct symbolizer_file *wanted)
{
	uint64_t bytes = wanted->size;
	bool has_room = false;

	if (worker->socket < 0)
		return POOL_NONE;
	if (worker->user != user)
		return POOL_OTHERS;
	for (uint32_t i = 0; i < SYMBOLIZER_FILES; i++) {
		const struct symbolizer_file *file = &worker->files[i];

		if (file->id == wanted->id)
			return POOL_OPEN;
		has_room = has_room || file->id == 0;
		bytes += file->size;
	}
	return has_room && bytes <= SYMBOLIZER_SHARED_BYTES ? POOL_ROOM : POOL_FULL;
}

int symbolizer_pool_ask(struct symbolizer_pool *pool, const struct symbolizer_key *key,
			const int files[SYMBOLIZER_WIRE_FILES],
			struct symbolizer_wire_answer *ret_answer)
{
	const struct symbolizer_file file = {
		.id = hash_bytes(&key->file, sizeof(key->file)) | 1,
		.size = key->file.size,
	};
	struct symbolizer_wire_request request = {
		.kind = SYMBOLIZER_WIRE_FIND,
		.address = key->address,
	};
	uint32_t count = pool->config->processes ? pool->config->processes : 1;
	struct symbolizer_worker *best = NULL;
	enum pool_rank best_rank = POOL_OTHERS;
	int r;

	for (uint32_t i = 0; i < count && i < SYMBOLIZER_PROCESSES_MAX; i++) {
		struct symbolizer_worker *worker = &pool->workers[i];
		enum pool_rank rank = pool_rank(worker, key->user, &file);

		if (!best || rank > best_rank || (rank == best_rank && worker->used < best->used)) {
			best = worker;
			best_rank = rank;
		}
	}
	best->used = ++pool->asked;
	r = symbolizer_worker_ask(best, key->user, &request, files, ret_answer);
	if (best->socket >= 0 && best_rank != POOL_OPEN)
		best->files[best->next_file++ % SYMBOLIZER_FILES] = file;
	return r;
}

void symbolizer_pool_count(const struct symbolizer_pool *pool, struct symbolizer_counts *ret_counts)
{
	for (uint32_t i = 0; i < SYMBOLIZER_PROCESSES_MAX; i++) {
		const struct symbolizer_worker *worker = &pool->workers[i];

		ret_counts->started += __atomic_load_n(&worker->started, __ATOMIC_RELAXED);
		ret_counts->lost += __atomic_load_n(&worker->lost, __ATOMIC_RELAXED);
	}
}
