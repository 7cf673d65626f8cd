/* SPDX-License-Identifier: Apache-2.0 */

/* Messages between daemon and keeper: both sides check the same things with the same code. */

#include "daemon/keeper-wire.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

union keeper_wire_control {
	char space[CMSG_SPACE(sizeof(int))];
	struct cmsghdr align;
};

static bool keeper_wire_is_zero(const void *bytes, size_t length)
{
	const unsigned char *byte = bytes;

	for (size_t i = 0; i < length; i++) {
		if (byte[i])
			return false;
	}
	return true;
}

bool keeper_wire_is_valid(const struct keeper_wire *message, bool has_fd)
{
	const size_t book = offsetof(struct keeper_wire, pid);
	const size_t numbers = offsetof(struct keeper_wire, held);
	const size_t end = sizeof(*message);
	const char *bytes = (const char *)message;
	size_t length = strnlen(message->comm, sizeof(message->comm));

	if (message->magic != KEEPER_WIRE_MAGIC || message->version != KEEPER_WIRE_VERSION ||
	    message->size != sizeof(*message))
		return false;
	switch (message->kind) {
	case KEEPER_WIRE_ADD:
	case KEEPER_WIRE_HELD:
		return has_fd && message->pid != 0 && length < sizeof(message->comm) &&
		       keeper_wire_is_zero(message->comm + length,
					   sizeof(message->comm) - length) &&
		       keeper_wire_is_zero(bytes + numbers, end - numbers);
	case KEEPER_WIRE_REMOVE:
		return !has_fd && length == 0 &&
		       keeper_wire_is_zero(bytes + numbers, end - numbers);
	case KEEPER_WIRE_TAKE:
	case KEEPER_WIRE_SWEEP:
	case KEEPER_WIRE_QUIT:
		return !has_fd && keeper_wire_is_zero(bytes + book, end - book);
	case KEEPER_WIRE_END:
		return !has_fd && keeper_wire_is_zero(bytes + book, numbers - book);
	default:
		return false;
	}
}

int keeper_wire_send(int socket, const struct keeper_wire *message, int fd)
{
	union keeper_wire_control control = {.space = {0}};
	struct keeper_wire copy = *message; /* an iovec's bytes are not const */
	struct iovec vector = {.iov_base = &copy, .iov_len = sizeof(copy)};
	struct msghdr header = {.msg_iov = &vector, .msg_iovlen = 1};

	if (fd >= 0) {
		header.msg_control = control.space;
		header.msg_controllen = sizeof(control.space);
		control.align.cmsg_level = SOL_SOCKET;
		control.align.cmsg_type = SCM_RIGHTS;
		control.align.cmsg_len = CMSG_LEN(sizeof(fd));
		memcpy(CMSG_DATA(&control.align), &fd, sizeof(fd));
	}
	while (sendmsg(socket, &header, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
		if (errno != EINTR)
			return -errno;
	}
	return 0;
}

/* The descriptor of a message; more than one are closed by the kernel, which says MSG_CTRUNC. */
static int keeper_wire_take_fd(struct msghdr *header)
{
	int fd = -1;

	for (struct cmsghdr *at = CMSG_FIRSTHDR(header); at; at = CMSG_NXTHDR(header, at)) {
		if (at->cmsg_level == SOL_SOCKET && at->cmsg_type == SCM_RIGHTS &&
		    at->cmsg_len == CMSG_LEN(sizeof(fd)))
			memcpy(&fd, CMSG_DATA(at), sizeof(fd));
	}
	return fd;
}

int keeper_wire_receive(int socket, struct keeper_wire *ret_message, int *ret_fd)
{
	union keeper_wire_control control;
	struct keeper_wire message;
	struct iovec vector = {.iov_base = &message, .iov_len = sizeof(message)};
	struct msghdr header = {.msg_iov = &vector, .msg_iovlen = 1};
	CLEANUP_CLOSE int fd = -1;
	ssize_t n;

	do {
		header.msg_control = control.space;
		header.msg_controllen = CMSG_LEN(sizeof(fd)); /* padding would hold another one */
		n = recvmsg(socket, &header, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
		/*
		 * A peer that dies with something unread resets the connection. That is told once,
		 * and before what it had sent: books that are still to be received.
		 */
	} while (n < 0 && (errno == EINTR || errno == ECONNRESET));
	if (n < 0)
		return -errno;
	fd = keeper_wire_take_fd(&header);
	if (n == 0 && fd < 0)
		return -EPIPE;
	if (n != sizeof(message) || header.msg_flags & MSG_TRUNC)
		return -EBADMSG;
	/* Cut off with nothing left: it is we who have no room for a descriptor. */
	if (header.msg_flags & MSG_CTRUNC)
		return fd < 0 && keeper_wire_is_valid(&message, true) ? -EMFILE : -EBADMSG;
	if (!keeper_wire_is_valid(&message, fd >= 0))
		return -EBADMSG;
	*ret_message = message;
	*ret_fd = cleanup_steal_fd(&fd);
	return 0;
}

bool keeper_wire_fits(const struct keeper_wire *message, int fd)
{
	struct stat file;
	int flags = fcntl(fd, F_GETFL);

	return flags >= 0 && (flags & O_ACCMODE) == O_RDONLY && !(flags & O_PATH) &&
	       fstat(fd, &file) == 0 && S_ISREG(file.st_mode) && file.st_dev == message->device &&
	       file.st_ino == message->inode;
}

bool keeper_wire_is_friend(int socket)
{
	struct ucred peer;
	socklen_t length = sizeof(peer);

	return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 &&
	       (peer.uid == geteuid() || peer.uid == 0);
}
