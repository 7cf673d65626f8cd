/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Books that were held while no daemon ran. Every daemon continues the book of an old client in a
 * new file, and both files are held for a moment; a daemon that is killed then leaves two books of
 * the same process. The later one is complete, because it is held only once it is; the earlier one
 * is released.
 */

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/array.h"
#include "base/bits.h"
#include "base/cleanup.h"
#include "book/format/layout.h"
#include "daemon/custody/keeper.h"
#include "daemon/custody/tracked-file.h"
#include "daemon/daemon.h"

struct daemon_kept {
	struct keeper_entry entry;
	int fd;
	uint32_t carried; /* generation of an old client's book; else 0 */
	bool is_struck;   /* found in the previous daemon's file of tracked processes */
};

/* Files that are not books are rejected later by the registry. */
static void restore_look(struct daemon_kept *kept)
{
	struct book_header header;

	if (pread(kept->fd, &header, sizeof(header), 0) != sizeof(header) ||
	    header.magic != BOOK_MAGIC)
		return;
	kept->entry.source = header.source;
	if (header.source == BOOK_SOURCE_SOCKET)
		kept->carried = header.carried;
}

void daemon_restore_add(void *context, const struct keeper_entry *entry, int fd)
{
	struct daemon_restore *restore = context;
	struct daemon_kept *list = array_grow(restore->list, &restore->capacity, restore->count + 1,
					      sizeof(*restore->list));

	if (!list) {
		(void)close(fd); /* still held by whoever passed it */
		return;
	}
	restore->list = list;
	list[restore->count] = (struct daemon_kept){.entry = *entry, .fd = fd};
	restore_look(&list[restore->count++]);
}

void daemon_restore_add_handed(struct daemon *daemon)
{
	for (size_t i = 0; i < daemon->handed.count; i++) {
		struct systemd_book *book = &daemon->handed.books[i];
		struct keeper_entry entry = {
			.process = book->process,
			.book.inode = book->inode,
		};

		daemon_restore_add(&daemon->restore, &entry, cleanup_steal_fd(&book->fd));
	}
}

/*
 * Removes a process from the previous daemon's file of tracked processes because its book has come
 * back: this very file or (@any) a later one.
 */
static bool restore_strike(struct daemon *daemon, const struct keeper_entry *entry, bool any)
{
	for (size_t i = 0; i < daemon->expected_count; i++) {
		const struct tracked_file_entry *expected = &daemon->expected[i];

		if (!process_id_equal(expected->process, entry->process) ||
		    (expected->book.inode != entry->book.inode && !any))
			continue;
		daemon->expected[i] = daemon->expected[--daemon->expected_count];
		return true;
	}
	return false;
}

/* A daemon may have been killed before its file of tracked processes named the new book. */
static void restore_strike_all(struct daemon *daemon, struct daemon_kept *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		list[i].is_struck = restore_strike(daemon, &list[i].entry, false);
	for (size_t i = 0; i < count; i++) {
		if (!list[i].is_struck && list[i].carried > 0)
			(void)restore_strike(daemon, &list[i].entry,
					     true); /* or it was not listed */
	}
}

static int restore_order(const void *left, const void *right)
{
	const struct daemon_kept *a = left, *b = right;
	int r = process_id_compare(a->entry.process, b->entry.process);

	if (r)
		return r;
	if (a->entry.source != b->entry.source)
		return bits_compare(a->entry.source, b->entry.source);
	return bits_compare(b->carried, a->carried); /* the latest first */
}

/*
 * Whether @latest continues @kept. A book whose process was gone too soon to be identified is never
 * continued.
 */
static bool restore_is_past(const struct daemon_kept *latest, const struct daemon_kept *kept)
{
	return process_id_equal(latest->entry.process, kept->entry.process) &&
	       kept->entry.process.start_ticks != 0 && kept->entry.source == BOOK_SOURCE_SOCKET &&
	       latest->entry.source == BOOK_SOURCE_SOCKET && latest->carried > kept->carried;
}

void daemon_restore_all(struct daemon *daemon)
{
	CLEANUP_FREE struct daemon_kept *list = cleanup_steal(daemon->restore.list);
	size_t count = daemon->restore.count;
	const struct daemon_kept *latest = list;

	daemon->restore = (struct daemon_restore){0};
	if (count > 0)
		qsort(list, count, sizeof(*list), restore_order);
	restore_strike_all(daemon, list, count);
	for (size_t i = 0; i < count; i++) {
		struct daemon_kept *kept = &list[i];

		if (restore_is_past(latest, kept)) {
			daemon_keep_let_go(daemon, &kept->entry);
			(void)close(kept->fd); /* open for reading only */
			continue;
		}
		latest = kept;
		/* Failure is harmless: it is not a book, or it is known already. */
		(void)registry_restore_consume(daemon->registry, kept->fd, kept->entry.process);
	}
}
