/* SPDX-License-Identifier: Apache-2.0 */

/* Sends and receives descriptors. */

#include "base/files/fd-pass.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

union fd_pass_control {
	char space[CMSG_SPACE(FD_PASS_MAX * sizeof(int))];
	struct cmsghdr align;
};

int fd_pass_send(int socket, const void *bytes, size_t length, const int *fds, size_t count,
		 int flags)
{
	union fd_pass_control control = {.space = {0}};
	struct iovec vector = {
		.iov_base = (void *)(uintptr_t)bytes, /* only read */
		.iov_len = length,
	};
	struct msghdr message = {.msg_iov = &vector, .msg_iovlen = 1};

	if (count > 0) {
		message.msg_control = control.space;
		message.msg_controllen = CMSG_SPACE(count * sizeof(int));
		control.align.cmsg_level = SOL_SOCKET;
		control.align.cmsg_type = SCM_RIGHTS;
		control.align.cmsg_len = CMSG_LEN(count * sizeof(int));
		memcpy(CMSG_DATA(&control.align), fds, count * sizeof(int));
	}
	while (sendmsg(socket, &message, flags | MSG_NOSIGNAL) < 0) {
		if (errno != EINTR)
			return -errno;
	}
	return 0;
}

ssize_t fd_pass_receive(int socket, void *ret_bytes, size_t size, struct fd_pass *ret_fds,
			int flags)
{
	union fd_pass_control control;
	struct iovec vector = {.iov_base = ret_bytes, .iov_len = size};
	struct msghdr message = {.msg_iov = &vector, .msg_iovlen = 1};
	size_t room = CMSG_LEN(ret_fds->wanted * sizeof(int)); /* padding would fit another */
	ssize_t n;

	do {
		message.msg_control = control.space;
		message.msg_controllen = room;
		n = recvmsg(socket, &message, flags | MSG_CMSG_CLOEXEC | MSG_TRUNC);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	for (struct cmsghdr *at = CMSG_FIRSTHDR(&message); at; at = CMSG_NXTHDR(&message, at)) {
		if (at->cmsg_level == SOL_SOCKET && at->cmsg_type == SCM_RIGHTS)
			memcpy(ret_fds->fds, CMSG_DATA(at), at->cmsg_len - CMSG_LEN(0));
	}
	ret_fds->is_cut = message.msg_flags & MSG_CTRUNC;
	return n;
}

void fd_pass_close(struct fd_pass *fds)
{
	for (size_t i = 0; i < FD_PASS_MAX; i++) {
		if (fds->fds[i] >= 0)
			(void)close(fds->fds[i]); /* nothing was written to it */
		fds->fds[i] = -1;
	}
}
