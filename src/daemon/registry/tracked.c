/* SPDX-License-Identifier: Apache-2.0 */

/* Reference counts of books, and reading books under their locks. */

#include "daemon/registry/tracked.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/clock.h"
#include "book/read/view.h"
#include "model/snapshot-request.h"
#include "model/snapshot.h"
#include "source/books/book-kept.h"
#include "source/books/book-source.h"

/* A book with a thousand devices takes 20 ms. A malicious one takes as long as it is allowed to. */
#define TRACKED_SLOW_NS UINT64_C(60000000)
#define TRACKED_REST 50u
#define TRACKED_REST_MAX_NS UINT64_C(3600000000000)

/* The counters of one device. */
struct tracked_before {
	uint32_t device;
	uint64_t allocs[BOOK_TYPES];
	uint64_t frees[BOOK_TYPES];
};

struct tracked *tracked_new_consume(struct scan_book *book, uint64_t since, const char *namespaces)
{
	struct tracked *tracked = calloc(1, sizeof(*tracked));

	if (!tracked) {
		scan_book_free(book);
		return NULL;
	}
	tracked->id = book->id;
	tracked->process = book->owner.id;
	tracked->maker = book_maker(book);
	tracked->user = book->owner.real_uid;
	tracked->source = book->reader.header.source;
	tracked->since_ns = clock_ns(CLOCK_REALTIME);
	tracked->is_older = book->reader.header.monotonic_start < since;
	memcpy(tracked->comm, book->owner.comm, sizeof(tracked->comm));
	/* Both have room for it; part of a text would name another place. */
	(void)snprintf(tracked->namespaces, sizeof(tracked->namespaces), "%s", namespaces);
	tracked->refs = 1;
	(void)pthread_mutex_init(&tracked->book_lock,
				 NULL); /* cannot fail on Linux; likewise the next */
	(void)pthread_mutex_init(&tracked->incident_lock, NULL);
	tracked->book = book;
	return tracked;
}

struct tracked *tracked_ref(struct tracked *tracked)
{
	__atomic_add_fetch(&tracked->refs, 1, __ATOMIC_RELAXED);
	return tracked;
}

struct tracked *tracked_unref(struct tracked *tracked)
{
	if (!tracked || __atomic_sub_fetch(&tracked->refs, 1, __ATOMIC_ACQ_REL) > 0)
		return NULL;
	scan_book_free(tracked->book);
	free(tracked->memory_path);
	free(tracked->told);
	free(tracked->before);
	pthread_mutex_destroy(&tracked->incident_lock);
	pthread_mutex_destroy(&tracked->book_lock);
	free(tracked);
	return NULL;
}

/*
 * The cost of a reading is our CPU time, not wall time, because a busy machine makes every book
 * slow. Measuring CPU time takes two system calls, as many as a reading itself, so it is measured
 * only for a book that was slow by wall time the last time.
 */
static clockid_t tracked_clock(const struct tracked *tracked)
{
	return tracked->was_slow ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC;
}

static void tracked_tire(struct tracked *tracked, uint64_t cost)
{
	bool is_cost = tracked->was_slow;

	tracked->was_slow = cost >= TRACKED_SLOW_NS;
	if (!tracked->was_slow || !is_cost) {
		tracked->rest_ns = 0;
		return;
	}
	tracked->rest_ns =
		bits_min(bits_max(TRACKED_REST * cost, 2 * tracked->rest_ns), TRACKED_REST_MAX_NS);
	tracked->rest_until = clock_ns(CLOCK_MONOTONIC) + tracked->rest_ns;
}

/* Adds what is known without reading the book. */
static int tracked_collect_resting(const struct tracked *tracked, struct snapshot *snapshot)
{
	uint32_t process;
	int r = book_add_process(tracked->book, snapshot, &process);

	if (r < 0)
		return r;
	snapshot->processes[process].exact = false;
	snapshot_note(snapshot,
		      "pid %" PRIu32 ": its book takes too long to read; left out for a while",
		      tracked->process.pid);
	return 0;
}

/*
 * The first reading of a book that is older than the daemon. Rates count only what happened since
 * the daemon started: a counter that began with the whole life of a process would look like a
 * burst. A book that cannot be read now counts from its beginning.
 */
static int tracked_note_before(struct tracked *tracked, struct view *view)
{
	static const struct snapshot_request totals = {0};
	struct snapshot *snapshot = snapshot_new(tracked->since_ns);
	const struct snapshot_process *process;
	int r = snapshot ? book_collect(tracked->book, &totals, view, snapshot) : -ENOMEM;

	process = r == 0 && snapshot->process_count ? &snapshot->processes[0] : NULL;
	if (process && process->part_count > 0) {
		tracked->before = calloc(process->part_count, sizeof(*tracked->before));
		r = tracked->before ? 0 : -ENOMEM;
	}
	for (size_t i = 0; r == 0 && process && i < process->part_count; i++) {
		struct tracked_before *before = &tracked->before[tracked->before_count++];

		before->device = process->parts[i].device;
		for (uint32_t type = 0; type < BOOK_TYPES; type++) {
			before->allocs[type] = process->parts[i].memory[type].allocs;
			before->frees[type] = process->parts[i].memory[type].frees;
		}
	}
	tracked->has_before = r != -ENOMEM;
	snapshot_free(snapshot);
	return r == -ENOMEM ? r : 0;
}

/* The owner's row. Snapshots are filled in the order of the list, so it is one of the last. */
static bool tracked_find(const struct tracked *tracked, const struct snapshot *snapshot,
			 uint32_t *ret_index)
{
	for (size_t i = snapshot->process_count; i > 0; i--) {
		const struct snapshot_process *process = &snapshot->processes[i - 1];

		if (process_id_equal(process->id, tracked->process) &&
		    process->alive == tracked->book->alive) {
			*ret_index = (uint32_t)(i - 1);
			return true;
		}
	}
	return false;
}

/* The part with that device. NULL: a page of buffers does not have all of them. */
static struct snapshot_part *tracked_part(struct snapshot *snapshot, uint32_t index,
					  uint32_t device)
{
	struct snapshot_process *process = &snapshot->processes[index];
	struct snapshot_part *last =
		process->part_count ? &process->parts[process->part_count - 1] : NULL;

	if (snapshot_find_part(snapshot, index, device))
		return snapshot_part(snapshot, index, device);
	return last && last->summed ? last : NULL;
}

static void tracked_add_before(const struct tracked *tracked, struct snapshot *snapshot)
{
	uint32_t index;

	if (!tracked_find(tracked, snapshot, &index))
		return;
	for (size_t i = 0; i < tracked->before_count; i++) {
		const struct tracked_before *before = &tracked->before[i];
		struct snapshot_part *part;

		part = tracked_part(snapshot, index, before->device);
		for (uint32_t type = 0; part && type < BOOK_TYPES; type++) {
			const struct snapshot_memory more = {
				.allocs_before = before->allocs[type],
				.frees_before = before->frees[type],
			};

			snapshot_add_memory(&part->memory[type], &more);
		}
	}
}

/* Says whose the details are. */
static int tracked_sign(const struct tracked *tracked, struct snapshot *snapshot)
{
	const char *namespaces =
		snapshot_text(snapshot, tracked->namespaces, strlen(tracked->namespaces));
	uint32_t index;

	if (!namespaces)
		return -ENOMEM;
	if (tracked_find(tracked, snapshot, &index)) {
		snapshot->processes[index].maker_id = tracked->maker;
		snapshot->processes[index].namespaces = namespaces;
	}
	return 0;
}

int tracked_collect(struct tracked *tracked, const struct snapshot_request *request,
		    struct view *view, struct snapshot *snapshot)
{
	clockid_t clock;
	bool may_rest;
	uint64_t from;
	int r = 0;

	pthread_mutex_lock(&tracked->book_lock);
	tracked->book->alive = !tracked_has_ended(tracked);
	may_rest = tracked->book->alive && !request->buffers;
	if (may_rest && clock_ns(CLOCK_MONOTONIC) < tracked->rest_until) {
		r = tracked_collect_resting(tracked, snapshot);
	} else {
		if (tracked->is_older && !tracked->has_before)
			r = tracked_note_before(tracked, view);
		clock = tracked_clock(tracked);
		from = clock_ns(clock);
		if (r == 0)
			r = book_collect(tracked->book, request, view, snapshot);
		if (r == 0 && tracked->before_count > 0)
			tracked_add_before(tracked, snapshot);
		if (may_rest)
			tracked_tire(tracked, clock_ns(clock) - from);
	}
	if (r == 0)
		r = tracked_sign(tracked, snapshot);
	pthread_mutex_unlock(&tracked->book_lock);
	return r;
}

int tracked_keep_peaks(struct tracked *tracked, struct view *view)
{
	int r = 0;

	pthread_mutex_lock(&tracked->book_lock);
	if (!tracked_has_ended(tracked) && clock_ns(CLOCK_MONOTONIC) >= tracked->rest_until)
		r = book_kept_look(tracked->book, view);
	pthread_mutex_unlock(&tracked->book_lock);
	return r;
}

int tracked_collect_kept(struct tracked *tracked, const struct snapshot_request *request,
			 struct snapshot *snapshot)
{
	int r;

	pthread_mutex_lock(&tracked->book_lock);
	tracked->book->alive = !tracked_has_ended(tracked);
	r = tracked->book->alive ? book_kept_collect(tracked->book, request, snapshot) : 0;
	pthread_mutex_unlock(&tracked->book_lock);
	return r;
}

const struct snapshot_process *tracked_process(const struct tracked *tracked,
					       const struct snapshot *snapshot, size_t *hint)
{
	for (size_t n = 0; n < snapshot->process_count; n++) {
		size_t i = (*hint + n) % snapshot->process_count;
		const struct snapshot_process *process = &snapshot->processes[i];

		if (process_id_equal(process->id, tracked->process) && process->books > 0) {
			*hint = i;
			return process;
		}
	}
	return NULL;
}

struct book_list *book_list_ref(struct book_list *book_list)
{
	__atomic_add_fetch(&book_list->refs, 1, __ATOMIC_RELAXED);
	return book_list;
}

struct book_list *book_list_unref(struct book_list *book_list)
{
	if (!book_list || __atomic_sub_fetch(&book_list->refs, 1, __ATOMIC_ACQ_REL) > 0)
		return NULL;
	for (size_t i = 0; i < book_list->count; i++)
		tracked_unref(book_list->list[i]);
	free(book_list);
	return NULL;
}
