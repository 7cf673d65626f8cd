/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The storage behind a book as a reader needs it: bytes at offsets, and which ranges hold data. A
 * memfd, the kernel module's attach fd and a plain file each provide these calls. Whoever opens the
 * file verifies it (seals, file system type, owner).
 *
 * A reader never maps a book: reading a mapped hole would allocate memory, and truncating a mapped
 * file kills its reader.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/bits.h"

struct book_file;

struct book_file_ops {
	/* Reads all of @length bytes: 0, -ENODATA if the file ends first, or another -errno. */
	int (*read_at)(struct book_file *file, uint64_t offset, void *buffer, size_t length);
	/* The first offset at or after @offset that is not in a hole; -ENXIO if there is none. */
	int64_t (*next_data)(struct book_file *file, uint64_t offset);
	/* The first offset at or after @offset that is in a hole; the size if there is none. */
	int64_t (*next_hole)(struct book_file *file, uint64_t offset);
};

struct book_file {
	const struct book_file_ops *ops;
	uint64_t size;
};

/* A book behind a file descriptor, which the caller owns. */
struct file_fd {
	struct book_file file;
	int fd;
};

/* Reads the size; -errno if that fails. */
int file_fd_init(struct file_fd *file, int fd);

/*
 * Reads happen in order: a later read sees data at least as new as an earlier one. All reading
 * rules rest on this, and each call names the order of the owner's stores it pairs with. No
 * contract makes a system call a barrier, so there is one here. One read's bytes come in any order.
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
