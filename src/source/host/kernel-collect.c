/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Adds to a snapshot what only the kernel module reports.
 *
 * Anybody can make the module report a thousand devices for each of thousands of holders. So each
 * user has a budget, more than an honest one needs, and all users share another; but a little is
 * reserved for each, whatever the others do. Lines beyond it are counted for a note and cost no
 * memory.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "model/snapshot.h"
#include "source/host/kernel.h"
#include "source/proc/proc.h"

#define KERNEL_USER_NOTES 8u /* further users share one note */

/* What was reported for one user. */
struct kernel_user {
	uint32_t uid;
	uint32_t lines;
	uint32_t rows;
	uint64_t left; /* lines beyond the budget, and their bytes */
	uint64_t left_bytes;
};

struct kernel_collecting {
	const struct proc *proc;
	kernel_knows_fn *knows;
	const void *context;
	struct snapshot *snapshot;
	size_t outside; /* holders that have no pid here */
	size_t gone;    /* holders whose process has exited, and their memory */
	struct snapshot_memory gone_memory;
	struct kernel_user *users; /* KERNEL_USERS_MAX; the last is shared by all later ones */
	size_t user_count;
	uint32_t rows; /* of all users */

	/* The holder whose lines are being read. */
	bool is_gone;
	bool wanted;
	bool is_left; /* wanted, but beyond the budget */
	struct kernel_user *user;
	uint32_t process;
	size_t part; /* the last one added to */
};

static struct kernel_user *kernel_find_user(struct kernel_collecting *collecting, uint32_t uid)
{
	struct kernel_user *user = collecting->users;

	for (size_t i = 0; i < collecting->user_count; i++, user++) {
		if (user->uid == uid)
			return user;
	}
	if (collecting->user_count == KERNEL_USERS_MAX)
		return user - 1;
	collecting->user_count++;
	user->uid = uid;
	return user;
}

static bool kernel_charge_line(struct kernel_user *user)
{
	if (user->lines == KERNEL_USER_LINES)
		return false;
	user->lines++;
	return true;
}

/* Not a struct quota: a few rows are reserved for each user, whatever others take. */
static bool kernel_charge_row(struct kernel_collecting *collecting)
{
	struct kernel_user *user = collecting->user;

	if (user->rows >= KERNEL_USER_ROWS ||
	    (user->rows >= KERNEL_USER_ROWS_KEPT && collecting->rows >= KERNEL_ROWS_MAX))
		return false;
	user->rows++;
	collecting->rows++;
	return true;
}

static void kernel_leave(struct kernel_collecting *collecting, uint64_t bytes)
{
	struct kernel_user *user = collecting->user;

	collecting->snapshot->exact = false;
	user->left++;
	user->left_bytes += bits_min(bytes, UINT64_MAX - user->left_bytes);
}

/*
 * Adds the process itself. It may have exited since, or not be visible to us: what the kernel says
 * suffices.
 */
static int kernel_add_process(struct kernel_collecting *collecting,
			      const struct kernel_holder *holder)
{
	struct snapshot *snapshot = collecting->snapshot;
	struct proc_facts facts = {.ns_pid = holder->pid, .real_uid = holder->uid};
	struct snapshot_process process = {.id.pid = holder->pid, .alive = true, .exact = true};
	char user[64];
	int r;

	(void)proc_read(collecting->proc, holder->pid, &facts);
	proc_user_name(facts.real_uid, user, sizeof(user));
	process.ns_pid = facts.ns_pid;
	process.id.start_ticks = facts.id.start_ticks;
	process.start_ns = proc_started_ns(facts.id.start_ticks);
	process.user_id = facts.real_uid;
	process.maker_id = holder->uid;
	process.source = "kernel";
	process.comm = snapshot_text(snapshot, holder->comm, strlen(holder->comm));
	process.user = snapshot_text(snapshot, user, strlen(user));
	if (!process.comm || !process.user)
		return -ENOMEM;
	r = snapshot_add_process(snapshot, &process, &collecting->process);
	if (r == 0)
		snapshot->processes[collecting->process].books--; /* no book was read */
	return r;
}

static int kernel_collect_holder(void *context, const struct kernel_holder *holder)
{
	struct kernel_collecting *collecting = context;
	bool is_known = holder->is_book && (holder->pid || holder->is_gone) &&
			collecting->knows(collecting->context, holder);

	collecting->is_gone = holder->pid == 0 && holder->is_gone && !is_known;
	collecting->gone += collecting->is_gone;
	collecting->outside += holder->pid == 0 && !holder->is_gone;
	collecting->wanted = holder->pid != 0 && !is_known;
	if (!collecting->wanted)
		return 0;
	collecting->part = 0;
	collecting->user = kernel_find_user(collecting, holder->uid);
	collecting->is_left =
		!kernel_charge_line(collecting->user) || !kernel_charge_row(collecting);
	if (collecting->is_left) {
		kernel_leave(collecting, 0);
		return 0;
	}
	return kernel_add_process(collecting, holder);
}

/*
 * Finds the process's part of a device: 0, -ENOMEM, or 1 if the user may have no more. The lines of
 * a holder are ordered by device, and it often has as many as its process: so the last part or the
 * next is usually the right one.
 */
static int kernel_find_part(struct kernel_collecting *collecting, uint32_t device)
{
	struct snapshot *snapshot = collecting->snapshot;
	const struct snapshot_process *owner = &snapshot->processes[collecting->process];
	const struct snapshot_part *part;

	for (size_t i = collecting->part; i < owner->part_count && i <= collecting->part + 1; i++) {
		if (owner->parts[i].device == device) {
			collecting->part = i;
			return 0;
		}
	}
	part = snapshot_find_part(snapshot, collecting->process, device);
	if (!part && !kernel_charge_row(collecting))
		return 1;
	if (!part)
		part = snapshot_add_part(snapshot, collecting->process, device);
	if (!part)
		return -ENOMEM;
	collecting->part = (size_t)(part - owner->parts);
	return 0;
}

static int kernel_collect_memory(void *context, uint32_t device, uint32_t type,
				 const struct snapshot_memory *memory, bool is_torn)
{
	struct kernel_collecting *collecting = context;
	struct snapshot_process *owner;
	int r;

	if (collecting->is_gone)
		snapshot_add_memory(&collecting->gone_memory, memory);
	if (!collecting->wanted)
		return 0;
	r = collecting->is_left || !kernel_charge_line(collecting->user)
		    ? 1
		    : kernel_find_part(collecting, device);
	if (r < 0)
		return r;
	if (r > 0) {
		kernel_leave(collecting, memory->used);
		if (!collecting->is_left) /* it has more than is shown */
			collecting->snapshot->processes[collecting->process].exact = false;
		return 0;
	}
	owner = &collecting->snapshot->processes[collecting->process];
	snapshot_add_memory(&owner->parts[collecting->part].memory[type], memory);
	if (is_torn)
		owner->exact = collecting->snapshot->exact = false;
	return 0;
}

static void kernel_note_left(const struct kernel_collecting *collecting)
{
	size_t noted = 0, more = 0;

	for (size_t i = 0; i < collecting->user_count; i++) {
		const struct kernel_user *user = &collecting->users[i];
		char name[64], shown[TEXT_ESCAPE_SIZE(sizeof(name))], size[TEXT_NUMBER_SIZE];

		if (user->left == 0)
			continue;
		if (noted == KERNEL_USER_NOTES) {
			more++;
			continue;
		}
		noted++;
		proc_user_name(user->uid, name, sizeof(name));
		text_escape(name, shown, sizeof(shown));
		snapshot_note(collecting->snapshot,
			      "user %s%s: %" PRIu64
			      " more lines of the kernel module, with %s, are "
			      "not shown",
			      shown, i == KERNEL_USERS_MAX - 1 ? " and others" : "", user->left,
			      text_size(user->left_bytes, size));
	}
	if (more)
		snapshot_note(collecting->snapshot,
			      "the same goes for %zu users more of the kernel module", more);
}

int kernel_collect(const struct proc *proc, kernel_knows_fn *knows, const void *context,
		   struct snapshot *snapshot)
{
	CLEANUP_FREE struct kernel_user *users = calloc(KERNEL_USERS_MAX, sizeof(*users));
	struct kernel_collecting collecting = {.proc = proc,
					       .knows = knows,
					       .context = context,
					       .snapshot = snapshot,
					       .users = users};
	struct kernel_parser parser = {
		.holder = kernel_collect_holder,
		.memory = kernel_collect_memory,
		.context = &collecting,
	};
	int r = users ? kernel_read(proc, &parser) : -ENOMEM;

	if (r == -ENOENT || r == -ENOTDIR)
		return 0;
	if (r == -ENOMEM)
		return r;
	if (r == -EPROTONOSUPPORT)
		snapshot_note(snapshot, "the kernel module is newer than this ttmem, and what only "
					"it knows is not shown: update ttmem");
	else if (r < 0)
		snapshot_note(snapshot, "what the kernel module tells cannot be read: %s",
			      strerror(-r)); /* NOLINT(concurrency-mt-unsafe): known numbers */
	kernel_note_left(&collecting);
	if (collecting.outside)
		snapshot_note(snapshot, "%zu process%s outside this container not shown",
			      collecting.outside, collecting.outside == 1 ? "" : "es");
	if (collecting.gone)
		snapshot_note(snapshot,
			      "%" PRIu64 " bytes of %zu ended process%s are not shown: "
			      "others keep what had been opened",
			      collecting.gone_memory.used, collecting.gone,
			      collecting.gone == 1 ? "" : "es");
	return 0;
}
