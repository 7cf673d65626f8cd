/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Takes over the path of a socket: never from a live process, always from an exited one where the
 * folder's rules allow it. A lock file beside the socket decides between two that come at the same
 * time, but only in a folder that is ours alone: anybody may create, and hold, a file in /tmp. There
 * the kernel decides, which binds a path once. In the end we remove only what is ours.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/un.h>

struct socket_lock {
	int fd;      /* listening; non-blocking */
	int lock_fd; /* -1 = the folder is not ours alone */
	dev_t device;
	ino_t inode;
	char path[sizeof(((struct sockaddr_un *)NULL)->sun_path)];
};

#define SOCKET_LOCK_NULL ((struct socket_lock){.fd = -1, .lock_fd = -1})

enum socket_lock_kind {
	SOCKET_LOCK_NOTHING = 0, /* nothing is there: the folder is the problem */
	SOCKET_LOCK_LIVE = 1,    /* a process listens there, or holds our lock */
	SOCKET_LOCK_DEAD = 2,    /* the socket of an exited process */
	SOCKET_LOCK_FOLDER = 3,
	SOCKET_LOCK_LINK = 4,
	SOCKET_LOCK_FILE = 5, /* of any other kind */
};

/* What is in the way. */
struct socket_lock_holder {
	enum socket_lock_kind kind;
	uint32_t pid; /* of the process that listens; 0 = not known */
	uint32_t uid; /* of that process, else of the file; for SOCKET_LOCK_NOTHING not set */
};

/*
 * @type: SOCK_STREAM or SOCK_SEQPACKET. Everybody may connect. Returns 0; -EADDRINUSE if a process
 * listens there; -EEXIST if something else than a socket is there; or another negative errno.
 * @ret_holder is set for each failure.
 */
int socket_lock_open(struct socket_lock *socket_lock, const char *path, int type,
		     struct socket_lock_holder *ret_holder);

/* Whether the path still leads to our socket: others may be allowed to remove it. */
bool socket_lock_is_there(const struct socket_lock *socket_lock);

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
