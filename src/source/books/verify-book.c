/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The checks on a book's file. They are made on the same descriptor that is read later, so nothing
 * can change in between: seals are never removed, and a sealed size is final.
 */

#include "source/books/verify-book.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <uapi/ttmem.h>

#include "base/cleanup.h"
#include "book/format/layout.h"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

/* Additional seals do no harm. */
#define VERIFY_BOOK_SEALS (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE)

const char *verify_book_strerror(int result)
{
	switch (result) {
	case VERIFY_BOOK_NOT_A_FILE:
		return "not a file";
	case VERIFY_BOOK_HUGE_PAGES:
		return "on huge pages";
	case VERIFY_BOOK_NOT_MEMORY:
		return "not a memory file";
	case VERIFY_BOOK_NOT_SEALED:
		return "not sealed";
	case VERIFY_BOOK_TOO_SMALL:
		return "too small for a book";
	case VERIFY_BOOK_TOO_LARGE:
		return "larger than any book";
	default:
		return strerror(result < 0 ? -result : result);
	}
}

/* Also works on a descriptor opened with O_PATH. */
static int verify_book_kind(int fd, struct stat *ret_stat, bool *ret_is_kernels)
{
	struct statfs system;

	if (fstat(fd, ret_stat) < 0 || fstatfs(fd, &system) < 0)
		return -errno;
	if (!S_ISREG(ret_stat->st_mode))
		return VERIFY_BOOK_NOT_A_FILE;
	if (system.f_type == HUGETLBFS_MAGIC)
		return VERIFY_BOOK_HUGE_PAGES;
	if (system.f_type != TMPFS_MAGIC && system.f_type != TTMEM_FS_MAGIC)
		return VERIFY_BOOK_NOT_MEMORY;
	*ret_is_kernels = system.f_type == TTMEM_FS_MAGIC;
	return 0;
}

int verify_book_find(int folder, const char *name, int *ret_path_fd, struct stat *ret_stat)
{
	CLEANUP_CLOSE int fd = openat(folder, name, O_PATH | O_CLOEXEC);
	bool is_kernels = false;
	int r;

	if (fd < 0)
		return -errno;
	r = verify_book_kind(fd, ret_stat, &is_kernels);
	if (r != 0)
		return r;
	*ret_path_fd = cleanup_steal_fd(&fd);
	return 0;
}

int verify_book_check(int fd)
{
	bool is_kernels = false;
	struct stat st;
	int seals, r;

	r = verify_book_kind(fd, &st, &is_kernels);
	if (r != 0)
		return r;
	seals = is_kernels ? VERIFY_BOOK_SEALS : fcntl(fd, F_GET_SEALS);
	if (seals < 0)
		return errno == EINVAL ? VERIFY_BOOK_NOT_MEMORY : -errno;
	if ((seals & VERIFY_BOOK_SEALS) != VERIFY_BOOK_SEALS)
		return VERIFY_BOOK_NOT_SEALED;
	if ((uint64_t)st.st_size < BOOK_SIZE_MIN)
		return VERIFY_BOOK_TOO_SMALL;
	if ((uint64_t)st.st_size > BOOK_SIZE_MAX)
		return VERIFY_BOOK_TOO_LARGE;
	return 0;
}

bool verify_book_is_kernels(int fd)
{
	bool is_kernels = false;
	struct stat st;

	return verify_book_kind(fd, &st, &is_kernels) == 0 && is_kernels;
}

int verify_book_open(int path_fd, int *ret_fd)
{
	CLEANUP_CLOSE int fd = -1;
	char path[32];
	int r;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", path_fd);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return -errno;
	r = verify_book_check(fd);
	if (r != 0)
		return r;
	*ret_fd = cleanup_steal_fd(&fd);
	return 0;
}
