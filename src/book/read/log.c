/* SPDX-License-Identifier: Apache-2.0 */

/* Draining the ring. */

#include "book/read/log.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/bits.h"

/* The owner may be writing this many events beyond the published head: a size change writes two. */
#define LOG_AHEAD 2u

int log_find(struct reader *reader, const struct book_shard *page, uint32_t device,
	     struct log_place *ret_place)
{
	uint32_t events = page->ring_events;

	if (events < BOOK_RING_MIN || events > BOOK_RING_MAX || (events & (events - 1)))
		return -EBADMSG;
	if (!reader_segment_is(reader, page->ring_unit,
			       events / (BOOK_UNIT / (uint32_t)sizeof(struct book_event)), device,
			       BOOK_SEGMENT_RING))
		return -EBADMSG;
	*ret_place = (struct log_place){
		.device = device,
		.events = events,
		.offset = book_unit_offset(page->ring_unit),
	};
	return 0;
}

int log_head(struct reader *reader, uint32_t device, uint64_t *ret_head)
{
	uint64_t head;
	int r;

	/*
	 * Pairs with shard_publish() twice. Its barrier: this head covers everything copied before
	 * from newer events. Its release: later reads see all events up to this head.
	 */
	r = file_read(reader->file, book_shard_offset(device) + offsetof(struct book_shard, head),
		      &head, sizeof(head));
	if (r < 0)
		return r;
	if (head > LOG_NUMBER_MAX)
		return -EBADMSG;
	*ret_head = head;
	return 0;
}

void log_start(struct log *log, const struct log_place *place, uint64_t first)
{
	log->place = *place;
	log->first = first;
	log->count = 0;
}

int log_read(const struct log_place *place, struct reader *reader, uint64_t from, uint64_t to,
	     struct book_event *ret_events)
{
	while (from <= to) {
		uint64_t at = from & (place->events - 1);
		uint64_t run = bits_min(to - from + 1, place->events - at);
		int r = file_read(reader->file, place->offset + at * sizeof(struct book_event),
				  ret_events, run * sizeof(struct book_event));

		if (r < 0)
			return r;
		ret_events += run;
		from += run;
	}
	return 0;
}

static int log_make_room(struct log *log, uint64_t more)
{
	uint64_t capacity = bits_max(log->capacity, 1024);
	struct book_event *events;

	if (log->count + more > LOG_EVENTS_MAX)
		return -ENOBUFS;
	if (log->count + more <= log->capacity)
		return 0;
	while (capacity < log->count + more)
		capacity *= 2;
	events = realloc(log->events, capacity * sizeof(*events));
	if (!events)
		return -ENOMEM;
	log->events = events;
	log->capacity = capacity;
	return 0;
}

int log_drain_part(struct log *log, struct reader *reader, uint64_t max, uint64_t *ret_left)
{
	uint64_t next = log->first + log->count;
	uint64_t head, last, after;
	int r;

	*ret_left = 0;
	r = log_head(reader, log->place.device, &head);
	if (r < 0)
		return r;
	if (head + 1 < next)
		return -EBADMSG;
	if (head < next)
		return 0;
	if (head - next >= log->place.events)
		return -EOVERFLOW;
	last = next + bits_min(head - next, max - 1);
	r = log_make_room(log, last - next + 1);
	if (r < 0)
		return r;
	r = log_read(&log->place, reader, next, last, log->events + log->count);
	if (r < 0)
		return r;
	r = log_head(reader, log->place.device, &after);
	if (r < 0)
		return r;
	if (after < head)
		return -EBADMSG;
	if (after + LOG_AHEAD >= next + log->place.events)
		return -EOVERFLOW;
	log->count += last - next + 1;
	*ret_left = head - last;
	return 0;
}

int log_drain(struct log *log, struct reader *reader)
{
	uint64_t left;

	return log_drain_part(log, reader, UINT64_MAX, &left);
}

void log_deinit(struct log *log)
{
	free(log->events);
	*log = (struct log){0};
}
