/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Goes through the chunks of a device from the beginning and asserts that they agree with each other:
 * numbers without holes, keyframes that are what the events led to, gaps that add up.
 */

#include <stdint.h>

#include "recording/format/columns.h"
#include "recording/testing/testing-chunks.h"

struct testing_replay {
	uint64_t number; /* of the last event */
	uint64_t events, missed;
	bool has_table; /* false: the last chunk was a gap */
	struct columns_table table;
	struct book_hot hot[BOOK_TYPES];
	uint32_t keyframes, gaps;
	uint64_t first; /* number before the first event */
};

void testing_replay(struct testing_replay *ret_replay, const struct testing_chunks *chunks,
		    uint32_t book, uint32_t device);
void testing_replay_deinit(struct testing_replay *replay);
