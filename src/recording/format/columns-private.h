/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Shared by both directions: the columns, numbers in them, and what is expected of the next event.
 * Encoder and decoder expect the same because both begin with nothing but the table: a reader may
 * begin at any keyframe, so nothing else may reach from one chunk into the next.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "book/format/event.h"
#include "recording/format/columns.h"

/* In the order in which they lie in the chunk, each with its length before all of them. */
enum columns_column {
	COLUMNS_CONTROL = 0,   /* a byte for each event: its op, and what is as expected */
	COLUMNS_TIME_LOW = 1,  /* lowest byte of the difference to the time before */
	COLUMNS_TIME_HIGH = 2, /* the rest of it */
	COLUMNS_SLOT = 3,
	COLUMNS_KIND = 4, /* of new records: which of the kinds seen in this chunk */
	COLUMNS_SIZE = 5,
	COLUMNS_ADDRESS = 6,
	COLUMNS_CALL = 7,  /* of events of live records: which of the calls seen in this chunk */
	COLUMNS_KINDS = 8, /* the kinds themselves, where they are seen first */
	COLUMNS_CALLS = 9,
	COLUMNS_EXTRA = 10, /* unusual ops, and events as they are */
	COLUMNS_COUNT = 11,
};

/* Low half of a control byte: the op, without modifiers; or one of these. */
#define COLUMNS_PLAIN 0x0u    /* all but the time as it is, in COLUMNS_EXTRA */
#define COLUMNS_MODIFIED 0xfu /* the whole op is in COLUMNS_EXTRA */

/* High half, of events with a new record, or with none. */
#define COLUMNS_SLOT_EXPECTED 0x10u
#define COLUMNS_SIZE_EXPECTED 0x20u
#define COLUMNS_ADDRESS_MASK 0xc0u
#define COLUMNS_ADDRESS_GIVEN 0x00u
#define COLUMNS_ADDRESS_KIND 0x40u  /* as the last of its kind */
#define COLUMNS_ADDRESS_FREED 0x80u /* as what was freed from its slot */
#define COLUMNS_ADDRESS_NEXT 0xc0u  /* where the last new record ends */

/* Likewise, of events of a live record. */
#define COLUMNS_SLOT_LAST 0x10u   /* of the event before */
#define COLUMNS_CALL_LAST 0x20u   /* the same call as the one before */
#define COLUMNS_CALL_UNUSED 0xc0u /* must be 0 */

#define COLUMNS_EVENT_BYTES 56u /* of an event without its time */

/* What allocations of one call site have in common. */
struct columns_kind_key {
	uint32_t stack, name, phase, thread_space, meta, shape;
};

struct columns_kind {
	struct columns_kind_key key;
	uint64_t address, size; /* of the last one */
};

/* What happens to a live record. */
struct columns_call {
	uint32_t stack, thread_space;
	uint32_t meta_change;
	uint32_t reserved;
};

struct columns_freed {
	uint64_t address;
	uint32_t slot;
};

/* What is known within a chunk; arrays have room for an entry for each event. */
struct columns_model {
	struct columns_kind *kinds;
	struct columns_call *calls;
	struct columns_freed *freed; /* slots are used again last in, first out */
	uint32_t kind_count, call_count, freed_count;
	uint32_t call;      /* the last one */
	uint32_t slot;      /* of the last event with one */
	uint32_t slot_live; /* of the last event of a live record */
	uint64_t time;
	uint64_t next; /* address where the last new record ends */
};

int columns_model_init(struct columns_model *model, uint32_t count);
void columns_model_deinit(struct columns_model *model);

/* Whether the event goes with the live record of its slot, which exists. */
static inline bool columns_is_live(const struct columns_table *table, uint32_t slot)
{
	return slot < table->count && table->records[slot].meta & BOOK_META_LIVE;
}

/* Ops whose records are as they were; all others have new ones. */
static inline bool columns_op_is_known(uint32_t op)
{
	uint32_t plain = op & BOOK_OP_MASK;

	return plain >= BOOK_OP_REF && plain <= BOOK_OP_FREE;
}

/* The slot that an allocation is expected to take, and what was freed from it (NULL: not known). */
static inline uint32_t columns_expected_slot(struct columns_model *model,
					     const struct columns_table *table,
					     const struct columns_freed **ret_freed)
{
	while (model->freed_count > 0) {
		const struct columns_freed *freed = &model->freed[model->freed_count - 1];

		if (!columns_is_live(table, freed->slot)) {
			*ret_freed = freed;
			return freed->slot;
		}
		model->freed_count--; /* taken out of turn */
	}
	*ret_freed = NULL;
	return table->count;
}

/* Brings table and model along after an event that is not plain. */
int columns_follow(struct columns_model *model, struct columns_table *table,
		   const struct book_event *event);

static inline uint64_t columns_zigzag(uint64_t difference)
{
	return difference << 1 ^ (uint64_t)((int64_t)difference >> 63);
}

static inline uint64_t columns_unzigzag(uint64_t value)
{
	return value >> 1 ^ -(value & 1);
}

#define COLUMNS_VARINT_MAX 10u

static inline uint8_t *columns_put(uint8_t *to, uint64_t value)
{
	while (value >= 0x80) {
		*to++ = (uint8_t)(value | 0x80);
		value >>= 7;
	}
	*to++ = (uint8_t)value;
	return to;
}

/* A column that is being read; it has failed once its end was passed. */
struct columns_cursor {
	const uint8_t *at, *end;
	bool failed;
};

static inline uint8_t columns_get_byte(struct columns_cursor *cursor)
{
	if (unlikely(cursor->at == cursor->end)) {
		cursor->failed = true;
		return 0;
	}
	return *cursor->at++;
}

static inline uint64_t columns_get(struct columns_cursor *cursor)
{
	uint64_t value = 0;

	for (uint32_t shift = 0; shift < 64; shift += 7) {
		uint8_t byte = columns_get_byte(cursor);

		value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return value;
	}
	cursor->failed = true;
	return 0;
}

/* For fields of 32 bits: a value beyond them is not what an encoder writes. */
static inline uint32_t columns_get_u32(struct columns_cursor *cursor)
{
	uint64_t value = columns_get(cursor);

	if (unlikely(value > UINT32_MAX))
		cursor->failed = true;
	return (uint32_t)value;
}

/* Takes the first @length bytes off @from. */
static inline struct columns_cursor columns_split(struct columns_cursor *from, uint64_t length)
{
	struct columns_cursor part = {.at = from->at, .end = from->at};

	if (length > (uint64_t)(from->end - from->at)) {
		from->failed = part.failed = true;
		return part;
	}
	part.end = from->at += length;
	return part;
}
