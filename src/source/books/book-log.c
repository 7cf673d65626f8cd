/* SPDX-License-Identifier: Apache-2.0 */

/* The whole log of a shard, as far back as its ring reaches. */

#include <errno.h>

#include "base/bits.h"
#include "source/books/book-private.h"

#define BOOK_LOG_TRIES 6
#define BOOK_LOG_AHEAD 4u /* events with which an owner may be overwriting the oldest ones */

int book_log_read(struct reader *reader, const struct book_shard *page, uint32_t device,
		  struct log *log)
{
	uint64_t ahead = BOOK_LOG_AHEAD;
	struct log_place place;
	int r = log_find(reader, page, device, &place);

	if (r < 0)
		return r;
	r = -EOVERFLOW;
	for (int i = 0; r == -EOVERFLOW && i < BOOK_LOG_TRIES; i++, ahead *= 8) {
		uint64_t head, first = 1;

		r = log_head(reader, device, &head);
		if (r < 0)
			return r;
		if (head + ahead > place.events)
			first = head + bits_min(ahead, place.events) - place.events + 1;
		log_start(log, &place, first);
		r = log_drain(log, reader);
	}
	return r;
}
