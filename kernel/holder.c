/* SPDX-License-Identifier: GPL-2.0 */

/* The list of holders, and their common code. */

#include "kernel/holder.h"

#include <linux/atomic.h>
#include <linux/cred.h>
#include <linux/ctype.h>
#include <linux/errno.h>
#include <linux/ktime.h>
#include <linux/overflow.h>
#include <linux/pid.h>
#include <linux/pid_namespace.h>
#include <linux/rcupdate.h>
#include <linux/sched/signal.h>
#include <linux/string.h>

#include "kernel/share.h"

DEFINE_MUTEX(holder_lock);
LIST_HEAD(holder_list);

static atomic64_t holder_last_id;

/*
 * A daemon outlives this module, and recognizes a book by its id, which is the inode number: a
 * number that a book had before the module was reloaded must not be used again. The clock since the
 * boot is ahead of every id that was used, because making a holder takes longer than a nanosecond.
 */
void holder_start(void)
{
	atomic64_set(&holder_last_id, ktime_get_ns());
}

void holder_init(struct holder *holder, const struct holder_ops *ops)
{
	INIT_LIST_HEAD(&holder->link);
	holder->ops = ops;
	holder->id = atomic64_inc_return(&holder_last_id);
	holder->pid = get_pid(task_tgid(current));
	holder->uid = current_euid();
	holder->payer = share_payer();
	get_task_comm(holder->comm, current->group_leader);
}

void holder_deinit(struct holder *holder)
{
	put_pid(holder->pid);
}

/*
 * A reader of several pieces relies on the order of ids: it continues at an id, so that a holder
 * that ended meanwhile does not make it skip another one.
 */
int holder_add(struct holder *holder)
{
	struct list_head *before = &holder_list;
	unsigned int kin = 0;
	struct holder *other;
	int r = -EMFILE;

	mutex_lock(&holder_lock);
	list_for_each_entry(other, &holder_list, link)
	{
		if (other->id < holder->id)
			before = &other->link;
		kin += other->ops == holder->ops && holder->ops->is_kin(holder, other);
	}
	if (kin < holder->ops->kin_max) {
		list_add(&holder->link, before);
		r = 0;
	}
	mutex_unlock(&holder_lock);
	return r;
}

struct holder *holder_from(u64 id)
{
	struct holder *holder;

	list_for_each_entry(holder, &holder_list, link)
	{
		if (holder->id >= id)
			return holder;
	}
	return NULL;
}

void holder_remove(struct holder *holder)
{
	mutex_lock(&holder_lock);
	list_del_init(&holder->link);
	mutex_unlock(&holder_lock);
}

void holder_name(struct holder *holder, char ret_name[HOLDER_NAME_SIZE])
{
	char comm[TASK_COMM_LEN];
	struct task_struct *task;
	char *to = ret_name;
	const char *from;

	memcpy(comm, holder->comm, sizeof(comm));
	rcu_read_lock();
	task = pid_task(holder->pid, PIDTYPE_TGID);
	if (task)
		get_task_comm(comm, task);
	rcu_read_unlock();

	for (from = comm; *from; from++) {
		unsigned char c = *from;

		if (c < 0x80 && isgraph(c) && c != '\\')
			*to++ = c;
		else
			to += sprintf(to, "\\%03o", c);
	}
	if (to == ret_name)
		*to++ = '?';
	*to = '\0';
}

/* A zombie is gone as well: it cannot hold anything. */
bool holder_is_gone(struct holder *holder)
{
	struct task_struct *task;
	bool is_gone;

	rcu_read_lock();
	task = pid_task(holder->pid, PIDTYPE_TGID);
	is_gone = !task || !atomic_read(&task->signal->live);
	rcu_read_unlock();
	return is_gone;
}

pid_t holder_pid(struct holder *holder)
{
	return holder_is_gone(holder) ? 0 : pid_nr_ns(holder->pid, task_active_pid_ns(current));
}

void holder_adopt(struct holder *holder)
{
	struct pid *pid = task_tgid(current), *old = holder->pid;

	if (old == pid || !holder_is_gone(holder))
		return;
	mutex_lock(&holder_lock);
	holder->pid = get_pid(pid);
	get_task_comm(holder->comm, current->group_leader);
	mutex_unlock(&holder_lock);
	put_pid(old);
}

static u64 holder_plus(u64 a, u64 b)
{
	u64 sum;

	return check_add_overflow(a, b, &sum) ? U64_MAX : sum;
}

void holder_add_memory(struct holder_memory *to, const struct holder_memory *more)
{
	to->bytes = holder_plus(to->bytes, more->bytes);
	to->buffers = holder_plus(to->buffers, more->buffers);
	to->peak = holder_plus(to->peak, more->peak);
	to->allocs = holder_plus(to->allocs, more->allocs);
	to->frees = holder_plus(to->frees, more->frees);
	if (!to->bound)
		to->bound = more->bound;
	to->is_torn |= more->is_torn;
}

void holder_sum(struct holder *holder, struct holder_memory ret_memory[TTMEM_UAPI_TYPES])
{
	struct holder_memory memory;
	u32 device, type;

	memset(ret_memory, 0, sizeof(*ret_memory) * TTMEM_UAPI_TYPES);
	for (device = holder->ops->next_device(holder, 0); device < TTMEM_UAPI_DEVICES;
	     device = holder->ops->next_device(holder, device + 1)) {
		for (type = 0; type < TTMEM_UAPI_TYPES; type++) {
			holder->ops->read(holder, device, type, &memory);
			holder_add_memory(&ret_memory[type], &memory);
		}
	}
}
