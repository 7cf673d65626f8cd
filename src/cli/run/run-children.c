/* SPDX-License-Identifier: Apache-2.0 */

/* Descendants by pid: a small list, and the kernel's own lists of children. */

#include "cli/run/run-children.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/small-file.h"
#include "source/proc/proc.h"

#define SEEN_MAX 65536u /* beyond it the count is a lower bound */
#define SEEN_DEPTH 64

struct seen_process {
	uint32_t pid;
	bool has_book;
	bool status_known;
	int status;
};

struct seen {
	struct seen_process *processes;
	size_t count, capacity;
};

struct seen *seen_new(void)
{
	return calloc(1, sizeof(struct seen));
}

void seen_free(struct seen *seen)
{
	if (seen)
		free(seen->processes);
	free(seen);
}

/* The youngest with that pid. */
static struct seen_process *seen_find(const struct seen *seen, uint32_t pid)
{
	for (size_t i = seen->count; i > 0; i--) {
		if (seen->processes[i - 1].pid == pid)
			return &seen->processes[i - 1];
	}
	return NULL;
}

/* The entry of a process that is alive: a pid that has ended and is there again is another one. */
static struct seen_process *seen_get(struct seen *seen, uint32_t pid)
{
	struct seen_process *process = seen_find(seen, pid);

	if (process && !process->status_known)
		return process;
	if (seen->count >= SEEN_MAX)
		return NULL;
	process = array_grow(seen->processes, &seen->capacity, seen->count + 1, sizeof(*process));
	if (!process)
		return NULL;
	seen->processes = process;
	process += seen->count++;
	*process = (struct seen_process){.pid = pid};
	return process;
}

static void seen_look_below(struct seen *seen, const struct proc *proc, uint32_t pid, int depth);

/* The children of one thread: numbers separated by blanks. */
static void seen_look_thread(struct seen *seen, const struct proc *proc, uint32_t pid,
			     const char *thread, int depth)
{
	CLEANUP_FCLOSE FILE *file = NULL;
	char path[96];
	unsigned int child;

	(void)snprintf(path, sizeof(path), "%u/task/%.16s/children", pid, thread);
	file = small_file_stream(proc->root,
				 path); /* gone, or a kernel without these lists: none */
	while (file && fscanf(file, "%u", &child) == 1) {
		(void)seen_get(seen, child); /* without memory it goes unseen */
		seen_look_below(seen, proc, child, depth + 1);
	}
}

static void seen_look_below(struct seen *seen, const struct proc *proc, uint32_t pid, int depth)
{
	CLEANUP_CLOSEDIR DIR *threads = NULL;
	const struct dirent *entry;
	char path[32];

	if (depth > SEEN_DEPTH)
		return;
	(void)snprintf(path, sizeof(path), "%u/task", pid);
	threads = proc_list(proc, path);
	while (threads && (entry = readdir(threads))) {
		if (entry->d_name[0] != '.')
			seen_look_thread(seen, proc, pid, entry->d_name, depth);
	}
}

void seen_look(struct seen *seen, const struct proc *proc, uint32_t root)
{
	seen_look_below(seen, proc, root, 0);
}

void seen_has_book(struct seen *seen, uint32_t pid)
{
	struct seen_process *process = seen_find(seen, pid);

	/* One that ended before its book was taken in is the same process still. */
	if (!process)
		process = seen_get(seen, pid);
	if (process)
		process->has_book = true;
}

void seen_ended(struct seen *seen, uint32_t pid, int status)
{
	struct seen_process *process = seen_get(seen, pid);

	if (process) {
		process->status_known = true;
		process->status = status;
	}
}

bool seen_status(const struct seen *seen, uint32_t pid, int *ret_status)
{
	const struct seen_process *process = seen_find(seen, pid);

	if (!process || !process->status_known)
		return false;
	*ret_status = process->status;
	return true;
}

uint32_t seen_without_book(const struct seen *seen)
{
	uint32_t count = 0;

	for (size_t i = 0; i < seen->count; i++)
		count += !seen->processes[i].has_book;
	return count;
}
