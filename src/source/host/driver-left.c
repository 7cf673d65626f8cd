/* SPDX-License-Identifier: Apache-2.0 */

/* Descriptors of removed nodes. */

#include "source/host/driver-left.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/small-file.h"
#include "base/text.h"
#include "model/snapshot.h"
#include "source/proc/pid-cache.h"
#include "source/proc/proc.h"

#define DRIVER_LEFT_NODES 256u /* of one process */

/* The nodes that a process has open. */
struct driver_left_nodes {
	uint32_t open[DRIVER_LEFT_NODES], removed[DRIVER_LEFT_NODES];
	size_t open_count, removed_count;
};

static int driver_left_compare(const void *left, const void *right)
{
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;

	return (a > b) - (a < b);
}

int driver_left_note_openers(struct driver_openers *openers, const uint32_t *pids, size_t count)
{
	uint32_t *list = array_grow(openers->pids, &openers->capacity, openers->count + count + 1,
				    sizeof(*list));

	if (!list)
		return -ENOMEM;
	openers->pids = list;
	if (count)
		memcpy(list + openers->count, pids, count * sizeof(*pids));
	openers->count += count;
	return 0;
}

static bool driver_left_has(const uint32_t *list, size_t count, uint32_t number)
{
	for (size_t i = 0; i < count; i++) {
		if (list[i] == number)
			return true;
	}
	return false;
}

/* Takes the target of a link, "/dev/tenstorrent/N" with or without " (deleted)". */
static void driver_left_take(struct driver_left_nodes *nodes, const char *folder, char *target)
{
	static const char removed[] = " (deleted)";
	char *end = strstr(target, removed);
	uint64_t number;
	bool is_removed = end && end[sizeof(removed) - 1] == '\0';

	if (is_removed)
		*end = '\0';
	if (strncmp(target, folder, strlen(folder)) != 0 ||
	    text_parse_u64(target + strlen(folder), &number) < 0 || number >= BOOK_DEVICES)
		return;
	if (is_removed && nodes->removed_count < DRIVER_LEFT_NODES)
		nodes->removed[nodes->removed_count++] = (uint32_t)number;
	if (!is_removed && nodes->open_count < DRIVER_LEFT_NODES)
		nodes->open[nodes->open_count++] = (uint32_t)number;
}

static void driver_left_read(const struct proc *proc, uint32_t pid, struct driver_left_nodes *nodes)
{
	CLEANUP_CLOSEDIR DIR *listing = NULL;
	const struct dirent *item;
	const char *root = secure_getenv("TTMEM_DEV_ROOT");
	char path[32], folder[512], target[sizeof(folder) + 32];

	snprintf(folder, sizeof(folder), "%s/tenstorrent/", root && *root ? root : "/dev");
	snprintf(path, sizeof(path), "%" PRIu32 "/fd", pid);
	listing = proc_list(proc, path);
	while (listing && (item = readdir(listing))) {
		ssize_t n = readlinkat(dirfd(listing), item->d_name, target, sizeof(target) - 1);

		if (n <= 0)
			continue;
		target[n] = '\0';
		driver_left_take(nodes, folder, target);
	}
}

/*
 * Who has none but removed nodes has nothing on a card that is there. Of one who has others as
 * well, only the devices with the numbers of removed ones are known to be lost.
 */
static int driver_left_look(const struct proc *proc, const struct snapshot_process *process,
			    struct snapshot *snapshot)
{
	struct snapshot_left left = {
		.pid = process->pid, .start_ticks = process->start_ticks, .device = UINT32_MAX};
	struct driver_left_nodes nodes = {.open_count = 0};
	int r = 0;

	driver_left_read(proc, process->pid, &nodes);
	if (nodes.removed_count && !nodes.open_count)
		return snapshot_add_left(snapshot, &left);
	for (size_t i = 0; r == 0 && i < nodes.removed_count; i++) {
		left.device = nodes.removed[i];
		if (!driver_left_has(nodes.open, nodes.open_count, left.device))
			r = snapshot_add_left(snapshot, &left);
	}
	return r;
}

/* Whether to look at it: it has memory, and the driver does not name it. Notes it as seen. */
static bool driver_left_wants(struct driver_openers *openers, size_t sorted,
			      const struct snapshot_process *process)
{
	const uint32_t *seen = openers->pids + sorted;
	size_t count = openers->count - sorted;

	if (!process->alive || process->untracked || count >= DRIVER_LEFT_MAX ||
	    bsearch(&process->pid, openers->pids, sorted, sizeof(*openers->pids),
		    driver_left_compare) ||
	    driver_left_has(seen, count, process->pid))
		return false;
	return driver_left_note_openers(openers, &process->pid, 1) == 0;
}

int driver_left_collect(struct pid_cache *pid_cache, struct driver_openers *openers,
			struct snapshot *snapshot)
{
	const struct proc *proc = pid_cache_proc(pid_cache);
	size_t sorted = openers->count;
	int r = driver_left_note_openers(openers, NULL, 0);

	if (r < 0)
		return r;
	qsort(openers->pids, sorted, sizeof(*openers->pids), driver_left_compare);
	for (size_t i = 0; r == 0 && i < snapshot->process_count; i++) {
		if (snapshot->processes[i].part_count &&
		    driver_left_wants(openers, sorted, &snapshot->processes[i]))
			r = driver_left_look(proc, &snapshot->processes[i], snapshot);
	}
	for (size_t i = 0; r == 0 && i < snapshot->claim_count; i++) {
		if (!snapshot->claims[i].is_open_only &&
		    driver_left_wants(openers, sorted, &snapshot->claims[i].process))
			r = driver_left_look(proc, &snapshot->claims[i].process, snapshot);
	}
	return r;
}
