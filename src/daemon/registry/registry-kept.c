/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Books that another program keeps for processes, over a link. The process may be gone before the keeper has
 * read everything that it sent, so its end takes two: its pidfd, and the keeper or the end of the link.
 */

#include <errno.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/threads/loop.h"
#include "daemon/registry/registry-private.h"
#include "daemon/registry/tracked.h"
#include "source/books/scan.h"

bool registry_is_kept(const struct registry_entry *entry)
{
	return entry->keeper || entry->tracked->source == BOOK_SOURCE_SOCKET;
}

static bool kept_is_awaited(const struct registry_entry *entry)
{
	return (entry->tracked->link && !entry->is_closed) || entry->patience.place != 0;
}

void registry_over(struct registry_entry *entry)
{
	if (!kept_is_awaited(entry)) {
		registry_end(entry, false);
		return;
	}
	if (!entry->is_over)
		registry_read_exit(entry);
	entry->is_over = true;
	/* It stays readable. */
	loop_remove(entry->registry->config.loop, &entry->pid_fd);
}

static void kept_patience_over(struct loop_timer *timer)
{
	struct registry_entry *entry = container_of(timer, struct registry_entry, patience);

	if (entry->is_over)
		registry_end(entry, false);
}

void registry_await_keeper(struct registry_entry *entry)
{
	struct loop *loop = entry->registry->config.loop;

	entry->patience.fire = kept_patience_over;
	/* Without memory for a timer it is judged at once. */
	(void)loop_set(loop, &entry->patience, loop_now(loop) + REGISTRY_PATIENCE_NS);
}

/* A known book has a keeper, again or for the first time. */
static void kept_attach(struct registry_entry *entry, const void *link, int pid_fd)
{
	loop_cancel(entry->registry->config.loop, &entry->patience);
	entry->tracked->link = link;
	entry->is_closed = false;
	if (entry->pid_fd.fd < 0 && pid_fd >= 0)
		registry_watch_pid(entry, pid_fd);
	else if (pid_fd >= 0)
		(void)close(pid_fd); /* nothing was written to it */
	else
		registry_over(entry);
}

/* Whether an entry may be @book, or what was before it. */
static bool kept_is_same(const struct registry_entry *entry, const struct scan_book *book)
{
	return !entry->keeper && registry_is_kept(entry) &&
	       process_id_equal(entry->tracked->process, book->owner.id);
}

/* Takes the book in any case. */
static int kept_add(struct registry *registry, const struct registry_offer *offer, int pid_fd)
{
	struct registry_newcomer what = {
		.book = offer->book, .pid_fd = pid_fd, .link = offer->link};
	struct registry_entry *entry;
	int r;

	what.old = offer->old.inode ? registry_find(registry, offer->old) : NULL;
	if (what.old && !kept_is_same(what.old, offer->book)) {
		scan_book_free(offer->book);
		if (pid_fd >= 0)
			(void)close(pid_fd); /* nothing was written to it */
		return -EPERM;
	}
	r = registry_add(registry, &what, &entry);
	if (r == 0 && pid_fd < 0)
		registry_over(entry);
	return r;
}

int registry_keep_consume(struct registry *registry, const struct registry_offer *offer)
{
	struct registry_entry *entry = registry_find(registry, offer->book->id);
	CLEANUP(scan_book_cleanup) struct scan_book *book = offer->book;
	CLEANUP_CLOSE int pid_fd = offer->pid_fd;
	int r = 0;

	if (registry_was_judged(registry, offer->book->id) ||
	    (offer->old.inode && registry_was_judged(registry, offer->old)))
		return -EEXIST;
	/* A library offers its book itself. */
	if (book->reader.header.source != BOOK_SOURCE_SOCKET ||
	    (entry && !kept_is_same(entry, book)))
		r = -EPERM;
	else if (entry)
		kept_attach(entry, offer->link, cleanup_steal_fd(&pid_fd));
	else
		r = kept_add(registry, offer, (book = NULL, cleanup_steal_fd(&pid_fd)));
	if (r < 0)
		registry_refuse(registry, r);
	return r;
}

/* Nothing more is written to it. */
static void kept_finish(struct registry_entry *entry)
{
	entry->is_closed = true;
	if (entry->is_over)
		registry_end(entry, false);
}

void registry_closed(struct registry *registry, const void *link, struct book_id id)
{
	struct registry_entry *entry = registry_find(registry, id);

	if (entry && entry->tracked->link == link)
		kept_finish(entry);
}

void registry_unlink(struct registry *registry, const void *link)
{
	for (size_t i = registry->count; i > 0; i--) {
		struct registry_entry *entry = registry->entries[i - 1];

		if (entry->tracked->link != link)
			continue;
		entry->tracked->link = NULL;
		if (!entry->is_closed)
			registry_await_keeper(entry);
	}
}

struct tracked *registry_get(const struct registry *registry, struct book_id id)
{
	const struct registry_entry *entry = registry_find(registry, id);

	return entry ? entry->tracked : NULL;
}

int registry_pid_fd(const struct registry *registry, const struct tracked *tracked)
{
	const struct registry_entry *entry = registry_find(registry, tracked->id);

	return entry ? entry->pid_fd.fd : -1;
}

bool registry_is_left(const struct registry *registry, const struct tracked *tracked)
{
	const struct registry_entry *entry = registry_find(registry, tracked->id);

	return entry && !entry->keeper && registry_is_kept(entry) && !tracked->link;
}

void registry_count_refused(struct registry *registry)
{
	registry->counts.refused++;
}
