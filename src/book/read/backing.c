/* SPDX-License-Identifier: Apache-2.0 */

/* A book behind a file descriptor: pread and SEEK_DATA. */

#include "book/read/backing.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bits.h"

static int file_fd_read_at(struct book_file *file, uint64_t offset, void *buffer, size_t length)
{
	struct file_fd *self = container_of(file, struct file_fd, file);
	char *to = buffer;

	while (length > 0) {
		ssize_t n = pread(self->fd, to, length, (off_t)offset);

		if (n < 0 && errno == EINTR)
			continue;
		/* Its owner can leave no memory for swapped pages of the book: that is not our lack of it. */
		if (n < 0)
			return errno == ENOMEM ? -EIO : -errno;
		if (n == 0)
			return -ENODATA;
		to += n;
		offset += (uint64_t)n;
		length -= (size_t)n;
	}
	return 0;
}

static int64_t file_fd_next_data(struct book_file *file, uint64_t offset)
{
	struct file_fd *self = container_of(file, struct file_fd, file);
	off_t at = lseek(self->fd, (off_t)offset, SEEK_DATA);

	return at < 0 ? -errno : at;
}

static int64_t file_fd_next_hole(struct book_file *file, uint64_t offset)
{
	struct file_fd *self = container_of(file, struct file_fd, file);
	off_t at = lseek(self->fd, (off_t)offset, SEEK_HOLE);

	return at < 0 ? -errno : at;
}

static const struct book_file_ops file_fd_ops = {
	.read_at = file_fd_read_at,
	.next_data = file_fd_next_data,
	.next_hole = file_fd_next_hole,
};

int file_fd_init(struct file_fd *file, int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_size < 0)
		return -EINVAL;
	*file = (struct file_fd){.file = {.ops = &file_fd_ops, .size = (uint64_t)st.st_size},
				 .fd = fd};
	return 0;
}
