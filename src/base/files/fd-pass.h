/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Passes file descriptors with messages on a unix socket. The receiver says how many it wants: the
 * kernel closes the others and reports that some were lost. All are close-on-exec from the start.
 *
 * For sockets that preserve message boundaries (SOCK_SEQPACKET, SOCK_DGRAM).
 */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define FD_PASS_MAX 64u /* the kernel allows 253 */

/* The descriptors of one message. */
struct fd_pass {
	size_t wanted;        /* FD_PASS_MAX at most */
	int fds[FD_PASS_MAX]; /* owned by the caller, filled from index 0; -1 = none */
	bool is_cut;          /* more were sent than wanted, or we could not receive them */
};

#define FD_PASS_WANT(count)                                                \
	(struct fd_pass)                                                   \
	{                                                                  \
		.wanted = (count), .fds = { [0 ... FD_PASS_MAX - 1] = -1 } \
	}

#define CLEANUP_FD_PASS CLEANUP(fd_pass_close)

/**
 * fd_pass_send() - send one message
 * @fds: the caller keeps them
 * @count: of @fds; FD_PASS_MAX at most, may be 0
 * @flags: for sendmsg(); MSG_NOSIGNAL is added
 *
 * Return: 0 or a negative errno. -ETOOMANYREFS: this user has too many descriptors in flight.
 */
int fd_pass_send(int socket, const void *bytes, size_t length, const int *fds, size_t count,
		 int flags);

/**
 * fd_pass_receive() - receive one message
 * @size: room in @ret_bytes
 * @ret_fds: initialized with FD_PASS_WANT(); empty on error
 * @flags: for recvmsg()
 *
 * Return: the length of the message as sent, larger than @size if it was cut; or a negative errno.
 * 0: the peer has hung up, or sent only descriptors.
 */
ssize_t fd_pass_receive(int socket, void *ret_bytes, size_t size, struct fd_pass *ret_fds,
			int flags);

/* Closes the descriptors that were not stolen. */
void fd_pass_close(struct fd_pass *fds);
