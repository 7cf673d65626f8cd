/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Who sees snapshots owns the list of processes; the loop owns the pidfds that it was given. An entry goes
 * from one to the other through two queues: a new one, to be waited for, and one that is over, to be
 * freed. In between both refer to it, each to members of its own.
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
#include "base/loop.h"
#include "model/merge.h"
#include "model/snapshot.h"
#include "source/proc/proc.h"

struct region_watch_entry {
	struct region_watch_entry
		*next; /* in the list, later in the queue of those that are over */
	struct region_watch_entry *next_new;
	struct region_watch *watch;

	uint32_t pid;
	uint32_t ns_pid; /* as its row has it */
	uint32_t user_id;
	uint64_t start_ticks, start_ns;
	char comm[sizeof(((struct proc_facts *)NULL)->comm) + 1];
	char user[64];
	char container[PROC_CONTAINER_SIZE];
	bool is_seen;

	struct loop_source end; /* a pidfd, or -1 */
};

/* A row of a process that has ended: these stay until somebody clears them. */
struct region_watch_row {
	uint64_t region;
	uint32_t ns_pid;
};

struct region_watch {
	struct region_watch_config config;

	/* Of whoever sees. */
	struct region_watch_entry *list;
	size_t count;
	struct region_watch_row *stale; /* that were there the last time */
	size_t stale_count;

	pthread_mutex_t lock; /* for the queues */
	struct region_watch_entry *fresh, *over;
	size_t fds; /* that are open */
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
		/* Without it the next snapshot tells. */
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
	free(watch->stale);
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

/* A pidfd of that very process: whoever has its number now may have started later. */
static int region_watch_open(struct region_watch *watch, const struct region_watch_entry *entry)
{
	const struct proc *proc = watch->config.proc;
	bool has_room;
	int fd;

	pthread_mutex_lock(&watch->lock);
	has_room = watch->fds < REGION_WATCH_FDS;
	pthread_mutex_unlock(&watch->lock);
	if (!has_room || !proc->is_real)
		return -1;
	fd = (int)syscall(SYS_pidfd_open, (pid_t)entry->pid, 0);
	if (fd < 0 || proc_start_ticks(proc, entry->pid) == entry->start_ticks)
		return fd;
	(void)close(fd); /* nothing was written to it */
	return -1;
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
	entry->pid = process->pid;
	entry->ns_pid = process->ns_pid;
	entry->user_id = process->user_id;
	entry->start_ticks = process->start_ticks;
	entry->start_ns = process->start_ns;
	region_watch_text(entry->comm, sizeof(entry->comm), process->comm);
	region_watch_text(entry->user, sizeof(entry->user), process->user);
	region_watch_text(entry->container, sizeof(entry->container), process->container);
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

	while (entry && (entry->pid != process->pid || entry->start_ticks != process->start_ticks))
		entry = entry->next;
	return entry;
}

/* Everybody who lives and has no book. */
static void region_watch_mark(struct region_watch *watch, const struct snapshot *snapshot)
{
	for (struct region_watch_entry *entry = watch->list; entry; entry = entry->next)
		entry->is_seen = false;
	for (size_t i = 0; i < snapshot->process_count; i++) {
		const struct snapshot_process *process = &snapshot->processes[i];
		struct region_watch_entry *entry;

		if (!process->alive || process->untracked || process->books > 0)
			continue;
		entry = region_watch_find(watch, process);
		if (entry)
			entry->is_seen = true;
		else
			region_watch_add(watch, process);
	}
}

static bool region_watch_was_stale(const struct region_watch *watch,
				   const struct snapshot_claim *claim)
{
	for (size_t i = 0; i < watch->stale_count; i++) {
		if (watch->stale[i].region == claim->facts.unique_id &&
		    watch->stale[i].ns_pid == claim->process.pid)
			return true;
	}
	return false;
}

static bool region_watch_is_stale(const struct snapshot_claim *claim)
{
	return !claim->is_open_only && !claim->process.alive;
}

/* Without memory none was: then the row of an earlier process with the same number may be taken for its own. */
static void region_watch_remember(struct region_watch *watch, const struct snapshot *snapshot)
{
	free(watch->stale);
	watch->stale_count = 0;
	watch->stale = calloc(snapshot->claim_count + 1, sizeof(*watch->stale));
	for (size_t i = 0; watch->stale && i < snapshot->claim_count; i++) {
		const struct snapshot_claim *claim = &snapshot->claims[i];

		if (region_watch_is_stale(claim))
			watch->stale[watch->stale_count++] = (struct region_watch_row){
				.region = claim->facts.unique_id, .ns_pid = claim->process.pid};
	}
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
	}
	return 0;
}

/* A snapshot of this process alone. */
static int region_watch_begin(const struct region_watch_entry *entry, struct snapshot *left)
{
	struct snapshot_process process = {
		.pid = entry->pid,
		.ns_pid = entry->ns_pid,
		.start_ticks = entry->start_ticks,
		.start_ns = entry->start_ns,
		.user_id = entry->user_id,
		.maker_id = entry->user_id,
		.comm = snapshot_text(left, entry->comm, strlen(entry->comm)),
		.user = snapshot_text(left, entry->user, strlen(entry->user)),
		.source = "tt-metal",
		.exact = true,
	};
	uint32_t index;
	int r;

	if (*entry->container)
		process.container = snapshot_text(left, entry->container, strlen(entry->container));
	if (!process.comm || !process.user)
		return -ENOMEM;
	r = snapshot_add_process(left, &process, &index);
	if (r == 0)
		left->processes[index].books = 0;
	return r;
}

/* What stands in its rows, which nobody's were the last time. Without memory there is no report. */
static void region_watch_tell(struct region_watch *watch, const struct region_watch_entry *entry,
			      const struct snapshot *snapshot)
{
	struct snapshot *left = snapshot_new(snapshot->time_ns);
	uint64_t bytes = 0, buffers = 0;
	int r = left ? region_watch_begin(entry, left) : -ENOMEM;

	for (size_t i = 0; r == 0 && i < snapshot->claim_count; i++) {
		const struct snapshot_claim *claim = &snapshot->claims[i];

		if (region_watch_is_stale(claim) && claim->process.pid == entry->ns_pid &&
		    !region_watch_was_stale(watch, claim))
			r = region_watch_take(left, claim);
	}
	if (r == 0)
		r = snapshot_finish(left);
	if (r == 0)
		snapshot_process_totals(&left->processes[0], &bytes, &buffers);
	if (bytes > 0)
		watch->config.ended(watch->config.context, left);
	snapshot_free(left);
}

static bool region_watch_has_ended(const struct region_watch *watch,
				   const struct region_watch_entry *entry)
{
	struct proc_facts facts;

	return proc_read(watch->config.proc, entry->pid, &facts) < 0 ||
	       facts.start_ticks != entry->start_ticks || proc_is_over(watch->config.proc, &facts);
}

void region_watch_see(struct region_watch *watch, const struct snapshot *snapshot)
{
	struct region_watch_entry **at = &watch->list;

	region_watch_mark(watch, snapshot);
	while (*at) {
		struct region_watch_entry *entry = *at;

		if (entry->is_seen) {
			at = &entry->next;
			continue;
		}
		/* Else it lives: it has got a book, or has taken its row out. */
		if (region_watch_has_ended(watch, entry))
			region_watch_tell(watch, entry, snapshot);
		*at = entry->next;
		watch->count--;
		pthread_mutex_lock(&watch->lock);
		entry->next = watch->over;
		watch->over = entry;
		pthread_mutex_unlock(&watch->lock);
	}
	region_watch_remember(watch, snapshot);
}
