/* SPDX-License-Identifier: Apache-2.0 */

/* What is kept of a book, for a file. */

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/bits.h"
#include "recording/flight/retention-private.h"

/* Chunks that are to be walked through. */
struct retention_list {
	const struct retention_chunk **chunks;
	size_t count, capacity;
};

static int retention_list_add(struct retention_list *list, const struct retention_chunk *chunk)
{
	for (; chunk; chunk = chunk->next) {
		const struct retention_chunk **chunks =
			array_grow(list->chunks, &list->capacity, list->count + 1,
				   sizeof(const struct retention_chunk *));

		if (!chunks)
			return -ENOMEM;
		list->chunks = chunks;
		chunks[list->count++] = chunk;
	}
	return 0;
}

/* Where a stream begins for who wants what happened since then. */
static const struct retention_chunk *retention_begin(const struct retention_stream *stream,
						     uint64_t since_ns)
{
	const struct retention_chunk *begin = stream->first;

	for (const struct retention_chunk *chunk = begin; chunk; chunk = chunk->next) {
		if (chunk->entry.kind != RECORDING_KEYFRAME)
			continue;
		if (chunk->entry.realtime_now > since_ns)
			break;
		begin = chunk;
	}
	return begin;
}

static int retention_compare(const void *a, const void *b)
{
	const struct retention_chunk *const *left = a, *const *right = b;

	return bits_compare((*left)->order, (*right)->order);
}

static int retention_collect(const struct retention_book *book, uint64_t since_ns,
			     struct retention_list *list)
{
	const struct retention_chunk *bytes = book->bytes.first;
	uint64_t oldest = UINT64_MAX;
	int r = 0;

	for (size_t i = 0; r == 0 && i < book->count; i++) {
		const struct retention_chunk *begin = retention_begin(&book->streams[i], since_ns);

		if (begin)
			oldest = bits_min(oldest, begin->order);
		r = retention_list_add(list, begin);
	}
	while (bytes && bytes->order < oldest)
		bytes = bytes->next;
	if (r == 0)
		r = retention_list_add(list, bytes);
	if (r == 0 && list->count > 0)
		qsort((void *)list->chunks, list->count, sizeof(const struct retention_chunk *),
		      retention_compare);
	return r;
}

int retention_walk(const struct retention *retention, uint32_t user, uint32_t number,
		   uint64_t since_ns, retention_fn *fn, void *context)
{
	const struct retention_book *book = retention_book(retention_user(retention, user), number);
	struct retention_list list = {0};
	int r = book ? retention_collect(book, since_ns, &list) : 0;

	if (r == 0 && list.count == 0)
		r = -ENOENT;
	for (size_t i = 0; r == 0 && i < list.count; i++)
		r = fn(context, &list.chunks[i]->entry, list.chunks[i]->contents);
	free(list.chunks);
	return r;
}
