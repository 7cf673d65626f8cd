/* SPDX-License-Identifier: GPL-2.0 */

/* The leak line, and the counters of what plain clients left allocated. */

#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include "kernel/leak.h"

#include <linux/hash.h>
#include <linux/jiffies.h>
#include <linux/pid.h>
#include <linux/printk.h>
#include <linux/ratelimit.h>
#include <linux/seq_file.h>
#include <linux/spinlock.h>

#include "kernel/holder.h"

/*
 * A fixed number of rate limits; the hash of a uid selects one. It is the uid of the user who pays,
 * because within a user namespace one user has many. So nothing need be kept for users who are
 * gone, and nobody gets a new limit by coming back or with another uid. A user whose processes keep
 * exiting only takes lines from the few users who share the limit, and the sum of all limits bounds
 * the log.
 */
#define LEAK_LIMITS_SHIFT 3
#define LEAK_LINES 10
#define LEAK_SECONDS 5

struct leak_figures {
	u64 buffers;
	u64 bytes;
};

static struct ratelimit_state leak_limits[1 << LEAK_LIMITS_SHIFT];

/* They wrap as counters do: one client's wrong figures must not hide all later ones. */
static DEFINE_SPINLOCK(leak_lock);
static struct leak_figures leak_devices[TTMEM_UAPI_DEVICES];
static struct leak_figures leak_all;
static u64 leak_clients;

void __init leak_init(void)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(leak_limits); i++) {
		ratelimit_state_init(&leak_limits[i], LEAK_SECONDS * HZ, LEAK_LINES);
		/* Without a line about suppressed lines. */
		ratelimit_set_flags(&leak_limits[i], RATELIMIT_MSG_ON_RELEASE);
	}
}

static void leak_sum(struct holder *holder, struct holder_memory *ret_all)
{
	struct holder_memory memory[TTMEM_UAPI_TYPES];
	struct holder_memory all = {0};
	u32 type;

	holder_sum(holder, memory);
	for (type = 0; type < TTMEM_UAPI_TYPES; type++)
		holder_add_memory(&all, &memory[type]);
	*ret_all = all;
}

void leak_log(struct holder *holder)
{
	struct ratelimit_state *limit =
		&leak_limits[hash_32(__kuid_val(holder->payer), LEAK_LIMITS_SHIFT)];
	struct holder_memory all;
	char name[HOLDER_NAME_SIZE];

	leak_sum(holder, &all);
	if ((!all.buffers && !all.bytes) || !__ratelimit(limit))
		return;
	holder_name(holder, name);
	pr_info("process %d (%s) left %llu buffers, %llu bytes of device memory\n",
		pid_nr(holder->pid), name, all.buffers, all.bytes);
}

static void leak_count_device(struct holder *holder, u32 device)
{
	struct holder_memory memory;
	u32 type;

	for (type = 0; type < TTMEM_UAPI_TYPES; type++) {
		holder->ops->read(holder, device, type, &memory);
		spin_lock(&leak_lock);
		leak_devices[device].buffers += memory.buffers;
		leak_devices[device].bytes += memory.bytes;
		leak_all.buffers += memory.buffers;
		leak_all.bytes += memory.bytes;
		spin_unlock(&leak_lock);
	}
}

void leak_count(struct holder *holder)
{
	struct holder_memory all;
	u32 device;

	leak_sum(holder, &all);
	if (!all.buffers)
		return;
	spin_lock(&leak_lock);
	leak_clients++;
	spin_unlock(&leak_lock);
	for (device = holder->ops->next_device(holder, 0); device < TTMEM_UAPI_DEVICES;
	     device = holder->ops->next_device(holder, device + 1))
		leak_count_device(holder, device);
}

static struct leak_figures leak_read(const struct leak_figures *from)
{
	struct leak_figures figures;

	spin_lock(&leak_lock);
	figures = *from;
	spin_unlock(&leak_lock);
	return figures;
}

void leak_show_device(struct seq_file *seq, u32 device)
{
	struct leak_figures left = leak_read(&leak_devices[device]);

	seq_printf(seq, "leaked buffers %llu bytes %llu\n", left.buffers, left.bytes);
}

void leak_show(struct seq_file *seq)
{
	struct leak_figures left = leak_read(&leak_all);
	u32 device;

	seq_printf(seq, "leaked clients %llu buffers %llu bytes %llu\n", READ_ONCE(leak_clients),
		   left.buffers, left.bytes);
	for (device = 0; device < TTMEM_UAPI_DEVICES; device++) {
		left = leak_read(&leak_devices[device]);
		if (left.buffers)
			seq_printf(seq, "leaked device %u buffers %llu bytes %llu\n", device,
				   left.buffers, left.bytes);
	}
}
