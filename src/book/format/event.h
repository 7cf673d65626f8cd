/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What an event does to the counters of its type, defined only here. The writer updates its private
 * mirror with it and the reader replays the log with it; a replayed snapshot is exact because both
 * use the same code.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/bits.h"
#include "book/format/layout.h"

static inline uint64_t event_bytes(const struct book_record *record)
{
	return record->meta & BOOK_META_ALIAS ? 0 : record->size;
}

/* Whether the event also changes the cold line; every event changes the hot one. */
static inline bool event_is_rare(uint32_t op)
{
	switch (op & BOOK_OP_MASK) {
	case BOOK_OP_REF:
	case BOOK_OP_UNKNOWN_FREE:
	case BOOK_OP_DOUBLE_FREE:
	case BOOK_OP_OVERFLOW_FREE:
	case BOOK_OP_HOOKED:
		return true;
	default:
		return (op & (BOOK_OP_AMBIGUOUS | BOOK_OP_RESIZE)) != 0;
	}
}

/*
 * Whether it changes the warm line. Without a shape a buffer's occupancy is not known; an alias
 * occupies nothing.
 */
static inline bool event_is_warm(uint32_t op, const struct book_record *record)
{
	switch (op & BOOK_OP_MASK) {
	case BOOK_OP_ALLOC:
	case BOOK_OP_FREE:
		return record->shape != 0 || record->meta & BOOK_META_ALIAS;
	default:
		return (op & BOOK_OP_MASK) == BOOK_OP_UNPLACED_FREE;
	}
}

#define EVENT_OCCUPIED_UNKNOWN UINT64_MAX
#define EVENT_OCCUPIED_MAX ((UINT64_C(1) << 40) - 1) /* as for a size: sums cannot wrap */

/* What a buffer takes in all banks together; @shape is the one that the record names. */
static inline uint64_t event_occupied(const struct book_record *record,
				      const struct book_shape *shape)
{
	uint64_t occupied;

	if (record->meta & BOOK_META_ALIAS)
		return 0;
	if (!shape->size_per_bank || !shape->banks ||
	    __builtin_mul_overflow(shape->size_per_bank, (uint64_t)shape->banks, &occupied) ||
	    occupied > EVENT_OCCUPIED_MAX)
		return EVENT_OCCUPIED_UNKNOWN;
	return occupied;
}

/* For events that are warm; @occupied is the record's. */
static inline void event_count_warm(uint32_t op, uint64_t occupied, struct book_warm *warm)
{
	switch (op & BOOK_OP_MASK) {
	case BOOK_OP_ALLOC:
		warm->known += occupied != EVENT_OCCUPIED_UNKNOWN;
		warm->occupied += occupied != EVENT_OCCUPIED_UNKNOWN ? occupied : 0;
		break;
	case BOOK_OP_FREE:
		warm->known -= occupied != EVENT_OCCUPIED_UNKNOWN;
		warm->occupied -= occupied != EVENT_OCCUPIED_UNKNOWN ? occupied : 0;
		break;
	default:
		warm->unplaced_frees += warm->unplaced_frees < UINT32_MAX;
		break;
	}
}

static inline void event_count_hot(uint32_t op, uint64_t time, const struct book_record *record,
				   struct book_hot *hot)
{
	switch (op & BOOK_OP_MASK) {
	case BOOK_OP_ALLOC:
		hot->allocs++;
		hot->buffers++;
		hot->bytes += event_bytes(record);
		if (hot->bytes > hot->peak) {
			hot->peak = hot->bytes;
			hot->peak_time = time;
		}
		break;
	case BOOK_OP_REF:
	case BOOK_OP_LOST_ALLOC:
		hot->allocs++;
		break;
	case BOOK_OP_FREE:
		hot->frees++;
		hot->buffers--;
		hot->bytes -= event_bytes(record);
		break;
	case BOOK_OP_UNREF:
	case BOOK_OP_OVERFLOW_FREE:
		hot->frees++;
		break;
	case BOOK_OP_PEAK_RESET:
		hot->peak = hot->bytes;
		hot->peak_time = time;
		break;
	default:
		break;
	}
	hot->last = time;
}

static inline void event_count_cold(uint32_t op, struct book_cold *cold)
{
	switch (op & BOOK_OP_MASK) {
	case BOOK_OP_REF:
		cold->realloc_live++;
		break;
	case BOOK_OP_UNKNOWN_FREE:
		cold->unknown_frees++;
		break;
	case BOOK_OP_DOUBLE_FREE:
		cold->double_frees++;
		break;
	case BOOK_OP_OVERFLOW_FREE:
		cold->overflow_frees++;
		break;
	case BOOK_OP_HOOKED:
		cold->hooked++;
		break;
	default:
		break;
	}
	if (op & BOOK_OP_AMBIGUOUS)
		cold->ambiguous_frees++;
	if (op & BOOK_OP_RESIZE)
		cold->size_changes++;
}

/* Whether the event describes the state of a record, rather than only counting something. */
static inline bool event_has_slot(uint32_t op)
{
	uint32_t plain = op & BOOK_OP_MASK;

	return plain >= BOOK_OP_ALLOC && plain <= BOOK_OP_FREE;
}
