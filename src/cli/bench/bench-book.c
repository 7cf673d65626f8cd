/* SPDX-License-Identifier: Apache-2.0 */

/* Finds this process's own book under /proc/self/fd, and measures memory. */

#include "cli/bench/bench-book.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/files/small-file.h"

static const char bench_book_link[] = "/memfd:ttmem-book";

int bench_book_open(void)
{
	CLEANUP_CLOSEDIR DIR *fds = opendir("/proc/self/fd");
	struct dirent *entry;
	int fd;

	if (!fds)
		return -errno;
	/* The stream is private to this function. */
	while ((entry = readdir(fds))) { /* NOLINT(concurrency-mt-unsafe) */
		char target[sizeof(bench_book_link)] = "";

		if (readlinkat(dirfd(fds), entry->d_name, target, sizeof(target) - 1) < 0 ||
		    strcmp(target, bench_book_link) != 0)
			continue;
		fd = openat(dirfd(fds), entry->d_name, O_RDONLY | O_CLOEXEC);
		return fd < 0 ? -errno : fd;
	}
	return -ENOENT;
}

uint64_t bench_book_bytes(void)
{
	CLEANUP_CLOSE int fd = bench_book_open();
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return 0;
	return (uint64_t)st.st_blocks * 512;
}

/* Not /proc/self/statm: its counters may be off by some pages per CPU. */
uint64_t bench_book_anonymous(void)
{
	static const char key[] = "\nAnonymous:";
	char text[4096];
	const char *found;

	if (small_file_read(AT_FDCWD, "/proc/self/smaps_rollup", text, sizeof(text)) < 0)
		return 0;
	found = strstr(text, key);
	return found ? strtoull(found + sizeof(key) - 1, NULL, 10) * 1024 : 0;
}
