/* SPDX-License-Identifier: Apache-2.0 */

/* Adding to a snapshot what the kernel module tells and nobody else has told. */

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "book/clock.h"
#include "core/snapshot.h"
#include "source/kernel.h"
#include "source/proc.h"

struct kernel_collecting {
	const struct proc *proc;
	kernel_knows_fn *knows;
	const void *context;
	struct snapshot *snapshot;
	size_t outside; /* holders that have no pid here */
	size_t gone;    /* holders whose process has ended, and what they have */
	struct snapshot_memory gone_memory;
	bool is_gone; /* this and all that follows: of the holder whose lines come now */
	bool wanted;
	uint32_t process;
};

static int kernel_collect_holder(void *context, const struct kernel_holder *holder)
{
	struct kernel_collecting *collecting = context;
	struct snapshot *snapshot = collecting->snapshot;
	struct proc_facts facts = {.ns_pid = holder->pid, .real_uid = holder->uid};
	struct snapshot_process process = {.pid = holder->pid, .alive = true, .exact = true};
	char user[64];
	bool is_known;
	int r;

	is_known = holder->is_book && (holder->pid || holder->is_gone) &&
		   collecting->knows(collecting->context, holder);
	collecting->is_gone = holder->pid == 0 && holder->is_gone && !is_known;
	collecting->gone += collecting->is_gone;
	collecting->outside += holder->pid == 0 && !holder->is_gone;
	collecting->wanted = holder->pid != 0 && !is_known;
	if (!collecting->wanted)
		return 0;
	/* It may have ended since, or not be for us to see; the kernel's word for it will do. */
	(void)proc_read(collecting->proc, holder->pid, &facts);
	proc_user_name(facts.real_uid, user, sizeof(user));
	process.ns_pid = facts.ns_pid;
	process.start_ticks = facts.start_ticks;
	process.start_ns = proc_start_ns(facts.start_ticks, clock_ns(CLOCK_BOOTTIME),
					 clock_ns(CLOCK_REALTIME));
	process.user_id = facts.real_uid;
	process.maker_id = holder->uid;
	process.source = "kernel";
	process.comm = snapshot_text(snapshot, holder->comm, strlen(holder->comm));
	process.user = snapshot_text(snapshot, user, strlen(user));
	if (!process.comm || !process.user)
		return -ENOMEM;
	r = snapshot_add_process(snapshot, &process, &collecting->process);
	if (r == 0)
		snapshot->processes[collecting->process].books--; /* none was read */
	return r;
}

static int kernel_collect_memory(void *context, uint32_t device, uint32_t type,
				 const struct snapshot_memory *memory)
{
	struct kernel_collecting *collecting = context;
	struct snapshot_part *part;

	if (collecting->is_gone)
		snapshot_add_memory(&collecting->gone_memory, memory);
	if (!collecting->wanted)
		return 0;
	part = snapshot_part(collecting->snapshot, collecting->process, device);
	if (!part)
		return -ENOMEM;
	snapshot_add_memory(&part->memory[type], memory);
	return 0;
}

int kernel_collect(const struct proc *proc, kernel_knows_fn *knows, const void *context,
		   struct snapshot *snapshot)
{
	struct kernel_collecting collecting = {
		.proc = proc, .knows = knows, .context = context, .snapshot = snapshot};
	struct kernel_parser parser = {
		.holder = kernel_collect_holder,
		.memory = kernel_collect_memory,
		.context = &collecting,
	};
	int r = kernel_read(proc, &parser);

	if (r == -ENOENT || r == -ENOTDIR)
		return 0;
	if (r == -ENOMEM)
		return r;
	if (r < 0)
		snapshot_note(snapshot, "what the kernel module tells cannot be read: %s",
			      strerror(-r)); /* NOLINT(concurrency-mt-unsafe): known numbers */
	if (collecting.outside)
		snapshot_note(snapshot, "%zu processes outside this container are not shown",
			      collecting.outside);
	if (collecting.gone)
		snapshot_note(snapshot,
			      "%" PRIu64 " bytes of %zu processes that have ended are not shown: "
			      "others keep what those had opened",
			      collecting.gone_memory.used, collecting.gone);
	return 0;
}
