/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The library with a kernel module played by this test: the node is /dev/null, a book is an
 * ordinary memfd. tests/kernel tests the real module; here it can refuse whatever the test wants.
 */

#include <ttmem/ttmem.h>

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <uapi/ttmem.h>

#include "base/testing/unit.h"
#include "lib/testing/testing-observer.h"

#define KERNEL_BOOK_FAKE "played-book"

static int kernel_book_reserves_left; /* granted before ENOMEM */
static uint32_t kernel_book_books, kernel_book_reserves;

static int kernel_book_play_book(struct ttmem_ioc_book *args)
{
	args->fd = memfd_create(KERNEL_BOOK_FAKE, MFD_CLOEXEC);
	assert(args->fd >= 0 && ftruncate(args->fd, (off_t)args->size) == 0);
	args->id = ++kernel_book_books;
	return 0;
}

static int kernel_book_play_reserve(const struct ttmem_ioc_reserve *args)
{
	assert(args->offset % 4096 == 0 && args->length % 4096 == 0 && args->length > 0);
	kernel_book_reserves++;
	if (kernel_book_reserves_left-- > 0)
		return 0;
	errno = ENOMEM;
	return -1;
}

/* Replaces libc's. */
int ioctl(int fd, unsigned long request, ...)
{
	va_list list;
	void *args;

	va_start(list, request);
	args = va_arg(list, void *);
	va_end(list);
	if (request == TTMEM_IOC_BOOK)
		return kernel_book_play_book(args);
	if (request == TTMEM_IOC_RESERVE)
		return kernel_book_play_reserve(args);
	return (int)syscall(SYS_ioctl, fd, request, args);
}

/* NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): libc's are reserved names */
int open(const char *path, int flags, ...)
{
	va_list list;
	unsigned int mode;

	va_start(list, flags);
	mode = flags & O_CREAT ? va_arg(list, unsigned int) : 0;
	va_end(list);
	if (strcmp(path, TTMEM_NODE) == 0)
		path = "/dev/null";
	return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

/* Whether the played book is still mapped, or open. */
static bool kernel_book_has_played(void)
{
	char line[512];
	bool found = false;
	FILE *file = fopen("/proc/self/maps", "re");

	assert(file);
	while (fgets(line, sizeof(line), file))
		found = found || strstr(line, KERNEL_BOOK_FAKE);
	fclose(file);
	for (int fd = 0; fd < 1024; fd++) {
		char path[32], link[64] = "";

		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		found = found || (readlink(path, link, sizeof(link) - 1) > 0 &&
				  strstr(link, KERNEL_BOOK_FAKE));
	}
	return found;
}

/* Nothing turns tracking on but the module. */
static void kernel_book_begin(int reserves)
{
	assert(unsetenv("TTMEM") == 0);                 /* NOLINT(concurrency-mt-unsafe) */
	assert(setenv("TTMEM_SOCKET", "none", 1) == 0); /* NOLINT(concurrency-mt-unsafe) */
	unit_expect_fds(1);
	kernel_book_reserves_left = reserves;
	ttmem_alloc(0, TTMEM_DRAM, 0x1000, 100, "held");
	assert(kernel_book_books == 1);
}

/* A process whose user's quota is used up is still tracked, and leaves nothing in the kernel. */
static void kernel_book_check_memfd(void)
{
	struct observer w;

	assert(!kernel_book_has_played());
	assert(observer_count(getpid()) == 1 && observer_open(&w, getpid()));
	assert(observer_header(&w)->source == BOOK_SOURCE_LIBRARY);
	assert(observer_hot(&w, 0, TTMEM_DRAM).bytes == 100);
	assert(observer_inexact(&w, 0) == 0);
	observer_close(&w);
}

UNIT(no_memory_for_the_first_page)
{
	kernel_book_begin(0);
	assert(kernel_book_reserves == 1);
	kernel_book_check_memfd();
}

UNIT(no_memory_for_the_second_part)
{
	kernel_book_begin(1);
	assert(kernel_book_reserves == 2);
	kernel_book_check_memfd();
}

UNIT(the_kernels_book)
{
	kernel_book_begin(1000);
	assert(kernel_book_has_played() && observer_count(getpid()) == 0);
}
