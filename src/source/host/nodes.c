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
#define NODES_LINKS_ALL 16384u /* of all, for one snapshot */
#define NODES_NUMBERS_MAX 64u  /* nodes of one process, and as many that were removed */
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
	uint32_t pid;
	bool is_known;
	bool open[SNAPSHOT_CARDS_MAX]; /* by card */
	uint32_t opened[NODES_NUMBERS_MAX], removed[NODES_NUMBERS_MAX];
	size_t opened_count, removed_count;
};

/* The number at the end of a link, with or without " (deleted)"; false: it is no node. */
static bool nodes_parse(const char *name, uint32_t *ret_number, bool *ret_is_removed)
{
	size_t length = strspn(name, "0123456789");
	char digits[16] = {0};
	uint64_t number;

	if (length == 0 || length >= sizeof(digits))
		return false;
	memcpy(digits, name, length);
	*ret_is_removed = strcmp(name + length, " (deleted)") == 0;
	if ((name[length] && !*ret_is_removed) || text_parse_u64(digits, &number) < 0 ||
	    number >= BOOK_DEVICES)
		return false;
	*ret_number = (uint32_t)number;
	return true;
}

/* The card of a descriptor: a container may give a node another name, but not another number. */
static size_t nodes_card(const struct snapshot *snapshot, int folder, const char *name,
			 uint32_t number)
{
	struct stat st;

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

static void nodes_take(const struct nodes *nodes, int folder, const char *name, const char *target,
		       struct nodes_found *found)
{
	uint32_t number;
	bool is_removed;
	size_t card;

	if (strncmp(target, nodes->folder, strlen(nodes->folder)) != 0 ||
	    !nodes_parse(target + strlen(nodes->folder), &number, &is_removed))
		return;
	if (is_removed) {
		if (found->removed_count < NODES_NUMBERS_MAX)
			found->removed[found->removed_count++] = number;
		return;
	}
	card = nodes_card(nodes->snapshot, folder, name, number);
	if (found->opened_count < NODES_NUMBERS_MAX)
		found->opened[found->opened_count++] = number;
	if (card != SIZE_MAX)
		found->open[card] = true;
}

static void nodes_read(struct nodes *nodes, uint32_t pid, struct nodes_found *ret_found)
{
	CLEANUP_CLOSEDIR DIR *listing = NULL;
	const struct dirent *item;
	char path[32], target[NODES_PATH_MAX + 32];
	size_t links = 0;

	*ret_found = (struct nodes_found){.pid = pid};
	snprintf(path, sizeof(path), "%" PRIu32 "/fd", pid);
	listing = proc_list(pid_cache_proc(nodes->pid_cache), path);
	while (listing && (item = readdir(listing))) {
		ssize_t length;

		if (item->d_name[0] == '.')
			continue;
		if (++links > NODES_LINKS_ONE || ++nodes->links > NODES_LINKS_ALL)
			return;
		length = readlinkat(dirfd(listing), item->d_name, target, sizeof(target) - 1);
		if (length < 0 && errno == EACCES)
			return;
		target[length < 0 ? 0 : length] = '\0';
		nodes_take(nodes, dirfd(listing), item->d_name, target, ret_found);
	}
	ret_found->is_known = listing != NULL;
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

/* Whether the driver lists the process as an opener. */
static bool nodes_is_listed(const struct snapshot *snapshot, uint32_t pid, size_t claims)
{
	for (size_t i = 0; i < claims; i++) {
		if (snapshot->claims[i].is_open_only && snapshot->claims[i].process.pid == pid)
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

/*
 * Who has none but removed nodes has nothing on a card that is there. Of one who has others as
 * well, only the devices with the numbers of removed ones are known to be lost.
 */
static int nodes_mark_left(struct nodes *nodes, const struct snapshot_process *process,
			   const struct nodes_found *found)
{
	struct snapshot_left left = {
		.pid = process->pid, .start_ticks = process->start_ticks, .device = UINT32_MAX};
	int r = 0;

	if (found->removed_count && !found->opened_count)
		return snapshot_add_left(nodes->snapshot, &left);
	for (size_t i = 0; r == 0 && i < found->removed_count; i++) {
		bool is_back = false;

		for (size_t k = 0; k < found->opened_count; k++)
			is_back = is_back || found->opened[k] == found->removed[i];
		left.device = found->removed[i];
		if (!is_back)
			r = snapshot_add_left(nodes->snapshot, &left);
	}
	return r;
}

/* A process that reports itself. @listed: claims that are the driver's. */
static int nodes_look(struct nodes *nodes, size_t index, size_t listed)
{
	struct snapshot *snapshot = nodes->snapshot;
	struct snapshot_process *process = &snapshot->processes[index];
	bool is_wanted = nodes_are_wanted(snapshot, process);
	char visible[NODES_VISIBLE_MAX];
	struct nodes_found found;
	int r;

	/* The driver forgets who has a node that was removed. */
	if (!process->alive || !process->part_count ||
	    (!is_wanted && nodes_is_listed(snapshot, process->pid, listed)))
		return 0;
	nodes_read(nodes, process->pid, &found);
	r = nodes_mark_left(nodes, process, &found);
	if (!is_wanted)
		return r;
	if (process_env_find(pid_cache_proc(nodes->pid_cache), process->pid, "TT_VISIBLE_DEVICES",
			     visible, sizeof(visible)))
		process->visible = snapshot_text(snapshot, visible, strlen(visible));
	process->nodes_known = found.is_known;
	for (size_t i = 0; r == 0 && found.is_known && i < snapshot->card_count; i++) {
		if (found.open[i])
			r = nodes_claim(nodes, process, i);
	}
	return r;
}

/* Those that only a region names; the claims are not processes yet. */
static int nodes_look_at_regions(struct nodes *nodes, size_t listed)
{
	struct snapshot *snapshot = nodes->snapshot;
	uint32_t last = 0;
	int r = 0;

	for (size_t i = 0; r == 0 && i < listed; i++) {
		const struct snapshot_process process = snapshot->claims[i].process;
		struct nodes_found found;

		if (snapshot->claims[i].is_open_only || !process.alive || process.pid == last ||
		    nodes_is_listed(snapshot, process.pid, listed))
			continue;
		last = process.pid;
		nodes_read(nodes, last, &found);
		r = nodes_mark_left(nodes, &process, &found);
	}
	return r;
}

/* The card of an opener's claim; NULL if it is not there any more. */
static struct snapshot_card *nodes_card_of(struct snapshot *snapshot,
					   const struct snapshot_claim *claim, size_t *ret_index)
{
	for (size_t i = 0; i < snapshot->card_count; i++) {
		if (snapshot->cards[i].number == claim->device &&
		    snapshot->cards[i].condition.state != SNAPSHOT_GONE) {
			*ret_index = i;
			return &snapshot->cards[i];
		}
	}
	return NULL;
}

static int nodes_compare(const void *left, const void *right, void *context)
{
	const struct snapshot *snapshot = context;
	uint32_t a = snapshot->claims[*(const uint32_t *)left].process.pid;
	uint32_t b = snapshot->claims[*(const uint32_t *)right].process.pid;

	return (a > b) - (a < b);
}

/*
 * Marks the driver's claims about processes that do not have the node open: others have the pid now.
 * Each process is read once, however many nodes it has open.
 */
static void nodes_judge(struct nodes *nodes, uint32_t *openers, size_t count, bool *wrong)
{
	struct snapshot *snapshot = nodes->snapshot;
	struct nodes_found found = {.is_known = false};

	qsort_r(openers, count, sizeof(*openers), nodes_compare, snapshot);
	for (size_t i = 0; i < count; i++) {
		const struct snapshot_claim *claim = &snapshot->claims[openers[i]];
		struct snapshot_card *card;
		size_t index = 0;

		if (claim->process.pid != found.pid)
			nodes_read(nodes, claim->process.pid, &found);
		card = nodes_card_of(snapshot, claim, &index);
		if (card && found.is_known && !found.open[index]) {
			card->condition.ended++;
			wrong[openers[i]] = true;
		}
	}
}

static int nodes_drop(struct nodes *nodes)
{
	struct snapshot *snapshot = nodes->snapshot;
	CLEANUP_FREE uint32_t *openers = calloc(snapshot->claim_count + 1, sizeof(*openers));
	CLEANUP_FREE bool *wrong = calloc(snapshot->claim_count + 1, sizeof(*wrong));
	size_t count = 0;

	if (!openers || !wrong)
		return -ENOMEM;
	for (size_t i = 0; i < snapshot->claim_count; i++) {
		if (snapshot->claims[i].is_open_only)
			openers[count++] = (uint32_t)i;
	}
	nodes_judge(nodes, openers, count, wrong);
	count = 0;
	for (size_t i = 0; i < snapshot->claim_count; i++) {
		if (!wrong[i])
			snapshot->claims[count++] = snapshot->claims[i];
	}
	snapshot->claim_count = count;
	return 0;
}

/* Adds the cards whose openers have ended that a process has open. */
static int nodes_inherit(struct nodes *nodes, const struct nodes_found *found,
			 bool is_held[SNAPSHOT_CARDS_MAX])
{
	struct snapshot *snapshot = nodes->snapshot;
	struct snapshot_process process;
	struct proc_facts facts;
	int r = 0;

	for (size_t i = 0; r == 0 && i < snapshot->card_count; i++) {
		if (!found->open[i] || !snapshot->cards[i].condition.ended)
			continue;
		r = pid_cache_find(nodes->pid_cache, found->pid, &facts, &process);
		if (r == 0) {
			is_held[i] = true;
			r = nodes_claim(nodes, &process, i);
		}
		if (r == -ESRCH)
			r = 0; /* it has just exited */
	}
	return r;
}

/*
 * A node whose opener has ended is held by a child. It is searched for among all processes; if all of
 * them could be searched and none has it, it was closed between two readings.
 */
static int nodes_find_heirs(struct nodes *nodes)
{
	struct snapshot *snapshot = nodes->snapshot;
	CLEANUP_CLOSEDIR DIR *listing = NULL;
	bool is_held[SNAPSHOT_CARDS_MAX] = {false}, is_complete = true, has_ended = false;
	uint32_t pid;
	int r = 0;

	for (size_t i = 0; i < snapshot->card_count; i++)
		has_ended = has_ended || snapshot->cards[i].condition.ended;
	if (!has_ended)
		return 0;
	listing = proc_list(pid_cache_proc(nodes->pid_cache), ".");
	while (r == 0 && listing && (pid = proc_next(listing))) {
		struct nodes_found found;

		nodes_read(nodes, pid, &found);
		is_complete = is_complete && found.is_known;
		r = nodes_inherit(nodes, &found, is_held);
	}
	for (size_t i = 0; listing && is_complete && i < snapshot->card_count; i++) {
		if (!is_held[i])
			snapshot->cards[i].condition.ended = 0;
	}
	return r;
}

int nodes_check(struct pid_cache *pid_cache, struct snapshot *snapshot)
{
	struct nodes nodes = {.pid_cache = pid_cache, .snapshot = snapshot};
	const char *root = secure_getenv("TTMEM_DEV_ROOT");
	size_t listed;
	int r;

	/* Without a driver nobody can have one of its nodes. */
	if ((snapshot->card_count == 0 &&
	     faccessat(pid_cache_proc(pid_cache)->root, "driver/tenstorrent", F_OK, 0) < 0) ||
	    snprintf(nodes.folder, sizeof(nodes.folder), "%s/tenstorrent/",
		     root && *root ? root : "/dev") >= (int)sizeof(nodes.folder))
		return 0;
	r = nodes_drop(&nodes);
	if (r == 0)
		r = nodes_find_heirs(&nodes);
	listed = snapshot->claim_count;
	for (size_t i = 0; r == 0 && i < snapshot->process_count; i++)
		r = nodes_look(&nodes, i, listed);
	return r < 0 ? r : nodes_look_at_regions(&nodes, listed);
}
