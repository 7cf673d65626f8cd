/* SPDX-License-Identifier: Apache-2.0 */

/* Hashed, because every snapshot asks about every process in a region. */

#include "daemon/recorder/book-owners.h"

#include <stddef.h>

#include "base/hash.h"

static size_t book_owners_set(uint32_t pid, uint64_t start_ticks)
{
	return (size_t)(hash_u64(hash_u64(pid) ^ start_ticks) % BOOK_OWNERS_SETS);
}

bool book_owners_has(const struct book_owners *owners, uint32_t pid, uint64_t start_ticks)
{
	const struct book_owner *set = owners->sets[book_owners_set(pid, start_ticks)];

	for (size_t i = 0; i < BOOK_OWNERS_WAYS; i++) {
		if (set[i].pid == pid && set[i].start_ticks == start_ticks)
			return true;
	}
	return false;
}

void book_owners_add(struct book_owners *owners, uint32_t pid, uint64_t start_ticks)
{
	size_t set = book_owners_set(pid, start_ticks);

	if (!book_owners_has(owners, pid, start_ticks))
		owners->sets[set][owners->next[set]++ % BOOK_OWNERS_WAYS] =
			(struct book_owner){.pid = pid, .start_ticks = start_ticks};
}
