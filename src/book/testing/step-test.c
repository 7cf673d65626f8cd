/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The proof of the rule for the dead: the writer is single-stepped, and after every instruction the
 * book must be exactly as before the operation or exactly as after it, in every row, every field
 * and every counter; once it is as after, it stays so. An operation of several events (free_all, a
 * mesh) is checked event by event.
 *
 * The rule for the living is checked at each of these points too: with the writer stopped it must
 * give the same answer.
 */

#include <stdint.h>

#include "base/bits.h"
#include "base/testing/unit.h"
#include "book/testing/book-testing.h"
#include "book/testing/testing-walk.h"
#include "book/write/index.h"

static struct testing_op walk_op(enum testing_kind kind, uint32_t type, uint64_t address,
				 uint64_t size)
{
	return (struct testing_op){
		.kind = kind,
		.buffer = {.address = address,
			   .size = size,
			   .type = type,
			   .thread = 77,
			   .stack = 5,
			   .phase = 3,
			   .shape = 1},
	};
}

static void walk_over(struct testing_walk *walk, enum testing_kind kind, uint32_t type,
		      uint64_t address, uint64_t size)
{
	struct testing_op op = walk_op(kind, type, address, size);

	testing_walk_add(walk, &op, true);
}

/* Unchecked events until the shard's number is @number. Each publishes one event. */
static void walk_fill(struct testing_walk *walk, uint64_t *number, uint64_t until)
{
	for (; *number < until; ++*number) {
		struct testing_op op = walk_op(*number % 2 ? TESTING_FREE : TESTING_ALLOC, 1,
					       0x10000 + *number / 2 % 8 * 64, 64);

		testing_walk_add(walk, &op, false);
	}
}

static void walk_end(struct testing_walk *walk)
{
	testing_walk_run(walk);
	testing_walk_free(walk);
}

UNIT_LONG(book_is_exact_after_every_instruction, 300)
{
	struct testing_walk *walk = testing_walk_new(TESTING_SIZE, BOOK_RING_MIN);
	struct testing_op op;

	walk_over(walk, TESTING_ALLOC, 0, 0x1000, 4096); /* makes the shard */
	walk_over(walk, TESTING_ALLOC, 0, 0x1000, 4096); /* refs + 1 */
	walk_over(walk, TESTING_FREE, 0, 0x1000, 0);     /* refs - 1 */
	walk_over(walk, TESTING_FREE, 0, 0x1000, 0);     /* makes the graveyard */
	walk_over(walk, TESTING_ALLOC, 0, 0x2000, 4096); /* in the freed slot */
	walk_over(walk, TESTING_ALLOC, 0, 0x2000, 8192); /* size changes, up and down */
	walk_over(walk, TESTING_ALLOC, 0, 0x2000, 100);
	walk_over(walk, TESTING_FREE, 0, 0x9000, 0); /* unknown */
	walk_over(walk, TESTING_FREE, 0, 0x1000, 0); /* double */
	walk_over(walk, TESTING_FREE, INDEX_ANY, 0x1000, 0);
	walk_over(walk, TESTING_FREE, INDEX_ANY, 0x9000, 0);
	walk_over(walk, TESTING_HOOKED, 2, 0x3000, 64);
	walk_over(walk, TESTING_FAILED, 2, 0, UINT64_C(1) << 40);
	walk_over(walk, TESTING_ALLOC, 1, 0x2000, 50);
	walk_over(walk, TESTING_ALLOC, 3, 0x2000, 60);
	walk_over(walk, TESTING_ALLOC, 3, 0x2000, 60);
	walk_over(walk, TESTING_FREE, INDEX_ANY, 0x2000, 0); /* ambiguous: one reference less */
	walk_over(walk, TESTING_FREE, INDEX_ANY, 0x2000, 0); /* ambiguous: the end */
	walk_over(walk, TESTING_RESET_PEAK, 1, 0, 0);
	walk_over(walk, TESTING_RESET_PEAK, INDEX_ANY, 0, 0);
	for (uint32_t i = 0; i < 6; i++) {
		op = walk_op(TESTING_ALLOC, i, 0x4000 + i * 64, 64);
		op.owner = 1 + i % 2;
		op.buffer.name = i;
		op.buffer.flags = i == 5 ? BOOK_META_ALIAS >> BOOK_META_FLAGS_SHIFT : 0;
		testing_walk_add(walk, &op, true);
	}
	op = walk_op(TESTING_FREE_ALL, INDEX_ANY, 0, 0);
	op.owner = 1;
	testing_walk_add(walk, &op, true);
	walk_over(walk, TESTING_FREE_ALL, 3, 0, 0);
	walk_over(walk, TESTING_FREE_ALL, INDEX_ANY, 0, 0);
	op = walk_op(TESTING_ALLOC, 5, 0x5000, 4096);
	op.mesh = 0x87; /* two of these devices are new */
	testing_walk_add(walk, &op, true);
	testing_walk_add(walk, &op, true);
	op.kind = TESTING_FREE;
	testing_walk_add(walk, &op, true);
	testing_walk_add(walk, &op, true);
	testing_walk_add(walk, &op, true);
	walk_end(walk);
}

/* Two buffers at one address, and counters of what they occupy. */
UNIT_LONG(spaces_and_occupancy_are_exact_after_every_instruction, 300)
{
	struct testing_walk *walk = testing_walk_new(TESTING_SIZE, BOOK_RING_MIN);
	struct testing_op op = walk_op(TESTING_ALLOC, 1, 0x1000, 4096);

	walk->has_shapes = true;
	for (uint32_t space = 0; space < 4; space++) {
		op.buffer.space = space;
		testing_walk_add(walk, &op, true);
		op.buffer.shape = space; /* 0 has none, 3 does not say how many banks */
	}
	testing_walk_add(walk, &op, true); /* refs + 1 */
	op.buffer.size = 64;
	testing_walk_add(walk, &op, true); /* size changes, of known and of unknown occupancy */
	op.buffer.size = 65;
	op.buffer.shape = 1;
	testing_walk_add(walk, &op, true);
	op.buffer.flags = BOOK_META_ALIAS >> BOOK_META_FLAGS_SHIFT;
	op.buffer.size = 66;
	testing_walk_add(walk, &op, true);
	walk_over(walk, TESTING_FREE, 1, 0x1000, 0); /* in space 0 */
	walk_over(walk, TESTING_FREE, 1, 0x1000, 0); /* in one of three */
	walk_over(walk, TESTING_FREE, INDEX_ANY, 0x1000, 0);
	op = walk_op(TESTING_FREE, 1, 0x1000, 0);
	op.buffer.space = 3;
	testing_walk_add(walk, &op, true);
	testing_walk_add(walk, &op, true); /* double, though others live there */
	op.kind = TESTING_END_SPACE;
	op.buffer.space = 2;
	testing_walk_add(walk, &op, true);
	testing_walk_add(walk, &op, true);           /* nothing is left to end */
	walk_over(walk, TESTING_FREE, 1, 0x1000, 0); /* the only one */
	walk_over(walk, TESTING_FREE, 1, 0x1000, 0); /* double */
	walk_end(walk);
}

/* Where the log needs memory, wraps, or a checkpoint is due; reached by each kind of event. */
UNIT_LONG(boundaries_of_the_log, 300)
{
	static const uint64_t boundaries[] = {64, 256, 512, 768, 1024, 1280, 2048, 4096};

	for (uint64_t shift = 0; shift < 7; shift++) {
		struct testing_walk *walk = testing_walk_new(TESTING_SIZE, BOOK_RING_MIN);
		uint64_t number = 2;

		walk->has_shapes = shift == 3;
		walk_over(walk, TESTING_ALLOC, 2, 0x1000, 4096);
		walk_over(walk, TESTING_ALLOC, 0, 0x1000, 4096);
		for (uint32_t i = 0; i < ARRAY_SIZE(boundaries); i++) {
			walk_fill(walk, &number, boundaries[i] - 7 + shift);
			walk_over(walk, TESTING_ALLOC, 0, 0x1000, 5000 + i);
			walk_over(walk, TESTING_ALLOC, 0, 0x1000, 4096);
			walk_over(walk, TESTING_ALLOC, 2, 0x1000, 4096);
			walk_over(walk, TESTING_FREE, 2, 0x1000, 0);
			walk_over(walk, TESTING_FREE, 3, 0x1000, 0);
			number += 7;
		}
		walk_end(walk);
	}
}

/* A page of records, a unit of records, a bucket of the index, a part of it, a page of graves. */
UNIT_LONG(growth_in_steps, 300)
{
	static const uint32_t steps[] = {
		BOOK_PAGE / 48,
		INDEX_HOME * INDEX_LOAD,
		(INDEX_HOME + 1) * INDEX_LOAD,
		2 * INDEX_HOME * INDEX_LOAD,
		4 * INDEX_HOME * INDEX_LOAD,
		BOOK_UNIT / 48,
	};
	struct testing_walk *walk = testing_walk_new(TESTING_SIZE, 16384);
	uint32_t n = 0;

	for (uint32_t i = 0; i < ARRAY_SIZE(steps); i++) {
		for (; n < steps[i] + 3; n++) {
			struct testing_op op =
				walk_op(TESTING_ALLOC, n % BOOK_TYPES, 0x1000 + n / 2 * 64, 32);

			testing_walk_add(walk, &op, n + 3 >= steps[i]);
		}
	}
	for (uint32_t i = 0; i < 1100; i++) {
		struct testing_op op =
			walk_op(TESTING_FREE, i % BOOK_TYPES, 0x1000 + i / 2 * 64, 0);

		testing_walk_add(walk, &op, (i + 2 >= 64 && i < 67) || (i + 2 >= 1024 && i < 1027));
	}
	walk_end(walk);
}

UNIT_LONG(growth_into_a_new_segment, 300)
{
	struct testing_walk *walk = testing_walk_new(TESTING_SIZE, BOOK_RING_MIN);

	for (uint32_t n = 0; n < BOOK_SEGMENT_SLOTS + 2; n++) {
		struct testing_op op = walk_op(TESTING_ALLOC, 0, 0x1000 + (uint64_t)n * 64, 64);

		testing_walk_add(walk, &op, n + 1 >= BOOK_SEGMENT_SLOTS);
	}
	walk_over(walk, TESTING_ALLOC, 0, 0x1000, 65);
	walk_over(walk, TESTING_FREE, 0, 0x1000 + BOOK_SEGMENT_SLOTS * 64, 0);
	walk_end(walk);
}

/* Room for one page of records only. */
UNIT_LONG(book_without_room_is_exact_after_every_instruction, 300)
{
	struct testing_walk *walk = testing_walk_new(TESTING_SIZE, BOOK_RING_MIN);
	const uint64_t fixed = sizeof(struct book_shard) +
			       BOOK_RING_MIN * sizeof(struct book_event) +
			       BOOK_GRAVES * sizeof(struct book_grave);
	struct testing_op op;

	walk->book.room = fixed + BOOK_PAGE;
	for (uint32_t n = 0; n < 85; n++) {
		op = walk_op(TESTING_ALLOC, 1, 0x1000 + n * 64, 64);
		testing_walk_add(walk, &op, n + 1 >= 85);
	}
	op = walk_op(TESTING_ALLOC, 1, 0x9000, 64);
	testing_walk_add(walk, &op, true)->lost = true;
	op = walk_op(TESTING_ALLOC, 2, 0x9000, 64);
	testing_walk_add(walk, &op, true)->lost = true;
	walk_over(walk, TESTING_FREE, 1, 0x9000, 0); /* overflow */
	walk_over(walk, TESTING_FREE, INDEX_ANY, 0x9000, 0);
	walk_over(walk, TESTING_FREE, 3, 0x9000, 0);   /* unknown: this type lost nothing */
	walk_over(walk, TESTING_ALLOC, 1, 0x1000, 65); /* needs no room */
	walk_over(walk, TESTING_FREE, 1, 0x1000, 0);
	walk_over(walk, TESTING_ALLOC, 1, 0x9000, 64); /* in the freed slot */
	walk_over(walk, TESTING_FREE_ALL, INDEX_ANY, 0, 0);
	walk_end(walk);
}

static struct testing_op walk_random(struct testing_rng *rng)
{
	static const uint8_t kinds[] = {
		TESTING_ALLOC, TESTING_ALLOC, TESTING_ALLOC,  TESTING_ALLOC,  TESTING_ALLOC,
		TESTING_FREE,  TESTING_FREE,  TESTING_FREE,   TESTING_FREE,   TESTING_FREE,
		TESTING_FREE,  TESTING_FREE,  TESTING_HOOKED, TESTING_FAILED, TESTING_RESET_PEAK,
	};
	enum testing_kind kind = kinds[testing_below(rng, ARRAY_SIZE(kinds))];
	struct testing_op op = walk_op(kind, testing_below(rng, 3), testing_below(rng, 12) * 64,
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
		walk_end(walk);
	}
}
