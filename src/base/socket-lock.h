/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Takes over the path of a socket: never from a live process, always from an exited one. A lock
 * file beside the socket decides between two that come at the same time; in the end we remove only
 * what is ours.
 */

#include <stdint.h>
#include <sys/types.h>
#include <sys/un.h>

struct socket_lock {
	int fd;      /* listening; non-blocking */
	int lock_fd; /* -1 = we may not create a lock in the folder */
	dev_t device;
	ino_t inode;
	char path[sizeof(((struct sockaddr_un *)NULL)->sun_path)];
};

#define SOCKET_LOCK_NULL ((struct socket_lock){.fd = -1, .lock_fd = -1})

/*
 * @type: SOCK_STREAM or SOCK_SEQPACKET. Everybody may connect. Returns 0; -EADDRINUSE and in
 * @ret_holder the process that holds it (0 = unknown); or another negative errno.
 */
int socket_lock_open(struct socket_lock *socket_lock, const char *path, int type,
		     uint32_t *ret_holder);

/* Removes the socket if it is still ours. */
void socket_lock_close(struct socket_lock *socket_lock);

/*
 * Takes a listening socket that an earlier holder has left, if the path still leads to it: to the file
 * with this device and inode; inode 0 = not known, any socket will do. 0, and @fd is taken; or a
 * negative errno.
 */
int socket_lock_adopt(struct socket_lock *socket_lock, const char *path, int fd, dev_t device,
		      ino_t inode);

/* Leaves the path to whoever holds the socket, for the next one to adopt. */
void socket_lock_leave(struct socket_lock *socket_lock);
