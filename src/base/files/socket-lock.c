/* SPDX-License-Identifier: Apache-2.0 */

/* The socket file of an exited process refuses connections; that tells it from a live one. */

#include "base/files/socket-lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bits.h"
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

/* Whether nobody else can create a file in the socket's folder, or keep us from opening ours. */
static bool socket_lock_is_private(const struct socket_lock *socket_lock)
{
	char folder[sizeof(socket_lock->path)] = ".";
	const char *slash = strrchr(socket_lock->path, '/');
	struct stat st;

	if (slash == socket_lock->path)
		strcpy(folder, "/");
	else if (slash)
		(void)snprintf(folder, sizeof(folder), "%.*s", (int)(slash - socket_lock->path),
			       socket_lock->path); /* fits: it is shorter */
	return stat(folder, &st) == 0 && st.st_uid == geteuid() &&
	       !(st.st_mode & (S_IWGRP | S_IWOTH));
}

/* The holder removes the file: then a process that waited for it has locked a deleted file. */
static int socket_lock_lock(const struct socket_lock *socket_lock)
{
	char path[SOCKET_LOCK_LOCK_PATH];

	if (!socket_lock_is_private(socket_lock))
		return -EPERM;
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

/* Who answers at the address: -EADDRINUSE and the process, or 0 if nobody does. */
static int socket_lock_ask(const struct sockaddr_un *address, int type,
			   struct socket_lock_holder *holder)
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
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &length) == 0) {
		holder->pid = (uint32_t)credentials.pid;
		holder->uid = credentials.uid;
	}
	return -EADDRINUSE;
}

/* The same for a socket of any type; the others are tried only to learn whose it is. */
static int socket_lock_ask_any(const struct sockaddr_un *address, int type,
			       struct socket_lock_holder *holder)
{
	static const int types[] = {SOCK_STREAM, SOCK_SEQPACKET, SOCK_DGRAM};
	int r = socket_lock_ask(address, type, holder);

	for (size_t i = 0; r == -EADDRINUSE && holder->pid == 0 && i < ARRAY_SIZE(types); i++) {
		if (types[i] != type)
			(void)socket_lock_ask(address, types[i], holder); /* it is taken anyway */
	}
	return r;
}

static enum socket_lock_kind socket_lock_kind(mode_t mode)
{
	if (S_ISSOCK(mode))
		return SOCKET_LOCK_DEAD; /* unless somebody answers */
	if (S_ISDIR(mode))
		return SOCKET_LOCK_FOLDER;
	return S_ISLNK(mode) ? SOCKET_LOCK_LINK : SOCKET_LOCK_FILE;
}

/* Frees the path: what is there must be the socket of an exited process. */
static int socket_lock_clear(const struct socket_lock *socket_lock,
			     const struct sockaddr_un *address, int type,
			     struct socket_lock_holder *holder)
{
	struct stat st;
	int r;

	if (lstat(socket_lock->path, &st) < 0)
		return errno == ENOENT ? 0 : -errno;
	holder->kind = socket_lock_kind(st.st_mode);
	holder->uid = st.st_uid;
	if (!S_ISSOCK(st.st_mode))
		return -EEXIST;
	r = socket_lock_ask_any(address, type, holder);
	/* Where we may not connect, nobody knows: do not call it dead. */
	if (r == -EADDRINUSE || r == -EACCES)
		holder->kind = SOCKET_LOCK_LIVE;
	if (r < 0)
		return r;
	if (unlink(socket_lock->path) < 0 && errno != ENOENT)
		return -errno;
	*holder = (struct socket_lock_holder){.kind = SOCKET_LOCK_NOTHING};
	return 0;
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

/* @holder: what is in the way, if this fails. */
static int socket_lock_take(struct socket_lock *socket_lock, const struct sockaddr_un *address,
			    int type, struct socket_lock_holder *holder)
{
	int r;

	socket_lock->lock_fd = socket_lock_lock(socket_lock);
	if (socket_lock->lock_fd == -EADDRINUSE) {
		/* Only we and root can have opened that file. */
		*holder = (struct socket_lock_holder){.kind = SOCKET_LOCK_LIVE, .uid = geteuid()};
		socket_lock->lock_fd = -1;
		(void)socket_lock_ask_any(address, type, holder); /* only for the pid */
		return -EADDRINUSE;
	}
	if (socket_lock->lock_fd < 0)
		socket_lock->lock_fd = -1; /* we do without */
	r = socket_lock_clear(socket_lock, address, type, holder);
	if (r == 0)
		r = socket_lock_listen(socket_lock, address, type);
	/* Another process was faster: look again, to say who. */
	if (r == -EADDRINUSE && holder->kind == SOCKET_LOCK_NOTHING)
		r = socket_lock_clear(socket_lock, address, type, holder) < 0 ? r : -EAGAIN;
	return r;
}

int socket_lock_open(struct socket_lock *socket_lock, const char *path, int type,
		     struct socket_lock_holder *ret_holder)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct socket_lock_holder holder = {.kind = SOCKET_LOCK_NOTHING};
	size_t length = strlen(path);
	int r = -ENAMETOOLONG;

	*socket_lock = SOCKET_LOCK_NULL;
	if (length > 0 && length < sizeof(address.sun_path)) {
		memcpy(address.sun_path, path, length);
		memcpy(socket_lock->path, path, length + 1);
		r = socket_lock_take(socket_lock, &address, type, &holder);
	}
	if (r < 0) {
		*ret_holder = holder;
		socket_lock_close(socket_lock);
	}
	return r;
}

bool socket_lock_is_there(const struct socket_lock *socket_lock)
{
	struct stat st;

	return lstat(socket_lock->path, &st) == 0 && st.st_dev == socket_lock->device &&
	       st.st_ino == socket_lock->inode;
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

	if (socket_lock->fd >= 0) {
		if (socket_lock_is_there(socket_lock))
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
