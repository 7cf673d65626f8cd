/* SPDX-License-Identifier: Apache-2.0 */

/* The socket file of an exited process refuses connections; that tells it from a live one. */

#include "base/socket-lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

#define SOCKET_LOCK_LOCK_PATH (sizeof(((struct socket_lock *)NULL)->path) + 8)
#define SOCKET_LOCK_BACKLOG 4096 /* the kernel caps it at its own maximum */

static void socket_lock_lock_path(const struct socket_lock *socket_lock,
				  char ret_path[SOCKET_LOCK_LOCK_PATH])
{
	(void)snprintf(ret_path, SOCKET_LOCK_LOCK_PATH, "%s.lock", socket_lock->path);
}

/* Whether a path still leads to the file that is open. */
static bool socket_lock_is_at(int fd, const char *path)
{
	struct stat held, there;

	return fstat(fd, &held) == 0 && lstat(path, &there) == 0 && there.st_dev == held.st_dev &&
	       there.st_ino == held.st_ino;
}

/* The holder removes the file: then a process that waited for it has locked a deleted file. */
static int socket_lock_lock(const struct socket_lock *socket_lock)
{
	char path[SOCKET_LOCK_LOCK_PATH];

	socket_lock_lock_path(socket_lock, path);
	for (;;) {
		CLEANUP_CLOSE int fd = -1;

		fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY, 0600);
		if (fd < 0)
			return -errno;
		if (flock(fd, LOCK_EX | LOCK_NB) < 0)
			return errno == EWOULDBLOCK ? -EADDRINUSE : -errno;
		if (socket_lock_is_at(fd, path))
			return cleanup_steal_fd(&fd);
	}
}

/* Who answers at the address: -EADDRINUSE and the pid, or 0 if nobody does. */
static int socket_lock_ask(const struct sockaddr_un *address, int type, uint32_t *ret_holder)
{
	CLEANUP_CLOSE int fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct ucred credentials;
	socklen_t length = sizeof(credentials);

	if (fd < 0)
		return -errno;
	if (connect(fd, (const struct sockaddr *)address, sizeof(*address)) < 0) {
		/* A full queue belongs to a live process; so does another type of socket. */
		if (errno == ECONNREFUSED || errno == ENOENT)
			return 0;
		return errno == EAGAIN || errno == EPROTOTYPE ? -EADDRINUSE : -errno;
	}
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &length) == 0)
		*ret_holder = (uint32_t)credentials.pid;
	return -EADDRINUSE;
}

/* Frees the path: what is there must be the socket of an exited process. */
static int socket_lock_clear(const struct socket_lock *socket_lock,
			     const struct sockaddr_un *address, int type, uint32_t *ret_holder)
{
	struct stat st;
	int r;

	if (lstat(socket_lock->path, &st) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISSOCK(st.st_mode))
		return -EEXIST;
	r = socket_lock_ask(address, type, ret_holder);
	if (r < 0)
		return r;
	return unlink(socket_lock->path) < 0 && errno != ENOENT ? -errno : 0;
}

static int socket_lock_listen(struct socket_lock *socket_lock, const struct sockaddr_un *address,
			      int type)
{
	CLEANUP_CLOSE int fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct stat st;

	if (fd < 0)
		return -errno;
	if (bind(fd, (const struct sockaddr *)address, sizeof(*address)) < 0)
		return -errno;
	if (chmod(socket_lock->path, 0666) < 0 || lstat(socket_lock->path, &st) < 0 ||
	    listen(fd, SOCKET_LOCK_BACKLOG) < 0) {
		int r = -errno;

		(void)unlink(socket_lock->path); /* just created */
		return r;
	}
	socket_lock->device = st.st_dev;
	socket_lock->inode = st.st_ino;
	socket_lock->fd = cleanup_steal_fd(&fd);
	return 0;
}

int socket_lock_open(struct socket_lock *socket_lock, const char *path, int type,
		     uint32_t *ret_holder)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	size_t length = strlen(path);
	uint32_t holder = 0;
	int r;

	*socket_lock = SOCKET_LOCK_NULL;
	if (length == 0 || length >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	memcpy(address.sun_path, path, length);
	memcpy(socket_lock->path, path, length + 1);
	socket_lock->lock_fd = socket_lock_lock(socket_lock);
	/* Where no lock is possible (a shared folder, another user's lock) we do without. */
	if (socket_lock->lock_fd == -EADDRINUSE) {
		socket_lock->lock_fd = -1;
		(void)socket_lock_ask(&address, type, ret_holder); /* only for the pid */
		return -EADDRINUSE;
	}
	if (socket_lock->lock_fd < 0)
		socket_lock->lock_fd = -1;
	r = socket_lock_clear(socket_lock, &address, type, &holder);
	if (r == 0)
		r = socket_lock_listen(socket_lock, &address, type);
	if (r < 0) {
		*ret_holder = holder;
		socket_lock_close(socket_lock);
	}
	return r;
}

int socket_lock_adopt(struct socket_lock *socket_lock, const char *path, int fd, dev_t device,
		      ino_t inode)
{
	struct sockaddr_un address = {0};
	socklen_t size = sizeof(address);
	size_t length = strlen(path);
	struct stat st;
	int lock_fd, flags = fcntl(fd, F_GETFL);

	*socket_lock = SOCKET_LOCK_NULL;
	if (getsockname(fd, (struct sockaddr *)&address, &size) < 0 || flags < 0 ||
	    fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
		return -errno;
	if (length >= sizeof(address.sun_path) ||
	    strncmp(address.sun_path, path, sizeof(address.sun_path)) != 0)
		return -EADDRNOTAVAIL;
	memcpy(socket_lock->path, path, length + 1);
	lock_fd = socket_lock_lock(socket_lock);
	if (lock_fd == -EADDRINUSE)
		return lock_fd;
	socket_lock->lock_fd = lock_fd < 0 ? -1 : lock_fd; /* as in socket_lock_open() */
	if (lstat(path, &st) < 0 || !S_ISSOCK(st.st_mode) ||
	    (inode != 0 && (st.st_dev != device || st.st_ino != inode))) {
		socket_lock_close(socket_lock);
		return -ENOENT;
	}
	socket_lock->fd = fd;
	socket_lock->device = st.st_dev;
	socket_lock->inode = st.st_ino;
	return 0;
}

void socket_lock_leave(struct socket_lock *socket_lock)
{
	if (socket_lock->fd >= 0)
		(void)close(socket_lock->fd); /* nothing was written to it */
	socket_lock->fd = -1;
	socket_lock_close(socket_lock);
}

void socket_lock_close(struct socket_lock *socket_lock)
{
	char lock[SOCKET_LOCK_LOCK_PATH];
	struct stat st;

	if (socket_lock->fd >= 0) {
		if (lstat(socket_lock->path, &st) == 0 && st.st_dev == socket_lock->device &&
		    st.st_ino == socket_lock->inode)
			(void)unlink(socket_lock->path); /* if that fails, the next one does it */
		(void)close(socket_lock->fd);            /* nothing was written to it */
	}
	if (socket_lock->lock_fd >= 0) {
		socket_lock_lock_path(socket_lock, lock);
		if (socket_lock_is_at(socket_lock->lock_fd, lock))
			(void)unlink(lock);        /* nobody else can have taken its place */
		(void)close(socket_lock->lock_fd); /* and the lock with it */
	}
	*socket_lock = SOCKET_LOCK_NULL;
}
