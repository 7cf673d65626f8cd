/* SPDX-License-Identifier: GPL-2.0 */
#pragma once

/*
 * A book: memory that one process writes through a mapping and everybody else only reads. The views
 * show it from its creation until its owner's address space ends, however that happens, and even if
 * others still hold a descriptor. Its memory lasts as long as any file of it is open.
 */

#include <linux/atomic.h>
#include <linux/kref.h>
#include <linux/mmu_notifier.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include "kernel/holder.h"

struct inode;
struct page;
struct share;

struct book {
	struct holder holder;
	struct kref refs; /* the notifier has one, the inode another */
	struct mmu_notifier notifier;
	struct mm_struct *mm; /* the owner's, for comparison only; NULL once it has ended */
	struct inode *inode;  /* under holder_lock; NULL if no file is open */
	u64 size;
	unsigned long room;  /* pages */
	atomic_long_t used;  /* pages */
	struct share *share; /* charged for them */
	struct xarray pages;
	struct mutex reserving; /* so that no page is charged twice */
	unsigned long flags;    /* enum book_flag */
	atomic_t pieces;        /* of the mapping: it can be unmapped in parts */
	struct work_struct release;
	void (*unpin)(void); /* called last of all; may be NULL */
};

enum book_flag {
	BOOK_MAPPED = 0, /* only once, unless no page was ever used */
	BOOK_ENDED = 1,
	BOOK_USED = 2, /* a page of the mapping */
};

int book_init(void);
void book_exit(void);

/* For the calling process, with a reference for its file. ERR_PTR(-EINVAL), -EMFILE, -ENOMEM. */
struct book *book_new(u64 size, u64 room);
void book_put(struct book *book);

/* Ends a book that was never mapped and can no longer be; keeps @book's reference. */
void book_abandon(struct book *book);

/* Allocates whole pages. 0, -EINVAL, -ENOMEM, -EINTR. */
int book_reserve(struct book *book, u64 offset, u64 length);

/* NULL: a hole. Valid as long as the book. */
struct page *book_page(struct book *book, unsigned long index);

static inline bool book_is_owner(const struct book *book)
{
	return current->mm && READ_ONCE(book->mm) == current->mm;
}

/* Device number of its file's file system, as in stat(); 0 if it has no file. */
u32 book_device(struct holder *holder);

bool book_may_read(const struct book *book);

/* The book with that id (0 = any) of that process (NULL = any), with a reference to its inode. */
struct book *book_find(u64 id, const struct pid *pid, struct inode **ret_inode);
