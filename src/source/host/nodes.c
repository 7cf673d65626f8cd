/* SPDX-License-Identifier: Apache-2.0 */

/* Reads /proc/PID/fd and the environment of processes, within a budget. */

#include "source/host/nodes.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "model/snapshot.h"
#include "source/proc/pid-cache.h"
#include "source/proc/process-env.h"

#define NODES_LINKS_ONE 4096u  /* descriptors of one process that are read */
#define NODES_LINKS_ALL 65536u /* of all, for one snapshot */
#define NODES_VISIBLE_MAX 256u
#define NODES_PATH_MAX 512u

struct nodes {
	struct pid_cache *pid_cache;
	struct snapshot *snapshot;
	char folder[NODES_PATH_MAX]; /* with the nodes; ends with a slash */
	size_t links;                /* that were read */
};

/* The nodes of one process. */
struct nodes_found {
	bool is_known;
	bool open[SNAPSHOT_CARDS_MAX]; /* by card */
};

/* The card of a descriptor: a container may give a node another name, but not another number. */
static size_t nodes_card(const struct snapshot *snapshot, int folder, const char *name,
			 const char *target)
{
	size_t length = strspn(target, "0123456789");
	uint64_t number = UINT64_MAX;
	char digits[16] = {0};
	struct stat st;

	if (length > 0 && length < sizeof(digits)) {
		memcpy(digits, target, length);
		(void)text_parse_u64(digits, &number); /* else it stays none */
	}
	if (fstatat(folder, name, &st, 0) == 0 && S_ISCHR(st.st_mode)) {
		for (size_t i = 0; i < snapshot->card_count; i++) {
			if (snapshot->cards[i].node && snapshot->cards[i].node == st.st_rdev)
				return i;
		}
	}
	for (size_t i = 0; i < snapshot->card_count; i++) {
		if (snapshot->cards[i].number == number)
			return i;
	}
	return SIZE_MAX;
}

static void nodes_read(struct nodes *nodes, uint32_t pid, struct nodes_found *ret_found)
{
	CLEANUP_CLOSEDIR DIR *listing = NULL;
	struct nodes_found *found = ret_found;
	const struct dirent *item;
	char path[32], target[NODES_PATH_MAX + 32];
	size_t links = 0, prefix = strlen(nodes->folder);

	*found = (struct nodes_found){.is_known = false};
	snprintf(path, sizeof(path), "%" PRIu32 "/fd", pid);
	listing = proc_list(pid_cache_proc(nodes->pid_cache), path);
	while (listing && (item = readdir(listing))) {
		ssize_t length;
		size_t card;

		if (item->d_name[0] == '.')
			continue;
		if (++links > NODES_LINKS_ONE || ++nodes->links > NODES_LINKS_ALL)
			return;
		length = readlinkat(dirfd(listing), item->d_name, target, sizeof(target) - 1);
		if (length < 0 && errno == EACCES)
			return;
		target[length < 0 ? 0 : length] = '\0';
		/* The node of a card that was removed: whatever has the number now is another one. */
		if (strncmp(target, nodes->folder, prefix) != 0 || strstr(target, " (deleted)"))
			continue;
		card = nodes_card(nodes->snapshot, dirfd(listing), item->d_name, target + prefix);
		if (card != SIZE_MAX)
			found->open[card] = true;
	}
	found->is_known = listing != NULL;
}

/* Whether the process leaves a doubt which chips it uses. */
static bool nodes_are_wanted(const struct snapshot *snapshot,
			     const struct snapshot_process *process)
{
	for (size_t i = 0; i < process->part_count; i++) {
		uint64_t id = process->parts[i].facts.unique_id;
		bool is_found = false;

		for (size_t k = 0; id && k < snapshot->card_count; k++)
			is_found = is_found || snapshot->cards[k].unique_id == id;
		if (!is_found && !process->parts[i].facts.remote)
			return true;
	}
	return false;
}

static int nodes_claim(struct nodes *nodes, const struct snapshot_process *process, size_t card)
{
	struct snapshot_claim claim = {
		.process = *process,
		.device = nodes->snapshot->cards[card].number,
		.facts = {.unique_id = nodes->snapshot->cards[card].unique_id},
		.is_open_only = true,
	};
	int r;

	/* As for snapshot_add_process(): without what the book says. */
	claim.process.parts = NULL;
	claim.process.part_count = claim.process.part_capacity = 0;
	claim.process.source = "driver";
	claim.process.untracked = true;
	r = snapshot_add_claim(nodes->snapshot, &claim);
	return r == -ENOBUFS ? 0 : r;
}

/* A process that reports itself: its claims are replaced by what its descriptors say. */
static int nodes_look(struct nodes *nodes, size_t index)
{
	struct snapshot *snapshot = nodes->snapshot;
	struct snapshot_process *process = &snapshot->processes[index];
	const struct proc *proc = pid_cache_proc(nodes->pid_cache);
	char visible[NODES_VISIBLE_MAX];
	struct nodes_found found;
	int r = 0;

	if (!process->alive || !nodes_are_wanted(snapshot, process))
		return 0;
	if (process_env_find(proc, process->pid, "TT_VISIBLE_DEVICES", visible, sizeof(visible)))
		process->visible = snapshot_text(snapshot, visible, strlen(visible));
	nodes_read(nodes, process->pid, &found);
	process->nodes_known = found.is_known;
	for (size_t i = 0; r == 0 && found.is_known && i < snapshot->card_count; i++) {
		if (found.open[i])
			r = nodes_claim(nodes, process, i);
	}
	return r;
}

/* Drops the driver's claims about processes that do not have the node open. */
static void nodes_drop(struct nodes *nodes)
{
	struct snapshot *snapshot = nodes->snapshot;
	size_t count = 0;
	uint32_t pid = 0;
	struct nodes_found found = {.is_known = false};

	for (size_t i = 0; i < snapshot->claim_count; i++) {
		const struct snapshot_claim *claim = &snapshot->claims[i];
		bool is_held = true;

		if (claim->is_open_only && claim->process.pid != pid) {
			pid = claim->process.pid;
			nodes_read(nodes, pid, &found);
		}
		if (claim->is_open_only && found.is_known) {
			is_held = false;
			for (size_t k = 0; k < snapshot->card_count; k++)
				is_held = is_held || (found.open[k] &&
						      snapshot->cards[k].number == claim->device);
		}
		if (is_held)
			snapshot->claims[count++] = *claim;
	}
	snapshot->claim_count = count;
}

int nodes_check(struct pid_cache *pid_cache, struct snapshot *snapshot)
{
	struct nodes nodes = {.pid_cache = pid_cache, .snapshot = snapshot};
	const char *root = secure_getenv("TTMEM_DEV_ROOT");
	int r = 0;

	if (snapshot->card_count == 0 ||
	    snprintf(nodes.folder, sizeof(nodes.folder), "%s/tenstorrent/",
		     root && *root ? root : "/dev") >= (int)sizeof(nodes.folder))
		return 0;
	nodes_drop(&nodes);
	for (size_t i = 0; r == 0 && i < snapshot->process_count; i++)
		r = nodes_look(&nodes, i);
	return r;
}
