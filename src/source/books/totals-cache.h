/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What was read of a living book, for the next time: which devices it has, what was declared of them, and
 * the counters of each. A book counts its changes of the first two, so that who remembers them
 * needs not look; of the third, see idle-counters.h. Remembering is a favour: without memory for it, or beyond
 * the bounds, a book is simply read again.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "book/format/layout.h"
#include "book/read/idle-counters.h"

/* Of a book; and of all of them, for somebody may make many. */
#define MEMO_DEVICES_MAX 64u
#define MEMO_BYTES_MAX (48u << 20)

struct memo_device {
	uint32_t device;
	struct book_device entry;
};

struct memo_shard {
	uint32_t device;
	struct idle_counters known;
};

/* Both lists rise. */
struct memo {
	uint64_t changes; /* of the book when they were made; 0 = they are not complete */
	struct memo_device *devices;
	size_t device_count, device_capacity;
	struct memo_shard *shards;
	size_t shard_count, shard_capacity;
	size_t bytes; /* of the lists, as counted into the sum of all */
	bool overflowed;
};

/* Of a book that has counted so many changes: whether the lists are what there is. */
bool memo_is_current(const struct memo *memo, uint64_t changes);

/* Begin the lists anew; add to them; and once everything has been added: of which state they are. */
void memo_restart(struct memo *memo);
void memo_add_device(struct memo *memo, uint32_t device, const struct book_device *entry);
void memo_add_shard(struct memo *memo, uint32_t device, const struct idle_counters *known);
void memo_complete(struct memo *memo, uint64_t changes);

void memo_deinit(struct memo *memo);
