/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The processes that have or had a book, the latest some thousands of them. What such a process
 * left is told from its book, so nobody else must report it.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/process-id.h"

#define BOOK_OWNERS_SETS 2048u
#define BOOK_OWNERS_WAYS 8u

/* Sets chosen by hash; in a full set the oldest entry makes room. All zeros is empty. */
struct book_owners {
	struct process_id sets[BOOK_OWNERS_SETS][BOOK_OWNERS_WAYS];
	uint8_t next[BOOK_OWNERS_SETS];
};

void book_owners_add(struct book_owners *owners, struct process_id process);
bool book_owners_has(const struct book_owners *owners, struct process_id process);
