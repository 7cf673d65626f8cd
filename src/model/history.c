/* SPDX-License-Identifier: Apache-2.0 */

/* Putting the history of one address together. */

#include "model/history.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "book/format/event.h"
#include "model/timebase.h"

static int history_push(struct history_life *life, const struct history_event *event)
{
	struct history_event *events;

	events = array_grow(life->events, &life->capacity, life->count + 1, sizeof(*events));
	if (!events)
		return -ENOMEM;
	life->events = events;
	events[life->count++] = *event;
	return 0;
}

static const char *history_text(const struct history_shard *shard, uint32_t id)
{
	return shard->text ? shard->text(shard->context, id) : NULL;
}

static const struct stack *history_stack(const struct history_shard *shard, uint32_t id)
{
	return shard->stack ? shard->stack(shard->context, id) : NULL;
}

/* Whether the log still has this grave's free. */
static bool history_is_logged(const struct history_shard *shard, const struct book_grave *grave)
{
	for (size_t i = 0; i < shard->event_count; i++) {
		const struct book_event *event = &shard->events[i].event;

		if ((event->op_slot & BOOK_OP_MASK) == BOOK_OP_FREE &&
		    event->time == grave->death && event->record.size == grave->size &&
		    event->record.birth == grave->birth)
			return true;
	}
	return false;
}

/* An allocation and a free from before the log. */
static int history_push_grave(struct history_life *life, const struct history_shard *shard,
			      const struct book_grave *grave)
{
	struct history_event event = {
		.op = BOOK_OP_ALLOC,
		.time_ns = timebase_ns(shard->timebase, grave->birth),
		.size = grave->size,
		.refs = 1,
		.thread = book_thread(grave->birth_thread_space),
		.name = history_text(shard, grave->name),
		.phase = history_text(shard, grave->phase),
		.stack = history_stack(shard, grave->birth_stack),
	};
	int r = history_push(life, &event);

	if (r < 0)
		return r;
	event.op = BOOK_OP_FREE;
	event.time_ns = timebase_ns(shard->timebase, grave->death);
	event.refs = 0;
	event.thread = grave->death_thread;
	event.phase = history_text(shard, grave->death_phase);
	event.stack = history_stack(shard, grave->death_stack);
	return history_push(life, &event);
}

/* An allocation from before the log, known from the record; the grave may know the thread. */
static int history_push_birth(struct history_life *life, const struct history_shard *shard,
			      const struct book_record *record, bool thread_is_known)
{
	struct history_event event = {
		.op = BOOK_OP_ALLOC,
		.time_ns = timebase_ns(shard->timebase, record->birth),
		.size = record->size,
		.refs = 1,
		.thread = thread_is_known ? book_thread(record->thread_space) : 0,
		.name = history_text(shard, record->name),
		.phase = history_text(shard, record->phase),
		.stack = history_stack(shard, record->stack),
	};

	for (size_t i = 0; !thread_is_known && i < shard->grave_count; i++) {
		if (shard->graves[i].birth == record->birth &&
		    shard->graves[i].address == record->address)
			event.thread = book_thread(shard->graves[i].birth_thread_space);
	}
	return history_push(life, &event);
}

static int history_push_logged(struct history_life *life, const struct history_shard *shard,
			       const struct history_logged *logged)
{
	const struct book_event *from = &logged->event;
	uint32_t op = from->op_slot & BOOK_OP_MASK;
	struct history_event event = {
		.number = logged->number,
		.op = op,
		.time_ns = timebase_ns(shard->timebase, from->time),
		.size = from->record.size,
		.refs = event_has_slot(op) && op != BOOK_OP_FREE ? book_meta_refs(from->record.meta)
								 : 0,
		.thread = book_thread(from->record.thread_space),
		.size_change = (from->op_slot & BOOK_OP_RESIZE) != 0,
		.name = history_text(shard, from->record.name),
		.phase = history_text(shard, from->record.phase),
		.stack = history_stack(shard, from->stack),
	};

	return history_push(life, &event);
}

static bool history_is_of(const struct history_life *life, uint32_t meta, uint32_t thread_space)
{
	return book_meta_type(meta) == life->type && book_space(thread_space) == life->space;
}

static int history_push_log(struct history_life *life, const struct history_shard *shard)
{
	bool begun = false;
	int r = 0;

	for (size_t i = 0; r == 0 && i < shard->event_count; i++) {
		const struct book_event *event = &shard->events[i].event;
		uint32_t op = event->op_slot & BOOK_OP_MASK;

		if (!history_is_of(life, event->record.meta, event->record.thread_space))
			continue;
		if (event_has_slot(op) && !begun) {
			begun = true;
			life->live = true;
			if (op != BOOK_OP_ALLOC)
				r = history_push_birth(life, shard, &event->record,
						       op != BOOK_OP_FREE);
		}
		if (r == 0)
			r = history_push_logged(life, shard, &shard->events[i]);
		if (event_has_slot(op))
			life->live = op != BOOK_OP_FREE;
	}
	/* Nothing happened to it since: only the record table has it. */
	for (size_t i = 0; r == 0 && !begun && i < shard->record_count; i++) {
		if (!history_is_of(life, shard->records[i].meta, shard->records[i].thread_space))
			continue;
		r = history_push_birth(life, shard, &shard->records[i], true);
		if (r == 0)
			life->events[life->count - 1].refs = book_meta_refs(shard->records[i].meta);
		life->live = true;
		break;
	}
	return r;
}

/* Counts events, and marks those that a user should notice. */
static void history_annotate(struct history_life *life)
{
	bool freed = false, resized = false;

	for (size_t i = 0; i < life->count; i++) {
		struct history_event *event = &life->events[i];

		switch (event->op) {
		case BOOK_OP_ALLOC:
			event->size_change = resized;
			event->reused = freed && !resized;
			resized = false;
			life->allocs++;
			break;
		case BOOK_OP_REF:
		case BOOK_OP_LOST_ALLOC:
			life->allocs++;
			break;
		case BOOK_OP_FREE:
			resized = event->size_change;
			freed = true;
			life->frees++;
			break;
		case BOOK_OP_UNREF:
		case BOOK_OP_OVERFLOW_FREE:
			life->frees++;
			break;
		default:
			break;
		}
	}
}

static int history_fill_life(struct history_life *life, const struct history_shard *shard)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < shard->grave_count; i++) {
		const struct book_grave *grave = &shard->graves[i];

		if (history_is_of(life, grave->meta, grave->birth_thread_space) &&
		    !history_is_logged(shard, grave))
			r = history_push_grave(life, shard, grave);
	}
	if (r == 0)
		r = history_push_log(life, shard);
	history_annotate(life);
	return r;
}

/* Adds the buffers of one type in one space, if there were any. */
static int history_add_life(struct history *history, const struct history_shard *shard,
			    uint32_t type, uint32_t space)
{
	struct history_life life = {
		.process = shard->process,
		.device = shard->device,
		.type = type,
		.space = space,
		.address = shard->address,
		.complete = shard->complete,
	};
	struct history_life *lives;
	int r = history_fill_life(&life, shard);

	lives = array_grow(history->lives, &history->capacity, history->count + 1, sizeof(*lives));
	if (lives)
		history->lives = lives;
	if (r < 0 || !lives || life.count == 0)
		free(life.events);
	if (r < 0 || !lives)
		return -ENOMEM;
	if (life.count > 0)
		lives[history->count++] = life;
	return 0;
}

/* Whether anything is known of a space; most shards have only space 0. */
static bool history_has_space(const struct history_shard *shard, uint32_t space)
{
	bool has = space == 0;

	for (size_t i = 0; !has && i < shard->event_count; i++)
		has = book_space(shard->events[i].event.record.thread_space) == space;
	for (size_t i = 0; !has && i < shard->grave_count; i++)
		has = book_space(shard->graves[i].birth_thread_space) == space;
	for (size_t i = 0; !has && i < shard->record_count; i++)
		has = book_space(shard->records[i].thread_space) == space;
	return has;
}

int history_add_shard(struct history *history, const struct history_shard *shard)
{
	for (uint32_t space = 0; space < BOOK_SPACES; space++) {
		if (!history_has_space(shard, space))
			continue;
		for (uint32_t type = 0; type < BOOK_TYPES; type++) {
			int r;

			if (shard->types && !(shard->types & 1u << type))
				continue;
			r = history_add_life(history, shard, type, space);
			if (r < 0)
				return r;
		}
	}
	return 0;
}

void history_deinit(struct history *history)
{
	for (size_t i = 0; i < history->count; i++)
		free(history->lives[i].events);
	free(history->lives);
	*history = HISTORY_NULL;
}
