/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Each user has a ring, so that nobody loses a history because of what others do. Not a struct quota: rings have
 * a fixed size, and what is divided is their number.
 */

#include "legacy/server/legacy-history.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/append.h"
#include "base/bits.h"
#include "legacy/server/history-ring.h"
#include "model/types.h"

#define HISTORY_ALL_SHOWN 50u /* events of a buffer that was freed twice, as in the old server */
/* Of these buffers, shared by the users: the loop may wait for the list. */
#define HISTORY_LISTED 1000u

struct history_user {
	uint32_t uid;
	uint64_t last; /* when there was something of this user, in events of all */
	struct history_ring *ring;
};

struct legacy_history {
	pthread_mutex_t lock;
	uint64_t count; /* of events */
	size_t user_count;
	struct history_user users[LEGACY_HISTORY_USERS];
};

struct legacy_history *legacy_history_new(void)
{
	struct legacy_history *history = calloc(1, sizeof(*history));

	if (history)
		(void)pthread_mutex_init(&history->lock, NULL); /* cannot fail on Linux */
	return history;
}

struct legacy_history *legacy_history_free(struct legacy_history *history)
{
	if (!history)
		return NULL;
	for (size_t i = 0; i < history->user_count; i++)
		history_ring_free(history->users[i].ring);
	pthread_mutex_destroy(&history->lock);
	free(history);
	return NULL;
}

/* NULL: nothing is known of this user. */
static struct history_user *history_user_find(struct legacy_history *history, uint32_t uid)
{
	for (size_t i = 0; i < history->user_count; i++) {
		if (history->users[i].uid == uid)
			return &history->users[i];
	}
	return NULL;
}

/* The user who has been quiet for longest. */
static struct history_user *history_user_quiet(struct legacy_history *history)
{
	struct history_user *quiet = &history->users[0];

	for (size_t i = 1; i < history->user_count; i++) {
		if (history->users[i].last < quiet->last)
			quiet = &history->users[i];
	}
	return quiet;
}

/* The ring for an event of this user. NULL: no memory. */
static struct history_ring *history_ring_of(struct legacy_history *history, uint32_t uid)
{
	struct history_user *user = history_user_find(history, uid);

	if (!user && history->user_count < LEGACY_HISTORY_USERS) {
		user = &history->users[history->user_count++];
		*user = (struct history_user){.uid = uid};
	} else if (!user) {
		user = history_user_quiet(history);
		history_ring_free(user->ring);
		*user = (struct history_user){.uid = uid};
	}
	user->last = ++history->count;
	if (!user->ring)
		user->ring = history_ring_new();
	return user->ring;
}

static const char *history_word(enum history_kind kind)
{
	static const char *const words[] = {"ALLOC", "FREE", "REUSE"};

	return words[kind];
}

static void history_already_freed(const struct history_ring *ring,
				  const struct history_buffer *buffer, struct append *text)
{
	const struct history_event *events[LEGACY_HISTORY_SHOWN];
	size_t n = history_ring_last(ring, buffer, ARRAY_SIZE(events), events);

	append(text,
	       "⚠ [PID %" PRIu32 "] Deallocation for ALREADY FREED buffer 0x%" PRIx64
	       " on device %" PRIu32 " (allocs=%" PRIu64 " frees=%" PRIu64 ")\n",
	       buffer->key.pid, buffer->key.address, buffer->key.device, buffer->allocs,
	       buffer->frees);
	append(text, "   Last 5 events for this buffer:\n");
	for (size_t i = 0; i < n; i++)
		append(text, "     %s size=%" PRIu64 " pid=%" PRIu32 " ref=%" PRIu32 "\n",
		       history_word(events[i]->kind), events[i]->size, buffer->key.pid,
		       events[i]->refs);
}

/* A free need not say of which type. */
static struct history_buffer *history_find_freed(struct history_ring *ring,
						 const struct legacy_history_key *key)
{
	struct legacy_history_key any = *key;
	struct history_buffer *buffer = history_ring_find(ring, key);

	for (any.type = 0; any.type < TYPES_CB && !(buffer && buffer->frees > 0); any.type++)
		buffer = history_ring_find(ring, &any);
	return buffer && buffer->frees > 0 ? buffer : NULL;
}

/* A free that found nothing: of what was freed before, as far as the book or this knows, or not. */
static void history_wrong_free(struct history_ring *ring, struct append *text,
			       const struct legacy_history_key *key, bool was_freed)
{
	struct history_buffer *buffer = history_find_freed(ring, key);
	const struct history_event *last = buffer ? history_ring_at(ring, buffer->last) : NULL;
	uint64_t size = last ? last->size : 0;

	if (!was_freed && !buffer) {
		append(text,
		       "⚠ [PID %" PRIu32 "] Deallocation for unknown buffer 0x%" PRIx64
		       " on device %" PRIu32
		       " (never tracked or allocated before server started)\n",
		       key->pid, key->address, key->device);
		return;
	}
	if (!buffer)
		buffer = history_ring_get(ring, key);
	ring->double_freed += !buffer->is_double_freed;
	buffer->is_double_freed = true;
	history_ring_add(ring, buffer, HISTORY_FREE, size, 0);
	history_already_freed(ring, buffer, text);
}

static void history_alloc(struct history_ring *ring, struct append *text,
			  const struct seed_lines_event *event,
			  const struct legacy_history_key *key, uint32_t op)
{
	const struct book_record *record = &event->event->record;
	struct history_buffer *buffer = history_ring_get(ring, key);
	bool is_resized = buffer->resized_from != 0;

	if (is_resized)
		append(text,
		       "⚠ [PID %" PRIu32 "] Buffer reused with DIFFERENT size: old=%" PRIu64
		       " new=%" PRIu64 " (buffer_id=0x%" PRIx64 ", device=%" PRIu32 ")\n",
		       key->pid, buffer->resized_from, record->size, key->address, key->device);
	buffer->resized_from = 0;
	history_ring_add(ring, buffer,
			 is_resized || op == BOOK_OP_REF ? HISTORY_REUSE : HISTORY_ALLOC,
			 record->size, book_meta_refs(record->meta));
	text->length += seed_lines_event(event, text->bytes + text->length);
}

static void history_free(struct history_ring *ring, struct append *text,
			 const struct seed_lines_event *event, const struct legacy_history_key *key)
{
	const struct book_record *record = &event->event->record;
	struct history_buffer *buffer = history_ring_get(ring, key);
	uint32_t op = event->event->op_slot & BOOK_OP_MASK;

	if (event->event->op_slot & BOOK_OP_RESIZE) {
		buffer->resized_from = record->size;
		return; /* the line is that of the allocation, which follows */
	}
	history_ring_add(ring, buffer, HISTORY_FREE, record->size,
			 op == BOOK_OP_UNREF ? book_meta_refs(record->meta) : 0);
	text->length += seed_lines_event(event, text->bytes + text->length);
}

size_t legacy_history_event(struct legacy_history *history, const struct seed_lines_event *event,
			    char ret_text[LEGACY_HISTORY_SIZE])
{
	const struct book_record *record = &event->event->record;
	struct legacy_history_key key = {
		.uid = event->uid,
		.pid = event->pid,
		.device = event->device,
		.type = book_meta_type(record->meta),
		.address = record->address,
	};
	struct append text = {.bytes = ret_text, .size = LEGACY_HISTORY_SIZE};
	uint32_t op = event->event->op_slot & BOOK_OP_MASK;
	bool is_wrong = op == BOOK_OP_DOUBLE_FREE || op == BOOK_OP_UNKNOWN_FREE ||
			op == BOOK_OP_OVERFLOW_FREE;
	bool is_buffer = key.type < TYPES_CB;
	struct history_ring *ring;

	if (!history)
		return seed_lines_event(event, ret_text);
	pthread_mutex_lock(&history->lock);
	ring = history_ring_of(history, key.uid);
	if (ring && is_wrong)
		history_wrong_free(ring, &text, &key, op == BOOK_OP_DOUBLE_FREE);
	else if (ring && is_buffer && (op == BOOK_OP_ALLOC || op == BOOK_OP_REF))
		history_alloc(ring, &text, event, &key, op);
	else if (ring && is_buffer && (op == BOOK_OP_FREE || op == BOOK_OP_UNREF))
		history_free(ring, &text, event, &key);
	else
		text.length = seed_lines_event(event, ret_text);
	pthread_mutex_unlock(&history->lock);
	return text.length;
}

/* The oldest first, as people read a story. */
static void history_put_events(const struct history_ring *ring, const struct history_buffer *buffer,
			       FILE *out, size_t max, const char *indent)
{
	const struct history_event *events[HISTORY_ALL_SHOWN];
	size_t n = history_ring_last(ring, buffer, max, events);

	while (n-- > 0)
		fprintf(out, "%s%s size=%" PRIu64 " pid=%" PRIu32 " ref=%" PRIu32 "\n", indent,
			history_word(events[n]->kind), events[n]->size, buffer->key.pid,
			events[n]->refs);
}

void legacy_history_put(struct legacy_history *history, FILE *out,
			const struct legacy_history_key *key)
{
	const struct history_buffer *buffer;
	const struct history_user *user;

	if (!history)
		return;
	pthread_mutex_lock(&history->lock);
	user = history_user_find(history, key->uid);
	buffer = user && user->ring ? history_ring_find(user->ring, key) : NULL;
	if (buffer) {
		fprintf(out, "      History (allocs=%" PRIu64 " frees=%" PRIu64 "):\n",
			buffer->allocs, buffer->frees);
		history_put_events(user->ring, buffer, out, LEGACY_HISTORY_SHOWN, "        ");
	}
	pthread_mutex_unlock(&history->lock);
}

static size_t history_double_freed(const struct legacy_history *history)
{
	size_t count = 0;

	for (size_t i = 0; i < history->user_count; i++)
		count += history->users[i].ring ? history->users[i].ring->double_freed : 0;
	return count;
}

size_t legacy_history_double_freed(struct legacy_history *history)
{
	size_t count;

	if (!history)
		return 0;
	pthread_mutex_lock(&history->lock);
	count = history_double_freed(history);
	pthread_mutex_unlock(&history->lock);
	return count;
}

/* Those of one user, @max at most. Return: how many. */
static size_t history_put_ring(const struct history_ring *ring, FILE *out, size_t max)
{
	size_t found = 0;

	for (uint32_t i = 0; i < ring->used && found < max; i++) {
		const struct history_buffer *buffer = &ring->buffers[i];

		if (!buffer->is_double_freed)
			continue;
		found++;
		fprintf(out,
			"Buffer 0x%" PRIx64 " on device %" PRIu32 ":\n  Total allocs: %" PRIu64
			", Total frees: %" PRIu64 "\n  History:\n",
			buffer->key.address, buffer->key.device, buffer->allocs, buffer->frees);
		history_put_events(ring, buffer, out, HISTORY_ALL_SHOWN, "    ");
	}
	return found;
}

void legacy_history_put_double_freed(struct legacy_history *history, FILE *out)
{
	size_t left;

	pthread_mutex_lock(&history->lock);
	left = history_double_freed(history);
	for (size_t i = 0; i < history->user_count; i++) {
		if (history->users[i].ring)
			left -= history_put_ring(history->users[i].ring, out,
						 HISTORY_LISTED / history->user_count);
	}
	if (left > 0)
		fprintf(out, "... and %zu more\n", left);
	pthread_mutex_unlock(&history->lock);
}
