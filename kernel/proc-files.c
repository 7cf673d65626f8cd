/* SPDX-License-Identifier: GPL-2.0 */

/*
 * The views. Each card and each device in use has a folder, like each card of the device driver:
 *
 *	/proc/driver/ttmem/totals		everything, for programs
 *	/proc/driver/ttmem/stats		memory charged to each user, plain clients' leaks
 *	/proc/driver/ttmem/N/allocations	a table for users: who holds how much
 *	/proc/driver/ttmem/N/pids		who has used it, a line each
 *	/proc/driver/ttmem/N/stats		sums by type, and what was left
 *
 * Pids are those of the reader's pid namespace, 0 for processes outside it and exited ones.
 */

#include "kernel/proc-files.h"

#include <linux/cred.h>
#include <linux/export.h>
#include <linux/fs.h>
#include <linux/kdev_t.h>
#include <linux/mm.h>
#include <linux/proc_fs.h>
#include <linux/seq_file.h>
#include <linux/user_namespace.h>

#include "kernel/book.h"
#include "kernel/folder.h"
#include "kernel/holder.h"
#include "kernel/leak.h"
#include "kernel/share.h"

#define VIEW_VERSION 1 /* of the file for programs */

static const char *const view_types[TTMEM_UAPI_TYPES] = {
#define TTMEM_TYPE(number, name, ...) [number] = #name,
#include <ttmem/types.def>
};

/* The columns of the table, by type, in the order that older tools expect. */
static const u8 view_columns[] = {0, 1, 3, 4};
static const u8 view_more_columns[] = {5, 6};

static void view_read(struct holder *holder, u32 device,
		      struct holder_memory ret_memory[TTMEM_UAPI_TYPES])
{
	u32 type;

	for (type = 0; type < TTMEM_UAPI_TYPES; type++)
		holder->ops->read(holder, device, type, &ret_memory[type]);
}

/* A line that is not exact says so in its last word, after everything that programs parse. */
static const char *view_line_end(const struct holder_memory *memory)
{
	return holder_is_exact(memory) ? "\n" : " inexact\n";
}

static void view_table_row(struct seq_file *seq, const char *pid, const char *name,
			   const struct holder_memory memory[TTMEM_UAPI_TYPES])
{
	struct holder_memory all = {0};
	size_t i;

	for (i = 0; i < TTMEM_UAPI_TYPES; i++) {
		if (i != 2) /* host memory has no column */
			holder_add_memory(&all, &memory[i]);
	}
	seq_printf(seq, "%-8s %-16s", pid, name);
	for (i = 0; i < ARRAY_SIZE(view_columns); i++)
		seq_printf(seq, " %-10llu", memory[view_columns[i]].bytes);
	seq_printf(seq, " %-10llu", all.buffers);
	for (i = 0; i < ARRAY_SIZE(view_more_columns); i++)
		seq_printf(seq, " %-10llu", memory[view_more_columns[i]].bytes);
	seq_puts(seq, view_line_end(&all));
}

/* Which processes a table is about. */
struct view_openers {
	struct pid *const *pids;
	size_t count;
};

static bool view_is_opener(const struct view_openers *openers, const struct holder *holder)
{
	size_t i;

	for (i = 0; i < openers->count; i++) {
		if (openers->pids[i] == holder->pid)
			return true;
	}
	return false;
}

/* @openers: NULL = everybody. */
static void view_show_table(struct seq_file *seq, u32 device, const struct view_openers *openers)
{
	struct holder_memory memory[TTMEM_UAPI_TYPES];
	struct holder_memory total[TTMEM_UAPI_TYPES] = {};
	char name[HOLDER_NAME_SIZE], pid[12];
	struct holder *holder;
	u32 type;

	seq_printf(seq, "%-8s %-16s %-10s %-10s %-10s %-10s %-10s %-10s %-10s\n", "PID", "Comm",
		   "DRAM", "L1", "L1_SMALL", "TRACE", "BUFFERS", "CB", "KERNEL");
	seq_printf(seq, "%-8s %-16s %-10s %-10s %-10s %-10s %-10s %-10s %-10s\n", "----", "----",
		   "----", "--", "--------", "-----", "-------", "--", "------");
	mutex_lock(&holder_lock);
	list_for_each_entry(holder, &holder_list, link)
	{
		if (seq_has_overflowed(seq))
			break; /* seq_file calls again with a larger buffer */
		cond_resched();
		if (!holder->ops->uses(holder, device) ||
		    (openers && !view_is_opener(openers, holder)))
			continue;
		view_read(holder, device, memory);
		for (type = 0; type < TTMEM_UAPI_TYPES; type++)
			holder_add_memory(&total[type], &memory[type]);
		holder_name(holder, name);
		snprintf(pid, sizeof(pid), "%d", holder_pid(holder));
		view_table_row(seq, pid, name, memory);
	}
	mutex_unlock(&holder_lock);
	seq_putc(seq, '\n');
	view_table_row(seq, "TOTAL", "", total);
}

static void view_show_allocations(struct seq_file *seq, u32 device)
{
	view_show_table(seq, device, NULL);
}

void ttmem_show_openers(struct seq_file *seq, u32 device, struct pid *const *openers, size_t count)
{
	const struct view_openers only = {.pids = openers, .count = count};

	view_show_table(seq, device, &only);
}
EXPORT_SYMBOL_GPL(ttmem_show_openers);

static void view_show_pids(struct seq_file *seq, u32 device)
{
	struct holder *holder;

	mutex_lock(&holder_lock);
	list_for_each_entry(holder, &holder_list, link)
	{
		pid_t pid;

		if (seq_has_overflowed(seq))
			break;
		cond_resched();
		if (!holder->ops->uses(holder, device))
			continue;
		pid = holder_pid(holder);
		if (pid || !holder_is_gone(holder))
			seq_printf(seq, "%d\n", pid);
	}
	mutex_unlock(&holder_lock);
}

static void view_show_stats(struct seq_file *seq, u32 device)
{
	struct holder_memory memory[TTMEM_UAPI_TYPES];
	struct holder_memory total[TTMEM_UAPI_TYPES] = {};
	unsigned int holders = 0;
	struct holder *holder;
	u32 type;

	mutex_lock(&holder_lock);
	list_for_each_entry(holder, &holder_list, link)
	{
		cond_resched();
		if (!holder->ops->uses(holder, device))
			continue;
		holders++;
		view_read(holder, device, memory);
		for (type = 0; type < TTMEM_UAPI_TYPES; type++)
			holder_add_memory(&total[type], &memory[type]);
	}
	mutex_unlock(&holder_lock);
	seq_printf(seq, "holders %u\n", holders);
	for (type = 0; type < TTMEM_UAPI_TYPES; type++)
		seq_printf(seq, "%s bytes %llu buffers %llu allocs %llu frees %llu%s",
			   view_types[type], total[type].bytes, total[type].buffers,
			   total[type].allocs, total[type].frees, view_line_end(&total[type]));
	leak_show_device(seq, device);
}

static const struct folder_file view_files[] = {
	{"allocations", view_show_allocations},
	{"pids", view_show_pids},
	{"stats", view_show_stats},
	{},
};

/* A line for the holder, and one for each type of memory it ever had. */
static int view_show_holder(struct seq_file *seq, void *item)
{
	struct holder *holder;
	struct holder_memory memory;
	char name[HOLDER_NAME_SIZE];
	u32 device, type;
	pid_t pid;

	if (item == SEQ_START_TOKEN) {
		seq_printf(seq, "ttmem %d\n", VIEW_VERSION);
		return 0;
	}
	holder = item;
	holder_name(holder, name);
	pid = holder_pid(holder); /* may exit at any moment: "gone" goes only with a 0 */
	seq_printf(seq, "holder %llu %s %u %d %u %s%s\n", holder->id, holder->ops->kind,
		   book_device(holder), pid, from_kuid_munged(seq_user_ns(seq), holder->uid), name,
		   !pid && holder_is_gone(holder) ? " gone" : "");
	for (device = holder->ops->next_device(holder, 0);
	     device < TTMEM_UAPI_DEVICES && !seq_has_overflowed(seq);
	     device = holder->ops->next_device(holder, device + 1)) {
		cond_resched();
		for (type = 0; type < TTMEM_UAPI_TYPES; type++) {
			holder->ops->read(holder, device, type, &memory);
			if (!memory.allocs && !memory.bytes && holder_is_exact(&memory))
				continue;
			seq_printf(seq, "memory %u %u %llu %llu %llu %llu %llu %u%s\n", device,
				   type, memory.bytes, memory.buffers, memory.peak, memory.allocs,
				   memory.frees, memory.bound, memory.is_torn ? " torn" : "");
		}
	}
	return 0;
}

/* Position 0 is the first line, others are ids of holders, which are above 0. */
static void *view_start(struct seq_file *seq, loff_t *position)
{
	mutex_lock(&holder_lock);
	return *position == 0 ? SEQ_START_TOKEN : holder_from(*position);
}

static void *view_next(struct seq_file *seq, void *item, loff_t *position)
{
	struct holder *holder = item;

	if (item == SEQ_START_TOKEN) {
		*position = 1;
		return holder_from(1);
	}
	*position = holder->id + 1;
	return list_is_last(&holder->link, &holder_list) ? NULL : list_next_entry(holder, link);
}

static void view_stop(struct seq_file *seq, void *item)
{
	mutex_unlock(&holder_lock);
}

static const struct seq_operations view_totals_operations = {
	.start = view_start,
	.next = view_next,
	.stop = view_stop,
	.show = view_show_holder,
};

static int view_show_share(struct seq_file *seq, void *item)
{
	struct share *share = item;

	if (item == SEQ_START_TOKEN) {
		seq_printf(seq, "all bytes %llu limit %llu user_limit %llu\n", share_total(),
			   share_total_limit(), share_user_limit());
		leak_show(seq);
		return 0;
	}
	/* Without a limit: whether it applies depends on the process, not on the user. */
	seq_printf(seq, "user %u books %u clients %u bytes %llu\n",
		   from_kuid_munged(seq_user_ns(seq), share->uid), share->holders[SHARE_BOOK],
		   share->holders[SHARE_CLIENT],
		   (u64)atomic_long_read(&share->pages) << PAGE_SHIFT);
	return 0;
}

/* Position 0 is the summary, others are uid + 1. */
static void *view_start_shares(struct seq_file *seq, loff_t *position)
{
	mutex_lock(&share_lock);
	return *position == 0 ? SEQ_START_TOKEN : share_from(*position - 1);
}

static void *view_next_share(struct seq_file *seq, void *item, loff_t *position)
{
	struct share *share = item;

	if (item == SEQ_START_TOKEN) {
		*position = 1;
		return share_from(0);
	}
	*position = (loff_t)__kuid_val(share->uid) + 2;
	return list_is_last(&share->link, &share_list) ? NULL : list_next_entry(share, link);
}

static void view_stop_shares(struct seq_file *seq, void *item)
{
	mutex_unlock(&share_lock);
}

static const struct seq_operations view_stats_operations = {
	.start = view_start_shares,
	.next = view_next_share,
	.stop = view_stop_shares,
	.show = view_show_share,
};

/* The keys of drm-usage-stats, so that its readers need not know ttmem. */
void view_fdinfo(struct seq_file *seq, struct holder *holder, bool has_ended)
{
	static const char *const regions[TTMEM_UAPI_TYPES] = {
#define TTMEM_TYPE(number, name, cpp, fdinfo, ...) [number] = fdinfo,
#include <ttmem/types.def>
	};
	struct holder_memory memory[TTMEM_UAPI_TYPES] = {};
	bool is_exact = true;
	u32 type;

	if (!has_ended) {
		mutex_lock(&holder_lock);
		holder_sum(holder, memory);
		mutex_unlock(&holder_lock);
	}
	seq_puts(seq, "drm-driver:\tttmem\n");
	seq_printf(seq, "drm-client-id:\t%llu\n", holder->id);
	for (type = 0; type < TTMEM_UAPI_TYPES; type++) {
		seq_printf(seq, "drm-total-%s:\t%llu\n", regions[type], memory[type].bytes);
		seq_printf(seq, "drm-resident-%s:\t%llu\n", regions[type], memory[type].bytes);
		is_exact &= holder_is_exact(&memory[type]);
	}
	if (!is_exact)
		seq_puts(seq, "ttmem-inexact:\t1\n");
}

int __init view_init(void)
{
	int r = folder_init(view_files);

	if (r < 0)
		return r;
	if (proc_create_seq("totals", 0444, folder_root(), &view_totals_operations) &&
	    proc_create_seq("stats", 0444, folder_root(), &view_stats_operations))
		return 0;
	folder_exit();
	return -ENOMEM;
}

void view_exit(void)
{
	folder_exit();
}
