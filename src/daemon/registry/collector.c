/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One thread reads, the others wait for it. A caller that arrives during a reading cannot use it,
 * because the reading may have passed a book before the call; the first of the waiters then reads
 * for all the others.
 */

#include "daemon/registry/collector.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "book/read/view.h"
#include "daemon/registry/access.h"
#include "daemon/registry/overlap-notes.h"
#include "daemon/registry/peaks.h"
#include "daemon/registry/tracked.h"
#include "daemon/registry/wide-books.h"
#include "model/cards/declared.h"
#include "model/snapshot-request.h"
#include "model/snapshot.h"
#include "source/collect.h"
#include "source/host/card-watch.h"
#include "source/source.h"

struct collector {
	struct collector_config config;
	struct peaks peaks;
	struct card_watch *cards;
	struct overlap_notes overlaps;

	pthread_mutex_t lock; /* protects the members below; never held while a book is read */
	pthread_cond_t changed;
	bool is_reading;
	struct snapshot *latest; /* NULL = nothing has been read yet */
	uint64_t latest_ns;      /* CLOCK_MONOTONIC: when its reading started */
	uint64_t readings;
};

/* The books of one reading. */
struct collector_books {
	struct source source;
	const struct book_list *book_list;
	const struct collector_wish *wish;
	bool prepares;                 /* decides which books are wide, see wide-books.h */
	const struct snapshot *latest; /* by these totals; NULL = none is */
};

static int collector_collect(struct source *source, const struct snapshot_request *request,
			     struct snapshot *snapshot)
{
	const struct collector_books *books = container_of(source, struct collector_books, source);
	const struct book_list *book_list = books->book_list;
	struct tracked *also = books->wish->also;
	struct view *view = calloc(1, sizeof(*view));
	int r = view ? 0 : -ENOMEM;

	if (r == 0 && books->prepares)
		r = wide_books_prepare(book_list, books->latest, view, snapshot);
	for (size_t i = 0; r == 0 && i < book_list->count; i++) {
		struct tracked *tracked = book_list->list[i];

		if (also && also == tracked)
			also = NULL;
		if (!books->wish->asker ||
		    access_may_see(books->wish->asker, tracked->maker, tracked->namespaces))
			r = tracked_collect(tracked, request, view, snapshot);
	}
	if (r == 0 && also)
		r = tracked_collect(also, request, view, snapshot);
	if (view)
		view_deinit(view);
	free(view);
	return r;
}

static bool collector_is(const struct tracked *tracked, const struct kernel_holder *book)
{
	return book_id_equal(tracked->id, book->book);
}

/* Binary search for the first book whose pid is at least @pid; the list is sorted by pid. */
static size_t collector_from(const struct book_list *book_list, uint32_t pid)
{
	size_t from = 0, to = book_list->count;

	while (from < to) {
		size_t middle = from + (to - from) / 2;

		if (book_list->list[middle]->process.pid < pid)
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

/* There may be thousands of both; nearly all of them are found by the binary search. */
static bool collector_knows(const void *context, const struct kernel_holder *book)
{
	const struct book_list *book_list = context;

	for (size_t i = collector_from(book_list, book->pid);
	     i < book_list->count && book_list->list[i]->process.pid == book->pid; i++) {
		if (collector_is(book_list->list[i], book))
			return true;
	}
	for (size_t i = 0; i < book_list->count; i++) {
		if (collector_is(book_list->list[i], book))
			return true;
	}
	return false;
}

/* A recent reading: it only says which cards the devices are. NULL: there is none. */
static struct snapshot *collector_recent(struct collector *collector,
					 const struct snapshot_request *request)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);
	struct snapshot *totals = NULL;

	if (!request->buffers || (!request->limit && !request->filter.device_count))
		return NULL;
	return collector_totals(collector, now - bits_min(now, NS_PER_S), &totals) < 0 ? NULL
										       : totals;
}

static int collector_read_books(struct collector *collector, struct collector_books *books,
				struct snapshot **ret_snapshot)
{
	static const struct source_ops ops = {.name = "books", .collect = collector_collect};
	CLEANUP(snapshot_cleanup)
	struct snapshot *totals = collector_recent(collector, books->wish->request);
	struct book_list *book_list = collector->config.book_list(collector->config.context);
	struct snapshot_request request = *books->wish->request;
	const struct collect_sources sources = {
		.books = &books->source,
		.knows = collector_knows,
		.known = book_list,
		.proc = collector->config.proc,
		.cards = collector->cards,
	};
	struct snapshot *snapshot;
	int r;

	books->source.ops = &ops;
	books->book_list = book_list;
	request.totals = totals;
	r = collect_machine(&sources, &request, &snapshot);

	book_list_unref(book_list);
	if (r < 0)
		return r;
	peaks_apply(&collector->peaks, snapshot);
	overlap_notes_apply(&collector->overlaps, snapshot);
	*ret_snapshot = snapshot;
	return 0;
}

int collector_read(struct collector *collector, const struct collector_wish *wish,
		   struct snapshot **ret_snapshot)
{
	struct collector_books books = {.wish = wish};

	return collector_read_books(collector, &books, ret_snapshot);
}

/* What is summed up depends on the cards: if there are others now, all is read one by one. */
static int collector_read_totals(struct collector *collector, struct snapshot **ret_snapshot)
{
	static const struct snapshot_request totals = {0};
	const struct collector_wish wish = {.request = &totals};
	struct collector_books books = {
		.wish = &wish, .prepares = true, .latest = collector->latest};
	int r = collector_read_books(collector, &books, ret_snapshot);

	if (r < 0 || !(*ret_snapshot)->devices_looks ||
	    declared_cards(*ret_snapshot) == declared_cards(books.latest))
		return r;
	*ret_snapshot = snapshot_free(*ret_snapshot);
	books.latest = NULL;
	return collector_read_books(collector, &books, ret_snapshot);
}

/* Releases the lock while reading; whoever is reading is the only one to replace the latest. */
static int collector_renew(struct collector *collector)
{
	uint64_t begun_ns = clock_ns(CLOCK_MONOTONIC);
	struct snapshot *snapshot = NULL;
	int r;

	collector->is_reading = true;
	collector->readings++;
	pthread_mutex_unlock(&collector->lock);
	r = collector_read_totals(collector, &snapshot);
	if (r == 0)
		card_watch_learn(collector->cards, snapshot);
	pthread_mutex_lock(&collector->lock);
	collector->is_reading = false;
	if (r == 0) {
		snapshot_free(collector->latest);
		collector->latest = snapshot;
		collector->latest_ns = begun_ns;
	}
	/* After a failure as well: then the next waiter tries. */
	pthread_cond_broadcast(&collector->changed);
	return r;
}

int collector_totals(struct collector *collector, uint64_t since_ns, struct snapshot **ret_snapshot)
{
	int r = 0;

	pthread_mutex_lock(&collector->lock);
	while (r == 0 && (!collector->latest || collector->latest_ns < since_ns)) {
		if (collector->is_reading)
			pthread_cond_wait(&collector->changed, &collector->lock);
		else
			r = collector_renew(collector);
	}
	if (r == 0)
		*ret_snapshot = snapshot_ref(collector->latest);
	pthread_mutex_unlock(&collector->lock);
	return r;
}

struct snapshot *collector_latest(struct collector *collector)
{
	struct snapshot *latest;

	pthread_mutex_lock(&collector->lock);
	latest = collector->latest ? snapshot_ref(collector->latest) : NULL;
	pthread_mutex_unlock(&collector->lock);
	return latest;
}

struct overlap_notes *collector_overlaps(struct collector *collector)
{
	return &collector->overlaps;
}

uint64_t collector_readings(struct collector *collector)
{
	uint64_t readings;

	pthread_mutex_lock(&collector->lock);
	readings = collector->readings;
	pthread_mutex_unlock(&collector->lock);
	return readings;
}

int collector_new(struct collector **ret_collector, const struct collector_config *config)
{
	struct collector *collector = calloc(1, sizeof(*collector));

	if (!collector || card_watch_new(&collector->cards) < 0) {
		free(collector);
		return -ENOMEM;
	}
	collector->config = *config;
	peaks_init(&collector->peaks);
	overlap_notes_init(&collector->overlaps);
	/* Neither can fail on Linux. */
	(void)pthread_mutex_init(&collector->lock, NULL);
	(void)pthread_cond_init(&collector->changed, NULL);
	*ret_collector = collector;
	return 0;
}

struct collector *collector_free(struct collector *collector)
{
	if (!collector)
		return NULL;
	snapshot_free(collector->latest);
	peaks_deinit(&collector->peaks);
	card_watch_free(collector->cards);
	overlap_notes_deinit(&collector->overlaps);
	pthread_cond_destroy(&collector->changed);
	pthread_mutex_destroy(&collector->lock);
	free(collector);
	return NULL;
}
