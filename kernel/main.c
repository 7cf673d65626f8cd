/* SPDX-License-Identifier: GPL-2.0 */

/*
 * ttmem.ko: the node /dev/ttmem. It is independent of the device driver and needs no device; it
 * keeps what processes report to hold, for as long as they hold it.
 */

#include <linux/compat.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/pid.h>
#include <linux/seq_file.h>
#include <linux/string.h>

#include <uapi/ttmem.h>

#include "kernel/book.h"
#include "kernel/file.h"
#include "kernel/holder.h"
#include "kernel/leak.h"
#include "kernel/plain.h"
#include "kernel/proc-files.h"

static int main_open(struct inode *inode, struct file *file)
{
	file->private_data = plain_new();
	return file->private_data ? 0 : -ENOMEM;
}

static int main_release(struct inode *inode, struct file *file)
{
	plain_free(file->private_data);
	return 0;
}

/* A descriptor cannot be taken back: it is installed only after the caller has its number. */
static long main_install(void __user *user, const void *args, size_t size, int fd,
			 struct file *file)
{
	int r = file_put_args(user, args, size);

	if (r < 0) {
		put_unused_fd(fd);
		fput(file);
		return r;
	}
	fd_install(fd, file);
	return 0;
}

static long main_book(void __user *user)
{
	struct ttmem_ioc_book args;
	struct file *file;
	int r = file_get_args(&args, user, sizeof(args));

	if (r < 0)
		return r;
	if (args.reserved || args.id || args.fd)
		return -EINVAL;
	r = file_new_book(&args, &file);
	return r < 0 ? r : main_install(user, &args, sizeof(args), args.fd, file);
}

static long main_attach(void __user *user)
{
	struct ttmem_ioc_attach args;
	struct file *file;
	int r = file_get_args(&args, user, sizeof(args));

	if (r < 0)
		return r;
	if (args.fd || args.pid < 0 || (!args.id && !args.pid))
		return -EINVAL;
	r = file_attach(&args, &file);
	return r < 0 ? r : main_install(user, &args, sizeof(args), args.fd, file);
}

static long main_track_alloc(struct plain *plain, void __user *user)
{
	struct ttmem_ioc_track_alloc args;
	int r = file_get_args(&args, user, sizeof(args));

	return r < 0 ? r : plain_alloc(plain, &args, user);
}

static long main_track_free(struct plain *plain, void __user *user)
{
	struct ttmem_ioc_track_free args;
	int r = file_get_args(&args, user, sizeof(args));

	return r < 0 ? r : plain_release(plain, &args, user);
}

/* False: one of the figures is not exact. */
static bool main_count(struct ttmem_ioc_memory to[TTMEM_UAPI_TYPES], struct holder *holder,
		       u32 device)
{
	bool is_exact = true;
	struct holder_memory sum, more;
	u32 type;

	for (type = 0; type < TTMEM_UAPI_TYPES; type++) {
		sum = (struct holder_memory){.bytes = to[type].bytes, .buffers = to[type].buffers};
		holder->ops->read(holder, device, type, &more);
		holder_add_memory(&sum, &more);
		to[type].bytes = sum.bytes;
		to[type].buffers = sum.buffers;
		is_exact &= holder_is_exact(&more);
	}
	return is_exact;
}

static long main_query(void __user *user)
{
	struct ttmem_ioc_query_stats args;
	struct holder *holder;
	int r = file_get_args(&args, user, sizeof(args));

	if (r < 0)
		return r;
	if (args.device >= TTMEM_UAPI_DEVICES || args.reserved ||
	    memchr_inv(args.all, 0, sizeof(args.all)) || memchr_inv(args.own, 0, sizeof(args.own)))
		return -EINVAL;
	mutex_lock(&holder_lock);
	list_for_each_entry(holder, &holder_list, link)
	{
		cond_resched();
		if (!holder->ops->uses(holder, args.device))
			continue;
		if (!main_count(args.all, holder, args.device))
			args.flags |= TTMEM_STATS_INEXACT;
		if (holder->pid == task_tgid(current) && !main_count(args.own, holder, args.device))
			args.flags |= TTMEM_STATS_INEXACT;
	}
	mutex_unlock(&holder_lock);
	return file_put_args(user, &args, sizeof(args));
}

static long main_ioctl(struct file *file, unsigned int command, unsigned long argument)
{
	void __user *user = (void __user *)argument;
	struct plain *plain = file->private_data;

	switch (command) {
	case TTMEM_IOC_BOOK:
		return main_book(user);
	case TTMEM_IOC_ATTACH:
		return main_attach(user);
	case TTMEM_IOC_TRACK_ALLOC:
		return main_track_alloc(plain, user);
	case TTMEM_IOC_TRACK_FREE:
		return main_track_free(plain, user);
	case TTMEM_IOC_QUERY_STATS:
		return main_query(user);
	default:
		return -ENOTTY;
	}
}

static void main_show_fdinfo(struct seq_file *seq, struct file *file)
{
	view_fdinfo(seq, plain_holder(file->private_data), false);
}

static const struct file_operations main_operations = {
	.owner = THIS_MODULE,
	.open = main_open,
	.release = main_release,
	.unlocked_ioctl = main_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.show_fdinfo = main_show_fdinfo,
};

/* Everybody may keep a book: it costs the caller's own memory, and describes the caller only. */
static struct miscdevice main_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "ttmem",
	.fops = &main_operations,
	.mode = 0666,
};

static int __init main_init(void)
{
	int r;

	leak_init();
	holder_start();
	r = book_init();
	if (r < 0)
		return r;
	r = plain_init();
	if (r < 0)
		goto exit_book;
	r = view_init();
	if (r < 0)
		goto exit_plain;
	r = misc_register(&main_device);
	if (r < 0)
		goto exit_view;
	return 0;

exit_view:
	view_exit();
exit_plain:
	plain_exit();
exit_book:
	book_exit();
	return r;
}

/* An open node or book pins the module, so nothing is in use here. */
static void __exit main_exit(void)
{
	misc_deregister(&main_device);
	view_exit();
	plain_exit();
	book_exit();
}

module_init(main_init);
module_exit(main_exit);

MODULE_LICENSE("GPL");
MODULE_AUTHOR("The ttmem authors");
MODULE_DESCRIPTION("Keeps the books of Tenstorrent device memory");
MODULE_VERSION("0.2.0");
