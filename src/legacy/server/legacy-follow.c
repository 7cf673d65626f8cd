/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One round is one job: new processes are followed, all new events are read, sorted and formatted;
 * the loop writes the text and sets the timer for the next round. Between rounds the list is not
 * touched, so it needs no lock.
 */

#include "legacy/server/legacy-follow.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "answers/seed-lines.h"
#include "base/array.h"
#include "base/bits.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/threads/loop.h"
#include "base/threads/worker.h"
#include "book/read/view.h"
#include "daemon/notify/log-writer.h"
#include "daemon/registry/registry.h"
#include "daemon/registry/tracked.h"
#include "legacy/server/legacy-history.h"
#include "legacy/server/legacy-log.h"
#include "source/books/follow.h"

#define FOLLOW_ROUND_NS UINT64_C(100000000)
#define FOLLOW_EVENTS_MAX 65536u /* sorted together; more are put out in parts */
#define FOLLOW_PIECE 16384u      /* of the text, put out at once */
#define FOLLOW_ENDED_MAX 1024u /* books of ended processes between two rounds; each is a mapping */

struct follow_entry {
	struct tracked *tracked;
	struct follow *follow;
	bool is_over;
};

/* Text that waits for a round. */
struct follow_text {
	struct follow_text *next;
	char *bytes;
	size_t length;
};

struct legacy_follow {
	struct legacy_follow_config config;
	struct loop_timer timer;
	struct worker_job job;
	bool is_stopped;
	struct follow_text *coming, **coming_end; /* for the next round */
	struct follow_text *texts;                /* printed when this one is over */

	pthread_mutex_t ended_lock; /* protects what follows */
	struct tracked *ended[FOLLOW_ENDED_MAX];
	size_t ended_count;
	uint64_t ended_missed; /* for which there was no room */

	struct follow_entry *entries;
	size_t count, capacity;
	struct follow_event *events;
	size_t event_count, event_capacity;
	struct view view;
	struct log log;
	size_t length;
	char text[FOLLOW_PIECE];
};

static void follow_flush(struct legacy_follow *self)
{
	if (self->length > 0)
		/* The log writer itself reports what is dropped. */
		(void)log_writer_put(self->config.log_writer, self->text, self->length);
	self->length = 0;
}

static void follow_put(struct legacy_follow *self, const char *text, size_t length)
{
	if (self->length + length > sizeof(self->text))
		follow_flush(self);
	for (size_t i = 0; i < length; i++)
		self->text[self->length++] = text[i];
}

/* Whether the line that says so was printed before that time: its entry stays until the round's end. */
static bool follow_had_ended(const struct tracked *tracked, uint64_t time_ns)
{
	return tracked_has_ended(tracked) && tracked->ending.ended_ns < time_ns;
}

/* Of all that are followed, on one device, at the time of an event. */
static uint64_t follow_total(const struct legacy_follow *self, uint32_t device, uint32_t type,
			     uint64_t time_ns)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < self->count; i++) {
		const struct follow *follow = self->entries[i].follow;

		if (follow_had_ended(self->entries[i].tracked, time_ns))
			continue;
		for (size_t k = 0; k < follow->count; k++) {
			if (follow->shards[k].device == device)
				bytes += follow->shards[k].hot[type].bytes;
		}
	}
	return bytes;
}

static void follow_tell(struct legacy_follow *self, const struct follow_event *event)
{
	const struct follow *follow = event->follow;
	struct seed_lines_event line = {
		.event = &event->event,
		.uid = follow->book->uid,
		.pid = follow->book->owner.id.pid,
		.device = follow->shards[event->shard].device,
		.decimal = self->config.decimal_ids,
	};
	char text[LEGACY_HISTORY_SIZE];
	int n;

	follow_apply(event);
	if (event->missed) {
		n = snprintf(text, sizeof(text),
			     "⚠ [PID %" PRIu32 "] %" PRIu64 " events on device %" PRIu32
			     " were too fast to be printed\n",
			     line.pid, event->missed, line.device);
		follow_put(self, text, n > 0 ? (size_t)n : 0);
		return;
	}
	if (seed_lines_has_total(&event->event)) {
		const struct book_record *record = &event->event.record;

		line.total = follow_total(self, line.device, book_meta_type(record->meta),
					  event->time_ns);
		line.kernel_sort = reader_shape(&follow->book->reader, record->shape).kernel_sort;
	}
	follow_put(self, text, legacy_history_event(self->config.history, &line, text));
}

static void follow_tell_all(struct legacy_follow *self)
{
	if (self->event_count > 0)
		qsort(self->events, self->event_count, sizeof(*self->events), follow_compare);
	for (size_t i = 0; i < self->event_count; i++)
		follow_tell(self, &self->events[i]);
	self->event_count = 0;
}

static int follow_gather(void *context, const struct follow_event *event)
{
	struct legacy_follow *self = context;
	struct follow_event *events;

	if (self->event_count >= FOLLOW_EVENTS_MAX)
		follow_tell_all(self);
	events = array_grow(self->events, &self->event_capacity, self->event_count + 1,
			    sizeof(*events));
	if (!events)
		return -ENOMEM;
	self->events = events;
	events[self->event_count++] = *event;
	return 0;
}

/* Follows a process that keeps its own book, once. */
static void follow_add(struct legacy_follow *self, struct tracked *tracked)
{
	struct follow_entry *entries;
	struct follow *follow;
	int r;

	if (tracked->source == BOOK_SOURCE_SOCKET || tracked->is_printed)
		return;
	entries = array_grow(self->entries, &self->capacity, self->count + 1, sizeof(*entries));
	if (!entries)
		return;
	self->entries = entries;
	pthread_mutex_lock(&tracked->book_lock);
	/* The history of a process that was there before the daemon is not printed. */
	r = follow_new(&follow, tracked->book, registry_proc(self->config.registry),
		       !tracked->is_older);
	pthread_mutex_unlock(&tracked->book_lock);
	if (r < 0)
		return;
	tracked->is_printed = true;
	entries[self->count++] =
		(struct follow_entry){.tracked = tracked_ref(tracked), .follow = follow};
}

static void follow_add_ended(struct legacy_follow *self)
{
	struct tracked *ended[FOLLOW_ENDED_MAX];
	uint64_t missed;
	size_t count;

	pthread_mutex_lock(&self->ended_lock);
	count = self->ended_count;
	memcpy(ended, self->ended, count * sizeof(struct tracked *));
	missed = self->ended_missed;
	self->ended_count = 0;
	self->ended_missed = 0;
	pthread_mutex_unlock(&self->ended_lock);
	for (size_t i = 0; i < count; i++) {
		follow_add(self, ended[i]);
		tracked_unref(ended[i]);
	}
	if (missed)
		log_writer_print(self->config.log_writer,
				 "⚠ %" PRIu64 " processes ended too fast to be printed\n", missed);
}

/* If memory runs out, the next round tries again. */
static void follow_find(struct legacy_follow *self, const struct book_list *book_list)
{
	for (size_t i = 0; i < book_list->count; i++)
		follow_add(self, book_list->list[i]);
	follow_add_ended(self);
}

/* In the worker's thread. */
static void follow_run(struct worker_job *job)
{
	struct legacy_follow *self = container_of(job, struct legacy_follow, job);
	struct book_list *book_list = registry_books(self->config.registry);

	follow_find(self, book_list);
	book_list_unref(book_list);
	for (size_t i = 0; i < self->count; i++) {
		struct follow_entry *entry = &self->entries[i];
		int r;

		/* Read first: everything read afterwards is then complete. */
		entry->is_over = tracked_has_ended(entry->tracked);
		pthread_mutex_lock(&entry->tracked->book_lock);
		r = follow_poll(entry->follow, &self->view, &self->log, follow_gather, self);
		pthread_mutex_unlock(&entry->tracked->book_lock);
		/* An unreadable book is reported elsewhere. */
		entry->is_over = entry->is_over || (r < 0 && r != -ENOMEM);
	}
	follow_tell_all(self);
	follow_flush(self);
}

static void follow_put_texts(struct legacy_follow *self)
{
	while (self->texts) {
		struct follow_text *text = self->texts;

		self->texts = text->next;
		legacy_log_pieces(self->config.log_writer, text->bytes, text->length);
		free(text->bytes);
		free(text);
	}
}

/* In the loop's thread: what has come by now is printed after what this round reads. */
static void follow_begin_round(struct legacy_follow *self)
{
	self->texts = cleanup_steal(self->coming);
	self->coming_end = &self->coming;
}

/* In the loop's thread again. */
static void follow_done(struct worker_job *job)
{
	struct legacy_follow *self = container_of(job, struct legacy_follow, job);
	struct loop *loop = self->config.loop;
	size_t n = 0;

	follow_put_texts(self);

	for (size_t i = 0; i < self->count; i++) {
		if (self->entries[i].is_over) {
			follow_free(self->entries[i].follow);
			tracked_unref(self->entries[i].tracked);
		} else {
			self->entries[n++] = self->entries[i];
		}
	}
	self->count = n;
	if (!self->is_stopped)
		/* It was set before: there is room for it. */
		(void)loop_set(loop, &self->timer, loop_now(loop) + FOLLOW_ROUND_NS);
}

static void follow_fire(struct loop_timer *timer)
{
	struct legacy_follow *self = container_of(timer, struct legacy_follow, timer);

	follow_begin_round(self);
	(void)worker_put(self->config.work, &self->job); /* any number may wait */
}

int legacy_follow_new(struct legacy_follow **ret_follow, const struct legacy_follow_config *config)
{
	CLEANUP_FREE struct legacy_follow *self = calloc(1, sizeof(*self));
	int r;

	if (!self)
		return -ENOMEM;
	self->config = *config;
	self->coming_end = &self->coming;
	self->timer.fire = follow_fire;
	self->job.run = follow_run;
	self->job.done = follow_done;
	(void)pthread_mutex_init(&self->ended_lock, NULL); /* cannot fail on Linux */
	r = loop_set(config->loop, &self->timer, loop_now(config->loop));
	if (r < 0)
		return r;
	*ret_follow = cleanup_steal(self);
	return 0;
}

void legacy_follow_ended(struct legacy_follow *follow, struct tracked *tracked)
{
	if (tracked->source == BOOK_SOURCE_SOCKET || follow->is_stopped)
		return;
	pthread_mutex_lock(&follow->ended_lock);
	if (follow->ended_count < FOLLOW_ENDED_MAX)
		follow->ended[follow->ended_count++] = tracked_ref(tracked);
	else
		follow->ended_missed++;
	pthread_mutex_unlock(&follow->ended_lock);
}

int legacy_follow_after_consume(struct legacy_follow *follow, char *text, size_t length)
{
	struct follow_text *one = malloc(sizeof(*one));

	if (!one)
		return -ENOMEM;
	*one = (struct follow_text){.bytes = text, .length = length};
	*follow->coming_end = one;
	follow->coming_end = &one->next;
	return 0;
}

void legacy_follow_finish(struct legacy_follow *follow)
{
	follow_put_texts(follow);
	follow_begin_round(follow);
	follow_run(&follow->job);
	follow_put_texts(follow);
}

void legacy_follow_stop(struct legacy_follow *follow)
{
	follow->is_stopped = true;
	loop_cancel(follow->config.loop, &follow->timer);
}

struct legacy_follow *legacy_follow_free(struct legacy_follow *follow)
{
	if (!follow)
		return NULL;
	for (size_t i = 0; i < follow->count; i++) {
		follow_free(follow->entries[i].follow);
		tracked_unref(follow->entries[i].tracked);
	}
	for (size_t i = 0; i < follow->ended_count; i++)
		tracked_unref(follow->ended[i]);
	follow_put_texts(follow);
	follow_begin_round(follow);
	follow_put_texts(follow);
	pthread_mutex_destroy(&follow->ended_lock);
	free(follow->entries);
	free(follow->events);
	view_deinit(&follow->view);
	log_deinit(&follow->log);
	free(follow);
	return NULL;
}
