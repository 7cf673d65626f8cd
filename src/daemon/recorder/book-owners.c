/* SPDX-License-Identifier: Apache-2.0 */

/* Hashed, because every snapshot asks about every process in a region. */

#include "daemon/recorder/book-owners.h"

#include <stddef.h>

#include "base/hash.h"
#include "base/process-id.h"

static size_t book_owners_set(struct process_id process)
{
	return (size_t)(hash_u64(hash_u64(process.pid) ^ process.start_ticks) % BOOK_OWNERS_SETS);
}

bool book_owners_has(const struct book_owners *owners, struct process_id process)
{
	const struct process_id *set = owners->sets[book_owners_set(process)];

	for (size_t i = 0; i < BOOK_OWNERS_WAYS; i++) {
		if (process_id_equal(set[i], process))
			return true;
	}
	return false;
}

void book_owners_add(struct book_owners *owners, struct process_id process)
{
	size_t set = book_owners_set(process);

	if (!book_owners_has(owners, process))
		owners->sets[set][owners->next[set]++ % BOOK_OWNERS_WAYS] = process;
}
