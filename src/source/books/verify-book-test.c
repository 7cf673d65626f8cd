/* SPDX-License-Identifier: Apache-2.0 */

/* Every reason why a file is not a book, one at a time. */

#include "source/books/verify-book.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/memfd.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/testing/unit.h"
#include "book/format/layout.h"

#define SEALS (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE)

static int make(off_t size, int seals)
{
	int fd = memfd_create("ttmem-book", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert(fd >= 0 && ftruncate(fd, size) == 0);
	assert(fcntl(fd, F_ADD_SEALS, seals) == 0);
	return fd;
}

static void check(int fd, int expected)
{
	assert(verify_book_check(fd) == expected);
	close(fd);
}

UNIT(a_sealed_memfd_is_accepted)
{
	check(make(BOOK_SIZE_MIN, SEALS), 0);
	check(make(BOOK_SIZE_MIN, SEALS | F_SEAL_WRITE), 0);
	check(make((off_t)BOOK_SIZE_MAX, SEALS), 0);
}

UNIT(each_seal_is_needed)
{
	check(make(BOOK_SIZE_MIN, SEALS & ~F_SEAL_SHRINK), VERIFY_BOOK_NOT_SEALED);
	check(make(BOOK_SIZE_MIN, SEALS & ~F_SEAL_GROW), VERIFY_BOOK_NOT_SEALED);
	check(make(BOOK_SIZE_MIN, SEALS & ~F_SEAL_FUTURE_WRITE), VERIFY_BOOK_NOT_SEALED);
	check(make(BOOK_SIZE_MIN, SEALS & ~F_SEAL_SEAL), VERIFY_BOOK_NOT_SEALED);
}

UNIT(size_has_bounds)
{
	check(make((off_t)BOOK_SIZE_MIN - 1, SEALS), VERIFY_BOOK_TOO_SMALL);
	check(make(0, SEALS), VERIFY_BOOK_TOO_SMALL);
	check(make((off_t)BOOK_SIZE_MAX + 1, SEALS), VERIFY_BOOK_TOO_LARGE);
	check(make((off_t)64 << 30, SEALS), VERIFY_BOOK_TOO_LARGE);
}

UNIT(huge_pages_are_refused)
{
	int fd = memfd_create("ttmem-book", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB);

	if (fd < 0)
		unit_skip("no huge page files here");
	check(fd, VERIFY_BOOK_HUGE_PAGES);
}

UNIT(other_files_are_refused)
{
	char path[512];
	int fds[2], fd, r;

	check(open("/dev/null", O_RDONLY | O_CLOEXEC), VERIFY_BOOK_NOT_A_FILE);
	check(open("/", O_RDONLY | O_CLOEXEC), VERIFY_BOOK_NOT_A_FILE);
	assert(pipe2(fds, O_CLOEXEC) == 0);
	check(fds[0], VERIFY_BOOK_NOT_A_FILE);
	close(fds[1]);
	check(open("/proc/self/stat", O_RDONLY | O_CLOEXEC), VERIFY_BOOK_NOT_MEMORY);
	/* An ordinary file cannot be sealed, whatever the file system. */
	snprintf(path, sizeof(path), "%s/file", unit_dir());
	assert(verify_book_check(-1) == -EBADF);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert(fd >= 0 && ftruncate(fd, BOOK_SIZE_MIN) == 0);
	r = verify_book_check(fd);
	assert(r == VERIFY_BOOK_NOT_MEMORY || r == VERIFY_BOOK_NOT_SEALED);
	close(fd);
}

UNIT(found_through_a_link_and_opened_for_reading)
{
	int fd = make(BOOK_SIZE_MIN, SEALS), folder, path_fd, reading;
	struct stat st, other;
	char name[16];

	folder = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	snprintf(name, sizeof(name), "%d", fd);
	assert(verify_book_find(folder, name, &path_fd, &st) == 0);
	assert(fstat(fd, &other) == 0 && st.st_ino == other.st_ino);
	assert(verify_book_open(path_fd, &reading) == 0);
	assert((fcntl(reading, F_GETFL) & O_ACCMODE) == O_RDONLY);
	assert(verify_book_find(folder, "99999", &path_fd, &st) == -ENOENT);
	close(reading);
	close(path_fd);
	close(folder);
	close(fd);
}

UNIT(a_device_is_never_opened)
{
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC), path_fd = -1;
	int folder = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct stat st;
	char name[16];

	snprintf(name, sizeof(name), "%d", null);
	assert(verify_book_find(folder, name, &path_fd, &st) == VERIFY_BOOK_NOT_A_FILE);
	assert(path_fd == -1);
	close(folder);
	close(null);
}

UNIT(reasons_are_told)
{
	assert(strcmp(verify_book_strerror(VERIFY_BOOK_NOT_SEALED), "not sealed") == 0);
	assert(strcmp(verify_book_strerror(-EACCES), "Permission denied") == 0);
}
