/* SPDX-License-Identifier: Apache-2.0 */

/* Receives an offer: one message, two descriptors, each checked before it is used. */

#include "source/books/accept.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/files/fd-pass.h"
#include "source/books/verify-book.h"
#include "source/proc/owner.h"
#include "wire/http-request.h"
#include "wire/link.h"
#include "wire/offer.h"

#define ACCEPT_BACKLOG 4096 /* the kernel caps it at its own maximum */

int accept_listen(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	size_t length = strlen(path);
	CLEANUP_CLOSE int fd = -1;

	if (length >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	memcpy(address.sun_path, path, length);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
		return -errno;
	if (listen(fd, ACCEPT_BACKLOG) < 0)
		return -errno;
	return cleanup_steal_fd(&fd);
}

int accept_peer_new(int listening, struct accept_peer **ret_peer)
{
	CLEANUP(accept_peer_cleanup) struct accept_peer *peer = NULL;
	struct ucred credentials;
	socklen_t length = sizeof(credentials);

	peer = calloc(1, sizeof(*peer));
	if (!peer)
		return -ENOMEM;
	peer->pid_fd = -1;
	peer->fd = accept4(listening, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (peer->fd < 0)
		return -errno;
	if (getsockopt(peer->fd, SOL_SOCKET, SO_PEERCRED, &credentials, &length) < 0)
		return -errno;
	peer->pid = (uint32_t)credentials.pid;
	peer->uid = credentials.uid;
	*ret_peer = cleanup_steal(peer);
	return 0;
}

struct accept_peer *accept_peer_free(struct accept_peer *peer)
{
	if (!peer)
		return NULL;
	scan_book_free(peer->book);
	if (peer->pid_fd >= 0)
		(void)close(peer->pid_fd); /* nothing was written to it */
	if (peer->fd >= 0)
		(void)close(peer->fd); /* likewise */
	free(peer);
	return NULL;
}

/*
 * Takes the sender's own pidfd if it is right, else opens one, else has none: the process has
 * exited, or pidfds are not available here.
 */
static void accept_settle_pid_fd(struct accept_peer *peer, int *offered)
{
	uint32_t pid;

	if (*offered >= 0 && proc_of_pid_fd(*offered, &pid) == 0 && pid == peer->pid)
		peer->pid_fd = cleanup_steal_fd(offered);
	else
		peer->pid_fd = (int)syscall(SYS_pidfd_open, peer->pid, 0);
}

static int accept_check_owner(const struct accept_peer *peer, const struct proc *proc,
			      struct scan_book *book)
{
	struct proc_facts facts;

	/* From outside our pid namespace: we can neither name it nor learn that it exits. */
	if (peer->pid == 0)
		return ACCEPT_NOT_THE_OWNER;
	/*
	 * An exited process can no longer be checked. It must suffice that it sent the book and
	 * that its user created the file.
	 */
	if (proc_read(proc, peer->pid, &facts) < 0)
		return book->uid == peer->uid ? 0 : ACCEPT_NOT_THE_OWNER;
	if (owner_judge(proc, &book->reader.header, book->uid, &facts) != OWNER_YES)
		return ACCEPT_NOT_THE_OWNER;
	book->owner = facts;
	proc_container(proc, peer->pid, book->container);
	return 0;
}

/* Makes a book of the descriptor, which is consumed in any case. */
static int accept_book_consume(struct accept_peer *peer, const struct proc *proc, int fd)
{
	CLEANUP_CLOSE int owned = fd;
	struct scan_book *book;
	char path[64];
	int r, reading;

	r = verify_book_check(owned);
	if (r != 0)
		return r;
	/* Read-only, so that nobody takes us for a child that inherited the book. */
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", owned);
	reading = open(path, O_RDONLY | O_CLOEXEC);
	if (reading < 0)
		return -errno;
	r = scan_book_new_consume(&book, reading);
	if (r != 0)
		return r < 0 ? r : ACCEPT_NO_BOOK;
	book->alive = true;
	book->holder = peer->pid;
	book->owner = (struct proc_facts){
		.id = {peer->pid, book->reader.header.start_ticks},
		.ns_pid = book->reader.header.pid,
		.real_uid = peer->uid,
		.saved_uid = peer->uid,
	};
	memcpy(book->owner.comm, book->reader.header.comm, sizeof(book->reader.header.comm));
	r = accept_check_owner(peer, proc, book);
	if (r != 0) {
		scan_book_free(book);
		return r;
	}
	peer->book = book;
	return 0;
}

static bool accept_is_offer(const struct accept_request *packet)
{
	struct offer offer;

	if (packet->length != sizeof(offer))
		return false;
	memcpy(&offer, packet->bytes, sizeof(offer));
	return offer.magic == OFFER_MAGIC && offer.version == OFFER_VERSION;
}

int accept_receive_any(struct accept_peer *peer, const struct proc *proc,
		       struct accept_request *ret_request)
{
	CLEANUP_FD_PASS struct fd_pass got = FD_PASS_WANT(OFFER_FDS);
	ssize_t n = fd_pass_receive(peer->fd, ret_request->bytes, sizeof(ret_request->bytes), &got,
				    MSG_DONTWAIT);
	bool has_fd = got.fds[0] >= 0;

	if (n < 0)
		return (int)n;
	if (n == 0 && !has_fd)
		return ACCEPT_CLOSED;
	if ((size_t)n > sizeof(ret_request->bytes) || got.is_cut)
		return ACCEPT_BAD_MESSAGE;
	ret_request->length = (size_t)n;
	/* A request carries no descriptors. */
	if (!has_fd && (native_is_request(ret_request->bytes, ret_request->length) ||
			http_request_begins(ret_request->bytes, ret_request->length)))
		return ACCEPT_REQUEST;
	if (!has_fd && link_check(ret_request->bytes, ret_request->length) == LINK_HELLO)
		return ACCEPT_LINK;
	if (!has_fd || !accept_is_offer(ret_request))
		return ACCEPT_BAD_MESSAGE;
	accept_settle_pid_fd(peer, &got.fds[1]);
	return accept_book_consume(peer, proc, cleanup_steal_fd(&got.fds[0]));
}

int accept_news(int fd, int *ret_program)
{
	CLEANUP_FD_PASS struct fd_pass got = FD_PASS_WANT(OFFER_NOTICE_FDS);
	struct offer_notice notice;
	ssize_t n = fd_pass_receive(fd, &notice, sizeof(notice), &got, MSG_DONTWAIT);

	*ret_program = -1;
	if (n < 0)
		return n == -EINTR ? -EAGAIN : (int)n;
	if (n == 0)
		return -EPIPE;
	if (n != sizeof(notice) || notice.magic != OFFER_NOTICE_MAGIC ||
	    notice.version != OFFER_VERSION || notice.what != OFFER_NOTICE_FAILED)
		return -EBADMSG;
	*ret_program = cleanup_steal_fd(&got.fds[0]);
	return 0;
}

int accept_receive(struct accept_peer *peer, const struct proc *proc)
{
	struct accept_request request;
	int r = accept_receive_any(peer, proc, &request);

	return r == ACCEPT_REQUEST || r == ACCEPT_LINK ? ACCEPT_BAD_MESSAGE : r;
}

const char *accept_strerror(int result)
{
	switch (result) {
	case ACCEPT_BAD_MESSAGE:
		return "not an offer of a book";
	case ACCEPT_NO_BOOK:
		return "what was handed over is not a book";
	case ACCEPT_NOT_THE_OWNER:
		return "the book belongs to another process";
	case ACCEPT_CLOSED:
		return "nothing was handed over";
	default:
		return verify_book_strerror(result);
	}
}
