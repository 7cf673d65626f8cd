/* SPDX-License-Identifier: Apache-2.0 */

/* Uses only the caller's buffer; also compiled into libttmem, hence no allocation. */

#include "base/files/small-file.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"

/*
 * The kernel returns a small file of its own in one read, and a longer one page by page: a read of
 * less than half a page is the last. For other files every short read is. This saves a read to find
 * the end of each file.
 */
#define SMALL_FILE_LAST 2048u

/* A read of less than @last bytes is the last one. */
static ssize_t small_file_read_until(int fd, char *ret_text, size_t size, size_t last)
{
	size_t length = 0;

	while (length < size - 1) {
		ssize_t n = read(fd, ret_text + length, size - 1 - length);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			ret_text[0] = '\0';
			return -errno;
		}
		length += (size_t)n;
		if ((size_t)n < last)
			break;
	}
	ret_text[length] = '\0';
	return (ssize_t)length;
}

ssize_t small_file_read_fd(int fd, char *ret_text, size_t size)
{
	return small_file_read_until(fd, ret_text, size, 1);
}

ssize_t small_file_read(int folder, const char *path, char *ret_text, size_t size)
{
	CLEANUP_CLOSE int fd = openat(folder, path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

	ret_text[0] = '\0';
	return fd < 0 ? -errno : small_file_read_until(fd, ret_text, size, SMALL_FILE_LAST);
}

ssize_t small_file_read_line(int folder, const char *path, char *ret_line, size_t size)
{
	ssize_t length = small_file_read(folder, path, ret_line, size);

	if (length < 0)
		return length;
	length = (ssize_t)strcspn(ret_line, "\n");
	ret_line[length] = '\0';
	return length > 0 ? length : -ENODATA;
}

int small_file_write_fd(int fd, const void *bytes, size_t length)
{
	const char *at = bytes;

	while (length > 0) {
		ssize_t n = write(fd, at, length);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		at += n;
		length -= (size_t)n;
	}
	return 0;
}
