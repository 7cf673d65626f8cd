/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Checks a protocol between one owner, which only stores, and one reader, which only loads,
 * exhaustively under a weak memory order.
 *
 * The model is that of ARMv8 without its dependencies. There is one memory that all see at once
 * (ARMv8 is multi-copy atomic). Each side makes its accesses in any order with these exceptions:
 * accesses to the same place are made in program order; a store with release is made after all
 * earlier accesses; a store barrier keeps later stores behind earlier ones, a load barrier does the
 * same for loads. Nothing else orders anything: no data, address or control dependency, so a reader
 * loads everything it could need before it knows what it needs. An owner may end at any moment,
 * with any store missing that no rule above forces: this also covers reordering by the compiler.
 *
 * A place is a word that is stored and loaded at once. One word stands for all payload figures:
 * accepting them depends only on the words of the protocol, so if any of them could be wrong, so
 * could this one.
 */

#include <stdbool.h>
#include <stdint.h>

#define TESTING_ORDER_PLACES 32
#define TESTING_ORDER_STORES 64
#define TESTING_ORDER_LOADS 12 /* between two barriers */
#define TESTING_ORDER_REGISTERS 9
#define TESTING_ORDER_NONE (-1)

/* What the owner does, in program order. Barriers have numbers, so that one can be left out. */
struct testing_owner {
	uint32_t count;
	uint8_t place[TESTING_ORDER_STORES];
	uint8_t value[TESTING_ORDER_STORES];
	uint64_t before[TESTING_ORDER_STORES]; /* stores that are made before this one */
	uint64_t behind_barrier;               /* stores that precede all later ones */
	int without;                           /* number of the barrier to leave out */
};

void testing_owner_store(struct testing_owner *owner, uint8_t place, uint8_t value);
void testing_owner_release(struct testing_owner *owner, uint8_t place, uint8_t value, int number);
void testing_owner_barrier(struct testing_owner *owner, int number);

enum testing_verdict {
	TESTING_GO_ON = 0,
	TESTING_REFUSED = 1,
	TESTING_RIGHT = 2,
	TESTING_WRONG = 3, /* wrong, but accepted */
};

/* A reader: groups of loads with a barrier after each. */
struct testing_reader {
	const char *name;
	void (*write)(struct testing_owner *owner);
	uint32_t steps;
	const uint8_t *loads[11]; /* places of each group, terminated by TESTING_ORDER_PLACES */
	/*
	 * Evaluates a group of loads, once all of them were made. @registers are 0 at first, and
	 * are the only state.
	 */
	enum testing_verdict (*fold)(uint32_t step, const uint8_t *values, uint8_t *registers);
	/* Instead of the three above: judges the memory that an owner has left. */
	enum testing_verdict (*judge)(const uint8_t *memory);
};

struct testing_order {
	uint64_t states;
	uint64_t right; /* accepted ends, each a state */
	bool is_wrong;  /* one was accepted that should have been refused */
};

/* @owner_without, @reader_without: barriers to leave out; the reader's are numbered from 0. */
struct testing_order testing_order_run(const struct testing_reader *reader, int owner_without,
				       int reader_without);
