/* SPDX-License-Identifier: Apache-2.0 */

/* The first few of many, compared with sorting all of them. */

#include "model/top-n.h"

#include <string.h>

#include "base/testing/unit.h"

#define MANY 5000u

static struct snapshot_buffer some(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (struct snapshot_buffer){
		.process = (uint32_t)(*state >> 60),
		.device = (uint32_t)(*state >> 58) & 3,
		.address = *state >> 20,
		.size = (*state >> 33) % 100,
		.born_ns = (*state >> 40) % 1000,
	};
}

static void check(size_t limit, enum snapshot_order order)
{
	struct snapshot *all = snapshot_new(1), *few = snapshot_new(1);
	uint64_t state = limit;

	assert(all && few);
	for (uint32_t i = 0; i < MANY; i++) {
		struct snapshot_buffer buffer = some(&state);

		assert(snapshot_add_buffer(all, &buffer) == 0);
		if (top_n_wants(few, &buffer, limit, order))
			assert(top_n_add(few, &buffer, limit, order) == 0);
	}
	snapshot_sort_buffers(all, order);
	snapshot_sort_buffers(few, order);
	assert(few->buffer_count == (limit < MANY ? limit : MANY));
	assert(memcmp(all->buffers, few->buffers, few->buffer_count * sizeof(*few->buffers)) == 0);
	snapshot_free(all);
	snapshot_free(few);
}

UNIT(top_n_keeps_the_largest)
{
	check(1, SNAPSHOT_BY_SIZE);
	check(2, SNAPSHOT_BY_SIZE);
	check(77, SNAPSHOT_BY_SIZE);
	check(MANY, SNAPSHOT_BY_SIZE);
	check(MANY + 1, SNAPSHOT_BY_SIZE);
}

UNIT(top_n_keeps_the_oldest)
{
	check(1, SNAPSHOT_BY_AGE);
	check(1000, SNAPSHOT_BY_AGE);
}
