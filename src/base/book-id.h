/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Which book: the file that it is. The kernel uses inodes again, so it holds only while somebody has
 * the book; scan_book_number() adds the start of its process, and is never the same for two books.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

struct book_id {
	uint64_t device, inode; /* st_dev and st_ino */
};

static inline struct book_id book_id_of(const struct stat *file)
{
	return (struct book_id){file->st_dev, file->st_ino};
}

static inline bool book_id_equal(struct book_id a, struct book_id b)
{
	return a.inode == b.inode && a.device == b.device;
}
