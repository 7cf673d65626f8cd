/* SPDX-License-Identifier: Apache-2.0 */

/* Creates the keeper's socket and the process that serves it. */

#include "daemon/custody/keeper-start.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/process/child.h"
#include "daemon/custody/keeper-process.h"
#include "daemon/custody/keeper-wire.h"

#define KEEPER_START_BACKLOG 16

static int keeper_start_address(const char *path, struct sockaddr_un *ret_address)
{
	size_t length = strlen(path);

	if (length == 0 || length >= sizeof(ret_address->sun_path))
		return -ENAMETOOLONG;
	*ret_address = (struct sockaddr_un){.sun_family = AF_UNIX};
	memcpy(ret_address->sun_path, path, length);
	return 0;
}

int keeper_start_connect(const char *path, int *ret_fd)
{
	struct sockaddr_un address;
	CLEANUP_CLOSE int fd = -1;
	int r = keeper_start_address(path, &address);

	if (r < 0)
		return r;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
		return -errno;
	if (!keeper_wire_is_friend(fd))
		return -EPERM;
	*ret_fd = cleanup_steal_fd(&fd);
	return 0;
}

/* Removes only a socket: any other file there is not ours. */
static int keeper_start_clear(const char *path)
{
	struct stat file;

	if (lstat(path, &file) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISSOCK(file.st_mode))
		return -EEXIST;
	return unlink(path) < 0 ? -errno : 0;
}

static int keeper_start_listen(const char *path, int *ret_fd)
{
	struct sockaddr_un address;
	CLEANUP_CLOSE int fd = -1;
	int r = keeper_start_address(path, &address);

	if (r == 0)
		r = keeper_start_clear(path);
	if (r < 0)
		return r;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	/*
	 * The name gets the mode of the socket, so there is no moment at which others may connect,
	 * and the umask, which all threads share, stays unchanged.
	 */
	if (fchmod(fd, 0600) < 0 ||
	    bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
		return -errno;
	if (listen(fd, KEEPER_START_BACKLOG) < 0) {
		r = -errno;
		(void)unlink(path); /* created just above */
		return r;
	}
	*ret_fd = cleanup_steal_fd(&fd);
	return 0;
}

int keeper_start_new(const char *path, const char *program, struct loop *loop, struct child *child,
		     int *ret_fd)
{
	char number[16];
	const char *const arguments[] = {KEEPER_PROCESS_NAME, KEEPER_PROCESS_ARGUMENT, number,
					 NULL};
	const char *const environment[] = {NULL};
	struct child_setup setup = {
		.program = program ? program : "/proc/self/exe",
		.arguments = arguments,
		.environment = environment,
		/* A relative path must still lead to the socket when the keeper removes it. */
		.folder = path[0] == '/' ? "/" : NULL,
		.input = -1,
	};
	CLEANUP_CLOSE int listening = -1;
	CLEANUP_CLOSE int fd = -1;
	int r;

	(void)snprintf(number, sizeof(number), "%d", CHILD_FD);
	r = keeper_start_listen(path, &listening);
	if (r < 0)
		return r;
	r = keeper_start_connect(path, &fd);
	if (r == 0) {
		setup.extra = listening;
		r = child_start(child, loop, &setup);
	}
	if (r < 0) {
		(void)unlink(path); /* created just above */
		return r;
	}
	*ret_fd = cleanup_steal_fd(&fd);
	return 0;
}
