/* SPDX-License-Identifier: Apache-2.0 */

/* Descendants by pid, from the kernel's lists of children. */

#include "cli/run/run-children.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/files/small-file.h"
#include "source/proc/proc.h"
#include "source/proc/process-env.h"

#define RUN_CHILDREN_MAX 65536u /* above this the count is a lower bound */
#define RUN_CHILDREN_DEPTH 64

struct run_children_process {
	uint32_t pid;
	bool has_book;
	bool uses_device; /* was seen with a device open, or with tt-metal */
	uint32_t looks;
	struct ending ending;
};

struct run_children {
	struct run_children_process *processes;
	size_t count, capacity;
};

struct run_children *run_children_new(void)
{
	return calloc(1, sizeof(struct run_children));
}

void run_children_free(struct run_children *run_children)
{
	if (run_children)
		free(run_children->processes);
	free(run_children);
}

/* The most recent process with that pid. */
static struct run_children_process *run_children_find(const struct run_children *run_children,
						      uint32_t pid)
{
	for (size_t i = run_children->count; i > 0; i--) {
		if (run_children->processes[i - 1].pid == pid)
			return &run_children->processes[i - 1];
	}
	return NULL;
}

/*
 * The entry of a live process: a pid seen again after its process ended belongs to another process.
 */
static struct run_children_process *run_children_get(struct run_children *run_children,
						     uint32_t pid)
{
	struct run_children_process *process = run_children_find(run_children, pid);

	if (process && !process->ending.has_status)
		return process;
	if (run_children->count >= RUN_CHILDREN_MAX)
		return NULL;
	process = array_grow(run_children->processes, &run_children->capacity,
			     run_children->count + 1, sizeof(*process));
	if (!process)
		return NULL;
	run_children->processes = process;
	process += run_children->count++;
	*process = (struct run_children_process){.pid = pid};
	return process;
}

static void run_children_look_below(struct run_children *run_children, const struct proc *proc,
				    uint32_t pid, int depth);

static bool run_children_has_node(const struct proc *proc, uint32_t pid)
{
	CLEANUP_CLOSEDIR DIR *files = NULL;
	const char *root = secure_getenv("TTMEM_DEV_ROOT");
	const struct dirent *entry;
	char path[96], target[256], folder[128];
	ssize_t n;

	(void)snprintf(folder, sizeof(folder), "%.100s/tenstorrent/", root ? root : "/dev");
	(void)snprintf(path, sizeof(path), "%u/fd", pid);
	files = proc_list(proc, path);
	while (files && (entry = readdir(files))) {
		(void)snprintf(path, sizeof(path), "%u/fd/%.32s", pid, entry->d_name);
		n = readlinkat(proc->root, path, target, sizeof(target) - 1);
		if (n <= 0)
			continue;
		target[n] = '\0';
		if (strncmp(target, folder, strlen(folder)) == 0)
			return true;
	}
	return false;
}

/*
 * Shells and tools hold no device memory. Whether a process could is looked at ever more seldom: at its
 * first look, the second, the fourth and so on. @process: NULL if out of memory.
 */
static void run_children_look_at(struct run_children_process *process, const struct proc *proc)
{
	struct process_env inside;

	if (!process || process->has_book || process->uses_device)
		return;
	process->looks++;
	if ((process->looks & (process->looks - 1)) != 0)
		return;
	process->uses_device =
		run_children_has_node(proc, process->pid) ||
		(process_env_read(proc, process->pid, &inside) == 0 && inside.has_metal);
}

/* The children of one thread: numbers separated by spaces. */
static void run_children_look_thread(struct run_children *run_children, const struct proc *proc,
				     uint32_t pid, const char *thread, int depth)
{
	CLEANUP_FCLOSE FILE *file = NULL;
	char path[96];
	unsigned int child;

	(void)snprintf(path, sizeof(path), "%u/task/%.16s/children", pid, thread);
	file = small_file_stream(proc->root,
				 path); /* NULL if it exited, or the kernel lacks these lists */
	while (file && fscanf(file, "%u", &child) == 1) {
		run_children_look_at(run_children_get(run_children, child), proc);
		run_children_look_below(run_children, proc, child, depth + 1);
	}
}

static void run_children_look_below(struct run_children *run_children, const struct proc *proc,
				    uint32_t pid, int depth)
{
	CLEANUP_CLOSEDIR DIR *threads = NULL;
	const struct dirent *entry;
	char path[32];

	if (depth > RUN_CHILDREN_DEPTH)
		return;
	(void)snprintf(path, sizeof(path), "%u/task", pid);
	threads = proc_list(proc, path);
	while (threads && (entry = readdir(threads))) {
		if (entry->d_name[0] != '.')
			run_children_look_thread(run_children, proc, pid, entry->d_name, depth);
	}
}

void run_children_look(struct run_children *run_children, const struct proc *proc, uint32_t root)
{
	run_children_look_below(run_children, proc, root, 0);
}

void run_children_has_book(struct run_children *run_children, uint32_t pid)
{
	struct run_children_process *process = run_children_find(run_children, pid);

	/* A process that ended before its book arrived is still the same process. */
	if (!process)
		process = run_children_get(run_children, pid);
	if (process)
		process->has_book = true;
}

void run_children_ended(struct run_children *run_children, uint32_t pid, int status)
{
	struct run_children_process *process = run_children_get(run_children, pid);

	if (process)
		ending_set(&process->ending, status);
}

bool run_children_status(const struct run_children *run_children, uint32_t pid,
			 struct ending *ending)
{
	const struct run_children_process *process = run_children_find(run_children, pid);

	return process && process->ending.has_status && ending_set(ending, process->ending.status);
}

uint32_t run_children_untracked(const struct run_children *run_children)
{
	uint32_t count = 0;

	for (size_t i = 0; i < run_children->count; i++)
		count += run_children->processes[i].uses_device &&
			 !run_children->processes[i].has_book;
	return count;
}

uint32_t run_children_without_book(const struct run_children *run_children)
{
	uint32_t count = 0;

	for (size_t i = 0; i < run_children->count; i++)
		count += !run_children->processes[i].has_book;
	return count;
}
