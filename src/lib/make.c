/* SPDX-License-Identifier: Apache-2.0 */

/* The memfd behind the book: made, mapped, sealed, put out of the way, offered to whoever asked. */

#include "lib/make.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bits.h"
#include "book/writer.h"
#include "lib/identity.h"
#include "lib/limits.h"
#include "lib/offer.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

#define MAKE_SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL)

/* Above what programs number by hand, below what would make the kernel grow the process's table. */
#define MAKE_FD_TOP 1024
#define MAKE_FD_BELOW 32

/* The book of this process. The number may be closed or reused by the application at any time: inode
 * and device tell whether it is still ours. */
struct make_file {
	int fd;
	dev_t dev;
	ino_t ino;
	uint8_t *base;
};

static struct make_file make_file;

static bool make_fd_is_ours(const struct make_file *file)
{
	struct stat st;

	return fstat(file->fd, &st) == 0 && st.st_dev == file->dev && st.st_ino == file->ino;
}

/* Memory for a part of the book before its first store. Without our descriptor the mapping itself can
 * still be populated, on kernels that know how. */
static int make_reserve(void *context, uint64_t offset, uint64_t length)
{
	const struct make_file *file = context;
	int saved_errno = errno;
	int r = -EBADF;

	if (make_fd_is_ours(file))
		do {
			r = fallocate(file->fd, 0, (off_t)offset, (off_t)length) < 0 ? -errno : 0;
		} while (r == -EINTR);
	if (r == -EBADF)
		r = madvise(file->base + offset, length, MADV_POPULATE_WRITE) < 0 ? -errno : 0;
	errno = saved_errno;
	return r;
}

static int make_memfd(uint64_t size)
{
	int fd = memfd_create("ttmem-book", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);

	if (fd < 0 && errno == EINVAL)
		fd = memfd_create("ttmem-book", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return -errno;
	if (ftruncate(fd, (off_t)size) < 0) {
		int r = -errno;

		(void)close(fd); /* empty */
		return r;
	}
	return fd;
}

/*
 * Maps without letting anything be populated: an application that locked its future memory
 * (mlockall(MCL_FUTURE)) would otherwise pay for the whole sparse file at once. A mapping that may not
 * be touched is not populated, and once unlocked it may be opened.
 */
static void *make_map(int fd, uint64_t size)
{
	void *base = mmap(NULL, size, PROT_NONE, MAP_SHARED | MAP_NORESERVE, fd, 0);

	if (base == MAP_FAILED)
		return NULL;
	if (munlock(base, size) < 0 || mprotect(base, size, PROT_READ | PROT_WRITE) < 0 ||
	    madvise(base, size, MADV_DONTFORK) < 0) {
		(void)munmap(base, size); /* ours and whole: cannot fail */
		return NULL;
	}
	/* A core dump would fault in the whole file; without the advice it merely does. */
	(void)madvise(base, size, MADV_DONTDUMP);
	return base;
}

/* Moves the descriptor out of the application's way; if that cannot be, it stays where it is. */
static int make_move_high(int fd)
{
	struct rlimit limit = {.rlim_cur = MAKE_FD_TOP};
	int top, moved;

	(void)getrlimit(RLIMIT_NOFILE, &limit); /* cannot fail */
	top = (int)bits_min(limit.rlim_cur, MAKE_FD_TOP) - MAKE_FD_BELOW;
	if (fd >= top)
		return fd;
	moved = fcntl(fd, F_DUPFD_CLOEXEC, top);
	if (moved < 0)
		return fd;
	(void)close(fd); /* its twin lives on */
	return moved;
}

/* File and mapping of as much as can be had, sealed. */
static int make_open(struct make_file *ret_file, struct limits *limits)
{
	struct stat st;
	uint8_t *base = NULL;
	int fd;

	for (;;) {
		fd = make_memfd(limits->size);
		if (fd < 0)
			return fd;
		base = make_map(fd, limits->size);
		if (base)
			break;
		(void)close(fd); /* empty */
		limits->size = limits->size / 4 & ~(uint64_t)(BOOK_UNIT - 1);
		if (limits->size < BOOK_SIZE_MIN)
			return -ENOMEM;
	}
	/* Unsealed no reader would believe it. */
	if (fcntl(fd, F_ADD_SEALS, MAKE_SEALS) < 0 || fstat(fd, &st) < 0) {
		int r = -errno;

		(void)munmap(base, limits->size);
		(void)close(fd);
		return r;
	}
	*ret_file = (struct make_file){
		.fd = make_move_high(fd),
		.dev = st.st_dev,
		.ino = st.st_ino,
		.base = base,
	};
	limits->room = bits_min(limits->room, limits->size);
	return 0;
}

struct writer *make_book(void)
{
	char cmdline[IDENTITY_CMDLINE];
	struct writer_identity identity;
	struct writer *writer;
	struct limits limits;

	if (limits_read(&limits) < 0 || make_open(&make_file, &limits) < 0)
		return NULL;
	identity_read(&identity, cmdline);
	if (writer_new(&writer, &(struct writer_config){
					.base = make_file.base,
					.size = limits.size,
					.room = limits.room,
					.ring_events = limits.ring_events,
					.clock = clock_choose(),
					.reserve = make_reserve,
					.context = &make_file,
					.identity = &identity,
				}) < 0) {
		(void)munmap(make_file.base, limits.size);
		(void)close(make_file.fd);
		return NULL;
	}
	offer_book(make_file.fd);
	return writer;
}
