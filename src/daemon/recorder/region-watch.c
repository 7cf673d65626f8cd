/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Two threads share the entries. The one that calls region_watch_see() owns the list; the loop owns
 * the pidfds. An entry passes to the loop through two queues: "fresh" when its pidfd is to be watched,
 * "over" when it is to be freed. In between, each thread uses only members of its own.
 */

#include "daemon/recorder/region-watch.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/process-id.h"
#include "base/threads/loop.h"
#include "daemon/recorder/book-owners.h"
#include "model/merge.h"
#include "model/snapshot.h"
#include "source/proc/exit-status.h"
#include "source/proc/namespaces.h"
#include "source/proc/proc.h"

struct region_watch_entry {
	struct region_watch_entry *next; /* in the list, later in the queue @over */
	struct region_watch_entry *next_new;
	struct region_watch *watch;

	struct process_id process;
	uint32_t ns_pid; /* as its row has it */
	uint32_t user_id;
	uint64_t start_ns;
	char comm[sizeof(((struct proc_facts *)NULL)->comm) + 1];
	char user[64];
	char container[PROC_CONTAINER_SIZE];
	char namespaces[NAMESPACES_SIZE];
	bool is_seen;

	struct loop_source end; /* a pidfd, or -1 */

	struct ending ending; /* under the lock of the watch */
};

/* A row of a region. The row of a process that has ended stays until somebody clears it. */
struct region_watch_row {
	uint64_t region;
	uint32_t region_user;
	uint32_t ns_pid;
	struct process_id process; /* the live one that it belongs to; pid 0 = it is stale */
};

/* A stale row, while ends are being reported. At most one process left it. */
struct region_watch_left {
	const struct snapshot_claim *claim;
	bool is_taken;
};

struct region_watch_look {
	const struct snapshot *snapshot;
	struct region_watch_left *left; /* sorted by pid */
	size_t count;
};

struct region_watch {
	struct region_watch_config config;

	/* Used only by region_watch_see(). */
	struct region_watch_entry *list;
	size_t count;
	struct region_watch_row *rows; /* that were there the last time, sorted */
	size_t row_count;

	pthread_mutex_t lock; /* for the members below */
	struct region_watch_entry *fresh, *over;
	size_t fds; /* that are open */
	struct book_owners owners;
};

int region_watch_new(struct region_watch **ret_watch, const struct region_watch_config *config)
{
	struct region_watch *watch = calloc(1, sizeof(*watch));

	if (!watch)
		return -ENOMEM;
	watch->config = *config;
	(void)pthread_mutex_init(&watch->lock, NULL); /* cannot fail on Linux */
	*ret_watch = watch;
	return 0;
}

static void region_watch_close(struct region_watch *watch, struct region_watch_entry *entry)
{
	if (entry->end.added)
		loop_remove(watch->config.loop, &entry->end);
	if (entry->end.fd < 0)
		return;
	(void)close(entry->end.fd); /* nothing was written to it */
	entry->end.fd = -1;
	pthread_mutex_lock(&watch->lock);
	watch->fds--;
	pthread_mutex_unlock(&watch->lock);
}

static void region_watch_ready(struct loop_source *source, uint32_t events)
{
	struct region_watch_entry *entry = container_of(source, struct region_watch_entry, end);
	struct region_watch *watch = entry->watch;
	struct ending ending = {0};

	/* Or it is not known. */
	(void)exit_status_read(watch->config.proc, entry->process, source->fd, &ending);
	pthread_mutex_lock(&watch->lock);
	entry->ending = ending;
	pthread_mutex_unlock(&watch->lock);
	region_watch_close(watch, entry); /* it would be ready for ever */
	watch->config.wake(watch->config.context);
}

void region_watch_settle(struct region_watch *watch)
{
	struct region_watch_entry *fresh, *over;

	pthread_mutex_lock(&watch->lock);
	fresh = cleanup_steal(watch->fresh);
	over = cleanup_steal(watch->over);
	pthread_mutex_unlock(&watch->lock);
	for (; fresh; fresh = fresh->next_new) {
		/* If that fails, the next snapshot shows the end. */
		if (loop_add(watch->config.loop, &fresh->end, EPOLLIN) < 0)
			region_watch_close(watch, fresh);
	}
	while (over) {
		struct region_watch_entry *next = over->next;

		region_watch_close(watch, over);
		free(over);
		over = next;
	}
}

struct region_watch *region_watch_free(struct region_watch *watch)
{
	if (!watch)
		return NULL;
	region_watch_settle(watch);
	while (watch->list) {
		struct region_watch_entry *next = watch->list->next;

		region_watch_close(watch, watch->list);
		free(watch->list);
		watch->list = next;
	}
	free(watch->rows);
	pthread_mutex_destroy(&watch->lock);
	free(watch);
	return NULL;
}

static void region_watch_text(char *to, size_t size, const char *text)
{
	size_t length = text ? strnlen(text, size - 1) : 0;

	if (length)
		memcpy(to, text, length);
	to[length] = '\0';
}

/* A pidfd of this process, not of a later one with the same pid. */
static int region_watch_open(struct region_watch *watch, const struct region_watch_entry *entry)
{
	const struct proc *proc = watch->config.proc;
	bool has_room;

	pthread_mutex_lock(&watch->lock);
	has_room = watch->fds < REGION_WATCH_FDS;
	pthread_mutex_unlock(&watch->lock);
	if (!has_room || !proc->is_real)
		return -1;
	return proc_pid_fd(proc, entry->process);
}

/* Where the process is, if it is still the same; else only those who see everything see it. */
static void region_watch_locate(const struct region_watch *watch, struct region_watch_entry *entry)
{
	const struct namespaces *namespaces = watch->config.namespaces;

	if (namespaces)
		namespaces_read(namespaces, entry->process.pid, entry->namespaces);
	if (!namespaces || !proc_is_there(&namespaces->proc, entry->process))
		memcpy(entry->namespaces, NAMESPACES_UNKNOWN, sizeof(NAMESPACES_UNKNOWN));
}

static void region_watch_add(struct region_watch *watch, const struct snapshot_process *process)
{
	struct region_watch_entry *entry;

	if (watch->count >= REGION_WATCH_MAX)
		return;
	entry = calloc(1, sizeof(*entry));
	if (!entry)
		return; /* the next snapshot has it as well */
	entry->watch = watch;
	entry->process = process->id;
	entry->ns_pid = process->ns_pid;
	entry->user_id = process->user_id;
	entry->start_ns = process->start_ns;
	region_watch_text(entry->comm, sizeof(entry->comm), process->comm);
	region_watch_text(entry->user, sizeof(entry->user), process->user);
	region_watch_text(entry->container, sizeof(entry->container), process->container);
	region_watch_locate(watch, entry);
	entry->is_seen = true;
	entry->end = LOOP_SOURCE_NULL;
	entry->end.ready = region_watch_ready;
	entry->next = watch->list;
	watch->list = entry;
	watch->count++;
	entry->end.fd = region_watch_open(watch, entry);
	if (entry->end.fd < 0)
		return;
	pthread_mutex_lock(&watch->lock);
	watch->fds++;
	entry->next_new = watch->fresh;
	watch->fresh = entry;
	pthread_mutex_unlock(&watch->lock);
}

static struct region_watch_entry *region_watch_find(const struct region_watch *watch,
						    const struct snapshot_process *process)
{
	struct region_watch_entry *entry = watch->list;

	while (entry && !process_id_equal(entry->process, process->id))
		entry = entry->next;
	return entry;
}

void region_watch_leave_out(struct region_watch *watch, struct process_id process)
{
	pthread_mutex_lock(&watch->lock);
	book_owners_add(&watch->owners, process);
	pthread_mutex_unlock(&watch->lock);
}

static bool region_watch_had_book(struct region_watch *watch, struct process_id process)
{
	bool had;

	pthread_mutex_lock(&watch->lock);
	had = book_owners_has(&watch->owners, process);
	pthread_mutex_unlock(&watch->lock);
	return had;
}

/* Marks the processes that are alive and never had a book. */
static void region_watch_mark(struct region_watch *watch, const struct snapshot *snapshot)
{
	for (struct region_watch_entry *entry = watch->list; entry; entry = entry->next)
		entry->is_seen = false;
	for (size_t i = 0; i < snapshot->process_count; i++) {
		const struct snapshot_process *process = &snapshot->processes[i];
		struct region_watch_entry *entry;

		if (!process->alive || process->untracked || process->books > 0 ||
		    region_watch_had_book(watch, process->id))
			continue;
		entry = region_watch_find(watch, process);
		if (entry)
			entry->is_seen = true;
		else
			region_watch_add(watch, process);
	}
}

static bool region_watch_is_stale(const struct snapshot_claim *claim)
{
	return !claim->is_open_only && !claim->process.alive;
}

static int region_watch_compare_rows(const void *left, const void *right)
{
	const struct region_watch_row *a = left, *b = right;

	if (a->region != b->region)
		return bits_compare(a->region, b->region);
	if (a->region_user != b->region_user)
		return bits_compare(a->region_user, b->region_user);
	return bits_compare(a->ns_pid, b->ns_pid);
}

static struct region_watch_row region_watch_row(const struct snapshot_claim *claim)
{
	const struct snapshot_process *process = &claim->process;

	return (struct region_watch_row){
		.region = claim->region,
		.region_user = claim->region_user,
		.ns_pid = process->ns_pid,
		.process = process->alive ? process->id : (struct process_id){0},
	};
}

/* If out of memory, only rows in regions of the process's own user are reported the next time. */
static void region_watch_remember(struct region_watch *watch, const struct snapshot *snapshot)
{
	free(watch->rows);
	watch->row_count = 0;
	watch->rows = calloc(snapshot->claim_count + 1, sizeof(*watch->rows));
	for (size_t i = 0; watch->rows && i < snapshot->claim_count; i++) {
		const struct snapshot_claim *claim = &snapshot->claims[i];

		if (!claim->is_open_only)
			watch->rows[watch->row_count++] = region_watch_row(claim);
	}
	if (watch->row_count > 0)
		qsort(watch->rows, watch->row_count, sizeof(*watch->rows),
		      region_watch_compare_rows);
}

/*
 * Whether the process left a stale row. Its pid alone does not tell: processes in containers share
 * pids, and anybody can write any pid into a region of their own. So the row must have
 * belonged to that process in the last snapshot. A row that is new since then counts only in a region
 * of the process's own user.
 */
static bool region_watch_is_its(const struct region_watch *watch,
				const struct region_watch_entry *entry,
				const struct snapshot_claim *claim)
{
	const struct region_watch_row key = region_watch_row(claim);
	size_t from = 0, to = watch->row_count;
	bool is_its = false, is_new = true;

	while (from < to) {
		size_t middle = from + (to - from) / 2;

		if (region_watch_compare_rows(&watch->rows[middle], &key) < 0)
			from = middle + 1;
		else
			to = middle;
	}
	for (; from < watch->row_count; from++) {
		const struct region_watch_row *row = &watch->rows[from];

		if (region_watch_compare_rows(row, &key) != 0)
			break;
		if (row->process.pid == 0)
			return false; /* it was stale before */
		is_new = false;
		is_its = is_its || process_id_equal(row->process, entry->process);
	}
	return is_new ? claim->region_user == entry->user_id : is_its;
}

static int region_watch_compare_left(const void *left, const void *right)
{
	const struct snapshot_claim *a = ((const struct region_watch_left *)left)->claim;
	const struct snapshot_claim *b = ((const struct region_watch_left *)right)->claim;

	if (a->process.id.pid != b->process.id.pid)
		return bits_compare(a->process.id.pid, b->process.id.pid);
	return (a > b) - (a < b); /* as in the snapshot */
}

/* All stale rows, sorted by pid. NULL: out of memory. */
static struct region_watch_left *region_watch_list_left(const struct snapshot *snapshot,
							size_t *ret_count)
{
	struct region_watch_left *left = calloc(snapshot->claim_count + 1, sizeof(*left));
	size_t count = 0;

	for (size_t i = 0; left && i < snapshot->claim_count; i++) {
		if (region_watch_is_stale(&snapshot->claims[i]))
			left[count++].claim = &snapshot->claims[i];
	}
	if (count > 0)
		qsort(left, count, sizeof(*left), region_watch_compare_left);
	*ret_count = count;
	return left;
}

static int region_watch_take(struct snapshot *left, const struct snapshot_claim *claim)
{
	struct snapshot_part *part = snapshot_part(left, 0, claim->device);

	if (!part)
		return -ENOMEM;
	part->facts.unique_id = claim->facts.unique_id;
	part->facts.remote = claim->facts.remote;
	for (uint32_t type = 0; type < BOOK_TYPES; type++) {
		part->memory[type].peak_is_unknown = true;
		part->memory[type].used = merge_add(part->memory[type].used, claim->used[type]);
		part->memory[type].bound = merge_bound(part->memory[type].bound, claim->bound);
	}
	return 0;
}

/* A snapshot of this process alone. */
static int region_watch_begin(const struct region_watch_entry *entry, struct snapshot *left)
{
	struct snapshot_process process = {
		.id = entry->process,
		.ns_pid = entry->ns_pid,
		.start_ns = entry->start_ns,
		.user_id = entry->user_id,
		.maker_id = entry->user_id,
		.comm = snapshot_text(left, entry->comm, strlen(entry->comm)),
		.user = snapshot_text(left, entry->user, strlen(entry->user)),
		.source = "tt-metal",
		.namespaces = snapshot_text(left, entry->namespaces, strlen(entry->namespaces)),
		.exact = true,
	};
	uint32_t index;
	int r;

	if (*entry->container)
		process.container = snapshot_text(left, entry->container, strlen(entry->container));
	if (!process.comm || !process.user || !process.namespaces)
		return -ENOMEM;
	r = snapshot_add_process(left, &process, &index);
	if (r == 0)
		left->processes[index].books = 0;
	return r;
}

/* Takes the rows that the process left. */
static int region_watch_take_all(const struct region_watch *watch,
				 const struct region_watch_entry *entry,
				 struct region_watch_look *look, struct snapshot *left)
{
	size_t from = 0, to = look->count;
	int r = 0;

	while (from < to) {
		size_t middle = from + (to - from) / 2;

		if (look->left[middle].claim->process.id.pid < entry->ns_pid)
			from = middle + 1;
		else
			to = middle;
	}
	for (; r == 0 && from < look->count; from++) {
		struct region_watch_left *row = &look->left[from];

		if (row->claim->process.id.pid != entry->ns_pid)
			break;
		if (row->is_taken || !region_watch_is_its(watch, entry, row->claim))
			continue;
		row->is_taken = true;
		r = region_watch_take(left, row->claim);
	}
	return r;
}

/* If out of memory, there is no report. */
static void region_watch_tell(struct region_watch *watch, const struct region_watch_entry *entry,
			      struct region_watch_look *look)
{
	struct snapshot *left = snapshot_new(look->snapshot->time_ns);
	uint64_t bytes = 0, buffers = 0;
	struct ending ending;
	int r = left ? region_watch_begin(entry, left) : -ENOMEM;

	if (r == 0)
		r = region_watch_take_all(watch, entry, look, left);
	if (r == 0)
		r = snapshot_finish(left);
	if (r == 0)
		snapshot_process_totals(&left->processes[0], &bytes, &buffers);
	pthread_mutex_lock(&watch->lock);
	ending = entry->ending;
	pthread_mutex_unlock(&watch->lock);
	ending.ended_ns = look->snapshot->time_ns;
	if (bytes > 0)
		watch->config.ended(watch->config.context, left, &ending);
	snapshot_free(left);
}

static bool region_watch_has_ended(const struct region_watch *watch,
				   const struct region_watch_entry *entry)
{
	struct proc_facts facts;

	return proc_read(watch->config.proc, entry->process.pid, &facts) < 0 ||
	       !process_id_equal(facts.id, entry->process) ||
	       proc_is_over(watch->config.proc, &facts);
}

void region_watch_see(struct region_watch *watch, const struct snapshot *snapshot)
{
	CLEANUP_FREE struct region_watch_left *left = NULL;
	struct region_watch_look look = {.snapshot = snapshot};
	struct region_watch_entry **at = &watch->list;

	left = region_watch_list_left(snapshot, &look.count);
	look.left = left;
	region_watch_mark(watch, snapshot);
	while (*at) {
		struct region_watch_entry *entry = *at;

		if (entry->is_seen) {
			at = &entry->next;
			continue;
		}
		/* Otherwise it is alive, and has a book now or has removed its row. */
		if (region_watch_has_ended(watch, entry) &&
		    !region_watch_had_book(watch, entry->process))
			region_watch_tell(watch, entry, &look);
		*at = entry->next;
		watch->count--;
		pthread_mutex_lock(&watch->lock);
		entry->next = watch->over;
		watch->over = entry;
		pthread_mutex_unlock(&watch->lock);
	}
	region_watch_remember(watch, snapshot);
}
