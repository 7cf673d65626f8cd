/* SPDX-License-Identifier: GPL-2.0 */

/* The file operations of books. */

#include "kernel/file.h"

#include <linux/compat.h>
#include <linux/err.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mount.h>
#include <linux/pid.h>
#include <linux/pseudo_fs.h>
#include <linux/sched/signal.h>
#include <linux/seq_file.h>
#include <linux/string.h>
#include <linux/uaccess.h>
#include <linux/uio.h>
#include <linux/version.h>

#include "kernel/book.h"
#include "kernel/proc-files.h"

#define FILE_NAME "ttmem-book" /* shown as a descriptor's link under /proc */

static struct file_system_type file_system;
/*
 * Exists as long as any book does. A file would keep it too, but an inode can outlive all of its
 * files: a path to it may be open, or it may be watched. So each book keeps it until it is freed.
 */
static struct vfsmount *file_mount;
static int file_mount_count;

static int file_pin(void)
{
	return simple_pin_fs(&file_system, &file_mount, &file_mount_count);
}

static void file_unpin(void)
{
	simple_release_fs(&file_mount, &file_mount_count);
}

int file_get_args(void *to, const void __user *from, size_t size)
{
	const u32 *head = to;

	if (copy_from_user(to, from, size))
		return -EFAULT;
	return head[0] == size && head[1] == 0 ? 0 : -EINVAL;
}

int file_put_args(void __user *to, const void *from, size_t size)
{
	return copy_to_user(to, from, size) ? -EFAULT : 0;
}

/* Opened again, through /proc. Permissions were checked by the inode's mode and owner. */
static int file_open(struct inode *inode, struct file *file)
{
	if (file->f_mode & FMODE_WRITE)
		return -EACCES;
	file->private_data = inode->i_private;
	return 0;
}

static ssize_t file_read(struct kiocb *iocb, struct iov_iter *to)
{
	struct book *book = iocb->ki_filp->private_data;
	ssize_t done = 0;

	while (iov_iter_count(to) && iocb->ki_pos < book->size) {
		size_t offset = offset_in_page(iocb->ki_pos);
		size_t length = min_t(size_t, PAGE_SIZE - offset, iov_iter_count(to));
		struct page *page = book_page(book, iocb->ki_pos >> PAGE_SHIFT);
		size_t copied = page ? copy_page_to_iter(page, offset, length, to)
				     : iov_iter_zero(length, to);

		done += copied;
		iocb->ki_pos += copied;
		if (copied < length)
			return done ? done : -EFAULT;
		if (fatal_signal_pending(current))
			break;
		cond_resched();
	}
	return done;
}

static loff_t file_next_data(struct book *book, loff_t offset)
{
	unsigned long index = offset >> PAGE_SHIFT;
	loff_t found;

	if (!xa_find(&book->pages, &index, (book->size - 1) >> PAGE_SHIFT, XA_PRESENT))
		return -ENXIO;
	found = (loff_t)index << PAGE_SHIFT;
	return max(found, offset);
}

static loff_t file_next_hole(struct book *book, loff_t offset)
{
	unsigned long index = offset >> PAGE_SHIFT;
	unsigned long end = book->size >> PAGE_SHIFT;
	loff_t found;

	while (index < end && book_page(book, index)) {
		if (fatal_signal_pending(current))
			return -EINTR;
		cond_resched();
		index++;
	}
	found = (loff_t)index << PAGE_SHIFT;
	return max(found, offset);
}

static loff_t file_llseek(struct file *file, loff_t offset, int whence)
{
	struct book *book = file->private_data;

	if (whence != SEEK_DATA && whence != SEEK_HOLE)
		return generic_file_llseek_size(file, offset, whence, book->size, book->size);
	if (offset < 0 || offset >= book->size)
		return -ENXIO;
	offset = whence == SEEK_DATA ? file_next_data(book, offset) : file_next_hole(book, offset);
	return offset < 0 ? offset : vfs_setpos(file, offset, book->size);
}

/* TTMEM_IOC_RESERVE allocates the memory in advance: a fault allocates nothing. */
static vm_fault_t file_fault(struct vm_fault *vmf)
{
	struct book *book = vmf->vma->vm_private_data;
	struct page *page = book_page(book, vmf->pgoff);

	/* MADV_DOFORK can give a child the mapping, but not the permission to use it. */
	if (!page || vmf->vma->vm_mm != READ_ONCE(book->mm))
		return VM_FAULT_SIGBUS;
	set_bit(BOOK_USED, &book->flags);
	get_page(page);
	vmf->page = page;
	return 0;
}

static void file_split(struct vm_area_struct *vma)
{
	struct book *book = vma->vm_private_data;

	atomic_inc(&book->pieces);
}

/*
 * Also called when mmap() fails after our handler ran. That cannot be distinguished from munmap(),
 * but an unused mapping can be ignored: another one may be made.
 */
static void file_unmap(struct vm_area_struct *vma)
{
	struct book *book = vma->vm_private_data;

	if (atomic_dec_and_test(&book->pieces) && !test_bit(BOOK_USED, &book->flags))
		clear_bit(BOOK_MAPPED, &book->flags);
}

static const struct vm_operations_struct file_vm_ops = {
	.open = file_split,
	.close = file_unmap,
	.fault = file_fault,
};

static void file_set_flags(struct vm_area_struct *vma)
{
	const unsigned long set = VM_DONTCOPY | VM_DONTDUMP | VM_DONTEXPAND;

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 3, 0)
	vm_flags_set(vma, set);
#else
	vma->vm_flags |= set;
#endif
}

/* One shared mapping, in the address space that made the book. The file system is noexec. */
static int file_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct book *book = file->private_data;
	unsigned long length = vma->vm_end - vma->vm_start;

	if (!(file->f_mode & FMODE_WRITE) || !book_is_owner(book))
		return -EACCES;
	if (!(vma->vm_flags & VM_SHARED) || vma->vm_pgoff || length > book->size)
		return -EINVAL;
	if (test_and_set_bit(BOOK_MAPPED, &book->flags))
		return -EBUSY;
	atomic_set(&book->pieces, 1);
	file_set_flags(vma);
	vma->vm_private_data = book;
	vma->vm_ops = &file_vm_ops;
	return 0;
}

static long file_reserve(struct book *book, void __user *user)
{
	struct ttmem_ioc_reserve args;
	int r = file_get_args(&args, user, sizeof(args));

	if (r < 0)
		return r;
	return book_is_owner(book) ? book_reserve(book, args.offset, args.length) : -EPERM;
}

static long file_info(struct book *book, void __user *user)
{
	struct ttmem_ioc_info args;
	int r = file_get_args(&args, user, sizeof(args));

	if (r < 0)
		return r;
	if (memchr_inv(&args.id, 0, sizeof(args) - offsetof(struct ttmem_ioc_info, id)))
		return -EINVAL;
	args = (struct ttmem_ioc_info){
		.argsz = sizeof(args),
		.flags = READ_ONCE(book->mm) ? 0 : TTMEM_INFO_ENDED,
		.id = book->holder.id,
		.size = book->size,
		.room = (u64)book->room << PAGE_SHIFT,
		.used = (u64)atomic_long_read(&book->used) << PAGE_SHIFT,
		.pid = holder_pid(&book->holder),
		.uid = from_kuid_munged(current_user_ns(), book->holder.uid),
	};
	return file_put_args(user, &args, sizeof(args));
}

static long file_ioctl(struct file *file, unsigned int command, unsigned long argument)
{
	struct book *book = file->private_data;

	switch (command) {
	case TTMEM_IOC_RESERVE:
		return file_reserve(book, (void __user *)argument);
	case TTMEM_IOC_INFO:
		return file_info(book, (void __user *)argument);
	default:
		return -ENOTTY;
	}
}

static void file_show_fdinfo(struct seq_file *seq, struct file *file)
{
	struct book *book = file->private_data;

	view_fdinfo(seq, &book->holder, !READ_ONCE(book->mm));
}

static const struct file_operations file_operations = {
	.owner = THIS_MODULE,
	.open = file_open,
	.read_iter = file_read,
	.llseek = file_llseek,
	.mmap = file_mmap,
	.unlocked_ioctl = file_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.show_fdinfo = file_show_fdinfo,
};

/* Readers rely on size, owner and mode, so nobody may change them. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 3, 0)
static int file_setattr(struct mnt_idmap *idmap, struct dentry *dentry, struct iattr *attributes)
#elif LINUX_VERSION_CODE >= KERNEL_VERSION(5, 12, 0)
static int file_setattr(struct user_namespace *ns, struct dentry *dentry, struct iattr *attributes)
#else
static int file_setattr(struct dentry *dentry, struct iattr *attributes)
#endif
{
	return -EPERM;
}

static const struct inode_operations file_inode_operations = {
	.setattr = file_setattr,
};

static void file_evict(struct inode *inode)
{
	struct book *book = inode->i_private;

	truncate_inode_pages_final(&inode->i_data);
	clear_inode(inode);
	if (!book)
		return;
	mutex_lock(&holder_lock);
	book->inode = NULL;
	mutex_unlock(&holder_lock);
	if (!test_bit(BOOK_MAPPED, &book->flags))
		book_abandon(book);
	book_put(book);
}

static const struct super_operations file_super_operations = {
	.statfs = simple_statfs,
	.evict_inode = file_evict,
};

static int file_init_system(struct fs_context *context)
{
	struct pseudo_fs_context *pseudo = init_pseudo(context, TTMEM_FS_MAGIC);

	if (!pseudo)
		return -ENOMEM;
	pseudo->ops = &file_super_operations;
	context->s_iflags |= SB_I_NOEXEC | SB_I_NODEV;
	return 0;
}

/* The owner is this module, so it stays loaded as long as there is an inode. */
static struct file_system_type file_system = {
	.name = "ttmem",
	.owner = THIS_MODULE,
	.init_fs_context = file_init_system,
	.kill_sb = kill_anon_super,
};

/*
 * A file on an inode, whose reference it always consumes. The caller has pinned the mount: that may
 * have been the last reference, and an inode does not survive its file system.
 */
static struct file *file_open_inode(struct inode *inode, int flags)
{
	struct file *file;

	__module_get(THIS_MODULE); /* dropped with the last use of the operations */
	file = alloc_file_pseudo(inode, file_mount, FILE_NAME, flags, &file_operations);
	if (IS_ERR(file)) {
		iput(inode);
		module_put(THIS_MODULE);
		return file;
	}
	file->f_mode |= FMODE_LSEEK | FMODE_PREAD;
	file->private_data = inode->i_private;
	return file;
}

/* Always consumes the reference of @book. The mount is pinned. */
static struct file *file_of_book(struct book *book)
{
	struct inode *inode;
	int r;

	r = file_pin();
	if (r < 0)
		goto put;
	book->unpin = file_unpin;
	inode = alloc_anon_inode(file_mount->mnt_sb);
	if (IS_ERR(inode)) {
		r = PTR_ERR(inode);
		goto put;
	}
	inode->i_ino = book->holder.id;
	inode->i_mode = S_IFREG | 0600;
	inode->i_uid = book->holder.uid;
	inode->i_op = &file_inode_operations;
	inode->i_fop = &file_operations;
	inode->i_size = book->size;
	inode->i_private = book;
	mutex_lock(&holder_lock);
	book->inode = inode;
	mutex_unlock(&holder_lock);
	return file_open_inode(inode, O_RDWR);

put:
	book_abandon(book);
	book_put(book);
	return ERR_PTR(r);
}

static struct file *file_make_book(void *data)
{
	struct ttmem_ioc_book *args = data;
	struct book *book = book_new(args->size, args->room);

	if (IS_ERR(book))
		return ERR_CAST(book);
	args->id = book->holder.id;
	args->room = (u64)book->room << PAGE_SHIFT;
	return file_of_book(book);
}

static struct file *file_find_book(void *data)
{
	struct ttmem_ioc_attach *args = data;
	struct pid *pid = args->pid ? find_get_pid(args->pid) : NULL;
	struct inode *inode = NULL;
	struct book *book;

	if (args->pid && !pid)
		return ERR_PTR(-ENOENT);
	book = book_find(args->id, pid, &inode);
	put_pid(pid);
	if (!book)
		return ERR_PTR(-ENOENT);
	if (!book_may_read(book)) {
		iput(inode);
		return ERR_PTR(-EACCES);
	}
	return file_open_inode(inode, O_RDONLY);
}

/* A file that @get makes from @args while the mount is pinned, and a descriptor reserved for it. */
static int file_give(struct file *(*get)(void *args), void *args, s32 *ret_fd,
		     struct file **ret_file)
{
	int fd = get_unused_fd_flags(O_CLOEXEC);
	struct file *file;
	int r;

	if (fd < 0)
		return fd;
	r = file_pin();
	if (r < 0)
		goto put;
	file = get(args);
	file_unpin();
	if (IS_ERR(file)) {
		r = PTR_ERR(file);
		goto put;
	}
	*ret_fd = fd;
	*ret_file = file;
	return 0;

put:
	put_unused_fd(fd);
	return r;
}

int file_new_book(struct ttmem_ioc_book *args, struct file **ret_file)
{
	return file_give(file_make_book, args, &args->fd, ret_file);
}

int file_attach(struct ttmem_ioc_attach *args, struct file **ret_file)
{
	return file_give(file_find_book, args, &args->fd, ret_file);
}
