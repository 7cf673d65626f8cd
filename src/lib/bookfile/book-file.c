/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The file behind the book, either the kernel module's or a memfd: created, mapped, sealed, moved
 * to a high descriptor and offered to the daemon.
 *
 * The mapping is as large as the book may ever get, and nearly all of it is a hole. Nothing may
 * fill it by accident: an application that calls mlockall(), before or after, would pay for
 * gigabytes. So the mapping begins as PROT_NONE, which locking does not populate, and is made
 * accessible a few mebibytes at a time as the book grows.
 */

#include "lib/bookfile/book-file.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/process/freeze.h"
#include "book/write/writer.h"
#include "lib/bookfile/kernel-book.h"
#include "lib/bookfile/limits.h"
#include "lib/bookfile/offer-book.h"
#include "lib/process/descriptor.h"
#include "lib/process/identity.h"
#include "lib/process/sandbox.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

#define BOOK_FILE_SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL)

/*
 * The unit in which the mapping is made accessible. The first part covers the header and the first
 * 128 shards, each later one everything that a device needs at first: so the first event opens two.
 */
#define BOOK_FILE_STEP (UINT64_C(1) << 20)
#define BOOK_FILE_FIRST (3 * BOOK_FILE_STEP)
#define BOOK_FILE_MORE (4 * BOOK_FILE_STEP)

_Static_assert(BOOK_SHARDS_OFFSET < BOOK_FILE_FIRST && BOOK_POOL_OFFSET % BOOK_FILE_STEP == 0,
	       "as told");

/* The book of this process. */
struct book_file_file {
	uint8_t *base;
	uint64_t size;
	uint64_t page;
	bool is_new;        /* still being created, so the descriptor is certainly ours */
	uint64_t kernel_id; /* of the kernel module's book; 0 = a memfd */
	/*
	 * Only for the kernel module's books, and for kernels that cannot populate a mapping. The
	 * application may close or reuse the number at any time: inode and device tell whether it
	 * is still ours.
	 */
	bool needs_fd;
	int fd;
	dev_t dev;
	ino_t ino;
	uint64_t opened[BOOK_SIZE_MAX / BOOK_FILE_STEP / 64]; /* a bit for each step */
};

static struct book_file_file book_file_file;

static bool book_file_fd_is_ours(const struct book_file_file *file)
{
	struct stat st;

	return fstat(file->fd, &st) == 0 && st.st_dev == file->dev && st.st_ino == file->ino;
}

/* For kernels before 5.14. Fails without our descriptor. */
static int book_file_reserve_file(const struct book_file_file *file, uint64_t offset,
				  uint64_t length)
{
	int cancel_state;
	int r = -EBADF;

	(void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state); /* cannot fail */
	/* Keeping the size changes nothing for us, and spares a file that just took the number. */
	if (book_file_fd_is_ours(file))
		do {
			r = fallocate(file->fd, FALLOC_FL_KEEP_SIZE, (off_t)offset, (off_t)length);
			r = r < 0 ? -errno : 0;
		} while (r == -EINTR);
	(void)pthread_setcancelstate(cancel_state, NULL); /* was valid before */
	return r;
}

/* Makes the mapping accessible where it is not yet. Harmless if two threads do it at once. */
static int book_file_allow(struct book_file_file *file, uint64_t offset, uint64_t length)
{
	uint64_t end = bits_min(offset + length, file->size);

	for (uint64_t at = offset & ~(BOOK_FILE_STEP - 1); at < end; at += BOOK_FILE_STEP) {
		uint64_t step = at / BOOK_FILE_STEP;
		uint64_t more = at < BOOK_FILE_FIRST ? BOOK_FILE_FIRST - at : BOOK_FILE_MORE;

		if (__atomic_load_n(&file->opened[step / 64], __ATOMIC_RELAXED) >> step % 64 & 1)
			continue;
		more = bits_min(more, file->size - at);
		if (mprotect(file->base + at, more, PROT_READ | PROT_WRITE) < 0)
			return -errno;
		for (; more > 0; step++, more -= bits_min(more, BOOK_FILE_STEP))
			__atomic_fetch_or(&file->opened[step / 64], UINT64_C(1) << step % 64,
					  __ATOMIC_RELAXED);
	}
	return 0;
}

static int book_file_populate(const struct book_file_file *file, uint64_t offset, uint64_t length)
{
	uint64_t end = bits_align_up(offset + length, file->page);

	offset &= ~(file->page - 1);
	return madvise(file->base + offset, end - offset, MADV_POPULATE_WRITE) < 0 ? -errno : 0;
}

/* In whole pages, as the module requires. */
static int book_file_ask_kernel(const struct book_file_file *file, int fd, uint64_t offset,
				uint64_t length)
{
	uint64_t begin = offset & ~(file->page - 1);

	return kernel_book_reserve(fd, begin, bits_align_up(offset + length, file->page) - begin);
}

/*
 * For the module's books. The module finds our book even if our descriptor is lost. The pages are
 * then also mapped, where the kernel supports that; otherwise they fault in later, one by one.
 */
static int book_file_reserve_kernel(const struct book_file_file *file, uint64_t offset,
				    uint64_t length)
{
	int cancel_state, fd, r;

	(void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state); /* cannot fail */
	fd = book_file_fd_is_ours(file) ? file->fd : kernel_book_attach(file->kernel_id);
	r = fd < 0 ? fd : book_file_ask_kernel(file, fd, offset, length);
	if (fd >= 0 && fd != file->fd)
		(void)close(fd);                          /* only borrowed */
	(void)pthread_setcancelstate(cancel_state, NULL); /* was valid before */
	if (r == 0)
		(void)book_file_populate(file, offset, length); /* only saves faults */
	return r;
}

/* The descriptor is needed later, so it must be recognizable. */
static void book_file_need_fd(struct book_file_file *file)
{
	struct stat st;

	if (fstat(file->fd, &st) < 0)
		return;
	file->needs_fd = true;
	file->dev = st.st_dev;
	file->ino = st.st_ino;
}

/* Reserves memory for a part of the book before its first store. */
static int book_file_reserve(void *context, uint64_t offset, uint64_t length)
{
	struct book_file_file *file = context;
	int saved_errno = errno;
	int r = freeze_is_on() ? -ENOSPC : book_file_allow(file, offset, length);

	if (r == 0 && file->kernel_id) {
		r = book_file_reserve_kernel(file, offset, length);
		errno = saved_errno;
		return r;
	}
	if (r == 0 && !file->needs_fd) {
		r = book_file_populate(file, offset, length);
		if (r == -EINVAL && file->is_new)
			book_file_need_fd(file);
	}
	if ((r == 0 || r == -EINVAL) && file->needs_fd)
		r = book_file_reserve_file(file, offset, length);
	errno = saved_errno;
	return r;
}

static int book_file_memfd(uint64_t size)
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

/* For a book that is not mapped yet. */
static int book_file_reserve_first(void *context, uint64_t offset, uint64_t length)
{
	const struct book_file_file *file = context;

	return book_file_ask_kernel(file, file->fd, offset, length);
}

/*
 * The kernel module's book, if the module grants one and the memory for its beginning: a user's
 * quota may be used up. The memory is reserved before mapping, because the module discards only
 * books that were never mapped.
 */
static int book_file_kernel_fd(struct book_file_file *file, struct limits *limits)
{
	/* The writer does not count what is below the pool as room, but the kernel does. */
	uint64_t room = bits_min(limits->room + BOOK_POOL_OFFSET, limits->size);
	int r;

	file->fd = kernel_book_is_there() ? kernel_book_make(limits->size, &room, &file->kernel_id)
					  : -ENOENT;
	if (file->fd < 0)
		return file->fd;
	r = writer_reserve_first(book_file_reserve_first, file);
	if (r < 0) {
		(void)close(file->fd); /* nothing is in it */
		return r;
	}
	limits->room = bits_min(limits->room, room);
	return file->fd;
}

/* The kernel module's book if it grants one, else a memfd. */
static int book_file_fd(struct book_file_file *file, struct limits *limits)
{
	int fd = book_file_kernel_fd(file, limits);

	if (fd >= 0)
		return fd;
	file->kernel_id = 0;
	return book_file_memfd(limits->size);
}

/* Without access, and unlocked even if the application has locked its future memory. */
static void *book_file_map(int fd, uint64_t size)
{
	void *base = mmap(NULL, size, PROT_NONE, MAP_SHARED | MAP_NORESERVE, fd, 0);

	if (base == MAP_FAILED)
		return NULL;
	if (munlock(base, size) < 0 || madvise(base, size, MADV_DONTFORK) < 0) {
		(void)munmap(base, size); /* ours and whole: cannot fail */
		return NULL;
	}
	/* A core dump would fault in the whole file; if the advice fails, it does. */
	(void)madvise(base, size, MADV_DONTDUMP);
	return base;
}

/* Creates file and mapping as large as possible, and seals them. */
static int book_file_open(struct book_file_file *file, struct limits *limits)
{
	*file = (struct book_file_file){.page = (uint64_t)sysconf(_SC_PAGESIZE), .is_new = true};
	for (;;) {
		file->fd = book_file_fd(file, limits);
		if (file->fd < 0)
			return file->fd;
		file->base = book_file_map(file->fd, limits->size);
		if (file->base)
			break;
		(void)close(file->fd); /* empty */
		limits->size = limits->size / 4 & ~(uint64_t)(BOOK_UNIT - 1);
		if (limits->size < LIMITS_SIZE_MIN)
			return -ENOMEM;
	}
	file->size = limits->size;
	limits->room = bits_min(limits->room, limits->size);
	file->fd = descriptor_move_high(file->fd);
	if (file->kernel_id) {
		book_file_need_fd(file);
		return 0;
	}
	/* Readers reject unsealed books. */
	if (fcntl(file->fd, F_ADD_SEALS, BOOK_FILE_SEALS) < 0) {
		int r = -errno;

		(void)munmap(file->base, file->size);
		(void)close(file->fd);
		return r;
	}
	return 0;
}

/* A cycle counter only if this thread may read it. */
static uint32_t book_file_clock(void)
{
	return sandbox_forbids_clock() ? BOOK_CLOCK_COARSE : book_clock_choose();
}

struct writer *book_file_make(void)
{
	/* Not on the stack: the first event may happen on a signal handler's small one. */
	static struct writer_identity identity;
	static char cmdline[IDENTITY_CMDLINE];
	struct writer *writer;
	struct limits limits;

	if (limits_read(&limits) < 0)
		return NULL;
	identity_read(&identity, cmdline); /* first, while there is a descriptor to read with */
	if (book_file_open(&book_file_file, &limits) < 0)
		return NULL;
	if (book_file_file.kernel_id)
		identity.source = BOOK_SOURCE_KERNEL;
	if (writer_new(&writer, &(struct writer_config){
					.base = book_file_file.base,
					.size = limits.size,
					.room = limits.room,
					.ring_events = limits.ring_events,
					.clock = book_file_clock(),
					.reserve = book_file_reserve,
					.context = &book_file_file,
					.identity = &identity,
				}) < 0) {
		(void)munmap(book_file_file.base, limits.size);
		(void)close(book_file_file.fd);
		return NULL;
	}
	book_file_file.is_new = false;
	offer_book(book_file_file.fd, (int)identity.pid);
	return writer;
}
