/* SPDX-License-Identifier: Apache-2.0 */

/*
 * ttmem watch: events as they happen. Each round reads what is new in every book, sorts it by time
 * and prints it. Between devices time is the only order; within one it is the order of the log.
 * Events that were overwritten before they were read are counted and reported, never guessed.
 */

#include "cli/watch/watch.h"
#include "base/book-id.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/bits.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "book/read/view.h"
#include "cli/common/command.h"
#include "cli/common/options.h"
#include "cli/common/output.h"
#include "cli/common/screen.h"
#include "cli/common/session.h"
#include "cli/watch/watch-unseen.h"
#include "model/types.h"
#include "source/books/scan.h"
#include "source/books/stacks.h"

#define WATCH_POLL_MS 20u
#define WATCH_SCAN_NS 200000000u
#define WATCH_SCAN_SHARE 20u              /* scanning may take 1/20 of the time */
#define WATCH_SCAN_MAX_NS (10 * NS_PER_S) /* but new processes must be found eventually */
#define WATCH_BATCH 65536u                /* most events sorted together */

struct watch_batch {
	struct watch *watch;
	struct follow_event *events;
	size_t count, capacity;
};

/*
 * Refused books, so that each is reported once, and only if it is refused twice: a book that is
 * being created looks invalid for a moment.
 */
struct watch_refused {
	struct {
		struct book_id book;
		uint32_t pid;
		uint32_t times;
	} seen[SCAN_REFUSED_MAX];
	size_t count;
};

const char *watch_string(const struct follow *follow, uint32_t id, char ret_text[WATCH_TEXT])
{
	size_t length;
	const char *bytes = reader_string(&follow->book->reader, id, &length);

	if (!bytes)
		return NULL;
	text_clean(bytes, bits_min(length, BOOK_PATH_MAX), ret_text);
	return ret_text;
}

const struct stack *watch_stack(const struct watch *watch, const struct follow_event *event)
{
	struct follow *follow = event->follow;

	if (!watch->stacks)
		return NULL;
	/* Without memory for stacks, none are shown. */
	if (!follow->stacks && stacks_new(&follow->stacks, follow->book, watch->namer) < 0)
		return NULL;
	return stacks_get(follow->stacks, event->event.stack);
}

const char *watch_comm(const struct follow *follow, char ret_text[WATCH_TEXT])
{
	const char *comm = follow->book->owner.comm;

	text_clean(comm, strnlen(comm, sizeof(follow->book->owner.comm)), ret_text);
	return ret_text;
}

void watch_totals(const struct follow *follow, uint32_t type, uint64_t *ret_bytes,
		  uint64_t *ret_buffers)
{
	*ret_bytes = *ret_buffers = 0;
	for (size_t i = 0; i < follow->count; i++) {
		for (uint32_t t = 0; t < BOOK_TYPES; t++) {
			if (type != BOOK_TYPES && type != t)
				continue;
			*ret_bytes += follow->shards[i].hot[t].bytes;
			*ret_buffers += follow->shards[i].hot[t].buffers;
		}
	}
}

static bool watch_wants(const struct watch *watch, const struct follow_event *event)
{
	const struct follow_shard *shard = &event->follow->shards[event->shard];

	/* Events that were missed may have been of any type. */
	return filter_wants_device(&watch->query.filter, shard->device, shard->unique_id) &&
	       (event->missed ||
		filter_wants_type(&watch->query.filter, book_meta_type(event->event.record.meta)));
}

static void watch_flush(struct watch_batch *batch)
{
	struct watch *watch = batch->watch;

	if (batch->count > 0)
		qsort(batch->events, batch->count, sizeof(*batch->events), follow_compare);
	for (size_t i = 0; i < batch->count; i++) {
		const struct follow_event *event = &batch->events[i];

		follow_apply(event);
		if (!watch_wants(watch, event))
			continue;
		if (event->missed)
			watch->form->missed(watch, event);
		else
			watch->form->event(watch, event);
	}
	batch->count = 0;
}

static int watch_collect(void *context, const struct follow_event *event)
{
	struct watch_batch *batch = context;
	struct follow_event *events;

	if (batch->count >= WATCH_BATCH)
		watch_flush(batch);
	events = array_grow(batch->events, &batch->capacity, batch->count + 1, sizeof(*events));
	if (!events)
		return -ENOMEM;
	batch->events = events;
	events[batch->count++] = *event;
	return output_is_broken() ? -EPIPE : 0;
}

static bool watch_knows(const struct watch *watch, const struct scan_book *book)
{
	for (size_t i = 0; i < watch->count; i++) {
		if (watch->follows[i]->book == book)
			return true;
	}
	return false;
}

static int watch_adopt(struct watch *watch, const struct scan *scan, struct view *view,
		       struct watch_unseen *unseen)
{
	for (size_t i = 0; i < scan->count; i++) {
		struct scan_book *book = scan->books[i];
		struct follow **follows;
		int r;

		if (book->gone || !book->alive || book->ignored || watch_knows(watch, book) ||
		    !filter_wants_pid(&watch->query.filter, book->owner.id.pid))
			continue;
		follows = array_grow(watch->follows, &watch->capacity, watch->count + 1,
				     sizeof(struct follow *));
		if (!follows)
			return -ENOMEM;
		watch->follows = follows;
		r = follow_new(&follows[watch->count], book, &scan->proc, book->first_pass > 1);
		if (r < 0)
			return r;
		watch_unseen_add(unseen, book->owner.id.pid);
		/* Before it is announced; watch_round() says why it failed. */
		(void)follow_begin(follows[watch->count], view);
		watch->form->started(watch, follows[watch->count++]);
	}
	return 0;
}

static void watch_tell_refused(struct watch_refused *refused, const struct scan *scan)
{
	for (size_t i = 0; i < bits_min(scan->refused_count, SCAN_REFUSED_MAX); i++) {
		const struct scan_refused *entry = &scan->refused[i];
		size_t k = 0;

		while (k < refused->count && (!book_id_equal(refused->seen[k].book, entry->book) ||
					      refused->seen[k].pid != entry->pid))
			k++;
		if (k == SCAN_REFUSED_MAX)
			return; /* enough was reported */
		if (k == refused->count) {
			refused->seen[k].book = entry->book;
			refused->seen[k].pid = entry->pid;
			refused->seen[k].times = 0;
			refused->count++;
		}
		if (++refused->seen[k].times == 2)
			fprintf(stderr, "note: pid %" PRIu32 ": book refused: %s\n", entry->pid,
				entry->reason);
	}
}

/* Reads all books once. Those that have ended or can no longer be read are released. */
static int watch_round(struct watch *watch, struct watch_batch *batch, struct view *view,
		       struct log *log)
{
	size_t n = 0;

	for (size_t i = 0; i < watch->count; i++) {
		struct follow *follow = watch->follows[i];
		int r = follow_poll(follow, view, log, watch_collect, batch);

		if (r == -ENOMEM || r == -EPIPE)
			return r;
		if (r < 0) {
			fprintf(stderr, "note: pid %" PRIu32 ": its book cannot be read: %s\n",
				follow->book->owner.id.pid, reader_strerror(r));
			follow->is_over = true;
		}
		if (follow->book->gone)
			follow->is_over = true;
	}
	watch_flush(batch);
	for (size_t i = 0; i < watch->count; i++) {
		struct follow *follow = watch->follows[i];

		if (follow->is_over) {
			watch->form->ended(watch, follow);
			/* Do not adopt it again while another process holds the book. */
			follow->book->ignored = true;
			follow_free(follow);
		} else {
			watch->follows[n++] = follow;
		}
	}
	watch->count = n;
	return 0;
}

/* The process that was asked for has ended, or never was. */
static bool watch_is_over(const struct watch *watch, const struct scan *scan)
{
	return watch->query.filter.pid && watch->count == 0 &&
	       proc_start_ticks(&scan->proc, watch->query.filter.pid) == 0;
}

static int watch_loop(struct watch *watch, struct session *session)
{
	CLEANUP(view_deinit) struct view view = VIEW_NULL;
	CLEANUP(log_deinit) struct log log = {0};
	struct watch_batch batch = {.watch = watch};
	struct watch_refused refused = {0};
	struct watch_unseen unseen = {.since_ns = clock_ns(CLOCK_REALTIME)};
	struct scan *scan = session_scan(session);
	uint64_t next_scan = 0;
	int r = 0;

	if (output_is_terminal())
		(void)screen_keys_begin(); /* without keys, Ctrl-C ends it */
	while (r == 0 && !output_is_stopped() && !output_is_broken()) {
		uint64_t now = clock_ns(CLOCK_MONOTONIC);

		if (now >= next_scan) {
			uint64_t took;

			r = session_refresh(session);
			if (r == 0)
				r = watch_adopt(watch, scan, &view, &unseen);
			watch_tell_refused(&refused, scan);
			watch_unseen_tell(&unseen, session_remote(session), &watch->query.filter);
			if (r == 0 && watch_is_over(watch, scan))
				break;
			took = clock_ns(CLOCK_MONOTONIC) - now;
			next_scan = now + bits_max(WATCH_SCAN_NS, bits_min(took * WATCH_SCAN_SHARE,
									   WATCH_SCAN_MAX_NS));
		}
		if (watch->stacks)
			watch->namer = session_namer(session); /* restarts its time limit */
		if (r == 0)
			r = watch_round(watch, &batch, &view, &log);
		if (fflush(stdout) == 0 && screen_wait(WATCH_POLL_MS))
			break;
	}
	screen_keys_end();
	free(batch.events);
	return r == -EPIPE ? 0 : r;
}

static int watch_parse_format(void *target, const char *text)
{
	static const struct watch_form *const forms[] = {&watch_text, &watch_seed, &watch_json};
	struct watch *watch = target;

	for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
		if (strcmp(forms[i]->name, text) == 0) {
			watch->form = forms[i];
			return 0;
		}
	}
	return -EINVAL;
}

static int watch_parse_ids(void *target, const char *text)
{
	bool *decimal = target;

	*decimal = strcmp(text, "decimal") == 0;
	return *decimal || strcmp(text, "hex") == 0 ? 0 : -EINVAL;
}

static int watch_run(int argc, char **argv)
{
	CLEANUP(session_cleanup) struct session *session = NULL;
	struct watch watch = {.form = &watch_text};
	const struct options_item items[] = {
		{0, "format", "text|seed|json", "how it is printed; seed: as the old server did",
		 &watch, watch_parse_format},
		{0, "ids", "hex|decimal", "how addresses are printed", &watch.decimal,
		 watch_parse_ids},
		{0, "stacks", NULL, "with call stacks", &watch.stacks, NULL},
		{0, "pid", "PID", "only of this process; ends when it ends"},
		{'d', "device", "DEV|UID", "only on this device; may be given again"},
		{0, "type", "TYPE", "only events of this type"},
	};
	const struct options options = {
		.command = "watch",
		.shows_sizes = true,
		.summary = "Events as they happen, until q or Ctrl-C is pressed.",
		.items = items,
		.count = ARRAY_SIZE(items),
		.query = &watch.query,
		.honours = QUERY_PID | QUERY_DEVICE | QUERY_TYPE,
	};
	int r = options_parse_only(&options, argc, argv);

	if (r != 0)
		return options_exit(r);
	output_start();
	output_catch_stop();
	r = session_new(&session);
	if (r == 0 && watch_is_over(&watch, session_scan(session))) {
		fprintf(stderr, "ttmem watch: there is no process %" PRIu32 "\n",
			watch.query.filter.pid);
		return COMMAND_FAILED;
	}
	if (r == 0)
		r = watch_loop(&watch, session);
	for (size_t i = 0; i < watch.count; i++)
		follow_free(watch.follows[i]);
	free(watch.follows);
	if (r < 0)
		return output_fail("watch", "cannot look at processes", r);
	return output_finish();
}

const struct command watch_command = {
	.name = "watch",
	.summary = "events as they happen",
	.run = watch_run,
};
