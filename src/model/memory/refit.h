/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a process asked for, asked again of another memory: would it have run on another card, with
 * other banks or another way to choose a hole? Open loop: what the process did is taken as it was
 * recorded, even where another card would have made it decide differently.
 *
 * The allocator is tt-metal's: a free list for each memory, in which addresses are per bank and the
 * same in all banks. DRAM, TRACE and SYSTEM_MEMORY are filled from the bottom, L1 and L1_SMALL from
 * the top, unless a buffer was told to go elsewhere. Where several holes of similar size would do,
 * tt-metal does not always take the first one by address, as is done here.
 */

#include <stdbool.h>
#include <stdint.h>

#include "book/format/layout.h"
#include "model/memory/free-list.h"
#include "model/snapshot.h"

struct card_facts;

#define REFIT_MEMORIES 5u /* DRAM to TRACE; see free-blocks.h */

/* Circular buffers that no allocator has placed: not a memory, but they have a margin too. */
#define REFIT_CIRCULAR 5u
#define REFIT_MARGINS 6u

struct refit_rules {
	enum free_list_fit fit;
	/* By type, where it was recorded and where it is replayed; size 0 = not known. */
	struct snapshot_window from[REFIT_MEMORIES];
	struct snapshot_window to[REFIT_MEMORIES];
	/* The banks of L1 are those of the card with fast dispatch; how it would be opened is not known. */
	bool assumes_l1;
};

/* Which card it is replayed on. */
struct refit_card {
	const struct card_facts *facts; /* NULL = the one that it was recorded on */
	uint32_t dram_banks, l1_banks;  /* 0 = as the card has them */
};

/*
 * The rules for a device that was declared as @recorded. TRACE and L1_SMALL are not the card's choice but
 * the program's: TRACE stays as large in all, L1_SMALL as large in each bank.
 */
void refit_rules_init(struct refit_rules *rules, const struct snapshot_facts *recorded,
		      const struct refit_card *card);

/* A buffer as it was recorded. */
struct refit_buffer {
	uint32_t type;
	uint32_t space;
	uint32_t flags; /* TTMEM_FLAG_... */
	uint64_t address;
	uint64_t size;
	struct book_shape shape; /* all 0 = not known */
};

/* Why it would not have run. */
enum refit_why {
	REFIT_LARGE = 1,  /* more than the memory has, even if it were empty */
	REFIT_FULL = 2,   /* fewer bytes are free */
	REFIT_CUT = 3,    /* enough are free, but not in one piece */
	REFIT_SHARDS = 4, /* it has more shards than there are banks */
	REFIT_CLASH = 5,  /* circular buffers would reach into L1 buffers */
};

/* All in each bank. */
struct refit_failure {
	uint32_t why; /* enum refit_why */
	uint32_t memory;
	uint64_t need; /* UINT64_MAX = more than can be counted */
	uint64_t free;
	uint64_t largest; /* of a clash: what circular buffers may take */
	uint64_t size;    /* of the memory */
	uint32_t banks;
	uint32_t shards; /* of REFIT_SHARDS */
};

/* How tight it was; in each bank. */
struct refit_margin {
	bool is_known;    /* something was allocated there */
	uint64_t size;    /* of the memory */
	uint64_t free;    /* the least */
	uint64_t largest; /* hole at that moment */
	uint32_t banks;
	uint64_t moment; /* the first one at which it was so, as the caller counts them */
};

struct refit;

/* NULL: no memory. */
struct refit *refit_new(const struct refit_rules *rules);
struct refit *refit_free(struct refit *refit);

enum refit_outcome {
	REFIT_FAILED = 1, /* the allocation would have failed; nothing has changed */
};

/*
 * The buffer in @slot of the book's table is allocated, after whatever was there is freed. Buffers
 * that take nothing from an allocator, such as aliases, are passed over, and so are those whose memory
 * is not known; they are counted. 0, REFIT_FAILED or -ENOMEM.
 */
int refit_take(struct refit *refit, uint32_t slot, const struct refit_buffer *buffer,
	       uint64_t moment, struct refit_failure *ret_failure);

/* It is freed, if it is there. 0 or -ENOMEM. */
int refit_give(struct refit *refit, uint32_t slot);

/*
 * Whether there would be room for an allocation that failed when it was recorded: 1, 0, or -ENODATA if
 * its memory is not known.
 */
int refit_has_room(struct refit *refit, const struct refit_buffer *buffer);

const struct refit_margin *refit_margins(const struct refit *refit);

struct refit_counts {
	uint64_t taken;    /* by allocators */
	uint64_t guessed;  /* of them, those whose share of a bank had to be guessed */
	uint64_t same;     /* of them, those that lie at the address where they were recorded */
	uint64_t unjudged; /* buffers of which nothing can be said: their memory is not known */
	uint64_t spaces;   /* allocators with addresses of their own */
};

const struct refit_counts *refit_counts(const struct refit *refit);
