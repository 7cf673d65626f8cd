/* SPDX-License-Identifier: Apache-2.0 */

/* The proof of step-test.c for random operations. A program of its own, because it takes as long as the rest. */

#include <stdint.h>

#include "base/bits.h"
#include "base/testing/unit.h"
#include "book/testing/book-testing.h"
#include "book/testing/testing-walk.h"
#include "book/write/index.h"

static struct testing_op walk_random(struct testing_rng *rng)
{
	static const uint8_t kinds[] = {
		TESTING_ALLOC, TESTING_ALLOC, TESTING_ALLOC,  TESTING_ALLOC,  TESTING_ALLOC,
		TESTING_FREE,  TESTING_FREE,  TESTING_FREE,   TESTING_FREE,   TESTING_FREE,
		TESTING_FREE,  TESTING_FREE,  TESTING_HOOKED, TESTING_FAILED, TESTING_RESET_PEAK,
	};
	enum testing_kind kind = kinds[testing_below(rng, ARRAY_SIZE(kinds))];
	struct testing_op op =
		testing_walk_make(kind, testing_below(rng, 3), testing_below(rng, 12) * 64,
				  1 + testing_below(rng, 2));

	op.buffer.name = testing_below(rng, TESTING_TEXTS);
	op.buffer.flags = testing_below(rng, 8);
	op.buffer.shape = testing_below(rng, TESTING_SHAPES);
	op.buffer.space = testing_below(rng, 3);
	op.owner = testing_below(rng, 3);
	if ((kind == TESTING_FREE || kind == TESTING_RESET_PEAK) && testing_below(rng, 4) == 0)
		op.buffer.type = INDEX_ANY;
	if (kind == TESTING_HOOKED && testing_below(rng, 2) == 0)
		op.kind = TESTING_FREE_ALL;
	return op;
}

UNIT_LONG(random_operations_are_exact_after_every_instruction, 600)
{
	struct testing_rng rng = testing_rng_new();
	uint32_t rounds = testing_soak() ? 100 : 1;

	for (uint32_t round = 0; round < rounds; round++) {
		struct testing_walk *walk = testing_walk_new(TESTING_SIZE, BOOK_RING_MIN);

		walk->has_shapes = true;
		for (uint32_t i = 0; i < 800; i++) {
			struct testing_op op = walk_random(&rng);

			testing_walk_add(walk, &op, true);
		}
		testing_walk_end(walk);
	}
}
