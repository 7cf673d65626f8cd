/* SPDX-License-Identifier: Apache-2.0 */

/* Messages between daemon and keeper: both sides use the same code for the same checks. */

#include "daemon/custody/keeper-wire.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/files/fd-pass.h"

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
	const size_t comm = offsetof(struct keeper_wire, comm);
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
	case KEEPER_WIRE_HOLD:
	case KEEPER_WIRE_OTHER:
		return has_fd && message->source != 0 && message->pid == 0 &&
		       message->start_ticks == 0 && keeper_wire_is_zero(message->comm, end - comm);
	case KEEPER_WIRE_TAKE:
	case KEEPER_WIRE_FETCH:
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
	return fd_pass_send(socket, message, sizeof(*message), &fd, fd >= 0, MSG_DONTWAIT);
}

int keeper_wire_receive(int socket, struct keeper_wire *ret_message, int *ret_fd)
{
	CLEANUP_FD_PASS struct fd_pass got = FD_PASS_WANT(1);
	struct keeper_wire message;
	bool has_fd;
	ssize_t n;

	do {
		n = fd_pass_receive(socket, &message, sizeof(message), &got, MSG_DONTWAIT);
		/*
		 * A peer that exits with unread data resets the connection. The reset is reported
		 * once, and before the data that it had sent: books that must still be received.
		 */
	} while (n == -ECONNRESET);
	if (n < 0)
		return (int)n;
	has_fd = got.fds[0] >= 0;
	if (n == 0 && !has_fd)
		return -EPIPE;
	if (n != sizeof(message))
		return -EBADMSG;
	/* Truncated, and no descriptor arrived: we have no room for one. */
	if (got.is_cut)
		return !has_fd && keeper_wire_is_valid(&message, true) ? -EMFILE : -EBADMSG;
	if (!keeper_wire_is_valid(&message, has_fd))
		return -EBADMSG;
	*ret_message = message;
	*ret_fd = cleanup_steal_fd(&got.fds[0]);
	return 0;
}

bool keeper_wire_fits(const struct keeper_wire *message, int fd)
{
	bool is_book = message->kind == KEEPER_WIRE_ADD || message->kind == KEEPER_WIRE_HELD;
	struct stat file;
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0 || flags & O_PATH || fstat(fd, &file) < 0 || file.st_dev != message->device ||
	    file.st_ino != message->inode)
		return false;
	if (is_book)
		return (flags & O_ACCMODE) == O_RDONLY && S_ISREG(file.st_mode);
	return S_ISREG(file.st_mode) || S_ISSOCK(file.st_mode);
}

bool keeper_wire_is_friend(int socket)
{
	struct ucred peer;
	socklen_t length = sizeof(peer);

	return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 &&
	       (peer.uid == geteuid() || peer.uid == 0);
}
