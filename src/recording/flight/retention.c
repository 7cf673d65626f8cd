/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Users, their books, and the streams of these: one for each device, whose chunks begin with a
 * keyframe, and one for bytes of the book, which are kept as long as a chunk of a device that came
 * before them is. Chunks are only added at one end and dropped at the other.
 */

#include "recording/flight/retention.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/bits.h"
#include "recording/flight/retention-private.h"

/* A stream and where it is. Valid until a user, book or stream is added or removed. */
struct retention_place {
	struct retention_user *user;
	struct retention_book *book;
	struct retention_stream *stream;
};

int retention_new(struct retention **ret_retention, const struct retention_limits *limits)
{
	struct retention *retention = calloc(1, sizeof(*retention));

	if (!retention)
		return -ENOMEM;
	retention->limits = *limits;
	*ret_retention = retention;
	return 0;
}

struct retention_user *retention_user(const struct retention *retention, uint32_t number)
{
	for (size_t i = 0; i < retention->count; i++) {
		if (retention->users[i].number == number)
			return &retention->users[i];
	}
	return NULL;
}

struct retention_book *retention_book(const struct retention_user *user, uint32_t number)
{
	for (size_t i = 0; user && i < user->count; i++) {
		if (user->books[i].number == number)
			return &user->books[i];
	}
	return NULL;
}

static struct retention_stream *retention_stream(const struct retention_book *book, uint32_t device)
{
	for (size_t i = 0; book && i < book->count; i++) {
		if (book->streams[i].device == device)
			return &book->streams[i];
	}
	return NULL;
}

static void retention_free_first(struct retention *retention, struct retention_user *user,
				 struct retention_stream *stream)
{
	struct retention_chunk *chunk = stream->first;

	stream->first = chunk->next;
	if (!stream->first)
		stream->last = NULL;
	stream->cost -= chunk->cost;
	user->cost -= chunk->cost;
	retention->cost -= chunk->cost;
	free(chunk);
}

/* Drops bytes that are older than every chunk of a device: a file gets the book's bytes anew. */
static void retention_trim_bytes(struct retention *retention, struct retention_user *user,
				 struct retention_book *book)
{
	uint64_t oldest = UINT64_MAX;

	for (size_t i = 0; i < book->count; i++) {
		if (book->streams[i].first)
			oldest = bits_min(oldest, book->streams[i].first->order);
	}
	while (book->bytes.first && book->bytes.first->order < oldest)
		retention_free_first(retention, user, &book->bytes);
}

/* The chunks before @end; NULL = all. */
static void retention_drop_until(struct retention *retention, const struct retention_place *place,
				 const struct retention_chunk *end)
{
	struct retention_stream *stream = place->stream;

	while (stream->first != end)
		retention_free_first(retention, place->user, stream);
	stream->second = stream->first ? stream->first->next : NULL;
	while (stream->second && stream->second->entry.kind != RECORDING_KEYFRAME)
		stream->second = stream->second->next;
	retention_trim_bytes(retention, place->user, place->book);
}

/* Whether of two streams with chunks the first one is to give something up before the second. */
static bool retention_gives_first(const struct retention_stream *a,
				  const struct retention_stream *b)
{
	if (!a->second != !b->second)
		return a->second != NULL;
	/* Only last intervals are left: the largest goes, so that quiet devices stay. */
	if (!a->second)
		return a->cost > b->cost;
	return a->first->order < b->first->order;
}

/* @user has something. */
static void retention_take_from(struct retention *retention, struct retention_user *user)
{
	struct retention_place best = {.user = user};

	for (size_t i = 0; i < user->count; i++) {
		struct retention_book *book = &user->books[i];

		for (size_t k = 0; k < book->count; k++) {
			struct retention_stream *stream = &book->streams[k];

			if (!stream->first ||
			    (best.stream && !retention_gives_first(stream, best.stream)))
				continue;
			best.book = book;
			best.stream = stream;
		}
	}
	if (!best.stream)
		return; /* who has something has a stream */
	retention->dropped++;
	retention_drop_until(retention, &best, best.stream->second);
}

/* False: @own would have most, and has nothing to give up. */
static bool retention_make_room(struct retention *retention, struct retention_user *own,
				uint64_t cost)
{
	while (retention->cost + cost > retention->limits.size_max) {
		struct retention_user *most = own;

		for (size_t i = 0; i < retention->count; i++) {
			struct retention_user *user = &retention->users[i];

			if (user->cost > most->cost + (most == own ? cost : 0))
				most = user;
		}
		if (most->cost == 0)
			return false;
		retention_take_from(retention, most);
	}
	return true;
}

static struct retention_user *retention_get_user(struct retention *retention, uint32_t number)
{
	struct retention_user *user = retention_user(retention, number);

	if (user)
		return user;
	user = array_grow(retention->users, &retention->capacity, retention->count + 1,
			  sizeof(*user));
	if (!user)
		return NULL;
	retention->users = user;
	user += retention->count++;
	*user = (struct retention_user){.number = number};
	return user;
}

static struct retention_book *retention_get_book(struct retention_user *user, uint32_t number)
{
	struct retention_book *book = retention_book(user, number);

	if (book)
		return book;
	book = array_grow(user->books, &user->capacity, user->count + 1, sizeof(*book));
	if (!book)
		return NULL;
	user->books = book;
	book += user->count++;
	*book = (struct retention_book){.number = number};
	return book;
}

static struct retention_stream *retention_get_stream(struct retention_book *book, uint32_t device)
{
	struct retention_stream *stream = retention_stream(book, device);

	if (stream)
		return stream;
	stream = array_grow(book->streams, &book->capacity, book->count + 1, sizeof(*stream));
	if (!stream)
		return NULL;
	book->streams = stream;
	stream += book->count++;
	*stream = (struct retention_stream){.device = device};
	return stream;
}

static bool retention_is_kept(const struct recording_entry *entry)
{
	switch (entry->kind) {
	case RECORDING_BYTES:
		return true;
	case RECORDING_EVENTS:
	case RECORDING_KEYFRAME:
	case RECORDING_GAP:
	case RECORDING_SITES:
		return entry->device != RECORDING_NONE;
	default:
		return false;
	}
}

/* Where a chunk belongs. -ENOMEM. */
static int retention_find_place(struct retention *retention, uint32_t user,
				const struct recording_entry *entry,
				struct retention_place *ret_place)
{
	struct retention_place place = {.user = retention_get_user(retention, user)};

	if (place.user)
		place.book = retention_get_book(place.user, entry->book);
	if (place.book)
		place.stream = entry->kind == RECORDING_BYTES
				       ? &place.book->bytes
				       : retention_get_stream(place.book, entry->device);
	*ret_place = place;
	return place.stream ? 0 : -ENOMEM;
}

/* Whether what came before a chunk is still there, without which it means nothing. */
static bool retention_has_base(const struct retention_place *place,
			       const struct recording_entry *entry)
{
	if (entry->kind == RECORDING_KEYFRAME || place->stream->first)
		return true;
	if (entry->kind != RECORDING_BYTES)
		return false;
	for (size_t i = 0; i < place->book->count; i++) {
		if (place->book->streams[i].first)
			return true;
	}
	return false;
}

static void retention_append(struct retention *retention, const struct retention_place *place,
			     struct retention_chunk *chunk)
{
	struct retention_stream *stream = place->stream;

	if (stream->last)
		stream->last->next = chunk;
	else
		stream->first = chunk;
	stream->last = chunk;
	if (chunk->entry.kind == RECORDING_KEYFRAME && !stream->second && stream->first != chunk)
		stream->second = chunk;
	stream->cost += chunk->cost;
	place->user->cost += chunk->cost;
	retention->cost += chunk->cost;
}

int retention_add(struct retention *retention, uint32_t user, const struct recording_entry *entry,
		  const void *contents)
{
	uint64_t cost = (uint64_t)entry->length + RETENTION_CHUNK_COST;
	struct retention_chunk *chunk;
	struct retention_place place;
	int r;

	if (!retention_is_kept(entry))
		return 0;
	r = retention_find_place(retention, user, entry, &place);
	if (r < 0) {
		retention_drop_book(retention, user, entry->book);
		return r;
	}
	if (!retention_has_base(&place, entry))
		return 0;
	/* Making room may take what this chunk continues. */
	if (!retention_make_room(retention, place.user, cost) || !retention_has_base(&place, entry))
		return 0;
	chunk = malloc(sizeof(*chunk) + entry->length);
	if (!chunk) {
		/* What came before it would go on wrongly. */
		if (place.stream != &place.book->bytes)
			retention_drop_until(retention, &place, NULL);
		return -ENOMEM;
	}
	*chunk = (struct retention_chunk){
		.order = ++retention->order, .cost = cost, .entry = *entry};
	if (entry->length)
		memcpy(chunk->contents, contents, entry->length);
	retention_append(retention, &place, chunk);
	return 0;
}

/* What is left covers the time nevertheless: it begins with a keyframe from before it. */
void retention_expire(struct retention *retention, uint64_t now_ns)
{
	uint64_t since =
		now_ns > retention->limits.time_ns ? now_ns - retention->limits.time_ns : 0;

	for (size_t i = 0; i < retention->count; i++) {
		struct retention_place place = {.user = &retention->users[i]};

		for (size_t k = 0; k < place.user->count; k++) {
			place.book = &place.user->books[k];
			for (size_t n = 0; n < place.book->count; n++) {
				place.stream = &place.book->streams[n];
				while (place.stream->second &&
				       place.stream->second->entry.realtime_now <= since)
					retention_drop_until(retention, &place,
							     place.stream->second);
			}
		}
	}
}

static void retention_empty_book(struct retention *retention, struct retention_user *user,
				 struct retention_book *book)
{
	for (size_t i = 0; i < book->count; i++) {
		while (book->streams[i].first)
			retention_free_first(retention, user, &book->streams[i]);
	}
	while (book->bytes.first)
		retention_free_first(retention, user, &book->bytes);
	free(book->streams);
}

void retention_drop_book(struct retention *retention, uint32_t number, uint32_t book_number)
{
	struct retention_user *user = retention_user(retention, number);
	struct retention_book *book = retention_book(user, book_number);

	if (!book)
		return;
	retention_empty_book(retention, user, book);
	*book = user->books[--user->count];
}

void retention_drop_user(struct retention *retention, uint32_t number)
{
	struct retention_user *user = retention_user(retention, number);

	if (!user)
		return;
	for (size_t i = 0; i < user->count; i++)
		retention_empty_book(retention, user, &user->books[i]);
	free(user->books);
	*user = retention->users[--retention->count];
}

struct retention *retention_free(struct retention *retention)
{
	if (!retention)
		return NULL;
	while (retention->count > 0)
		retention_drop_user(retention, retention->users[0].number);
	free(retention->users);
	free(retention);
	return NULL;
}

uint64_t retention_size(const struct retention *retention)
{
	return retention->cost;
}

uint64_t retention_user_size(const struct retention *retention, uint32_t number)
{
	const struct retention_user *user = retention_user(retention, number);

	return user ? user->cost : 0;
}

uint64_t retention_dropped(const struct retention *retention)
{
	return retention->dropped;
}
