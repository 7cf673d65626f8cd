/* SPDX-License-Identifier: Apache-2.0 */

/* The histories of buffers, in a ring. */

#include "compat/server/legacy-history.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/append.h"
#include "base/bits.h"
#include "base/hash.h"
#include "model/types.h"

#define HISTORY_CHAINS 65536u
#define HISTORY_ALL_SHOWN 50u /* events of a buffer that was freed twice, as in the old server */
#define HISTORY_LISTED 1000u  /* of these buffers; the loop may wait for the list */
#define HISTORY_NONE UINT32_MAX

enum history_kind {
	HISTORY_ALLOC,
	HISTORY_FREE,
	HISTORY_REUSE,
};

struct history_event {
	uint64_t before; /* number of the buffer's event before this one; 0 = none */
	uint64_t size;
	uint32_t refs;
	enum history_kind kind;
};

struct history_buffer {
	struct legacy_history_key key;
	uint64_t allocs, frees;
	uint64_t last;         /* number of its last event */
	uint64_t resized_from; /* the old size, between the two events of a size change */
	uint32_t next;         /* in its chain */
	bool is_double_freed;
};

struct legacy_history {
	pthread_mutex_t lock;
	uint64_t seed;
	uint64_t count; /* of events ever; the last one's number */
	uint32_t used;  /* buffers ever, up to the maximum */
	uint32_t turn;  /* the buffer that is replaced next */
	size_t double_freed;
	uint32_t chains[HISTORY_CHAINS];
	struct history_buffer buffers[LEGACY_HISTORY_BUFFERS];
	struct history_event events[LEGACY_HISTORY_EVENTS];
};

struct legacy_history *legacy_history_new(void)
{
	/* Most of it is never touched. */
	struct legacy_history *history = calloc(1, sizeof(*history));

	if (!history)
		return NULL;
	(void)pthread_mutex_init(&history->lock, NULL); /* cannot fail on Linux */
	history->seed = hash_seed(history);
	for (uint32_t i = 0; i < HISTORY_CHAINS; i++)
		history->chains[i] = HISTORY_NONE;
	return history;
}

struct legacy_history *legacy_history_free(struct legacy_history *history)
{
	if (history)
		pthread_mutex_destroy(&history->lock);
	free(history);
	return NULL;
}

static uint32_t *history_chain(struct legacy_history *history, const struct legacy_history_key *key)
{
	uint64_t hash = hash_fold(key->address ^ history->seed, HASH_K1);

	hash = hash_fold(hash ^ ((uint64_t)key->pid << 32 | key->device), history->seed);
	return &history->chains[hash % HISTORY_CHAINS];
}

static bool history_is_same(const struct legacy_history_key *a, const struct legacy_history_key *b)
{
	return a->address == b->address && a->pid == b->pid && a->device == b->device &&
	       a->type == b->type;
}

static struct history_buffer *history_find(struct legacy_history *history,
					   const struct legacy_history_key *key)
{
	uint32_t at = *history_chain(history, key);

	while (at != HISTORY_NONE && !history_is_same(&history->buffers[at].key, key))
		at = history->buffers[at].next;
	return at == HISTORY_NONE ? NULL : &history->buffers[at];
}

static void history_unlink(struct legacy_history *history, uint32_t index)
{
	uint32_t *at = history_chain(history, &history->buffers[index].key);

	while (*at != index)
		at = &history->buffers[*at].next;
	*at = history->buffers[index].next;
	history->double_freed -= history->buffers[index].is_double_freed;
}

static struct history_buffer *history_get(struct legacy_history *history,
					  const struct legacy_history_key *key)
{
	struct history_buffer *buffer = history_find(history, key);
	uint32_t *chain = history_chain(history, key);
	uint32_t index = history->turn;

	if (buffer)
		return buffer;
	history->turn = (index + 1) % LEGACY_HISTORY_BUFFERS;
	if (history->used == LEGACY_HISTORY_BUFFERS)
		history_unlink(history, index);
	else
		history->used++;
	buffer = &history->buffers[index];
	*buffer = (struct history_buffer){.key = *key, .next = *chain};
	*chain = index;
	return buffer;
}

static void history_add(struct legacy_history *history, struct history_buffer *buffer,
			enum history_kind kind, uint64_t size, uint32_t refs)
{
	uint64_t number = ++history->count;

	history->events[number % LEGACY_HISTORY_EVENTS] = (struct history_event){
		.before = buffer->last,
		.size = size,
		.refs = refs,
		.kind = kind,
	};
	buffer->last = number;
	if (kind == HISTORY_FREE)
		buffer->frees++;
	else
		buffer->allocs++;
}

/* NULL: there is none, or newer ones have taken its place. */
static const struct history_event *history_at(const struct legacy_history *history, uint64_t number)
{
	if (number == 0 || history->count - number >= LEGACY_HISTORY_EVENTS)
		return NULL;
	return &history->events[number % LEGACY_HISTORY_EVENTS];
}

/* The buffer's last events, newest first. Return: how many. */
static size_t history_last(const struct legacy_history *history,
			   const struct history_buffer *buffer, size_t max,
			   const struct history_event **ret_events)
{
	const struct history_event *event = history_at(history, buffer->last);
	size_t n = 0;

	while (event && n < max) {
		ret_events[n++] = event;
		event = history_at(history, event->before);
	}
	return n;
}

static const char *history_word(enum history_kind kind)
{
	static const char *const words[] = {"ALLOC", "FREE", "REUSE"};

	return words[kind];
}

static void history_already_freed(const struct legacy_history *history,
				  const struct history_buffer *buffer, struct append *text)
{
	const struct history_event *events[LEGACY_HISTORY_SHOWN];
	size_t n = history_last(history, buffer, ARRAY_SIZE(events), events);

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
static struct history_buffer *history_find_freed(struct legacy_history *history,
						 const struct legacy_history_key *key)
{
	struct legacy_history_key any = *key;
	struct history_buffer *buffer = history_find(history, key);

	for (any.type = 0; any.type < TYPES_CB && !(buffer && buffer->frees > 0); any.type++)
		buffer = history_find(history, &any);
	return buffer && buffer->frees > 0 ? buffer : NULL;
}

/* A free that found nothing: of what was freed before, as far as the book or this knows, or not. */
static void history_wrong_free(struct legacy_history *history, struct append *text,
			       const struct legacy_history_key *key, bool was_freed)
{
	struct history_buffer *buffer = history_find_freed(history, key);
	const struct history_event *last = buffer ? history_at(history, buffer->last) : NULL;
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
		buffer = history_get(history, key);
	history->double_freed += !buffer->is_double_freed;
	buffer->is_double_freed = true;
	history_add(history, buffer, HISTORY_FREE, size, 0);
	history_already_freed(history, buffer, text);
}

static void history_alloc(struct legacy_history *history, struct append *text,
			  const struct legacy_lines_event *event,
			  const struct legacy_history_key *key, uint32_t op)
{
	const struct book_record *record = &event->event->record;
	struct history_buffer *buffer = history_get(history, key);
	bool is_resized = buffer->resized_from != 0;

	if (is_resized)
		append(text,
		       "⚠ [PID %" PRIu32 "] Buffer reused with DIFFERENT size: old=%" PRIu64
		       " new=%" PRIu64 " (buffer_id=0x%" PRIx64 ", device=%" PRIu32 ")\n",
		       key->pid, buffer->resized_from, record->size, key->address, key->device);
	buffer->resized_from = 0;
	history_add(history, buffer,
		    is_resized || op == BOOK_OP_REF ? HISTORY_REUSE : HISTORY_ALLOC, record->size,
		    book_meta_refs(record->meta));
	text->length += legacy_lines_event(event, text->bytes + text->length);
}

static void history_free(struct legacy_history *history, struct append *text,
			 const struct legacy_lines_event *event,
			 const struct legacy_history_key *key)
{
	const struct book_record *record = &event->event->record;
	struct history_buffer *buffer = history_get(history, key);
	uint32_t op = event->event->op_slot & BOOK_OP_MASK;

	if (event->event->op_slot & BOOK_OP_RESIZE) {
		buffer->resized_from = record->size;
		return; /* the line is that of the allocation, which follows */
	}
	history_add(history, buffer, HISTORY_FREE, record->size,
		    op == BOOK_OP_UNREF ? book_meta_refs(record->meta) : 0);
	text->length += legacy_lines_event(event, text->bytes + text->length);
}

size_t legacy_history_event(struct legacy_history *history, const struct legacy_lines_event *event,
			    char ret_text[LEGACY_HISTORY_SIZE])
{
	const struct book_record *record = &event->event->record;
	struct legacy_history_key key = {
		.pid = event->pid,
		.device = event->device,
		.type = book_meta_type(record->meta),
		.address = record->address,
	};
	struct append text = {.bytes = ret_text, .size = LEGACY_HISTORY_SIZE};
	uint32_t op = event->event->op_slot & BOOK_OP_MASK;
	bool is_buffer = key.type < TYPES_CB;

	if (!history)
		return legacy_lines_event(event, ret_text);
	pthread_mutex_lock(&history->lock);
	if (op == BOOK_OP_DOUBLE_FREE || op == BOOK_OP_UNKNOWN_FREE || op == BOOK_OP_OVERFLOW_FREE)
		history_wrong_free(history, &text, &key, op == BOOK_OP_DOUBLE_FREE);
	else if (is_buffer && (op == BOOK_OP_ALLOC || op == BOOK_OP_REF))
		history_alloc(history, &text, event, &key, op);
	else if (is_buffer && (op == BOOK_OP_FREE || op == BOOK_OP_UNREF))
		history_free(history, &text, event, &key);
	else
		text.length = legacy_lines_event(event, ret_text);
	pthread_mutex_unlock(&history->lock);
	return text.length;
}

/* The oldest first, as people read a story. */
static void history_put_events(const struct legacy_history *history,
			       const struct history_buffer *buffer, FILE *out, size_t max,
			       const char *indent)
{
	const struct history_event *events[HISTORY_ALL_SHOWN];
	size_t n = history_last(history, buffer, max, events);

	while (n-- > 0)
		fprintf(out, "%s%s size=%" PRIu64 " pid=%" PRIu32 " ref=%" PRIu32 "\n", indent,
			history_word(events[n]->kind), events[n]->size, buffer->key.pid,
			events[n]->refs);
}

void legacy_history_put(struct legacy_history *history, FILE *out,
			const struct legacy_history_key *key)
{
	const struct history_buffer *buffer;

	if (!history)
		return;
	pthread_mutex_lock(&history->lock);
	buffer = history_find(history, key);
	if (buffer) {
		fprintf(out, "      History (allocs=%" PRIu64 " frees=%" PRIu64 "):\n",
			buffer->allocs, buffer->frees);
		history_put_events(history, buffer, out, LEGACY_HISTORY_SHOWN, "        ");
	}
	pthread_mutex_unlock(&history->lock);
}

size_t legacy_history_double_freed(struct legacy_history *history)
{
	size_t count;

	if (!history)
		return 0;
	pthread_mutex_lock(&history->lock);
	count = history->double_freed;
	pthread_mutex_unlock(&history->lock);
	return count;
}

void legacy_history_put_double_freed(struct legacy_history *history, FILE *out)
{
	size_t found = 0;

	pthread_mutex_lock(&history->lock);
	for (uint32_t i = 0; i < history->used && found < HISTORY_LISTED; i++) {
		const struct history_buffer *buffer = &history->buffers[i];

		if (!buffer->is_double_freed)
			continue;
		found++;
		fprintf(out,
			"Buffer 0x%" PRIx64 " on device %" PRIu32 ":\n  Total allocs: %" PRIu64
			", Total frees: %" PRIu64 "\n  History:\n",
			buffer->key.address, buffer->key.device, buffer->allocs, buffer->frees);
		history_put_events(history, buffer, out, HISTORY_ALL_SHOWN, "    ");
	}
	if (history->double_freed > found)
		fprintf(out, "... and %zu more\n", history->double_freed - found);
	pthread_mutex_unlock(&history->lock);
}
