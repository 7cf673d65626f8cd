/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The memory file behind a kept book. The writable descriptor is closed once the file is mapped:
 * the mapping does not need it, and tools that find books by their descriptors must not take the
 * daemon for the owner. Only kernels that cannot populate a mapping need it longer.
 */

#include "legacy/server/legacy-book.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/files/small-file.h"
#include "base/process/time-offsets.h"
#include "base/quota.h"
#include "book/format/book-clock.h"
#include "book/write/writer.h"
#include "source/books/scan.h"
#include "source/proc/proc.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

#define KEEP_SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL)
#define KEEP_CMDLINE 1024

struct legacy_book {
	struct quota *memory; /* of all books */
	uint32_t user;        /* of its owner */
	bool is_adopting;     /* still takes over what an older book has */
	uint64_t charged;
	uint8_t *base;
	uint64_t size;
	int fd; /* -1 once it is not needed */
	struct writer *writer;
};

struct legacy_book *legacy_book_free(struct legacy_book *keep)
{
	if (!keep)
		return NULL;
	if (keep->writer)
		writer_free(keep->writer);
	if (keep->base)
		(void)munmap(keep->base, keep->size); /* ours and whole: cannot fail */
	if (keep->fd >= 0)
		(void)close(keep->fd); /* memory: nothing to lose */
	quota_give(keep->memory, keep->user, keep->charged);
	free(keep);
	return NULL;
}

static void legacy_book_cleanup(struct legacy_book **keep)
{
	legacy_book_free(*keep);
}

struct writer *legacy_book_writer(struct legacy_book *keep)
{
	return keep->writer;
}

void legacy_book_adopted(struct legacy_book *keep)
{
	keep->is_adopting = false;
}

static int keep_populate(const struct legacy_book *keep, uint64_t offset, uint64_t length)
{
	int r;

	if (madvise(keep->base + offset, length, MADV_POPULATE_WRITE) == 0)
		return 0;
	if (errno != EINVAL || keep->fd < 0)
		return -errno;
	do
		r = fallocate(keep->fd, FALLOC_FL_KEEP_SIZE, (off_t)offset, (off_t)length);
	while (r < 0 && errno == EINTR);
	return r < 0 ? -errno : 0;
}

/* The pages are of 4 KiB wherever the old protocol is spoken; larger ones cost more than is charged. */
static int keep_reserve(void *context, uint64_t offset, uint64_t length)
{
	struct legacy_book *keep = context;
	bool may = keep->is_adopting ? quota_restore(keep->memory, keep->user, length)
				     : quota_take(keep->memory, keep->user, length);
	int r;

	if (!may)
		return -ENOSPC;
	r = keep_populate(keep, offset, length);
	if (r < 0) {
		quota_give(keep->memory, keep->user, length);
		return r;
	}
	keep->charged += length;
	return 0;
}

static int keep_open(struct legacy_book *keep)
{
	void *base;

	keep->fd = memfd_create("ttmem-book", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
	if (keep->fd < 0 && errno == EINVAL)
		keep->fd = memfd_create("ttmem-book", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (keep->fd < 0 || ftruncate(keep->fd, (off_t)LEGACY_BOOK_SIZE) < 0)
		return -errno;
	base = mmap(NULL, LEGACY_BOOK_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
		    keep->fd, 0);
	if (base == MAP_FAILED)
		return -errno;
	keep->base = base;
	keep->size = LEGACY_BOOK_SIZE;
	/* Children and core dumps do not need it; if the advice fails, they merely get it. */
	(void)madvise(base, LEGACY_BOOK_SIZE, MADV_DONTFORK);
	(void)madvise(base, LEGACY_BOOK_SIZE, MADV_DONTDUMP);
	return fcntl(keep->fd, F_ADD_SEALS, KEEP_SEALS) < 0 ? -errno : 0;
}

/* For display; not available for a process that is exiting or hidden. */
static size_t keep_cmdline(const struct proc *proc, uint32_t pid, char cmdline[KEEP_CMDLINE])
{
	char path[32];
	ssize_t n;

	(void)snprintf(path, sizeof(path), "%u/cmdline", pid);
	n = small_file_read(proc->root, path, cmdline, KEEP_CMDLINE);
	return n > 0 ? (size_t)n : 0;
}

static int keep_write(struct legacy_book *keep, const struct proc *proc,
		      const struct proc_facts *owner)
{
	const char *unlisted = secure_getenv("TTMEM_UNLISTED"); /* a daemon that is only a test's */
	char cmdline[KEEP_CMDLINE];
	struct writer_identity identity = {
		.pid = owner->ns_pid,
		.keeper = (uint32_t)getpid(),
		.uid = owner->real_uid,
		.euid = owner->real_uid,
		.source = BOOK_SOURCE_SOCKET,
		.start_ticks = owner->id.start_ticks,
		.monotonic_offset = proc_time_offsets()->monotonic_ns,
		.pid_namespace = owner->pid_namespace,
		.cmdline = cmdline,
		.library = "old protocol",
		.is_unlisted = unlisted && strcmp(unlisted, "1") == 0,
	};
	struct writer_config config = {
		.base = keep->base,
		.size = keep->size,
		.room = keep->size,
		.ring_events = LEGACY_BOOK_RING,
		.clock = book_clock_choose(),
		.reserve = keep_reserve,
		.context = keep,
		.identity = &identity,
	};

	memcpy(identity.comm, owner->comm,
	       strnlen(owner->comm, bits_min(sizeof(owner->comm), sizeof(identity.comm) - 1)));
	identity.cmdline_length = keep_cmdline(proc, owner->id.pid, cmdline);
	return writer_new(&keep->writer, &config);
}

/* Events from before this daemon keep their times: the book begins where the old one did. */
static void keep_go_on(struct legacy_book *keep, const struct book_header *old)
{
	struct book_header *header = keep->writer->header;

	header->carried = old->carried + 1;
	/* Of a client that has ended meanwhile; whose namespace is not known, only root may see. */
	if (!header->pid_namespace)
		header->pid_namespace = old->pid_namespace;
	if (old->clock != header->clock || old->clock_start > header->clock_start)
		return;
	header->clock_start = old->clock_start;
	header->monotonic_start = old->monotonic_start + (uint64_t)header->monotonic_offset;
	header->realtime_start = old->realtime_start;
}

/* Opened as everybody reads books. The owner's facts are known already. */
static int keep_read(const struct legacy_book *keep, const struct proc *proc,
		     const struct proc_facts *owner, struct scan_book **ret_book)
{
	struct scan_book *book = NULL;
	char path[32];
	int fd, r;

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", keep->fd);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	r = scan_book_new_consume(&book, fd);
	if (r != 0 || !book)
		return r < 0 ? r : -EIO; /* we wrote it: it is a book */
	book->uid = owner->real_uid;
	book->owner = *owner;
	book->alive = true;
	book->holder = (uint32_t)getpid();
	proc_container(proc, owner->id.pid, book->container);
	*ret_book = book;
	return 0;
}

int legacy_book_new(struct legacy_book **ret_keep, struct quota *memory, const struct proc *proc,
		    const struct proc_facts *owner, const struct book_header *old,
		    struct scan_book **ret_book)
{
	CLEANUP(legacy_book_cleanup) struct legacy_book *keep = calloc(1, sizeof(*keep));
	int r;

	if (!keep)
		return -ENOMEM;
	keep->fd = -1;
	keep->memory = memory;
	keep->user = owner->real_uid;
	keep->is_adopting = old != NULL;
	r = keep_open(keep);
	if (r == 0)
		r = keep_write(keep, proc, owner);
	if (r != 0)
		return r;
	if (old)
		keep_go_on(keep, old);
	r = keep_read(keep, proc, owner, ret_book);
	if (r < 0)
		return r;
	if (madvise(keep->base, BOOK_PAGE, MADV_POPULATE_WRITE) == 0) {
		(void)close(keep->fd); /* memory: nothing to lose */
		keep->fd = -1;
	}
	*ret_keep = cleanup_steal(keep);
	return 0;
}
