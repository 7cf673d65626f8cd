/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One thread does everything: rounds when they are due, and jobs in the order in which they came, so
 * a book is there before its file is written, and until then. It has a reader of its own for each
 * book: nobody waits for a lock while it reads.
 */

#include "daemon/flight/black-box.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/array.h"
#include "base/bits.h"
#include "base/cleanup.h"
#include "base/threads/worker.h"
#include "daemon/flight/black-box-private.h"
#include "daemon/symbols/symbols-namer.h"
#include "source/books/scan.h"

#define BLACK_BOX_EXPIRE_NS (3600 * NS_PER_S)
#define BLACK_BOX_COST 60u /* of a file: rates are by the second, files by the minute */

enum black_box_task {
	BLACK_BOX_ADD,
	BLACK_BOX_KEEP,
	BLACK_BOX_END,
};

struct black_box_job {
	struct worker_job job;
	struct black_box *box;
	struct tracked *tracked;
	enum black_box_task task;
	enum flight_files_why why;
	uint64_t when_ns; /* CLOCK_REALTIME */
	bool is_kept;     /* of one that has ended: what it did stays */
};

static struct black_box_entry *black_box_find(const struct black_box *box,
					      const struct tracked *tracked)
{
	for (size_t i = 0; i < box->count; i++) {
		if (box->entries[i].tracked == tracked)
			return &box->entries[i];
	}
	return NULL;
}

/*
 * A reader of our own for the same book. What is copied never changes. The descriptor stays the
 * tracked book's: each process has enough of them as it is.
 */
static int black_box_open(const struct tracked *tracked, struct scan_book **ret_book)
{
	const struct scan_book *from = tracked->book;
	int fd = fcntl(from->file.fd, F_DUPFD_CLOEXEC, 3);
	struct scan_book *book = NULL;
	int r;

	if (fd < 0)
		return -errno;
	r = scan_book_new_consume(&book, fd);
	if (r != 0 || !book)
		return r < 0 ? r : -EBADMSG;
	(void)close(book->file.fd); /* it was not written to */
	book->file.fd = from->file.fd;
	book->owner = from->owner;
	memcpy(book->container, from->container, sizeof(book->container));
	book->id = from->id;
	book->uid = from->uid;
	*ret_book = book;
	return 0;
}

static int black_box_get(struct black_box *box, struct tracked *tracked,
			 struct black_box_entry **ret_entry)
{
	struct black_box_entry *entry = black_box_find(box, tracked);
	int r = 0;

	if (!entry) {
		entry = array_grow(box->entries, &box->capacity, box->count + 1, sizeof(*entry));
		if (!entry)
			return -ENOMEM;
		box->entries = entry;
		entry += box->count;
		*entry = (struct black_box_entry){.serial = ++box->serials};
		r = black_box_open(tracked, &entry->book);
		if (r < 0 || !entry->book)
			return r < 0 ? r : -EBADMSG;
		entry->tracked = tracked_ref(tracked);
		entry->owner =
			(struct black_box_owner){.maker = tracked->maker, .book = tracked->id};
		memcpy(entry->owner.namespaces, tracked->namespaces,
		       sizeof(entry->owner.namespaces));
		box->count++;
	}
	*ret_entry = entry;
	return r;
}

static void black_box_do_add(struct black_box *box, struct tracked *tracked)
{
	struct black_box_entry *entry;

	/* What cannot be had now is tried again when there is something to write. */
	if (black_box_get(box, tracked, &entry) < 0 || !entry->book)
		return;
	entry->book->alive = true;
	/* Without memory its file has what the rings know. */
	(void)flight_add(box->flight, tracked->maker, entry->book);
}

static void black_box_forget(struct black_box *box, struct black_box_entry *entry)
{
	flight_remove(box->flight, entry->book);
	entry->book->file.fd = -1;
	scan_book_free(entry->book);
	tracked_unref(entry->tracked);
	if (entry->has_ended)
		quota_give(&box->ended, entry->owner.maker, 1);
	*entry = box->entries[--box->count];
}

/* The oldest of the user who has most. */
static void black_box_forget_one(struct black_box *box)
{
	struct black_box_entry *worst = NULL;
	uint64_t most = quota_most(&box->ended);

	for (size_t i = 0; i < box->count; i++) {
		struct black_box_entry *entry = &box->entries[i];

		if (entry->has_ended && quota_used(&box->ended, entry->owner.maker) == most &&
		    (!worst || entry->ending.ended_ns < worst->ending.ended_ns))
			worst = entry;
	}
	if (worst)
		black_box_forget(box, worst);
}

/* The ended whose time is over, or of whom nothing is kept any more. */
static void black_box_tidy(struct black_box *box)
{
	uint64_t now = clock_ns(CLOCK_REALTIME);

	for (size_t i = box->count; i > 0; i--) {
		struct black_box_entry *entry = &box->entries[i - 1];

		if (entry->has_ended && (entry->ending.ended_ns + box->config.time_ns < now ||
					 !flight_keeps(box->flight, entry->book)))
			black_box_forget(box, entry);
	}
}

/* Names as far as they are known: nobody waits here. */
static void black_box_name(struct black_box *box, struct symbols_namer *namer,
			   struct flight_file *file)
{
	if (!box->config.symbols)
		return;
	symbols_namer_init(namer, box->config.symbols, false);
	file->namer = &namer->namer;
}

/*
 * The process has ended: what it did stays as long as what the living did, in memory of our own. Its book
 * is not needed any more.
 */
static void black_box_do_end(struct black_box *box, const struct black_box_job *job)
{
	const struct tracked *tracked = job->tracked;
	CLEANUP(symbols_namer_deinit) struct symbols_namer namer = {.symbols = NULL};
	struct black_box_entry *entry = black_box_find(box, tracked);
	struct flight_file file = {.reason = "ended",
				   .size_max = box->config.size_max / BLACK_BOX_FILE_SHARE};

	if (!entry)
		return;
	entry->ending = tracked->ending;
	entry->ending.ended_ns = job->when_ns;
	entry->book->alive = false;
	file.ending = &entry->ending;
	black_box_name(box, &namer, &file);
	entry->has_ended = job->is_kept && flight_end(box->flight, entry->book, &file) &&
			   quota_add(&box->ended, entry->owner.maker, 1) == 0;
	entry->book->file.fd = -1;
	entry->tracked = tracked_unref(entry->tracked);
	if (!entry->has_ended)
		black_box_forget(box, entry);
	/* Each has a descriptor. */
	while (box->ended.used > box->ended.total)
		black_box_forget_one(box);
}

static bool black_box_may(struct black_box *box, const struct black_box_entry *entry,
			  const struct black_box_job *job, uint64_t now)
{
	if (job->why == FLIGHT_FILES_FAILED && entry->kept_ns &&
	    now - entry->kept_ns < BLACK_BOX_AGAIN_NS)
		return false;
	return quota_rate_take(&box->rate, job->tracked->maker, BLACK_BOX_COST, now);
}

static int black_box_write(struct black_box *box, struct scan_book *book,
			   const struct black_box_job *job)
{
	const struct tracked *tracked = job->tracked;
	const struct flight_files_owner owner = {
		.user = tracked->maker,
		.process = tracked->process,
		.namespaces = tracked->namespaces,
	};
	struct ending ending = tracked->ending;
	CLEANUP(symbols_namer_deinit) struct symbols_namer namer = {.symbols = NULL};
	struct flight_file file = {
		.reason = job->why == FLIGHT_FILES_FAILED ? "failed" : "ended",
		.ending = job->why == FLIGHT_FILES_FAILED ? NULL : &ending,
		.size_max = box->config.size_max / BLACK_BOX_FILE_SHARE,
	};
	int fd, r = flight_files_make(box->files, &owner, &fd);

	if (r < 0)
		return r;
	ending.ended_ns = clock_ns(CLOCK_REALTIME);
	black_box_name(box, &namer, &file);
	book->alive = file.ending == NULL;
	r = flight_write(box->flight, book, fd, &file);
	/* A part is better than nothing, and can be opened. */
	if (r == 0 || r == -EFBIG)
		return flight_files_keep_consume(box->files, &owner, job->why, fd);
	flight_files_discard_consume(box->files, &owner, fd);
	return r;
}

static void black_box_do_keep(struct black_box *box, const struct black_box_job *job)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);
	struct black_box_entry *entry;
	bool may = false;
	int r = black_box_get(box, job->tracked, &entry);

	if (r == 0) {
		may = black_box_may(box, entry, job, now);
		if (may)
			r = black_box_write(box, entry->book, job);
		if (may)
			entry->kept_ns = now;
	}
	pthread_mutex_lock(&box->lock);
	box->pending--;
	if (r < 0)
		box->counts.failed++;
	else if (may)
		box->counts.files++;
	else
		box->counts.refused++;
	pthread_mutex_unlock(&box->lock);
}

static void black_box_run(struct worker_job *job)
{
	struct black_box_job *one = container_of(job, struct black_box_job, job);

	switch (one->task) {
	case BLACK_BOX_ADD:
		black_box_do_add(one->box, one->tracked);
		break;
	case BLACK_BOX_KEEP:
		black_box_do_keep(one->box, one);
		break;
	case BLACK_BOX_END:
		black_box_do_end(one->box, one);
		return;
	}
	tracked_unref(one->tracked);
	free(one);
}

/* In the loop's thread. */
static void black_box_ended(struct worker_job *job)
{
	struct black_box_job *one = container_of(job, struct black_box_job, job);
	const struct black_box_config *config = &one->box->config;

	config->copied(config->context, one->tracked, one->is_kept);
	tracked_unref(one->tracked);
	free(one);
}

/* False: there is no memory. */
static bool black_box_put(struct black_box *box, struct tracked *tracked,
			  const struct black_box_job *what)
{
	struct black_box_job *job = calloc(1, sizeof(*job));

	if (!job)
		return false;
	*job = *what;
	job->job = (struct worker_job){
		.run = black_box_run, .done = what->task == BLACK_BOX_END ? black_box_ended : NULL};
	job->box = box;
	job->tracked = tracked_ref(tracked);
	job->when_ns = clock_ns(CLOCK_REALTIME);
	if (worker_put(box->worker, &job->job))
		return true;
	tracked_unref(tracked);
	free(job);
	return false;
}

void black_box_add(struct black_box *box, struct tracked *tracked)
{
	const struct black_box_job job = {.task = BLACK_BOX_ADD};

	(void)black_box_put(box, tracked, &job); /* as if it could not be opened */
}

void black_box_end(struct black_box *box, struct tracked *tracked, bool is_kept)
{
	const struct black_box_job job = {.task = BLACK_BOX_END, .is_kept = is_kept};

	/* Without memory it stays until the daemon ends; its events go when they are too old. */
	if (!black_box_put(box, tracked, &job))
		box->config.copied(box->config.context, tracked, is_kept);
}

void black_box_keep(struct black_box *box, struct tracked *tracked, enum flight_files_why why)
{
	const struct black_box_job job = {.task = BLACK_BOX_KEEP, .why = why};
	bool is_put;

	pthread_mutex_lock(&box->lock);
	is_put = box->pending < BLACK_BOX_PENDING_MAX && black_box_put(box, tracked, &job);
	box->pending += is_put;
	box->counts.refused += !is_put;
	pthread_mutex_unlock(&box->lock);
}

static uint64_t black_box_tick(void *context, uint64_t now_ns)
{
	struct black_box *box = context;
	uint64_t next = flight_round(box->flight, now_ns);
	struct flight_counts counts;

	if (box->ended.used > 0 && now_ns >= box->tidy_ns) {
		black_box_tidy(box);
		box->tidy_ns = now_ns + NS_PER_S;
	}
	if (now_ns >= box->expire_ns) {
		flight_files_expire(box->files);
		box->expire_ns = now_ns + BLACK_BOX_EXPIRE_NS;
	}
	flight_counts(box->flight, &counts);
	pthread_mutex_lock(&box->lock);
	box->counts.flight = counts;
	pthread_mutex_unlock(&box->lock);
	if (box->ended.used > 0)
		next = bits_min(next, box->tidy_ns);
	return bits_min(next, box->expire_ns);
}

/* Most descriptors are for the living. */
static size_t black_box_ended_max(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) < 0)
		return 0;
	return (size_t)bits_min(BLACK_BOX_ENDED_MAX, files.rlim_cur / BLACK_BOX_ENDED_SHARE);
}

int black_box_new(struct black_box **ret_box, const struct black_box_config *config)
{
	const struct flight_options flight = {.time_ns = config->time_ns,
					      .size_max = config->size_max,
					      .percent = BLACK_BOX_PERCENT};
	const struct flight_files_config files = {
		.state = config->state, .size_max = config->size_max, .keep_s = config->keep_s};
	struct worker_config worker = {
		.name = "flight", .loop = config->loop, .tick = black_box_tick};
	struct black_box *box = calloc(1, sizeof(*box));
	pthread_condattr_t clock;
	int r;

	if (!box)
		return -ENOMEM;
	box->config = *config;
	box->start_ns = clock_ns(CLOCK_REALTIME);
	box->ended.total = black_box_ended_max();
	box->rate = (struct quota_rate){.burst = BLACK_BOX_FILES_BURST * BLACK_BOX_COST,
					.per_second = BLACK_BOX_FILES_PER_MINUTE};
	/* None of these can fail on Linux. */
	(void)pthread_mutex_init(&box->lock, NULL);
	(void)pthread_condattr_init(&clock);
	(void)pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&box->taken, &clock);
	(void)pthread_condattr_destroy(&clock);
	worker.context = box;
	r = flight_new(&box->flight, &flight);
	if (r == 0)
		r = flight_files_new(&box->files, &files);
	if (r == 0)
		r = worker_new(&box->worker, &worker);
	if (r < 0) {
		black_box_free(box);
		return r;
	}
	*ret_box = box;
	return 0;
}

void black_box_stop(struct black_box *box)
{
	worker_stop(box->worker);
}

struct black_box *black_box_free(struct black_box *box)
{
	if (!box)
		return NULL;
	if (box->worker)
		worker_free(box->worker);
	while (box->count > 0)
		black_box_forget(box, &box->entries[box->count - 1]);
	free(box->entries);
	quota_deinit(&box->ended);
	flight_files_free(box->files);
	flight_free(box->flight);
	pthread_cond_destroy(&box->taken);
	pthread_mutex_destroy(&box->lock);
	free(box);
	return NULL;
}

void black_box_counts(struct black_box *box, struct black_box_counts *ret_counts)
{
	pthread_mutex_lock(&box->lock);
	*ret_counts = box->counts;
	pthread_mutex_unlock(&box->lock);
}

uint64_t black_box_from(const struct black_box *box)
{
	uint64_t now = clock_ns(CLOCK_REALTIME);

	return bits_max(box->start_ns, now - bits_min(now, box->config.time_ns));
}
