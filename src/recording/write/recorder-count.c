/* SPDX-License-Identifier: Apache-2.0 */

/* Counters of a device, forwards and backwards. */

#include <string.h>

#include "book/format/event.h"
#include "recording/write/recorder-private.h"

void recorder_count(struct recorder_counters *counters, struct reader *reader,
		    const struct book_event *event, uint64_t number)
{
	uint32_t op = event->op_slot & 0xff;
	uint32_t type = book_meta_type(event->record.meta);

	if (type >= BOOK_TYPES)
		return;
	event_count_hot(op, event->time, &event->record, &counters->hot[type]);
	counters->hot[type].number = number;
	if (unlikely(event_is_rare(op))) {
		event_count_cold(op, &counters->cold[type]);
		counters->cold[type].number = number;
	}
	if (unlikely(event_is_warm(op, &event->record)) && reader_has_warm(reader)) {
		event_count_warm(op, reader_occupied(reader, &event->record),
				 &counters->warm[type]);
		counters->warm[type].number = number;
	}
}

/* Peaks cannot be undone: recorder_past_begin() sets them. */
static void uncount_hot(uint32_t op, const struct book_record *record, struct book_hot *hot)
{
	switch (op & BOOK_OP_MASK) {
	case BOOK_OP_ALLOC:
		hot->allocs--;
		hot->buffers--;
		hot->bytes -= event_bytes(record);
		break;
	case BOOK_OP_REF:
	case BOOK_OP_LOST_ALLOC:
		hot->allocs--;
		break;
	case BOOK_OP_FREE:
		hot->frees--;
		hot->buffers++;
		hot->bytes += event_bytes(record);
		break;
	case BOOK_OP_UNREF:
	case BOOK_OP_OVERFLOW_FREE:
		hot->frees--;
		break;
	default:
		break;
	}
}

static void uncount_cold(uint32_t op, struct book_cold *cold)
{
	struct book_cold one = {0};

	event_count_cold(op, &one);
	cold->unknown_frees -= one.unknown_frees;
	cold->double_frees -= one.double_frees;
	cold->size_changes -= one.size_changes;
	cold->realloc_live -= one.realloc_live;
	cold->ambiguous_frees -= one.ambiguous_frees;
	cold->hooked -= one.hooked;
	cold->overflow_frees -= one.overflow_frees;
}

void recorder_uncount(struct recorder_counters *counters, struct reader *reader,
		      const struct book_event *event)
{
	uint32_t op = event->op_slot & 0xff;
	uint32_t type = book_meta_type(event->record.meta);
	struct book_warm one = {0};

	if (type >= BOOK_TYPES)
		return;
	uncount_hot(op, &event->record, &counters->hot[type]);
	uncount_cold(op, &counters->cold[type]);
	if (event_is_warm(op, &event->record) && reader_has_warm(reader)) {
		event_count_warm(op, reader_occupied(reader, &event->record), &one);
		counters->warm[type].known -= one.known;
		counters->warm[type].occupied -= one.occupied;
		counters->warm[type].unplaced_frees -= one.unplaced_frees;
	}
}

/* The page as it would be if the owner had stopped after event `done`. */
void recorder_count_page(const struct recorder_shard *shard, struct book_shard *page)
{
	struct book_checkpoint *checkpoint = &page->checkpoint[0];

	page->head = shard->done;
	page->slots = shard->table.count;
	memset(page->hot, 0, sizeof(page->hot));
	memset(page->cold, 0, sizeof(page->cold));
	memset(page->checkpoint, 0, sizeof(page->checkpoint));
	memset(page->warm, 0, sizeof(page->warm));
	checkpoint->number = shard->done;
	for (uint32_t type = 0; type < BOOK_TYPES; type++) {
		const struct book_warm *warm = &shard->counters.warm[type];

		page->hot[type][0] = checkpoint->hot[type] = shard->counters.hot[type];
		page->cold[type][0] = checkpoint->cold[type] = shard->counters.cold[type];
		page->warm[type][0] = *warm;
		checkpoint->cold[type].known = warm->known;
		checkpoint->cold[type].unplaced_frees = warm->unplaced_frees;
		checkpoint->occupied[type] = warm->occupied;
	}
}
