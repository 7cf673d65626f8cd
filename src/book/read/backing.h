/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a book lies in, as far as a reader cares: bytes at offsets, and where there are any. A memfd, the
 * kernel module's attach fd or a plain file each provide these two calls; what proves such a file to be
 * genuine (seals, kind of file system, owner) is the business of whoever opened it.
 *
 * A reader never maps a book: reading a mapped hole would allocate memory, and a file that is cut short
 * under a mapping kills its reader.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/bits.h"

struct book_file;

struct book_file_ops {
	/* All of @length bytes: 0, or -ENODATA if the file ends before, or another negative errno. */
	int (*read_at)(struct book_file *file, uint64_t offset, void *buffer, size_t length);
	/* Offset of the first byte at or after @offset that is not in a hole; -ENXIO if there is none. */
	int64_t (*next_data)(struct book_file *file, uint64_t offset);
	/* Offset of the first byte at or after @offset that is in a hole; the size if there is none. */
	int64_t (*next_hole)(struct book_file *file, uint64_t offset);
};

struct book_file {
	const struct book_file_ops *ops;
	uint64_t size;
};

/* A book behind a file descriptor, which stays the caller's. */
struct file_fd {
	struct book_file file;
	int fd;
};

/* Reads the size; -errno if it cannot be had. */
int file_fd_init(struct file_fd *file, int fd);

/*
 * Reads are made in order: a later one sees what is at least as new as what an earlier one saw. All rules of reading rest
 * on it, and each place says which order of the owner's stores it pairs with. No contract makes a system call a
 * barrier, so there is one. The bytes of one read come in any order.
 */
static inline int file_read(struct book_file *file, uint64_t offset, void *buffer, size_t length)
{
	int r = file->ops->read_at(file, offset, buffer, length);

	bits_load_barrier();
	return r;
}

static inline int64_t file_next_data(struct book_file *file, uint64_t offset)
{
	return file->ops->next_data(file, offset);
}

static inline int64_t file_next_hole(struct book_file *file, uint64_t offset)
{
	return file->ops->next_hole(file, offset);
}
