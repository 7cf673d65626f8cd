/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The counters of a shard whose owner is not writing at this moment, which is nearly always the
 * case: two reads of the counters and one of the head replace a checkpoint and a log. A caller that
 * keeps the result needs only one read to learn that nothing has happened since.
 */

#include <stdint.h>

#include "book/format/layout.h"
#include "book/read/reader.h"

/* A shard's counters as of event `number`; number 0 in a new one = nothing known. */
struct idle_counters {
	uint64_t number;
	uint64_t inexact; /* BOOK_INEXACT_... */
	struct book_hot hot[BOOK_TYPES];
	struct book_cold cold[BOOK_TYPES];
	struct book_warm warm[BOOK_TYPES];
};

enum idle_counters_outcome {
	IDLE_COUNTERS_BUSY = 1, /* the owner is writing: read its log */
};

/*
 * Brings @known up to date, for a living owner. 0, IDLE_COUNTERS_BUSY, or a negative errno: -ENOENT
 * if the shard is not in use, -EBADMSG if it is invalid. Only 0 changes @known.
 */
int idle_counters_read(struct reader *reader, uint32_t device, struct idle_counters *known);

/* Picks the current block of each pair. */
void idle_counters_choose(const struct book_shard *page, struct book_hot *ret_hot,
			  struct book_cold *ret_cold);
void idle_counters_choose_warm(const struct book_shard *page, struct book_warm *ret_warm);
