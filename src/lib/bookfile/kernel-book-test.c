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

#include "base/unit.h"
#include "lib/testing/testing-observer.h"

#define KERNEL_FAKE "played-book"

static int kernel_reserves_left; /* granted before ENOMEM */
static uint32_t kernel_books, kernel_reserves;

static int kernel_play_book(struct ttmem_ioc_book *args)
{
	args->fd = memfd_create(KERNEL_FAKE, MFD_CLOEXEC);
	assert(args->fd >= 0 && ftruncate(args->fd, (off_t)args->size) == 0);
	args->id = ++kernel_books;
	return 0;
}

static int kernel_play_reserve(const struct ttmem_ioc_reserve *args)
{
	assert(args->offset % 4096 == 0 && args->length % 4096 == 0 && args->length > 0);
	kernel_reserves++;
	if (kernel_reserves_left-- > 0)
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
		return kernel_play_book(args);
	if (request == TTMEM_IOC_RESERVE)
		return kernel_play_reserve(args);
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
static bool kernel_has_played(void)
{
	char line[512];
	bool found = false;
	FILE *file = fopen("/proc/self/maps", "re");

	assert(file);
	while (fgets(line, sizeof(line), file))
		found = found || strstr(line, KERNEL_FAKE);
	fclose(file);
	for (int fd = 0; fd < 1024; fd++) {
		char path[32], link[64] = "";

		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		found = found ||
			(readlink(path, link, sizeof(link) - 1) > 0 && strstr(link, KERNEL_FAKE));
	}
	return found;
}

/* Nothing turns tracking on but the module. */
static void kernel_begin(int reserves)
{
	assert(unsetenv("TTMEM") == 0);                 /* NOLINT(concurrency-mt-unsafe) */
	assert(setenv("TTMEM_SOCKET", "none", 1) == 0); /* NOLINT(concurrency-mt-unsafe) */
	unit_expect_fds(1);
	kernel_reserves_left = reserves;
	ttmem_alloc(0, TTMEM_DRAM, 0x1000, 100, "held");
	assert(kernel_books == 1);
}

/* A process whose user's quota is used up is still tracked, and leaves nothing in the kernel. */
static void kernel_check_memfd(void)
{
	struct witness w;

	assert(!kernel_has_played());
	assert(witness_count(getpid()) == 1 && witness_open(&w, getpid()));
	assert(witness_header(&w)->source == BOOK_SOURCE_LIBRARY);
	assert(witness_hot(&w, 0, TTMEM_DRAM).bytes == 100);
	assert(witness_inexact(&w, 0) == 0);
	witness_close(&w);
}

UNIT(no_memory_for_the_first_page)
{
	kernel_begin(0);
	assert(kernel_reserves == 1);
	kernel_check_memfd();
}

UNIT(no_memory_for_the_second_part)
{
	kernel_begin(1);
	assert(kernel_reserves == 2);
	kernel_check_memfd();
}

UNIT(the_kernels_book)
{
	kernel_begin(1000);
	assert(kernel_has_played() && witness_count(getpid()) == 0);
}
