/* SPDX-License-Identifier: Apache-2.0 */

/* A socket file of one who died refuses connections; that is how it is told from a living one. */

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

#define CLAIM_LOCK_PATH (sizeof(((struct claim *)NULL)->path) + 8)
#define CLAIM_BACKLOG 4096 /* the kernel cuts it at its own maximum */

static void claim_lock_path(const struct claim *claim, char ret_path[CLAIM_LOCK_PATH])
{
	(void)snprintf(ret_path, CLAIM_LOCK_PATH, "%s.lock", claim->path);
}

/* Whether a path still leads to the file that is open. */
static bool claim_is_at(int fd, const char *path)
{
	struct stat held, there;

	return fstat(fd, &held) == 0 && lstat(path, &there) == 0 && there.st_dev == held.st_dev &&
	       there.st_ino == held.st_ino;
}

/* The file is removed by its holder: then whoever has waited at it holds nothing. */
static int claim_lock(const struct claim *claim)
{
	char path[CLAIM_LOCK_PATH];

	claim_lock_path(claim, path);
	for (;;) {
		CLEANUP_CLOSE int fd = -1;

		fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY, 0600);
		if (fd < 0)
			return -errno;
		if (flock(fd, LOCK_EX | LOCK_NB) < 0)
			return errno == EWOULDBLOCK ? -EADDRINUSE : -errno;
		if (claim_is_at(fd, path))
			return cleanup_steal_fd(&fd);
	}
}

/* Who answers at the address: -EADDRINUSE and the pid, or 0 if nobody does. */
static int claim_ask(const struct sockaddr_un *address, int type, uint32_t *ret_holder)
{
	CLEANUP_CLOSE int fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct ucred credentials;
	socklen_t length = sizeof(credentials);

	if (fd < 0)
		return -errno;
	if (connect(fd, (const struct sockaddr *)address, sizeof(*address)) < 0) {
		/* A full queue is somebody's; another kind of socket is, too. */
		if (errno == ECONNREFUSED || errno == ENOENT)
			return 0;
		return errno == EAGAIN || errno == EPROTOTYPE ? -EADDRINUSE : -errno;
	}
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &length) == 0)
		*ret_holder = (uint32_t)credentials.pid;
	return -EADDRINUSE;
}

/* Makes room at the path: what lies there must be the socket of one who died. */
static int claim_clear(const struct claim *claim, const struct sockaddr_un *address, int type,
		       uint32_t *ret_holder)
{
	struct stat st;
	int r;

	if (lstat(claim->path, &st) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISSOCK(st.st_mode))
		return -EEXIST;
	r = claim_ask(address, type, ret_holder);
	if (r < 0)
		return r;
	return unlink(claim->path) < 0 && errno != ENOENT ? -errno : 0;
}

static int claim_listen(struct claim *claim, const struct sockaddr_un *address, int type)
{
	CLEANUP_CLOSE int fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct stat st;

	if (fd < 0)
		return -errno;
	if (bind(fd, (const struct sockaddr *)address, sizeof(*address)) < 0)
		return -errno;
	if (chmod(claim->path, 0666) < 0 || lstat(claim->path, &st) < 0 ||
	    listen(fd, CLAIM_BACKLOG) < 0) {
		int r = -errno;

		(void)unlink(claim->path); /* just made */
		return r;
	}
	claim->device = st.st_dev;
	claim->inode = st.st_ino;
	claim->fd = cleanup_steal_fd(&fd);
	return 0;
}

int claim_open(struct claim *claim, const char *path, int type, uint32_t *ret_holder)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	size_t length = strlen(path);
	uint32_t holder = 0;
	int r;

	*claim = CLAIM_NULL;
	if (length == 0 || length >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	memcpy(address.sun_path, path, length);
	memcpy(claim->path, path, length + 1);
	claim->lock_fd = claim_lock(claim);
	/* Where no lock can be had (a folder of everybody's, another user's lock) we do without. */
	if (claim->lock_fd == -EADDRINUSE) {
		claim->lock_fd = -1;
		(void)claim_ask(&address, type, ret_holder); /* only for the name */
		return -EADDRINUSE;
	}
	if (claim->lock_fd < 0)
		claim->lock_fd = -1;
	r = claim_clear(claim, &address, type, &holder);
	if (r == 0)
		r = claim_listen(claim, &address, type);
	if (r < 0) {
		*ret_holder = holder;
		claim_close(claim);
	}
	return r;
}

void claim_close(struct claim *claim)
{
	char lock[CLAIM_LOCK_PATH];
	struct stat st;

	if (claim->fd >= 0) {
		if (lstat(claim->path, &st) == 0 && st.st_dev == claim->device &&
		    st.st_ino == claim->inode)
			(void)unlink(claim->path); /* if it cannot be, the next one does it */
		(void)close(claim->fd);            /* nothing was written to it */
	}
	if (claim->lock_fd >= 0) {
		claim_lock_path(claim, lock);
		if (claim_is_at(claim->lock_fd, lock))
			(void)unlink(lock);  /* nobody else can have taken its place */
		(void)close(claim->lock_fd); /* and the lock with it */
	}
	*claim = CLAIM_NULL;
}
