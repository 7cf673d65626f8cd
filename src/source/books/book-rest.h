/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The devices of a living book that are not shown one by one: of their counters only the sum is
 * kept, in the place of a thousand parts. To learn that it still holds takes one read for each of
 * them that was ever used, and none for those that were only declared.
 *
 * Whoever reads many books decides when a sum is brought up to date: see daemon/registry/wide-books.h.
 * One that was not is shown as what it is, old.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "book/format/layout.h"
#include "model/snapshot.h"

struct scan_book;
struct view;

/* A book with more that were used is read again instead. */
#define BOOK_REST_HEADS_MAX 64u

struct book_rest_head {
	uint32_t device;
	uint64_t number; /* of the last event that the sum has */
	uint64_t inexact;
};

struct book_rest {
	uint64_t changes; /* the book's count when it was read; 0 = it does not count them */
	uint64_t cards;   /* declared_cards() when it was read */
	size_t keep;      /* as asked for */
	uint64_t read_ns; /* CLOCK_MONOTONIC: when the sum was known to hold */
	bool is_current;  /* it held in this reading */
	bool is_exact;    /* all of it could be read */
	size_t refused;   /* capacities, see declared.h */
	uint64_t stray_frees;
	uint64_t singles[BOOK_DEVICES / 64]; /* bits: devices that are not in the sum */
	struct snapshot_part sum;
	size_t head_count; /* may exceed the array: then nothing is known of the others */
	struct book_rest_head heads[BOOK_REST_HEADS_MAX];
};

struct book_rest_wish {
	const struct snapshot
		*cards; /* an earlier snapshot: what may be one of its cards is no rest */
	size_t keep;    /* besides those, so many devices are not in the sum */
};

/*
 * Brings the sum up to date: looks whether it holds, and reads the whole book if not. Adds to
 * @looks how many places of the book were read. 0 or -ENOMEM.
 */
int book_rest_renew(struct scan_book *book, const struct book_rest_wish *wish, struct view *view,
		    size_t *looks);

/* From now on all devices of the book are read one by one. */
void book_rest_drop(struct scan_book *book);

static inline bool book_rest_has(const struct book_rest *rest, uint32_t device)
{
	return !(rest->singles[device / 64] >> device % 64 & 1);
}
