/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Events and records in columns: each field of all events by itself, as differences, which zstd
 * then makes small. A free needs only its slot: what it freed is known from the table, which both
 * sides keep while they go through the events.
 */

#include <stddef.h>
#include <stdint.h>

#include "book/format/layout.h"

/* The records of a device by slot; those that are not live are all zeros. Begins as {0}. */
struct columns_table {
	struct book_record *records;
	uint32_t count, capacity;
};

void columns_table_deinit(struct columns_table *table);

/* Makes @to, which is replaced, the same as @from. 0 or -ENOMEM. */
int columns_table_copy(struct columns_table *to, const struct columns_table *from);

/* At least @count records, new ones not live. 0, -ENOMEM, or -EBADMSG for more than a book can have. */
int columns_table_grow(struct columns_table *table, uint64_t count);

/*
 * Applies an event as the book's owner did; events without a slot change nothing. 0, -ENOMEM, or
 * -EBADMSG for a slot beyond the next new one, which no owner uses.
 */
int columns_apply(struct columns_table *table, const struct book_event *event);

/*
 * @count events, at most RECORDING_EVENTS_MAX, and what they do to @table. Returns how many bytes
 * were written, or as columns_apply(). @ret_bytes has room for columns_bound(count).
 */
size_t columns_bound(uint32_t count);
int64_t columns_encode(struct columns_table *table, const struct book_event *events, uint32_t count,
		       uint8_t *ret_bytes);

/* The reverse, of bytes that nobody has checked: 0, -EBADMSG or -ENOMEM. @table is brought along. */
int columns_decode(struct columns_table *table, const uint8_t *bytes, size_t size, uint32_t count,
		   struct book_event *ret_events);

/* The live records of a table, with their slots. */
size_t columns_table_bound(const struct columns_table *table);
int64_t columns_encode_table(const struct columns_table *table, uint8_t *ret_bytes);
int columns_decode_table(struct columns_table *table, const uint8_t *bytes, size_t size);
