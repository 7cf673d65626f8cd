/* SPDX-License-Identifier: Apache-2.0 */

/* The list of wide books is made anew for each reading: mostly it is empty. */

#include "daemon/registry/wide-books.h"

#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "daemon/registry/tracked.h"
#include "model/snapshot.h"
#include "source/books/book-rest.h"

struct wide_book {
	struct tracked *tracked;
	const struct snapshot_process *process; /* in the latest snapshot */
	uint64_t read_ns;                       /* 0 = never */
};

/* What one user has had of this reading. Not a struct quota: one user is finished before the next. */
struct wide_user {
	uint32_t user;
	const char *name;
	size_t looks;
	size_t old; /* devices */
	uint64_t oldest_ns;
};

static void wide_books_drop(struct tracked *tracked)
{
	if (!tracked->book->rest) /* set by this thread only, or one before it */
		return;
	pthread_mutex_lock(&tracked->book_lock);
	book_rest_drop(tracked->book);
	pthread_mutex_unlock(&tracked->book_lock);
}

static bool wide_books_is(const struct tracked *tracked, const struct snapshot_process *process)
{
	return process && process->loose_rows < process->loose && !tracked_has_ended(tracked);
}

/* By user; those that were read longest ago first. */
static int wide_books_compare(const void *left, const void *right)
{
	const struct wide_book *a = left, *b = right;

	if (a->process->user_id != b->process->user_id)
		return bits_compare(a->process->user_id, b->process->user_id);
	if (a->read_ns != b->read_ns)
		return bits_compare(a->read_ns, b->read_ns);
	return bits_compare(a->tracked->id.inode, b->tracked->id.inode);
}

static size_t wide_books_find(const struct book_list *book_list, const struct snapshot *latest,
			      struct wide_book *ret_list)
{
	size_t count = 0, hint = 0;

	for (size_t i = 0; i < book_list->count; i++) {
		struct tracked *tracked = book_list->list[i];
		const struct snapshot_process *process = tracked_process(tracked, latest, &hint);

		if (!wide_books_is(tracked, process)) {
			wide_books_drop(tracked);
			continue;
		}
		ret_list[count++] = (struct wide_book){
			.tracked = tracked,
			.process = process,
			.read_ns = tracked->book->rest ? tracked->book->rest->read_ns : 0,
		};
	}
	return count;
}

static int wide_books_renew(const struct wide_book *wide, const struct snapshot *latest,
			    struct view *view, struct wide_user *user)
{
	const struct book_rest_wish wish = {.cards = latest, .keep = wide->process->loose_rows};
	struct scan_book *book = wide->tracked->book;
	int r = 0;

	pthread_mutex_lock(&wide->tracked->book_lock);
	if (!book->rest || user->looks < WIDE_BOOKS_LOOKS_MAX) {
		r = book_rest_renew(book, &wish, view, &user->looks);
	} else {
		book->rest->is_current = false;
		user->old += book->rest->sum.summed;
		user->oldest_ns =
			user->oldest_ns ? bits_min(user->oldest_ns, wide->read_ns) : wide->read_ns;
	}
	pthread_mutex_unlock(&wide->tracked->book_lock);
	return r;
}

static void wide_books_end_user(const struct wide_user *user, struct snapshot *snapshot)
{
	snapshot->devices_looks += user->looks;
	if (user->old)
		snapshot_note(
			snapshot,
			"user %s: %zu devices that are summed up had no turn to be looked at; "
			"what they hold is up to %" PRIu64 " s old",
			user->name, user->old,
			(clock_ns(CLOCK_MONOTONIC) - user->oldest_ns) / NS_PER_S + 1);
}

int wide_books_prepare(const struct book_list *book_list, const struct snapshot *latest,
		       struct view *view, struct snapshot *snapshot)
{
	CLEANUP_FREE struct wide_book *list = NULL;
	struct wide_user user = {0};
	size_t count;
	int r = 0;

	for (size_t i = 0; !latest && i < book_list->count; i++)
		wide_books_drop(book_list->list[i]);
	if (!latest)
		return 0;
	list = calloc(book_list->count + 1, sizeof(*list));
	if (!list)
		return -ENOMEM;
	count = wide_books_find(book_list, latest, list);
	qsort(list, count, sizeof(*list), wide_books_compare);
	for (size_t i = 0; r == 0 && i < count; i++) {
		const struct snapshot_process *process = list[i].process;

		if (i == 0 || process->user_id != user.user) {
			wide_books_end_user(&user, snapshot);
			user = (struct wide_user){.user = process->user_id, .name = process->user};
		}
		r = wide_books_renew(&list[i], latest, view, &user);
	}
	wide_books_end_user(&user, snapshot);
	return r;
}
