/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Books that outlive the daemon. Every tracked book is also held by systemd or by a keeper process.
 * It is released only when its owner has ended and been judged, what the flight recorder needs was copied,
 * the verdict is in the database, and the process is no longer in the file of tracked processes: a daemon
 * that is killed before that leaves the book to the next one, which judges it again. Repeated reports of
 * one book count once. In the other order, a process whose end was reported would be counted as one that
 * ended unseen.
 *
 * None of this waits for the next second: until then, the memory of the book counts for the owner's cgroup.
 * A book for which there was no room there is released at once, and only its name waits: a daemon that is
 * killed before its totals are written has it counted as one that ended unseen.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/bits.h"
#include "base/cleanup.h"
#include "base/threads/worker.h"
#include "daemon/custody/keeper.h"
#include "daemon/custody/tracked-file.h"
#include "daemon/daemon.h"
#include "daemon/link/links.h"
#include "daemon/notify/log-writer.h"
#include "daemon/registry/tracked.h"
#include "daemon/symbols/symbols.h"
#include "source/books/scan.h"
#include "source/books/verify-book.h"
#include "store/store.h"

#define KEEP_SUFFIX ".keeper"    /* of the keeper's socket, after the path of ours */
#define KEEP_FLUSH_MS 500u       /* others wait meanwhile; it is tried again */
#define KEEP_FLUSH_LAST_MS 5000u /* at our end */
#define KEEP_JUDGED_MAX 8192u /* on a full disk they wait for space; few of them with their books */

/*
 * Does not take the book's lock: a reader may hold it for seconds, and this is the loop's thread.
 */
static struct keeper_entry keep_entry(const struct tracked *tracked)
{
	struct keeper_entry entry = {
		.process = tracked->process,
		.book = tracked->id,
		.source = tracked->source,
	};

	(void)snprintf(entry.comm, sizeof(entry.comm), "%.*s", (int)sizeof(tracked->comm),
		       tracked->comm);
	return entry;
}

static struct systemd_book keep_book_of(const struct tracked *tracked, int fd)
{
	return (struct systemd_book){
		.fd = fd,
		.process = tracked->process,
		.inode = tracked->id.inode,
	};
}

void daemon_keep_added(struct daemon *daemon, struct tracked *tracked)
{
	struct keeper_entry entry = keep_entry(tracked);
	struct systemd_book book = keep_book_of(tracked, tracked->book->file.fd);

	if (daemon->tracked_file)
		tracked_file_changed(daemon->tracked_file);
	if (daemon->keeper)
		keeper_add(daemon->keeper, &entry, tracked->book->file.fd);
	else if (daemon->systemd.books_max)
		(void)systemd_store(&daemon->systemd, &book); /* without room: not kept */
}

void daemon_keep_let_go(struct daemon *daemon, const struct keeper_entry *entry)
{
	struct systemd_book book = {
		.fd = -1,
		.process = entry->process,
		.inode = entry->book.inode,
	};

	if (daemon->keeper)
		keeper_remove(daemon->keeper, entry->book);
	else if (daemon->systemd.books_max)
		(void)systemd_unstore(&daemon->systemd, &book); /* else judged once more */
}

static void keep_release(struct daemon *daemon, struct daemon_judged *judged)
{
	if (!judged->tracked)
		return; /* it was released before */
	daemon_keep_let_go(daemon, &judged->entry);
	recorder_let_go(daemon->recorder, judged->tracked);
	judged->tracked = tracked_unref(judged->tracked);
}

/* Releases the first judged books, which are no longer in the file of tracked processes. */
static void keep_let_all_go(struct daemon *daemon)
{
	size_t count = daemon->unlisted;

	for (size_t i = 0; i < count; i++)
		keep_release(daemon, &daemon->judged[i]);
	daemon->judged_count -= count;
	daemon->written -= count;
	daemon->flushing -= daemon->flushing > 0 ? count : 0;
	daemon->unlisted = 0;
	if (count > 0)
		memmove(daemon->judged, daemon->judged + count,
			daemon->judged_count * sizeof(*daemon->judged));
}

/*
 * The registry no longer has it, and it may be long until it is judged: until then it is in the file of tracked
 * processes, and a new keeper gets its book.
 */
void daemon_keep_ended(struct daemon *daemon, struct tracked *tracked)
{
	struct daemon_judged *ending = array_grow(daemon->ending, &daemon->ending_capacity,
						  daemon->ending_count + 1, sizeof(*ending));

	if (!ending)
		return; /* no memory: if we are killed before it is judged, nobody counts it */
	daemon->ending = ending;
	ending[daemon->ending_count++] = (struct daemon_judged){.entry = keep_entry(tracked),
								.tracked = tracked_ref(tracked)};
}

static void keep_strike_ending(struct daemon *daemon, const struct tracked *tracked)
{
	for (size_t i = 0; i < daemon->ending_count; i++) {
		if (daemon->ending[i].tracked != tracked)
			continue;
		tracked_unref(daemon->ending[i].tracked);
		daemon->ending[i] = daemon->ending[--daemon->ending_count];
		return;
	}
}

/* What was read of it is copied: what is left is to write it down. */
void daemon_keep_copied(void *context, struct tracked *tracked, bool may_wait)
{
	struct daemon *daemon = context;
	struct daemon_judged one = {.entry = keep_entry(tracked), .tracked = tracked_ref(tracked)};
	struct daemon_judged *judged = NULL;

	keep_strike_ending(daemon, tracked);
	if (daemon->judged_count < KEEP_JUDGED_MAX)
		judged = array_grow(daemon->judged, &daemon->judged_capacity,
				    daemon->judged_count + 1, sizeof(*judged));
	if (daemon->symbols)
		symbols_release(daemon->symbols,
				scan_book_number(tracked->id, tracked->process.start_ticks));
	/* Without room for its name either, nobody counts it if we are killed now. */
	if (!may_wait || !judged)
		keep_release(daemon, &one);
	if (!judged)
		return;
	daemon->judged = judged;
	judged[daemon->judged_count++] = one;
	daemon_keep_flush(daemon);
}

void daemon_keep_judged(void *context, struct tracked *tracked, bool is_read)
{
	struct daemon *daemon = context;

	if (daemon->black_box)
		black_box_end(daemon->black_box, tracked, is_read);
	else
		daemon_keep_copied(daemon, tracked, is_read);
}

/* Incidents are not carried over into the book that continues it. */
void daemon_keep_replaced(void *context, struct tracked *tracked)
{
	struct daemon *daemon = context;

	recorder_hurry(daemon->recorder, tracked);
	links_ended(daemon->links, tracked);
	daemon_keep_judged(daemon, tracked, false);
}

static void keep_flush_run(struct worker_job *job)
{
	struct daemon *daemon = container_of(job, struct daemon, flush);

	daemon->flush_result = daemon->store ? store_flush(daemon->store, KEEP_FLUSH_MS) : 0;
}

static void keep_flush_done(struct worker_job *job)
{
	struct daemon *daemon = container_of(job, struct daemon, flush);

	if (daemon->flush_result == 0) {
		daemon->written = daemon->flushing;
		if (daemon->tracked_file)
			tracked_file_changed(daemon->tracked_file);
	}
	daemon->flushing = 0;
}

/*
 * What has been judged so far is released after it is written. What is judged meanwhile waits until the file
 * of tracked processes is written too: that is soon, and the disk is not asked for every single one. Also
 * once a second, if it failed.
 */
void daemon_keep_flush(struct daemon *daemon)
{
	if (daemon->flushing > 0 || daemon->written > 0 || daemon->judged_count == 0)
		return;
	daemon->flushing = daemon->judged_count;
	daemon->flush = (struct worker_job){.run = keep_flush_run, .done = keep_flush_done};
	if (!daemon->exits_worker || !worker_put(daemon->exits_worker, &daemon->flush))
		daemon->flushing = 0; /* we are being closed */
}

static void keep_refill(void *context, struct keeper *keeper)
{
	struct daemon *daemon = context;
	struct book_list *book_list = registry_books(daemon->registry);

	daemon->keeper_is_lost = false;
	for (size_t i = 0; i < book_list->count; i++) {
		struct keeper_entry entry = keep_entry(book_list->list[i]);

		keeper_add(keeper, &entry, book_list->list[i]->book->file.fd);
	}
	for (size_t i = 0; i < daemon->ending_count; i++)
		keeper_add(keeper, &daemon->ending[i].entry,
			   daemon->ending[i].tracked->book->file.fd);
	for (size_t i = 0; i < daemon->judged_count; i++) {
		const struct daemon_judged *judged = &daemon->judged[i];

		if (judged->tracked)
			keeper_add(keeper, &judged->entry, judged->tracked->book->file.fd);
	}
	book_list_unref(book_list);
}

static void keep_say_none(struct daemon *daemon, const char *what, int error)
{
	log_writer_print(daemon->log_writer,
			 "ttmemd: %s at %s" KEEP_SUFFIX " (%s); until there is another, "
			 "processes that end while ttmemd is down will go unreported\n",
			 what, daemon->config->socket, strerror(-error));
}

/* A new keeper may be tried many times; log the loss once. */
static void keep_lost(void *context, int error)
{
	struct daemon *daemon = context;

	if (!daemon->keeper_is_lost)
		keep_say_none(daemon,
			      daemon->keeper ? "the keeper of books is gone"
					     : "there is no keeper of books",
			      error);
	daemon->keeper_is_lost = true;
}

/* Connections of old clients, which release 0.2.0 had: nobody goes on with them here. */
static void keep_drop_other(void *context, uint32_t what, int fd)
{
	struct daemon *daemon = context;

	(void)what;
	if (daemon->keeper)
		keeper_release(daemon->keeper, fd);
	(void)close(fd); /* nothing was written to it */
}

static void keep_drop_handed(struct daemon *daemon)
{
	for (size_t i = 0; i < daemon->handed.held_count; i++) {
		struct systemd_held *held = &daemon->handed.held[i];

		/* Else the next one gets it once more. */
		(void)systemd_release(&daemon->systemd, held->what, held->fd);
	}
}

static void keep_open_keeper(struct daemon *daemon, const char *path)
{
	const struct keeper_hooks hooks = {
		.context = daemon,
		.refill = keep_refill,
		.lost = keep_lost,
	};
	int r;

	if (!daemon->config->keeper || daemon->systemd.books_max) {
		(void)keeper_quit(path); /* usually none is running */
		return;
	}
	r = keeper_new(&daemon->keeper, daemon->loop, path, &hooks);
	if (r == 0)
		r = keeper_take(daemon->keeper, daemon_restore_add, &daemon->restore);
	if (r == 0)
		r = keeper_fetch(daemon->keeper, keep_drop_other, daemon);
	if (r < 0)
		keep_say_none(daemon, "the keeper of books does not answer", r);
}

static void keep_put(struct tracked_file *tracked_file, const struct keeper_entry *from)
{
	struct tracked_file_entry entry = {
		.process = from->process,
		.book = from->book,
	};

	_Static_assert(sizeof(entry.comm) >= sizeof(from->comm), "names fit");
	memcpy(entry.comm, from->comm, sizeof(from->comm));
	tracked_file_put(tracked_file, &entry);
}

static bool keep_is_listed(const struct book_list *book_list,
			   const struct tracked_file_entry *entry)
{
	for (size_t i = 0; i < book_list->count; i++) {
		const struct tracked *tracked = book_list->list[i];

		if (book_id_equal(tracked->id, entry->book))
			return true;
	}
	return false;
}

static void keep_list(void *context, struct tracked_file *tracked_file)
{
	struct daemon *daemon = context;
	struct book_list *book_list = registry_books(daemon->registry);

	for (size_t i = 0; i < book_list->count; i++) {
		struct keeper_entry entry = keep_entry(book_list->list[i]);

		keep_put(tracked_file, &entry);
	}
	for (size_t i = 0; i < daemon->ending_count; i++)
		keep_put(tracked_file, &daemon->ending[i].entry);
	for (size_t i = daemon->written; i < daemon->judged_count; i++)
		keep_put(tracked_file, &daemon->judged[i].entry);
	/* Not judged yet: a daemon that is killed now leaves that to the next one. */
	for (size_t i = 0; i < daemon->expected_count; i++) {
		if (!keep_is_listed(book_list, &daemon->expected[i]))
			tracked_file_put(tracked_file, &daemon->expected[i]);
	}
	daemon->unlisted = daemon->written;
	book_list_unref(book_list);
}

static void keep_file_written(void *context)
{
	keep_let_all_go(context);
	daemon_keep_flush(context);
}

static void keep_file_failed(void *context, int error)
{
	struct daemon *daemon = context;

	log_writer_print(daemon->log_writer, "ttmemd: cannot write %s/%s: %s\n",
			 daemon->config->state, TRACKED_FILE_FILE, strerror(-error));
}

/* What was held while no daemon ran, and who holds it from now on. */
void daemon_keep_take(struct daemon *daemon)
{
	char path[4096];
	struct tracked_file_contents before = {0};
	int r = tracked_file_read(daemon->config->state, &before);

	daemon->expected = before.entries;
	daemon->expected_count = before.count;
	daemon->missed_before = before.missed;
	if (r < 0 && r != -ENOENT)
		log_writer_print(daemon->log_writer, "ttmemd: %s/%s: %s\n", daemon->config->state,
				 TRACKED_FILE_FILE, strerror(-r));
	daemon_restore_add_handed(daemon);
	keep_drop_handed(daemon);
	(void)snprintf(path, sizeof(path), "%s" KEEP_SUFFIX, daemon->config->socket);
	keep_open_keeper(daemon, path);
}

int daemon_keep_open(struct daemon *daemon)
{
	const struct tracked_file_hooks hooks = {
		.context = daemon,
		.list = keep_list,
		.written = keep_file_written,
		.failed = keep_file_failed,
	};

	int r;

	daemon_restore_all(daemon);
	r = tracked_file_new(&daemon->tracked_file, daemon->loop, daemon->exits_worker,
			     daemon->config->state, &hooks);
	if (r < 0)
		return r;
	registry_count_unobserved(daemon->registry, daemon->missed_before);
	if (daemon->missed_before > 0)
		tracked_file_set_missed(daemon->tracked_file, daemon->missed_before);
	return 0;
}

/* All living processes are known: which of the previous daemon's are missing? */
void daemon_keep_settle(struct daemon *daemon)
{
	size_t missed = tracked_file_missed(daemon->expected, daemon->expected_count,
					    registry_proc(daemon->registry), NULL, NULL);

	free(cleanup_steal(daemon->expected));
	daemon->expected_count = 0;
	if (missed == 0)
		return;
	registry_count_unobserved(daemon->registry, missed);
	if (daemon->tracked_file)
		tracked_file_set_missed(daemon->tracked_file, daemon->missed_before + missed);
	log_writer_print(
		daemon->log_writer,
		"ttmemd: %zu processes ended while nobody held their books; what they left is "
		"not known\n",
		missed);
}

/* Before the file of tracked processes is written for the last time: drop what is recorded. */
void daemon_keep_finish(struct daemon *daemon)
{
	if (!daemon->tracked_file || daemon->judged_count == daemon->written)
		return;
	if (daemon->store && store_flush(daemon->store, KEEP_FLUSH_LAST_MS) < 0)
		return;
	daemon->written = daemon->judged_count;
	daemon->flushing = 0;
	tracked_file_changed(daemon->tracked_file);
}

/*
 * A held book of the kernel module would prevent unloading it, for up to a day after the daemon was stopped. The
 * module has the book as long as the process lives, so the next daemon finds it again. A process that exits before
 * that is counted as an unobserved exit, and the kernel's log has its totals. A book whose report is not stored
 * yet stays with the keeper. systemd drops its store if the unit is stopped, and needs it if it is restarted.
 */
static void keep_release_kernels(struct daemon *daemon)
{
	struct book_list *book_list;

	if (!daemon->keeper || !daemon->registry)
		return;
	book_list = registry_books(daemon->registry);
	for (size_t i = 0; i < book_list->count; i++) {
		const struct tracked *tracked = book_list->list[i];

		if (!tracked_has_ended(tracked) && verify_book_is_kernels(tracked->book->file.fd))
			keeper_remove(daemon->keeper, tracked->id);
	}
	book_list_unref(book_list);
}

void daemon_keep_close(struct daemon *daemon)
{
	keep_release_kernels(daemon);
	/* What was judged last is still in the file, so it stays kept. */
	keep_let_all_go(daemon);
	while (daemon->judged_count > 0)
		tracked_unref(daemon->judged[--daemon->judged_count].tracked);
	while (daemon->ending_count > 0)
		tracked_unref(daemon->ending[--daemon->ending_count].tracked);
	free(daemon->ending);
	free(daemon->judged);
	free(daemon->expected);
	keeper_free(daemon->keeper);
}
