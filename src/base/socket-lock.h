/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Taking the place of a socket: never from somebody who lives, always from one who died. A lock beside
 * the socket decides between two who come at the same time; what is removed at the end is only our own.
 */

#include <stdint.h>
#include <sys/types.h>
#include <sys/un.h>

struct socket_lock {
	int fd;      /* listening; not blocking */
	int lock_fd; /* -1 = the folder is not ours to put a lock in */
	dev_t device;
	ino_t inode;
	char path[sizeof(((struct sockaddr_un *)NULL)->sun_path)];
};

#define SOCKET_LOCK_NULL ((struct socket_lock){.fd = -1, .lock_fd = -1})

/*
 * @type: SOCK_STREAM or SOCK_SEQPACKET. Everybody may connect. 0; -EADDRINUSE and in @ret_holder the
 * process that has it (0 = not known); or another negative errno.
 */
int socket_lock_open(struct socket_lock *socket_lock, const char *path, int type,
		     uint32_t *ret_holder);

/* Removes the socket if it still is ours. */
void socket_lock_close(struct socket_lock *socket_lock);
