/* SPDX-License-Identifier: GPL-2.0 */

/*
 * Lifetime and memory of books. The owner decides what is written in a book: the kernel reads
 * counters at fixed offsets, each once, and assumes only that they are numbers.
 */

#include "kernel/book.h"

#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/err.h>
#include <linux/fs.h>
#include <linux/kdev_t.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/pid.h>
#include <linux/processor.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/version.h>

#include "kernel/block.h"
#include "kernel/book-layout.h"
#include "kernel/folder.h"
#include "kernel/leak.h"
#include "kernel/share.h"

static unsigned int book_mib = 1024;
module_param_named(book_mib, book_mib, uint, 0644);
MODULE_PARM_DESC(book_mib, "MiB that one book may have at most (1024)");

/*
 * Before 5.11 a page that is charged to a memory cgroup cannot be mapped: the charge flag shares
 * its field with the mapping count. There only the module's own limits apply to the pages.
 */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(5, 11, 0)
#define BOOK_PAGE_GFP (HOLDER_GFP | __GFP_ZERO)
#else
#define BOOK_PAGE_GFP ((HOLDER_GFP & ~__GFP_ACCOUNT) | __GFP_ZERO)
#endif

static struct workqueue_struct *book_queue;

struct page *book_page(struct book *book, unsigned long index)
{
	return xa_load(&book->pages, index);
}

/* Address of a shard's first words, which lie in one page; NULL: a hole. */
static const void *book_shard(struct book *book, u32 device)
{
	unsigned long offset = LAYOUT_SHARDS + device * LAYOUT_SHARD_SIZE;
	struct page *page = book_page(book, offset >> PAGE_SHIFT);

	return page ? page_address(page) + offset_in_page(offset) : NULL;
}

static bool book_uses(struct holder *holder, u32 device)
{
	const void *shard = book_shard(container_of(holder, struct book, holder), device);

	return shard && READ_ONCE(*(const u32 *)(shard + LAYOUT_STATE)) == 1;
}

static u32 book_next_device(struct holder *holder, u32 from)
{
	struct book *book = container_of(holder, struct book, holder);
	unsigned long end = LAYOUT_SHARDS + TTMEM_UAPI_DEVICES * LAYOUT_SHARD_SIZE;

	for (; from < TTMEM_UAPI_DEVICES; from++) {
		unsigned long offset = LAYOUT_SHARDS + from * LAYOUT_SHARD_SIZE;
		unsigned long index = offset >> PAGE_SHIFT;

		/* A book is mostly holes: the next page may be far away. */
		if (!xa_find(&book->pages, &index, (end - 1) >> PAGE_SHIFT, XA_PRESENT))
			break;
		if (index > offset >> PAGE_SHIFT)
			from = ((index << PAGE_SHIFT) - LAYOUT_SHARDS) / LAYOUT_SHARD_SIZE;
		if (book_uses(holder, from))
			return from;
	}
	return TTMEM_UAPI_DEVICES;
}

/*
 * Tries to copy a block that its owner keeps overwriting. With an owner at full speed up to 13
 * failed in a row. More would only help an owner that wants to delay every reader of the list.
 */
#define BOOK_TRIES 32

static void book_read(struct holder *holder, u32 device, u32 type, struct holder_memory *ret_memory)
{
	struct book *book = container_of(holder, struct book, holder);
	const void *shard = book_shard(book, device);
	u64 block[BLOCK_WORDS], inexact;
	int tries = BOOK_TRIES;

	memset(ret_memory, 0, sizeof(*ret_memory));
	if (!shard)
		return;
	while (!block_read(shard + LAYOUT_HOT + type * 2 * LAYOUT_HOT_SIZE, block)) {
		if (--tries == 0) {
			ret_memory->is_torn = true;
			break;
		}
		cpu_relax();
	}
	ret_memory->bytes = min_t(u64, block[LAYOUT_BYTES], HOLDER_FIGURE_MAX);
	ret_memory->buffers = min_t(u64, block[LAYOUT_BUFFERS], HOLDER_FIGURE_MAX);
	ret_memory->peak = min_t(u64, block[LAYOUT_PEAK], HOLDER_FIGURE_MAX);
	ret_memory->allocs = min_t(u64, block[LAYOUT_ALLOCS], HOLDER_FIGURE_MAX);
	ret_memory->frees = min_t(u64, block[LAYOUT_FREES], HOLDER_FIGURE_MAX);
	inexact = READ_ONCE(*(const u64 *)(shard + LAYOUT_INEXACT));
	if (inexact >> type & 1)
		ret_memory->bound = HOLDER_AT_LEAST;
	else if (inexact >> (8 + type) & 1)
		ret_memory->bound = HOLDER_AT_MOST;
}

static bool book_is_kin(struct holder *holder, struct holder *other)
{
	struct mm_struct *mm = container_of(holder, struct book, holder)->mm;

	return READ_ONCE(container_of(other, struct book, holder)->mm) == mm;
}

static const struct holder_ops book_holder_ops = {
	.kind = "book",
	.is_kin = book_is_kin,
	.kin_max = TTMEM_BOOKS_PER_PROCESS,
	.next_device = book_next_device,
	.uses = book_uses,
	.read = book_read,
};

/* May take a while: it frees up to the whole room. */
static void book_release(struct work_struct *work)
{
	struct book *book = container_of(work, struct book, release);
	void (*unpin)(void) = book->unpin;
	unsigned long index;
	struct page *page;

	xa_for_each(&book->pages, index, page)
	{
		put_page(page);
		cond_resched();
	}
	xa_destroy(&book->pages);
	if (book->share) {
		share_refund(book->share, atomic_long_read(&book->used));
		share_put(book->share, SHARE_BOOK);
	}
	holder_deinit(&book->holder);
	kfree(book);
	if (unpin)
		unpin();
}

static void book_last_put(struct kref *refs)
{
	struct book *book = container_of(refs, struct book, refs);

	queue_work(book_queue, &book->release);
}

void book_put(struct book *book)
{
	kref_put(&book->refs, book_last_put);
}

static void book_leave(struct book *book)
{
	holder_remove(&book->holder);
	folder_leave(&book->holder);
}

/* The owner's address space ends: exit, a signal, exec. Nobody can write from now on. */
static void book_notify_release(struct mmu_notifier *notifier, struct mm_struct *mm)
{
	struct book *book = container_of(notifier, struct book, notifier);

	if (test_and_set_bit(BOOK_ENDED, &book->flags))
		return;
	WRITE_ONCE(book->mm, NULL);
	book_leave(book);
	leak_log(&book->holder);
	mmu_notifier_put(notifier);
}

/*
 * Must not sleep. Unloading the module waits for the code after the last line: it is an RCU reader,
 * because it runs with soft interrupts disabled.
 */
static void book_free_notifier(struct mmu_notifier *notifier)
{
	book_put(container_of(notifier, struct book, notifier));
	module_put(THIS_MODULE);
}

static const struct mmu_notifier_ops book_notifier_ops = {
	.release = book_notify_release,
	.free_notifier = book_free_notifier,
};

static bool book_size_is_sane(u64 size)
{
	return size >= LAYOUT_SIZE_MIN && size <= LAYOUT_SIZE_MAX && size % LAYOUT_UNIT == 0 &&
	       size % PAGE_SIZE == 0;
}

struct book *book_new(u64 size, u64 room)
{
	u64 limit = (u64)READ_ONCE(book_mib) << (20 - PAGE_SHIFT);
	struct book *book;
	int r;

	if (!book_size_is_sane(size) || room > size || !current->mm)
		return ERR_PTR(-EINVAL);
	book = kzalloc(sizeof(*book), HOLDER_GFP);
	if (!book)
		return ERR_PTR(-ENOMEM);
	holder_init(&book->holder, &book_holder_ops);
	kref_init(&book->refs);
	xa_init_flags(&book->pages, XA_FLAGS_ACCOUNT);
	mutex_init(&book->reserving);
	INIT_WORK(&book->release, book_release);
	book->mm = current->mm;
	book->size = size;
	book->room = min_t(u64, limit, DIV_ROUND_UP_ULL(room ? room : size, PAGE_SIZE));
	book->notifier.ops = &book_notifier_ops;
	book->share = share_get(book->holder.payer, SHARE_BOOK);
	r = book->share ? holder_add(&book->holder) : -ENOMEM;
	if (r < 0)
		goto put;
	r = mmu_notifier_register(&book->notifier, current->mm);
	/* Any signal interrupts it. Nothing has happened yet, so the call can be restarted. */
	if (r == -EINTR)
		r = -ERESTARTNOINTR;
	if (r < 0)
		goto remove;
	kref_get(&book->refs);
	__module_get(THIS_MODULE); /* our caller holds a reference already */
	return book;

remove:
	holder_remove(&book->holder);
put:
	book_put(book);
	return ERR_PTR(r);
}

void book_abandon(struct book *book)
{
	if (test_and_set_bit(BOOK_ENDED, &book->flags))
		return;
	WRITE_ONCE(book->mm, NULL);
	book_leave(book);
	mmu_notifier_put(&book->notifier);
}

static bool book_charge(struct book *book)
{
	if (atomic_long_inc_return(&book->used) <= book->room && share_charge(book->share))
		return true;
	atomic_long_dec(&book->used);
	return false;
}

static void book_refund(struct book *book)
{
	share_refund(book->share, 1);
	atomic_long_dec(&book->used);
}

static int book_reserve_page(struct book *book, unsigned long index)
{
	struct page *page;
	int r;

	if (xa_load(&book->pages, index))
		return 0;
	if (!book_charge(book))
		return -ENOMEM;
	page = alloc_page(BOOK_PAGE_GFP);
	if (!page) {
		book_refund(book);
		return -ENOMEM;
	}
	r = xa_err(xa_store(&book->pages, index, page, HOLDER_GFP));
	if (r < 0) {
		put_page(page);
		book_refund(book);
	}
	return r;
}

/* A shard is reserved before its device is first used: this is when the device gets its views. */
static void book_show_devices(struct book *book, u64 from, u64 to)
{
	u64 end = LAYOUT_SHARDS + TTMEM_UAPI_DEVICES * LAYOUT_SHARD_SIZE;

	from = max_t(u64, from, LAYOUT_SHARDS) & ~(u64)(LAYOUT_SHARD_SIZE - 1);
	for (to = min(to, end); from < to; from += LAYOUT_SHARD_SIZE)
		folder_use(&book->holder, (from - LAYOUT_SHARDS) / LAYOUT_SHARD_SIZE);
}

int book_reserve(struct book *book, u64 offset, u64 length)
{
	unsigned long index, end;
	int r = 0;

	if (!length || !PAGE_ALIGNED(offset) || !PAGE_ALIGNED(length) || offset >= book->size ||
	    length > book->size - offset)
		return -EINVAL;
	end = (offset + length) >> PAGE_SHIFT;
	if (mutex_lock_killable(&book->reserving) < 0)
		return -EINTR;
	for (index = offset >> PAGE_SHIFT; index < end; index++) {
		r = fatal_signal_pending(current) ? -EINTR : book_reserve_page(book, index);
		if (r < 0)
			break;
		cond_resched();
	}
	mutex_unlock(&book->reserving);
	/* Pages allocated before a failure stay, and may be used. */
	if (index > offset >> PAGE_SHIFT)
		book_show_devices(book, offset, (u64)index << PAGE_SHIFT);
	return r;
}

u32 book_device(struct holder *holder)
{
	struct inode *inode = NULL;

	if (holder->ops == &book_holder_ops)
		inode = container_of(holder, struct book, holder)->inode;
	return inode ? new_encode_dev(inode->i_sb->s_dev) : 0;
}

bool book_may_read(const struct book *book)
{
	return uid_eq(current_euid(), book->holder.uid) || book_is_owner(book) || perfmon_capable();
}

struct book *book_find(u64 id, const struct pid *pid, struct inode **ret_inode)
{
	struct book *found = NULL;
	struct holder *holder;

	mutex_lock(&holder_lock);
	list_for_each_entry(holder, &holder_list, link)
	{
		struct book *book = container_of(holder, struct book, holder);

		if (holder->ops != &book_holder_ops || (id && holder->id != id) ||
		    (pid && holder->pid != pid) || !book->inode)
			continue;
		/* Fails for an inode that is being released. */
		*ret_inode = igrab(book->inode);
		if (!*ret_inode)
			continue;
		found = book;
		break;
	}
	mutex_unlock(&holder_lock);
	return found;
}

/* The queue frees memory, so it must make progress when there is none. */
int __init book_init(void)
{
	book_queue = alloc_workqueue("ttmem", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	return book_queue ? 0 : -ENOMEM;
}

/* No books are in use any more; the last ones may still be being released. */
void book_exit(void)
{
	mmu_notifier_synchronize();
	destroy_workqueue(book_queue);
}
