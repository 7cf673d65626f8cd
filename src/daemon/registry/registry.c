/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The list of entries, sorted by pid, and the book_list that is made from it at every change. An
 * entry lives until its process has ended; the book lives on until it has been judged.
 */

#include "daemon/registry/registry.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/array.h"
#include "base/bits.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/threads/loop.h"
#include "daemon/registry/book-search.h"
#include "daemon/registry/registry-exits.h"
#include "daemon/registry/registry-open.h"
#include "daemon/registry/registry-private.h"
#include "daemon/registry/registry-room.h"
#include "daemon/registry/tracked.h"
#include "source/proc/exit-status.h"

/*
 * Books of exited processes that another process (mostly a child) still holds, so that a scan finds
 * them again.
 */
#define REGISTRY_JUDGED_MAX 8192u

#define REGISTRY_SPARE_FDS 16u

#define REGISTRY_NEWS_NS NS_PER_S
#define REGISTRY_NOTICES_MAX 100u

static void registry_publish(struct registry *registry)
{
	struct book_list *book_list, *old;

	book_list = malloc(sizeof(*book_list) + registry->count * sizeof(struct tracked *));
	if (!book_list)
		return; /* the old list stays for now; ended books in it are just read once more */
	book_list->refs = 1;
	book_list->count = registry->count;
	for (size_t i = 0; i < registry->count; i++)
		book_list->list[i] = tracked_ref(registry->entries[i]->tracked);
	pthread_mutex_lock(&registry->lock);
	old = registry->book_list;
	registry->book_list = book_list;
	pthread_mutex_unlock(&registry->lock);
	book_list_unref(old);
}

struct book_list *registry_books(struct registry *registry)
{
	struct book_list *book_list;

	pthread_mutex_lock(&registry->lock);
	book_list = book_list_ref(registry->book_list);
	pthread_mutex_unlock(&registry->lock);
	return book_list;
}

struct registry_entry *registry_find(const struct registry *registry, struct book_id id)
{
	for (size_t i = 0; i < registry->count; i++) {
		if (book_id_equal(registry->entries[i]->tracked->id, id))
			return registry->entries[i];
	}
	return NULL;
}

bool registry_was_judged(const struct registry *registry, struct book_id id)
{
	size_t n = (size_t)bits_min(registry->judged_count, REGISTRY_JUDGED_MAX);

	for (size_t i = 0; i < n; i++) {
		if (book_id_equal(registry->judged[i], id))
			return true;
	}
	return false;
}

static bool registry_comes_before(const struct tracked *a, const struct tracked *b)
{
	return a->process.pid != b->process.pid ? a->process.pid < b->process.pid
						: a->id.inode < b->id.inode;
}

static int registry_insert(struct registry *registry, struct registry_entry *entry)
{
	struct registry_entry **entries;
	size_t at = registry->count;

	entries = array_grow(registry->entries, &registry->capacity, registry->count + 1,
			     sizeof(struct registry_entry *));
	if (!entries)
		return -ENOMEM;
	registry->entries = entries;
	for (; at > 0 && registry_comes_before(entry->tracked, entries[at - 1]->tracked); at--)
		entries[at] = entries[at - 1];
	entries[at] = entry;
	registry->count++;
	return 0;
}

static void registry_take_out(struct registry *registry, const struct registry_entry *entry)
{
	size_t i = 0;

	while (registry->entries[i] != entry)
		i++;
	registry->count--;
	memmove(&registry->entries[i], &registry->entries[i + 1],
		(registry->count - i) * sizeof(struct registry_entry *));
}

static void entry_close(struct registry_entry *entry, struct loop_source *source)
{
	if (source->fd < 0)
		return;
	loop_remove(entry->registry->config.loop, source);
	(void)close(cleanup_steal_fd(&source->fd)); /* nothing was written to it */
}

static void entry_free(struct registry_entry *entry)
{
	entry_close(entry, &entry->pid_fd);
	entry_close(entry, &entry->connection);
	loop_cancel(entry->registry->config.loop, &entry->patience);
	tracked_unref(entry->tracked);
	free(entry);
}

/* Our library sends at most ten a second; a client that sends many more is disconnected. */
static bool entry_may_tell(struct registry_entry *entry)
{
	uint64_t now = loop_now(entry->registry->config.loop);

	if (now - entry->notices_since > REGISTRY_NEWS_NS) {
		entry->notices_since = now;
		entry->notices = 0;
	}
	return ++entry->notices <= REGISTRY_NOTICES_MAX;
}

/* Receives one notice. Return: as accept_news(); -EBADMSG also if there are too many. */
static int entry_hear(struct registry_entry *entry)
{
	const struct registry_hooks *hooks = &entry->registry->config.hooks;
	CLEANUP_CLOSE int program = -1;
	int r = accept_news(entry->connection.fd, &program);

	if (r < 0)
		return r;
	if (!entry_may_tell(entry))
		return -EBADMSG;
	if (program >= 0)
		hooks->program(hooks->context, entry->tracked, cleanup_steal_fd(&program));
	else
		hooks->notice(hooks->context, entry->tracked);
	return 0;
}

/* What the process has sent before now, even if it has ended since. */
static void entry_drain(struct registry_entry *entry)
{
	while (entry->connection.fd >= 0 && entry_hear(entry) == 0)
		;
}

void registry_read_exit(struct registry_entry *entry)
{
	struct tracked *tracked = entry->tracked;
	struct registry *registry = entry->registry;

	if (!exit_status_read(&registry->proc, tracked->process, entry->pid_fd.fd,
			      &tracked->ending))
		registry_exits_find(registry, entry, &tracked->ending);
}

void registry_end(struct registry_entry *entry, bool execed)
{
	struct registry *registry = entry->registry;
	const struct registry_hooks *hooks = &registry->config.hooks;
	struct tracked *tracked = entry->tracked;

	if (entry->keeper && !entry->keeper->drain(entry->keeper))
		return; /* the pidfd stays readable, so we are called again */
	entry_drain(entry);
	if (!execed && !entry->is_over)
		registry_read_exit(entry);
	tracked->ending.execed = execed;
	tracked->ending.ended_ns = clock_ns(CLOCK_REALTIME);
	__atomic_store_n(&tracked->has_ended, true, __ATOMIC_RELEASE);
	registry_take_out(registry, entry);
	registry->judged[registry->judged_count++ % REGISTRY_JUDGED_MAX] = tracked->id;
	registry->counts.ended++;
	registry_publish(registry);
	hooks->ended(hooks->context, tracked);
	if (entry->keeper)
		entry->keeper->forget(entry->keeper);
	entry_free(entry);
}

void registry_end_book(struct registry *registry, struct book_id id)
{
	struct registry_entry *entry = registry_find(registry, id);

	if (entry && !entry->keeper)
		registry_end(entry, !registry_is_over(entry));
}

bool registry_is_over(const struct registry_entry *entry)
{
	struct pollfd wait = {.fd = entry->pid_fd.fd, .events = POLLIN};

	return entry->pid_fd.fd >= 0 && poll(&wait, 1, 0) > 0;
}

static void entry_pid_ready(struct loop_source *source, uint32_t events)
{
	registry_over(container_of(source, struct registry_entry, pid_fd));
}

/* A notice, or the end of the connection, which alone does not mean that the process has exited. */
static void entry_connection_ready(struct loop_source *source, uint32_t events)
{
	struct registry_entry *entry = container_of(source, struct registry_entry, connection);
	int r = entry_hear(entry);

	if (r == 0 || r == -EAGAIN)
		return;
	entry_close(entry, &entry->connection);
	if (!registry_is_over(entry))
		book_search_doubt(entry->registry->search, entry->tracked);
}

/* If the loop cannot watch the descriptor, the search has to check the process. */
static void entry_watch(struct registry_entry *entry, struct loop_source *source, int fd)
{
	source->fd = fd;
	if (fd >= 0 && loop_add(entry->registry->config.loop, source, EPOLLIN) < 0)
		(void)close(cleanup_steal_fd(&source->fd)); /* nothing was written to it */
}

void registry_watch_pid(struct registry_entry *entry, int pid_fd)
{
	entry_watch(entry, &entry->pid_fd, pid_fd);
}

/*
 * The kernel always hands out the lowest free descriptor, so a high one means that most are in use.
 * Some must remain for clients and for the database.
 */
static bool registry_is_short(const struct registry *registry, const struct scan_book *book)
{
	return (uint64_t)book->file.fd + REGISTRY_SPARE_FDS >= registry->fds_max;
}

void registry_refuse(struct registry *registry, int r)
{
	registry->counts.refused++;
	if (r == -EMFILE && registry->search)
		book_search_again(registry->search);
}

/*
 * A process with a new book may have executed another program. Its connection does not close if a
 * child has inherited it.
 */
static void registry_doubt_others(struct registry *registry, const struct tracked *tracked)
{
	for (size_t i = 0; i < registry->count && registry->search; i++) {
		struct tracked *other = registry->entries[i]->tracked;

		if (other != tracked && process_id_equal(other->process, tracked->process) &&
		    !registry_is_kept(registry->entries[i]))
			book_search_doubt(registry->search, other);
	}
}

/* Whether there is room for it. 0 or a negative errno. */
static int registry_admit(const struct registry *registry, const struct registry_newcomer *what)
{
	size_t max = (size_t)bits_min(REGISTRY_BOOKS_MAX, registry->fds_max / 4);

	if (!registry_room(registry->book_list, max, what->book,
			   what->old ? what->old->tracked : NULL))
		return -ENOSPC;
	return registry_is_short(registry, what->book) ? -EMFILE : 0;
}

/* An entry that is not in the list yet. NULL: no memory. */
static struct registry_entry *entry_new(struct registry *registry,
					const struct registry_newcomer *what)
{
	struct registry_entry *entry = calloc(1, sizeof(*entry));
	char namespaces[NAMESPACES_SIZE];

	if (!entry) {
		scan_book_free(what->book);
		return NULL;
	}
	registry_locate(&registry->namespaces, what->book, namespaces);
	*entry = (struct registry_entry){
		.registry = registry,
		.pid_fd = {.fd = -1, .ready = entry_pid_ready},
		.connection = {.fd = -1, .ready = entry_connection_ready},
		.keeper = what->keeper,
		.tracked = tracked_new_consume(what->book, registry->since, namespaces),
	};
	if (!entry->tracked) {
		free(entry);
		return NULL;
	}
	entry->tracked->link = what->link;
	/* What the old book has counted is not news. */
	entry->tracked->is_older |= what->old != NULL;
	registry_find_memory(&registry->proc, entry->tracked);
	return entry;
}

/* Nobody hears of the end of what it replaces, and no list has both. */
static void registry_put_in_place(struct registry *registry, struct registry_entry *entry,
				  struct registry_entry *old)
{
	const struct registry_hooks *hooks = &registry->config.hooks;

	if (old)
		registry_take_out(registry, old);
	registry_doubt_others(registry, entry->tracked);
	registry_publish(registry);
	hooks->added(hooks->context, entry->tracked);
	if (!old)
		return;
	hooks->replaced(hooks->context, old->tracked);
	entry_free(old);
}

int registry_add(struct registry *registry, const struct registry_newcomer *what,
		 struct registry_entry **ret_entry)
{
	CLEANUP_CLOSE int owned = what->pid_fd;
	struct registry_entry *entry;
	int r = registry_admit(registry, what);

	if (r < 0) {
		scan_book_free(what->book);
		return r;
	}
	entry = entry_new(registry, what);
	if (!entry)
		return -ENOMEM;
	registry_exits_begin(registry, entry, owned);
	if (registry_insert(registry, entry) < 0) {
		entry_free(entry);
		return -ENOMEM;
	}
	entry_watch(entry, &entry->pid_fd, cleanup_steal_fd(&owned));
	registry_put_in_place(registry, entry, what->old);
	*ret_entry = entry;
	return 0;
}

int registry_add_consume(struct registry *registry, struct scan_book *book, int pid_fd,
			 struct registry_keeper *keeper, struct tracked **ret_tracked)
{
	const struct registry_newcomer what = {.book = book, .pid_fd = pid_fd, .keeper = keeper};
	struct registry_entry *entry;
	int r;

	if (registry_find(registry, book->id)) {
		scan_book_free(book);
		if (pid_fd >= 0)
			(void)close(pid_fd); /* nothing was written to it */
		return -EEXIST;
	}
	r = registry_add(registry, &what, &entry);
	if (r < 0) {
		registry->counts.refused++;
		return r;
	}
	if (ret_tracked)
		*ret_tracked = entry->tracked;
	return 0;
}

int registry_add_peer_consume(struct registry *registry, struct accept_peer *peer)
{
	struct registry_newcomer what = {.book = peer->book};
	struct registry_entry *entry = registry_find(registry, peer->book->id);
	int r = 0;

	/*
	 * It was found in a child and judged before its offer was handled; or no library made it.
	 */
	if (registry_was_judged(registry, peer->book->id))
		r = -EEXIST;
	else if (peer->book->reader.header.source == BOOK_SOURCE_SOCKET)
		r = -EPERM;
	else if (!entry) {
		peer->book = NULL;
		what.pid_fd = cleanup_steal_fd(&peer->pid_fd);
		r = registry_add(registry, &what, &entry);
	}
	if (r == 0) {
		entry_close(entry, &entry->connection);
		entry_watch(entry, &entry->connection, cleanup_steal_fd(&peer->fd));
		/* Its program follows at once, and is needed by whoever reads the book next. */
		entry_drain(entry);
		if (entry->pid_fd.fd < 0 && peer->pid_fd >= 0)
			entry_watch(entry, &entry->pid_fd, cleanup_steal_fd(&peer->pid_fd));
		/* Without a pidfd, check /proc for an exit before the book arrived. */
		if (entry->pid_fd.fd < 0 &&
		    proc_has_ended(&registry->proc, entry->tracked->process))
			registry_end(entry, false);
	} else if (r != -EEXIST) {
		registry_refuse(registry, r);
	}
	accept_peer_free(peer);
	return r;
}

/* Kept for its process by a program that is trusted; anybody can claim in their own book that it is. */
static bool registry_was_kept(const struct scan_book *book)
{
	return book->reader.header.source == BOOK_SOURCE_SOCKET &&
	       (book->uid == 0 || book->uid == geteuid());
}

int registry_restore_consume(struct registry *registry, int fd, struct process_id process)
{
	struct registry_newcomer what = {.pid_fd = -1};
	struct registry_entry *entry;
	bool alive;
	int r = registry_open_consume(&registry->proc, fd, process, &what.book);

	if (r < 0)
		return r;
	if (registry_find(registry, what.book->id)) {
		scan_book_free(what.book);
		return -EEXIST;
	}
	if (what.book->alive)
		what.pid_fd = proc_pid_fd(&registry->proc, process);
	/* No pidfd: it has exited since we looked, or pidfds are not available. */
	alive = what.pid_fd >= 0 || (what.book->alive && !proc_has_ended(&registry->proc, process));
	if (registry_was_kept(what.book))
		what.book->uid = what.book->owner.real_uid;
	r = registry_add(registry, &what, &entry);
	if (r < 0 || alive)
		return r;
	if (registry_is_kept(entry))
		registry_await_keeper(entry);
	registry_over(entry);
	return 0;
}

int registry_new(struct registry **ret_registry, const struct registry_config *config)
{
	struct registry *registry = calloc(1, sizeof(*registry));
	struct rlimit files;
	int r;

	if (!registry)
		return -ENOMEM;
	registry->config = *config;
	registry->proc.root = -1;
	registry->namespaces.proc.root = -1;
	registry->exits.fd = -1;
	registry->since = proc_monotonic_ns();
	registry->fds_max = getrlimit(RLIMIT_NOFILE, &files) == 0 ? files.rlim_cur : UINT64_MAX;
	(void)pthread_mutex_init(&registry->lock, NULL); /* cannot fail on Linux */
	registry->judged = calloc(REGISTRY_JUDGED_MAX, sizeof(*registry->judged));
	registry_publish(registry);
	r = registry->judged && registry->book_list ? proc_open(&registry->proc) : -ENOMEM;
	if (r == 0)
		r = namespaces_init(&registry->namespaces);
	if (r < 0) {
		registry_free(registry);
		return r;
	}
	registry_exits_open(registry);
	*ret_registry = registry;
	return 0;
}

struct registry *registry_free(struct registry *registry)
{
	if (!registry)
		return NULL;
	book_search_free(registry->search);
	registry_exits_close(registry);
	for (size_t i = 0; i < registry->count; i++) {
		if (registry->entries[i]->keeper)
			registry->entries[i]->keeper->forget(registry->entries[i]->keeper);
		entry_free(registry->entries[i]);
	}
	free(registry->entries);
	free(registry->judged);
	book_list_unref(registry->book_list);
	if (registry->proc.root >= 0)
		proc_close(&registry->proc);
	if (registry->namespaces.proc.root >= 0)
		namespaces_deinit(&registry->namespaces);
	pthread_mutex_destroy(&registry->lock);
	free(registry);
	return NULL;
}

const struct namespaces *registry_namespaces(const struct registry *registry)
{
	return &registry->namespaces;
}

const struct proc *registry_proc(const struct registry *registry)
{
	return &registry->proc;
}

void registry_counts(const struct registry *registry, struct registry_counts *ret_counts)
{
	*ret_counts = registry->counts;
	ret_counts->processes = registry->count;
}

void registry_count_unobserved(struct registry *registry, uint64_t exits)
{
	registry->counts.unobserved_exits += exits;
}
