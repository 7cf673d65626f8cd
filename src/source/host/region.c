/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Reads regions, and decides which rows to trust. A row of a region names a process by its pid
 * alone, and pids are reused and differ between namespaces. So it counts only for a process that
 * can have written it:
 * - it is alive, has that pid in its own namespace, and started before the row was last written;
 * - it has the region mapped, as every writer has;
 * - where its mappings are not visible: it is run by the owner of the region, and nobody else can
 *   write to the region.
 * If there is a process of that pid that fails the last two, the row is a claim: whoever may write
 * to the file says so. Everything else was left by exited processes. Both are shown, never counted.
 */

#include "source/host/region.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/files/small-file.h"
#include "base/process/time-offsets.h"
#include "base/text.h"
#include "model/snapshot.h"
#include "source/host/region-excess.h"
#include "source/host/region-list.h"
#include "source/proc/pid-cache.h"

#define REGION_SLACK_NS NS_PER_S /* start times are in ticks, clocks are read one by one */

/* An older change was not made by a writer that is about to change its row as well. */
#define REGION_QUIET_NS NS_PER_S
/* Further looks for one snapshot: anybody can create regions in which totals and rows differ. */
#define REGION_LOOKS_MAX 256u
#define REGION_PAUSE_NS 50000u /* before each: a store takes less */

_Static_assert(REGION_FILES_MAX <= PROC_FILES_MAX, "all regions are searched for at once");

struct region_entry {
	struct region region;
	struct region_file file;
	char name[REGION_NAME_MAX];
	int outcome; /* of reading it; @region is valid only if 0 */
};

struct region_round {
	int folder;
	uint32_t looks; /* further ones that were made */
	struct pid_cache *pid_cache;
	struct snapshot *snapshot;
	uint64_t realtime, monotonic;
	struct region_entry *entries; /* owned; those that could be read come first */
	size_t count, readable;
};

const char *region_folder(void)
{
	const char *path = secure_getenv("TTMEM_SHM_DIR");

	return path && *path ? path : "/dev/shm";
}

bool region_is_name(const char *name, uint64_t *ret_id)
{
	static const char before[] = "tt_device_", after[] = "_memory";
	size_t length = strlen(name), digits = length - (sizeof(before) - 1) - (sizeof(after) - 1);
	char number[24];

	if (length < sizeof(before) + sizeof(after) - 1 || digits >= sizeof(number) ||
	    memcmp(name, before, sizeof(before) - 1) != 0 ||
	    strcmp(name + length - (sizeof(after) - 1), after) != 0)
		return false;
	memcpy(number, name + sizeof(before) - 1, digits);
	number[digits] = '\0';
	return strspn(number, "0123456789") == digits && text_parse_u64(number, ret_id) == 0;
}

const char *region_strerror(int outcome)
{
	switch (outcome) {
	case REGION_UNFINISHED:
		return "is being made, or was never finished";
	case REGION_UNKNOWN:
		return "has a version that is not known here: update ttmem";
	case REGION_BROKEN:
		return "contradicts itself: remove it when nobody uses the device";
	case REGION_CLOSED:
		return "belongs to another user";
	default:
		return "cannot be read";
	}
}

int region_read(int folder, const char *name, struct region_file *ret_file,
		struct region *ret_region)
{
	CLEANUP_CLOSE int fd = -1;
	char bytes[REGION_SIZE_MAX + 1];
	struct region region;
	ssize_t length;
	struct stat st;
	uint64_t id;
	int r;

	if (!region_is_name(name, &id))
		return REGION_BROKEN;
	/* Must not block on a fifo or follow a link to another place. */
	fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return errno == EACCES || errno == EPERM ? REGION_CLOSED : -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return REGION_BROKEN;
	length = small_file_read_fd(fd, bytes, sizeof(bytes));
	if (length < 0)
		return (int)length;
	r = region_parse(bytes, (size_t)length, &region);
	if (r != 0)
		return r;
	/* Named for one chip but with the id of another: from before ids were the chips' own. */
	if (region.id != id)
		return REGION_BROKEN;
	*ret_file = (struct region_file){
		.device = st.st_dev,
		.inode = st.st_ino,
		.user = st.st_uid,
		.is_private = (st.st_mode & (S_IWGRP | S_IWOTH)) == 0,
	};
	*ret_region = region;
	return 0;
}

/* The writer's clock is the monotonic one; early versions used the wall clock. 0 = unknown. */
static uint64_t region_when(const struct region_round *round, uint64_t stamp)
{
	uint64_t age = round->monotonic - stamp;

	if (stamp == 0)
		return 0;
	if (stamp <= round->monotonic)
		return age < round->realtime ? round->realtime - age : 0;
	return stamp <= round->realtime ? stamp : 0;
}

/* Of the region's file, as the pid cache was told of it. */
static size_t region_index(const struct region_round *round, const struct region_entry *entry)
{
	return (size_t)(entry - round->entries);
}

/* Whose row it is, and when it was written. */
struct region_owner {
	struct snapshot_process process;
	uint64_t when;
	bool is_claimed; /* there is such a process, and nothing proves that it wrote the row */
};

/*
 * Whether the process that was found started before the row was written. In a time namespace the
 * writer's clock differs from ours.
 */
static bool region_is_older(const struct region_round *round, const struct proc_facts *facts,
			    uint64_t stamp, struct region_owner *owner)
{
	uint64_t start_ns = owner->process.start_ns;
	struct time_offsets offsets;

	owner->when = region_when(round, stamp);
	if (stamp == 0 || (owner->when && start_ns <= owner->when + REGION_SLACK_NS))
		return true;
	if (proc_offsets_of(pid_cache_proc(round->pid_cache), facts->id.pid, &offsets))
		owner->when = region_when(round, stamp - (uint64_t)offsets.monotonic_ns);
	return !owner->when || start_ns <= owner->when + REGION_SLACK_NS;
}

/* Whether a process that has the pid of the row, and is as old, can have written it. */
static bool region_believes(const struct region_round *round, const struct region_entry *entry,
			    const struct proc_facts *facts)
{
	const struct region_file *file = &entry->file;
	int mapped =
		pid_cache_has_mapped(round->pid_cache, facts->id.pid, region_index(round, entry));

	if (mapped >= 0)
		return mapped == 1;
	/* We may not look: then only this user can have written it, for a process of theirs. */
	return file->is_private &&
	       (facts->real_uid == file->user || facts->saved_uid == file->user);
}

/*
 * Finds the process of a row. Returns 0, -ESRCH if it has exited or is only claimed, or -ENOMEM.
 * As a container's pid, the number can stand for several processes: then only a mapping tells.
 */
static int region_find(const struct region_round *round, const struct region_entry *entry,
		       const struct region_process *row, struct region_owner *ret_owner)
{
	struct region_owner owner = {0};
	struct proc_facts facts;
	int r = pid_cache_find(round->pid_cache, row->pid, &facts, &owner.process);

	if (r == 0 &&
	    (facts.ns_pid != row->pid || !region_is_older(round, &facts, row->stamp, &owner))) {
		r = -ESRCH;
	} else if (r == 0 && !region_believes(round, entry, &facts)) {
		owner.is_claimed = true;
		r = -ESRCH;
	}
	if (r == -ESRCH) {
		r = pid_cache_find_inside(round->pid_cache, row->pid, region_index(round, entry),
					  &facts, &owner.process);
		if (r == 0)
			(void)region_is_older(round, &facts, row->stamp, &owner); /* for the time */
	}
	if (r == -EACCES) {
		owner.is_claimed = true;
		r = -ESRCH;
	}
	*ret_owner = owner;
	return r;
}

/* A row that no process is known to have written: it is the word of the file's owner. */
static int region_disown(const struct region_round *round, const struct region_file *file,
			 const struct region_process *row, struct region_owner *owner)
{
	struct snapshot *snapshot = round->snapshot;
	char user[64];

	proc_user_name(file->user, user, sizeof(user));
	owner->when = region_when(round, row->stamp);
	owner->process = (struct snapshot_process){
		.id.pid = row->pid,
		.ns_pid = row->pid,
		.comm = snapshot_text(snapshot, row->name, strnlen(row->name, REGION_NAME)),
		.user = snapshot_text(snapshot, user, strlen(user)),
		.user_id = file->user,
		.maker_id = file->user,
		.exact = true,
		.stale = true,
		.unproven = owner->is_claimed,
	};
	return owner->process.comm && owner->process.user ? 0 : -ENOMEM;
}

/* The card of the region's device, if the driver knows it. */
static const struct snapshot_card *region_card(const struct region_round *round,
					       const struct region *region)
{
	const struct snapshot *snapshot = round->snapshot;

	for (size_t i = 0; i < snapshot->card_count; i++) {
		const struct snapshot_card *card = &snapshot->cards[i];

		if (card->unique_id == region->id ||
		    (region->is_place && card->serial && card->serial << 8 >> 8 == region->id >> 8))
			return card;
	}
	return NULL;
}

static int region_claim(struct region_round *round, const struct region_entry *entry,
			const struct region_process *row, const struct region_owner *owner)
{
	const struct region *region = &entry->region;
	const struct snapshot_card *card = region_card(round, region);
	struct snapshot_claim claim = {
		.process = owner->process,
		.device = region->device,
		.facts = {.remote = region->remote,
			  .unique_id = region->id,
			  .arch = card ? card->arch : NULL,
			  .card = card ? card->card : NULL},
		.types = region->types,
		.last_ns = owner->when,
		.bound = region->version < REGION_VERSION_ALL ? SNAPSHOT_AT_LEAST : SNAPSHOT_EXACT,
		.region = region->id,
		.region_version = region->version,
		.region_user = entry->file.user,
		.region_is_full = region->is_full,
		.region_is_private = entry->file.is_private,
	};

	claim.process.source = "tt-metal";
	memcpy(claim.used, row->used, sizeof(claim.used));
	return snapshot_add_claim(round->snapshot, &claim);
}

struct region_look {
	struct region_round *round;
	const struct region_entry *entry;
};

static int region_look_again(void *context, struct region *ret_region)
{
	const struct timespec pause = {.tv_nsec = REGION_PAUSE_NS};
	const struct region_look *look = context;
	struct region_file file;
	int r;

	if (look->round->looks++ >= REGION_LOOKS_MAX)
		return -EBUSY;
	(void)nanosleep(&pause, NULL); /* a signal only makes it shorter */
	r = region_read(look->round->folder, look->entry->name, &file, ret_region);
	return r > 0 ? -EAGAIN : r;
}

/* Notes what people should know about a region as a whole. */
static void region_note(struct region_round *round, const struct region_entry *entry)
{
	struct region_look look = {.round = round, .entry = entry};
	uint64_t when = region_when(round, entry->region.stamp);
	bool is_quiet = when + REGION_QUIET_NS < round->realtime;
	uint64_t excess = region_excess(&entry->region, is_quiet, region_look_again, &look);
	char size[TEXT_NUMBER_SIZE];

	if (excess)
		snapshot_note(round->snapshot,
			      "%s: %s that no process in it accounts for are not counted",
			      entry->name, text_size(excess, size));
}

static int region_rows(struct region_round *round, const struct region_entry *entry)
{
	const struct region *region = &entry->region;
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < region->process_count; i++) {
		const struct region_process *row = &region->processes[i];
		struct region_owner owner;

		r = region_find(round, entry, row, &owner);
		if (r == -ESRCH)
			r = region_disown(round, &entry->file, row, &owner);
		if (r == 0)
			r = region_claim(round, entry, row, &owner);
	}
	region_note(round, entry);
	return r == -ENOBUFS ? 0 : r;
}

static int region_compare(const void *left, const void *right)
{
	const struct region_entry *a = left, *b = right;

	if ((a->outcome == 0) != (b->outcome == 0))
		return bits_compare(a->outcome != 0, b->outcome != 0);
	if (a->outcome == 0 && a->region.device != b->region.device)
		return bits_compare(a->region.device, b->region.device);
	return strcmp(a->name, b->name);
}

/* Reads all of them first: the mappings of a process are searched for all at once. */
static int region_read_all(struct region_round *round, DIR *listing)
{
	CLEANUP_FREE struct region_name *names = NULL;
	size_t left_out = 0;
	int count = region_list(listing, round->snapshot, &names, &left_out);

	if (count < 0)
		return count;
	round->entries = calloc((size_t)count + 1, sizeof(*round->entries));
	if (!round->entries)
		return -ENOMEM;
	for (int i = 0; i < count; i++) {
		struct region_entry *entry = &round->entries[round->count];

		entry->outcome =
			region_read(round->folder, names[i].text, &entry->file, &entry->region);
		if (entry->outcome == -ENOENT)
			continue;
		memcpy(entry->name, names[i].text, sizeof(entry->name));
		round->readable += entry->outcome == 0;
		round->count++;
	}
	if (round->count > 0)
		qsort(round->entries, round->count, sizeof(*round->entries), region_compare);
	round->snapshot->regions_left_out = left_out;
	if (left_out)
		snapshot_note(round->snapshot,
			      "%zu of tt-metal's regions are left out: %u are read, of one user %u "
			      "at most",
			      left_out, REGION_FILES_MAX, REGION_OWNER_MAX);
	return 0;
}

/* Adds the rows of all that could be read. */
static int region_add_all(struct region_round *round)
{
	struct proc_file files[REGION_FILES_MAX];
	size_t unread;
	int r = 0;

	for (size_t i = 0; i < round->readable; i++)
		files[i] = (struct proc_file){.device = (dev_t)round->entries[i].file.device,
					      .inode = (ino_t)round->entries[i].file.inode,
					      .owner = round->entries[i].file.user};
	pid_cache_set_files(round->pid_cache, files, round->readable);
	for (size_t i = 0; r == 0 && i < round->readable; i++)
		r = region_rows(round, &round->entries[i]);
	pid_cache_set_files(round->pid_cache, NULL, 0);
	unread = pid_cache_unread(round->pid_cache);
	if (unread)
		snapshot_note(round->snapshot,
			      "%zu process%s: too many mappings to tell which of tt-metal's "
			      "regions they use; counted only in private ones of their own user",
			      unread, unread == 1 ? "" : "es");
	return r;
}

static void region_cleanup(struct region_round *round)
{
	free(round->entries);
}

int region_collect(struct pid_cache *pid_cache, struct snapshot *snapshot, size_t *ret_closed)
{
	CLEANUP_CLOSEDIR DIR *listing = opendir(region_folder());
	CLEANUP(region_cleanup)
	struct region_round round = {
		.pid_cache = pid_cache,
		.snapshot = snapshot,
		.realtime = clock_ns(CLOCK_REALTIME),
		.monotonic = proc_monotonic_ns(),
	};
	size_t closed = 0;
	int r;

	*ret_closed = 0;
	if (!listing) /* a machine without the folder has no regions */
		return errno == ENOMEM ? -ENOMEM : 0;
	round.folder = dirfd(listing);
	r = region_read_all(&round, listing);
	if (r == 0)
		r = region_add_all(&round);
	for (size_t i = round.readable; i < round.count; i++) {
		if (round.entries[i].outcome == REGION_CLOSED) {
			closed++;
			continue;
		}
		snapshot_note(snapshot, "%s/%s %s", region_folder(), round.entries[i].name,
			      region_strerror(round.entries[i].outcome));
	}
	*ret_closed = closed;
	return r;
}
