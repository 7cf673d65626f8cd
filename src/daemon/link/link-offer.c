/* SPDX-License-Identifier: Apache-2.0 */

/* Checks an offer in this order: the file, who made it, the process, whether the one is about the other. */

#include "daemon/link/link-offer.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "daemon/registry/registry.h"
#include "daemon/registry/tracked.h"
#include "source/books/scan.h"
#include "source/books/verify-book.h"
#include "source/proc/owner.h"
#include "source/proc/proc.h"
#include "wire/link.h"

bool link_offer_trusts(uint32_t uid)
{
	return uid == 0 || uid == geteuid();
}

static int offer_book(const struct link_sender *sender, int fd, struct scan_book **ret_book)
{
	CLEANUP(scan_book_cleanup) struct scan_book *book = NULL;
	char path[64];
	int reading, r = fd >= 0 ? verify_book_check(fd) : -EBADMSG;

	if (r != 0)
		return r < 0 ? r : -EBADMSG;
	/* Read-only, so that nobody takes us for a child that inherited the book. */
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	reading = open(path, O_RDONLY | O_CLOEXEC);
	if (reading < 0)
		return -errno;
	r = scan_book_new_consume(&book, reading);
	if (r != 0)
		return r < 0 ? r : -EBADMSG;
	if (book->uid != sender->uid)
		return -EPERM;
	*ret_book = cleanup_steal(book);
	return 0;
}

/* As /proc knows the process of a pidfd. -ESRCH if it cannot be asked any more. */
static int offer_look(const struct proc *proc, int pid_fd, struct proc_facts *ret_facts)
{
	uint32_t pid = 0, after = 0;
	int r = pid_fd >= 0 ? proc_of_pid_fd(pid_fd, &pid) : -ESRCH;

	if (r < 0)
		return r;
	r = proc_read(proc, pid, ret_facts);
	if (r == -ENOENT)
		return -ESRCH;
	/* What was read is of this process if the pid is still its own. */
	return r < 0 ? r : proc_of_pid_fd(pid_fd, &after);
}

/* What the sender says, which the kernel told it when the process connected. */
static int offer_believe(const struct link_sender *sender, const struct link_offer *offer,
			 struct scan_book *book)
{
	const struct book_header *header = &book->reader.header;

	if (!sender->is_trusted || offer->pid == 0)
		return -EPERM;
	book->owner = (struct proc_facts){
		.id = {offer->pid, offer->start_ticks},
		.ns_pid = header->pid,
		.real_uid = offer->user,
		.saved_uid = offer->user,
	};
	memcpy(book->owner.comm, header->comm, sizeof(header->comm));
	return offer->start_ticks && owner_judge(NULL, header, book->uid, &book->owner) == OWNER_NO
		       ? -EPERM
		       : 0;
}

static bool offer_has_ended(int pid_fd)
{
	struct pollfd end = {.fd = pid_fd, .events = POLLIN};

	return pid_fd >= 0 && poll(&end, 1, 0) > 0;
}

static int offer_settle_owner(const struct proc *proc, const struct link_sender *sender,
			      const struct link_offer *offer, int pid_fd, struct scan_book *book)
{
	enum owner_verdict verdict;
	int r = offer_look(proc, pid_fd, &book->owner);

	if (r == -EBADF || r == -EXDEV)
		return r == -EBADF ? -EBADMSG : -EPERM;
	verdict = r == 0 ? owner_judge(proc, &book->reader.header, book->uid, &book->owner)
			 : OWNER_NO;
	/* While a process ends, /proc tells less and less of it. */
	if (r == -ESRCH || (verdict == OWNER_NO && sender->is_trusted && offer_has_ended(pid_fd)))
		return offer_believe(sender, offer, book);
	if (r < 0)
		return r;
	if (verdict == OWNER_NO || (verdict == OWNER_FORGED && !sender->is_trusted))
		return -EPERM;
	proc_container(proc, book->owner.id.pid, book->container);
	return 0;
}

/* What it says it continues must be a book that this sender could have offered. */
static int offer_check_old(const struct registry *registry, const struct link_sender *sender,
			   struct book_id old)
{
	const struct tracked *tracked = old.inode ? registry_get(registry, old) : NULL;
	struct stat file;

	if (!tracked || sender->is_trusted)
		return 0;
	if (fstat(tracked->book->file.fd, &file) < 0)
		return -errno;
	return file.st_uid == sender->uid ? 0 : -EPERM;
}

int link_offer_open_consume(const struct registry *registry, const struct link_sender *sender,
			    const struct link_offer *offer, const int fds[2],
			    struct registry_offer *ret_offer)
{
	CLEANUP(scan_book_cleanup) struct scan_book *book = NULL;
	CLEANUP_CLOSE int file = fds[0];
	CLEANUP_CLOSE int pid_fd = fds[1];
	const struct book_id old = {.device = offer->old_device, .inode = offer->old_inode};
	int r = offer_book(sender, file, &book);

	if (!book)
		return r < 0 ? r : -EBADMSG;
	r = offer_settle_owner(registry_proc(registry), sender, offer, pid_fd, book);
	if (r == 0)
		r = offer_check_old(registry, sender, old);
	if (r < 0)
		return r;
	book->alive = true;
	book->uid = book->owner.real_uid;
	*ret_offer = (struct registry_offer){
		.book = cleanup_steal(book),
		.pid_fd = cleanup_steal_fd(&pid_fd),
		.old = old,
	};
	return 0;
}
