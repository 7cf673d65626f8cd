/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Where a slot's record lies, for the book's owner: through the directory in the shard's page. */

#include <stdint.h>

#include "book/format/layout.h"

struct records {
	uint8_t *base; /* of the mapped book */
	struct book_shard *page;
};

static inline struct book_record *records_at(const struct records *records, uint32_t slot)
{
	uint64_t segment = book_unit_offset(records->page->directory[slot / BOOK_SEGMENT_SLOTS]);

	return (struct book_record *)(void *)(records->base + segment) + slot % BOOK_SEGMENT_SLOTS;
}
