/* SPDX-License-Identifier: Apache-2.0 */

/* Events of a book name texts by number; here they become texts. */

#include "cli/export/export-feed.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "book/format/event.h"
#include "book/format/words.h"
#include "cli/common/must.h"
#include "cli/common/output.h"
#include "cli/common/progress.h"
#include "cli/export/export-feed-books.h"
#include "cli/export/export-live.h"
#include "cli/export/export-recording.h"
#include "cli/export/format/export-form.h"
#include "model/filter.h"
#include "model/mark.h"
#include "model/sites/stack.h"
#include "model/snapshot.h"
#include "source/books/book-marks.h"
#include "source/books/scan.h"
#include "source/books/stacks.h"

#define FEED_STRIDE 4096u /* events between looks at the clock and for Ctrl-C */

struct feed_mark {
	uint64_t time_ns;
	uint32_t process;
	const char *name, *phase;
};

/* A device of a book. */
struct feed_stream {
	bool is_wanted;
	bool is_begun; /* what was live at first was passed on */
};

struct export_feed {
	const struct filter *filter;
	struct feed_books books;
	struct export_owner *owners;
	struct map streams;
	struct feed_stream *list;
	size_t list_capacity;
	struct export_live live;
	bool has_gaps; /* else what is live need not be known */
	struct feed_mark *marks;
	size_t mark_count, mark_capacity, next_mark;

	const struct export_form *form;
	void *state;
	const struct export_target *target;
	uint64_t time_ns;           /* of the last event */
	const struct book_hot *hot; /* while a gap is mended: counters after it */
	struct progress progress;
};

static void feed_fill_owners(struct export_feed *feed)
{
	feed->owners = must_alloc(feed->books.count + 1, sizeof(*feed->owners));
	for (size_t i = 0; i < feed->books.count; i++) {
		const struct recording_book *book =
			&recording_owner(feed->books.recording, i)->book;

		feed->owners[i].pid = book->pid;
		feed->owners[i].comm = must_have(pool_text(
			&feed->books.pool, book->comm, strnlen(book->comm, sizeof(book->comm))));
	}
}

struct export_feed *export_feed_new(struct recording *recording, const struct filter *filter,
				    const struct recording_moment *until)
{
	struct export_feed *feed = must_alloc(1, sizeof(*feed));

	feed->filter = filter;
	feed->has_gaps = recording_facts(recording)->missed > 0;
	feed_books_init(&feed->books, recording, until);
	feed_fill_owners(feed);
	return feed;
}

struct export_feed *export_feed_free(struct export_feed *feed)
{
	map_deinit(&feed->streams);
	export_live_deinit(&feed->live);
	feed_books_deinit(&feed->books);
	free(feed->list);
	free(feed->marks);
	free(feed->owners);
	free(feed);
	return NULL;
}

const struct export_owner *export_feed_owners(const struct export_feed *feed, size_t *ret_count)
{
	*ret_count = feed->books.count;
	return feed->owners;
}

int export_feed_counts(struct export_feed *feed, struct export_counts *counts)
{
	return export_counts_find(counts, &feed->books);
}

/* Times never go back, though those of several clocks may. */
static void feed_pass(void *context, const struct export_event *event)
{
	struct export_feed *feed = context;
	struct export_event passed = *event;

	feed->time_ns = bits_max(feed->time_ns, event->time_ns);
	passed.time_ns = feed->time_ns;
	feed->form->event(feed->state, &passed);
}

/* A call is remembered, too, if there may be a gap after it. */
static void feed_pass_call(struct export_feed *feed, const struct export_event *event)
{
	if (feed->has_gaps)
		export_live_apply(&feed->live, event);
	feed_pass(feed, event);
}

/* A live buffer, as if it were allocated now. */
static void feed_make_live(struct export_feed *feed, size_t book, const struct snapshot *snapshot,
			   const struct snapshot_buffer *buffer, struct export_event *ret_event)
{
	const struct snapshot_part *part =
		snapshot_find_part(snapshot, buffer->process, buffer->device);
	const struct stack *stack = must_stack(&feed->books.pool, buffer->stack);

	*ret_event = (struct export_event){
		.process = (uint32_t)book,
		.device = buffer->device,
		.op = BOOK_OP_ALLOC,
		.type = buffer->type,
		.thread = buffer->thread,
		.space = buffer->space,
		.refs = buffer->refs,
		.address = buffer->address,
		.size = buffer->size,
		.bytes = snapshot_buffer_bytes(buffer),
		.name = feed_books_text(&feed->books, buffer->name),
		.phase = feed_books_text(&feed->books, buffer->phase),
		.stack = stack,
		.birth = stack,
		.used = part ? part->memory[buffer->type].used : 0,
	};
}

static void feed_pass_live(struct export_feed *feed, size_t book, const struct snapshot *snapshot,
			   uint64_t time_ns)
{
	for (size_t i = 0; i < snapshot->buffer_count; i++) {
		struct export_event event;

		if (!filter_wants_type(feed->filter, snapshot->buffers[i].type))
			continue;
		feed_make_live(feed, book, snapshot, &snapshot->buffers[i], &event);
		event.time_ns = time_ns;
		feed_pass_call(feed, &event);
	}
}

static struct feed_stream *feed_stream(struct export_feed *feed, size_t book, uint32_t device)
{
	uint32_t before = feed->streams.count, number = must_number(&feed->streams, book, device);

	if (number > before) {
		must_grow(feed->list, &feed->list_capacity, number);
		feed->list[before] = (struct feed_stream){
			.is_wanted = feed_books_wants(&feed->books, book, device, feed->filter)};
	}
	return &feed->list[number - 1];
}

/* What a device had before the first of its events that is known. */
static int feed_begin_stream(struct export_feed *feed, const struct recording_event *event)
{
	uint64_t known = event->number - (event->gap ? event->gap->events : 1), last;
	const struct recording_moment moment = {.time_ns = event->time_ns,
						.book = (uint32_t)event->book,
						.device = event->device,
						.number = known};
	struct snapshot *snapshot;
	int r;

	if (known == 0)
		return 0;
	r = feed_books_live(&feed->books, event->book, event->device, &moment, &snapshot, &last);
	if (r < 0)
		return r == -ENOENT || r == -EBADMSG ? 0 : r;
	feed_pass_live(feed, event->book, snapshot, event->time_ns);
	snapshot_free(snapshot);
	return 0;
}

static void feed_pass_marks(struct export_feed *feed, uint64_t until_ns)
{
	while (feed->next_mark < feed->mark_count &&
	       feed->marks[feed->next_mark].time_ns <= until_ns) {
		const struct feed_mark *mark = &feed->marks[feed->next_mark++];

		feed_pass(feed, &(struct export_event){.kind = EXPORT_MARK,
						       .process = mark->process,
						       .time_ns = mark->time_ns,
						       .name = mark->name,
						       .phase = mark->phase});
	}
}

/* Nobody knows in which order they came, so each has what is in use after all of them. */
static void feed_pass_mended(void *context, const struct export_event *event)
{
	struct export_feed *feed = context;
	struct export_event mended = *event;

	mended.used = feed->hot[event->type].bytes;
	feed_pass(feed, &mended);
}

/* What became of the device in a gap. */
static int feed_mend(struct export_feed *feed, const struct recording_event *source,
		     const struct export_event *gap)
{
	const struct recording_moment moment = {.time_ns = source->time_ns,
						.book = (uint32_t)source->book,
						.device = source->device,
						.number = source->number};
	struct snapshot *snapshot;
	uint64_t last;
	int r = feed_books_live(&feed->books, source->book, source->device, &moment, &snapshot,
				&last);

	if (r < 0)
		return r == -ENOENT || r == -EBADMSG ? 0 : r;
	feed->hot = source->hot;
	export_live_begin(&feed->live);
	for (size_t i = 0; i < snapshot->buffer_count; i++) {
		struct export_event event;

		if (!filter_wants_type(feed->filter, snapshot->buffers[i].type))
			continue;
		feed_make_live(feed, source->book, snapshot, &snapshot->buffers[i], &event);
		event.time_ns = gap->time_ns;
		event.number = gap->number;
		export_live_seen(&feed->live, &event, feed_pass_mended, feed);
	}
	export_live_end(&feed->live, gap, feed_pass_mended, feed);
	snapshot_free(snapshot);
	return 0;
}

static int feed_gap(struct export_feed *feed, const struct recording_event *source)
{
	const struct export_event gap = {.kind = EXPORT_GAP,
					 .process = (uint32_t)source->book,
					 .device = source->device,
					 .time_ns = source->time_ns,
					 .number = source->number,
					 .missed = source->gap->events};
	feed_pass(feed, &gap);
	return feed_mend(feed, source, &gap);
}

static void feed_call(struct export_feed *feed, const struct recording_event *source)
{
	const struct book_record *record = &source->event->record;
	uint32_t op = source->event->op_slot & BOOK_OP_MASK, type = book_meta_type(record->meta);
	struct export_event event = {
		.process = (uint32_t)source->book,
		.device = source->device,
		.time_ns = source->time_ns,
		.number = source->number,
		.op = op,
		.type = type,
		.thread = book_thread(record->thread_space),
		.space = book_space(record->thread_space),
		.refs = op == BOOK_OP_FREE ? 0 : book_meta_refs(record->meta),
		.address = record->address,
		.size = record->size,
		.bytes = event_bytes(record),
	};

	/* A recording may come from anybody. */
	if (type >= BOOK_TYPES || op == 0 || op >= BOOK_OP_COUNT ||
	    !filter_wants_type(feed->filter, type))
		return;
	event.used = source->hot[type].bytes;
	event.name = feed_books_string(&feed->books, source->book, record->name);
	event.phase = feed_books_string(&feed->books, source->book, record->phase);
	event.stack = feed_books_stack(&feed->books, source->book, source->event->stack);
	event.birth = op == BOOK_OP_ALLOC
			      ? event.stack
			      : feed_books_stack(&feed->books, source->book, record->stack);
	feed_pass_call(feed, &event);
}

static int feed_event(void *context, const struct recording_event *source)
{
	struct export_feed *feed = context;
	struct feed_stream *stream = feed_stream(feed, source->book, source->device);
	int r = 0;

	if (++feed->progress.done % FEED_STRIDE == 0) {
		progress_draw(&feed->progress);
		if (output_is_stopped())
			return -EINTR;
		if (ferror(feed->target->out) || *feed->target->problem)
			return -EIO;
	}
	if (!stream->is_wanted)
		return 0;
	if (!stream->is_begun) {
		stream->is_begun = true;
		r = feed_begin_stream(feed, source);
	}
	if (r < 0)
		return r;
	feed_pass_marks(feed, source->time_ns);
	if (!source->event)
		return feed_gap(feed, source);
	feed_call(feed, source);
	return 0;
}

static int feed_compare_marks(const void *a, const void *b)
{
	const struct feed_mark *x = a, *y = b;

	return bits_compare(x->time_ns, y->time_ns);
}

static void feed_add_marks(struct export_feed *feed, size_t number, const struct mark_list *marks)
{
	must_grow(feed->marks, &feed->mark_capacity, feed->mark_count + marks->count);
	for (size_t i = 0; i < marks->count; i++)
		feed->marks[feed->mark_count++] = (struct feed_mark){
			.time_ns = marks->list[i].time_ns,
			.process = (uint32_t)number,
			.name = feed_books_text(&feed->books, marks->list[i].name),
			.phase = feed_books_text(&feed->books, marks->list[i].phase),
		};
}

/* Those of a book whose process is wanted. */
static void feed_read_marks(struct export_feed *feed, size_t number)
{
	CLEANUP(book_marks_deinit) struct mark_list marks = MARK_LIST_NULL;
	struct feed_book *book = filter_wants_pid(feed->filter, feed->owners[number].pid)
					 ? feed_books_get(&feed->books, number)
					 : NULL;
	struct snapshot *texts;

	if (!book)
		return;
	texts = must_have(snapshot_new(0));
	if (must_not_lack(recording_marks(feed->books.recording, number, &book->book->reader, texts,
					  &marks)) == 0)
		feed_add_marks(feed, number, &marks);
	snapshot_free(texts);
}

/* Devices that had live buffers when the recording began, and no events since. */
static void feed_pass_idle(struct export_feed *feed, size_t number, uint64_t start_ns)
{
	const struct recording_moment start = {
		.time_ns = start_ns, .book = RECORDING_NONE, .device = RECORDING_NONE};
	struct feed_book *book = feed_books_get(&feed->books, number);
	int64_t device = book ? reader_next_shard(&book->book->reader, 0) : -1;

	while (device >= 0) {
		uint32_t d = (uint32_t)device;
		struct snapshot *snapshot = NULL;
		uint64_t last;

		if (feed_books_wants(&feed->books, number, d, feed->filter) &&
		    feed_books_live(&feed->books, number, d, &start, &snapshot, &last) == 0 &&
		    last == feed_books_last(&feed->books, number, d))
			feed_pass_live(feed, number, snapshot, start_ns);
		snapshot_free(snapshot);
		device = reader_next_shard(&book->book->reader, d + 1);
	}
}

static void feed_prepare(struct export_feed *feed)
{
	uint64_t start_ns = recording_facts(feed->books.recording)->start_ns;
	for (size_t i = 0; i < feed->books.count; i++) {
		feed_read_marks(feed, i);
		feed_pass_idle(feed, i, start_ns);
	}
	if (feed->mark_count > 0)
		qsort(feed->marks, feed->mark_count, sizeof(*feed->marks), feed_compare_marks);
}

int export_feed_course(void *context, const struct export_form *form, void *state,
		       const struct export_target *target)
{
	struct export_feed *feed = context;
	const struct filter *filter = feed->filter;
	struct recording_filter wanted = RECORDING_FILTER_ALL;
	int r;

	feed->form = form;
	feed->state = state;
	feed->target = target;
	feed->progress = (struct progress){.total = recording_facts(feed->books.recording)->events,
					   .unit = "event"};
	if (filter->pid)
		wanted.pid = filter->pid;
	if (filter->has_type)
		wanted.types = 1u << filter->type;
	feed_prepare(feed);
	r = must_not_lack(recording_walk(feed->books.recording, &wanted, NULL, &feed->books.until,
					 feed_event, feed));
	if (r == 0)
		feed_pass_marks(feed, feed->books.until.time_ns);
	progress_end(&feed->progress);
	return r;
}
