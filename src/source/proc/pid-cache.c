/* SPDX-License-Identifier: Apache-2.0 */

/* Entries by pid; the list of processes in containers is built when first needed. */

#include "source/proc/pid-cache.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/bits.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/map.h"
#include "model/snapshot.h"
#include "source/proc/maps-budget.h"

struct pid_cache_entry {
	int result; /* of the lookup */
	struct proc_facts facts;
	struct snapshot_process process;
	bool is_unread;    /* there are too many, at least for one share */
	bool has_mappings; /* they were read: */
	int mappings_result;
	uint64_t mapped[PROC_FILES_MAX / 64]; /* bit per file */
};

/* A process in a namespace below ours. */
struct pid_cache_inside {
	uint32_t ns_pid, pid;
};

struct pid_cache {
	const struct proc *proc;
	struct snapshot *snapshot;
	struct map places; /* by pid */
	struct pid_cache_entry *entries;
	size_t capacity;
	bool has_inside;
	struct pid_cache_inside *inside; /* sorted by ns_pid */
	size_t inside_count, inside_capacity;
	const struct proc_file *files;
	size_t file_count;
	struct quota budget;
	size_t unread;
};

int pid_cache_new(struct pid_cache **ret_cache, const struct proc *proc, struct snapshot *snapshot)
{
	CLEANUP(pid_cache_cleanup) struct pid_cache *pid_cache = calloc(1, sizeof(*pid_cache));

	if (!pid_cache)
		return -ENOMEM;
	pid_cache->proc = proc;
	pid_cache->snapshot = snapshot;
	pid_cache->budget = MAPS_BUDGET;
	*ret_cache = cleanup_steal(pid_cache);
	return 0;
}

struct pid_cache *pid_cache_free(struct pid_cache *pid_cache)
{
	if (!pid_cache)
		return NULL;
	map_deinit(&pid_cache->places);
	quota_deinit(&pid_cache->budget);
	free(pid_cache->entries);
	free(pid_cache->inside);
	free(pid_cache);
	return NULL;
}

void pid_cache_cleanup(struct pid_cache **pid_cache)
{
	pid_cache_free(*pid_cache);
}

const struct proc *pid_cache_proc(const struct pid_cache *pid_cache)
{
	return pid_cache->proc;
}

/* Fills in what people want to know about it. */
static int pid_cache_describe(struct pid_cache *pid_cache, const struct proc_facts *facts,
			      struct snapshot_process *ret_process)
{
	struct snapshot *snapshot = pid_cache->snapshot;
	char container[PROC_CONTAINER_SIZE], user[64];
	struct snapshot_process process = {
		.id = facts->id,
		.ns_pid = facts->ns_pid,
		.start_ns = proc_started_ns(facts->id.start_ticks),
		.comm = snapshot_text(snapshot, facts->comm,
				      strnlen(facts->comm, sizeof(facts->comm))),
		.user_id = facts->real_uid,
		.maker_id = facts->real_uid,
		.alive = true,
		.exact = true,
	};

	proc_user_name(facts->real_uid, user, sizeof(user));
	process.user = snapshot_text(snapshot, user, strlen(user));
	proc_container(pid_cache->proc, facts->id.pid, container);
	if (*container)
		process.container = snapshot_text(snapshot, container, strlen(container));
	if (!process.comm || !process.user)
		return -ENOMEM;
	process.last_ns = process.start_ns;
	*ret_process = process;
	return 0;
}

static int pid_cache_look(struct pid_cache *pid_cache, uint32_t pid, struct pid_cache_entry *entry)
{
	if (pid == (uint32_t)getpid() && pid_cache->proc->is_real)
		return -ESRCH; /* the tool itself is not shown */
	if (proc_read(pid_cache->proc, pid, &entry->facts) < 0 ||
	    proc_is_over(pid_cache->proc, &entry->facts))
		return -ESRCH;
	return pid_cache_describe(pid_cache, &entry->facts, &entry->process);
}

static int pid_cache_entry(struct pid_cache *pid_cache, uint32_t pid,
			   struct pid_cache_entry **ret_entry)
{
	uint32_t number = map_find(&pid_cache->places, pid, 0);
	struct pid_cache_entry *entries;

	if (number) {
		*ret_entry = &pid_cache->entries[number - 1];
		return 0;
	}
	if (pid_cache->places.count >= PID_CACHE_MAX)
		return -ESRCH;
	entries = array_grow(pid_cache->entries, &pid_cache->capacity,
			     (size_t)pid_cache->places.count + 1, sizeof(*entries));
	if (!entries)
		return -ENOMEM;
	pid_cache->entries = entries;
	if (map_add(&pid_cache->places, pid, 0, &number) < 0)
		return -ENOMEM;
	entries += number - 1;
	*entries = (struct pid_cache_entry){0};
	entries->result = pid_cache_look(pid_cache, pid, entries);
	entries->facts.id.pid = pid;
	*ret_entry = entries;
	return 0;
}

int pid_cache_find(struct pid_cache *pid_cache, uint32_t pid, struct proc_facts *ret_facts,
		   struct snapshot_process *ret_process)
{
	struct pid_cache_entry *entry = NULL;
	int r = pid_cache_entry(pid_cache, pid, &entry);

	if (r == 0)
		r = entry->result;
	if (r < 0)
		return r;
	*ret_facts = entry->facts;
	*ret_process = entry->process;
	return 0;
}

void pid_cache_set_files(struct pid_cache *pid_cache, const struct proc_file *files, size_t count)
{
	pid_cache->files = files;
	pid_cache->file_count = count;
}

/* What is not read because one share is used up may be read for another file. */
static int pid_cache_read_mappings(struct pid_cache *pid_cache, struct pid_cache_entry *entry,
				   size_t file)
{
	uint64_t key = maps_budget_key(entry->facts.real_uid, pid_cache->files[file].owner);
	struct proc_mappings search = {
		.files = pid_cache->files,
		.count = pid_cache->file_count,
		.bytes_max = maps_budget_left(&pid_cache->budget, key),
	};
	int r = -EFBIG;

	if (search.bytes_max > 0)
		r = proc_find_mapped(pid_cache->proc, entry->facts.id.pid, &search);
	(void)quota_add(&pid_cache->budget, key,
			search.bytes); /* without memory it does not count */
	if (r == -EFBIG && !entry->is_unread) {
		entry->is_unread = true;
		pid_cache->unread++;
	}
	entry->has_mappings = r != -EFBIG || search.bytes_max == MAPS_BUDGET_ONE;
	entry->mappings_result = r;
	for (size_t i = 0; i < search.count; i++)
		entry->mapped[i / 64] |= (uint64_t)search.mapped[i] << i % 64;
	return r;
}

int pid_cache_has_mapped(struct pid_cache *pid_cache, uint32_t pid, size_t file)
{
	struct pid_cache_entry *entry = NULL;
	int r = pid_cache_entry(pid_cache, pid, &entry);

	if (r == 0)
		r = entry->result;
	if (r < 0)
		return r;
	r = entry->has_mappings ? entry->mappings_result
				: pid_cache_read_mappings(pid_cache, entry, file);
	/* A file that was found before the list became too long is mapped. */
	return entry->mapped[file / 64] >> file % 64 & 1 ? 1 : r;
}

size_t pid_cache_unread(const struct pid_cache *pid_cache)
{
	return pid_cache->unread;
}

static int pid_cache_compare_inside(const void *left, const void *right)
{
	const struct pid_cache_inside *a = left, *b = right;

	if (a->ns_pid != b->ns_pid)
		return bits_compare(a->ns_pid, b->ns_pid);
	return bits_compare(a->pid, b->pid);
}

/* Lists all processes that have a different pid in their own namespace. */
static int pid_cache_list_inside(struct pid_cache *pid_cache)
{
	CLEANUP_CLOSEDIR DIR *listing = proc_list(pid_cache->proc, ".");
	uint32_t pid;

	pid_cache->has_inside = true;
	while (listing && (pid = proc_next(listing))) {
		struct pid_cache_inside *grown;
		struct proc_facts facts;

		if (proc_read(pid_cache->proc, pid, &facts) < 0 || facts.ns_pid == pid)
			continue;
		grown = array_grow(pid_cache->inside, &pid_cache->inside_capacity,
				   pid_cache->inside_count + 1, sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		pid_cache->inside = grown;
		grown[pid_cache->inside_count++] =
			(struct pid_cache_inside){.ns_pid = facts.ns_pid, .pid = pid};
	}
	if (pid_cache->inside_count > 0)
		qsort(pid_cache->inside, pid_cache->inside_count, sizeof(*pid_cache->inside),
		      pid_cache_compare_inside);
	return 0;
}

/* Binary search for the first process with that pid inside. */
static size_t pid_cache_from(const struct pid_cache *pid_cache, uint32_t ns_pid)
{
	size_t from = 0, to = pid_cache->inside_count;

	while (from < to) {
		size_t middle = from + (to - from) / 2;

		if (pid_cache->inside[middle].ns_pid < ns_pid)
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

int pid_cache_find_inside(struct pid_cache *pid_cache, uint32_t ns_pid, size_t file,
			  struct proc_facts *ret_facts, struct snapshot_process *ret_process)
{
	int r = pid_cache->has_inside ? 0 : pid_cache_list_inside(pid_cache);
	bool is_hidden = false;

	if (r < 0)
		return r;
	for (size_t i = pid_cache_from(pid_cache, ns_pid);
	     i < pid_cache->inside_count && pid_cache->inside[i].ns_pid == ns_pid; i++) {
		r = pid_cache_has_mapped(pid_cache, pid_cache->inside[i].pid, file);
		if (r == -ENOMEM)
			return r;
		if (r == 1)
			return pid_cache_find(pid_cache, pid_cache->inside[i].pid, ret_facts,
					      ret_process);
		is_hidden = is_hidden || (r < 0 && r != -ESRCH && r != -ENOENT);
	}
	return is_hidden ? -EACCES : -ESRCH;
}
