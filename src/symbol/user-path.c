/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One component at a time, each opened below the last one and checked as an open file: whatever is
 * renamed or replaced meanwhile, every folder that was passed is one that the user may search.
 */

#include "symbol/user-path.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cleanup.h"

#define USER_PATH_LINKS_MAX 40 /* as the kernel */

struct user_path {
	int root, at; /* @at is ours */
	uint32_t user;
	unsigned int links;
	char rest[2 * PATH_MAX]; /* still to go */
};

static void user_path_cleanup(struct user_path *path)
{
	if (path->at >= 0)
		(void)close(path->at); /* O_PATH */
}

static bool user_path_has_list(int fd)
{
	char name[64];

	(void)snprintf(name, sizeof(name), "/proc/self/fd/%d", fd); /* fits */
	return getxattr(name, "system.posix_acl_access", NULL, 0) > 0;
}

int user_path_check(int fd, uint32_t user, uint32_t rights)
{
	struct stat file;
	uint32_t mode;

	if (fstat(fd, &file) < 0)
		return -errno;
	mode = file.st_mode;
	if (user == 0)
		return 0;
	if (file.st_uid == user)
		return (mode >> 6 & rights) == rights ? 0 : -EACCES;
	if ((mode & mode >> 3 & rights) != rights || user_path_has_list(fd))
		return -EACCES;
	return 0;
}

static int user_path_go(struct user_path *path, int fd)
{
	if (path->at >= 0)
		(void)close(path->at); /* O_PATH */
	path->at = fd;
	return fd < 0 ? -errno : 0;
}

static int user_path_go_to_root(struct user_path *path)
{
	return user_path_go(path, fcntl(path->root, F_DUPFD_CLOEXEC, 0));
}

/* Takes the next component off; false: there is none. */
static bool user_path_next(struct user_path *path, char ret_name[NAME_MAX + 1], int *ret_error)
{
	size_t skip = strspn(path->rest, "/");
	size_t length = strcspn(path->rest + skip, "/");

	*ret_error = length > NAME_MAX ? -ENAMETOOLONG : 0;
	if (length == 0 || *ret_error)
		return false;
	memcpy(ret_name, path->rest + skip, length);
	ret_name[length] = '\0';
	memmove(path->rest, path->rest + skip + length, strlen(path->rest + skip + length) + 1);
	return true;
}

/* Puts the target of a link before what is still to go. */
static int user_path_follow(struct user_path *path, int link)
{
	char target[PATH_MAX];
	ssize_t n = readlinkat(link, "", target, sizeof(target) - 1);
	size_t rest = strlen(path->rest);

	if (n < 0)
		return -errno;
	if (path->links++ >= USER_PATH_LINKS_MAX)
		return -ELOOP;
	if ((size_t)n + 1 + rest + 1 > sizeof(path->rest))
		return -ENAMETOOLONG;
	memmove(path->rest + n + 1, path->rest, rest + 1);
	memcpy(path->rest, target, (size_t)n);
	path->rest[n] = '/';
	return n > 0 && target[0] == '/' ? user_path_go_to_root(path) : 0;
}

static bool user_path_is_root(const struct user_path *path)
{
	struct stat root, at;

	return fstat(path->root, &root) < 0 || fstat(path->at, &at) < 0 ||
	       (root.st_dev == at.st_dev && root.st_ino == at.st_ino);
}

static int user_path_step(struct user_path *path, const char *name)
{
	CLEANUP_CLOSE int next = -1;
	struct stat file;
	int r = user_path_check(path->at, path->user, USER_PATH_SEARCH);

	if (r < 0 || strcmp(name, ".") == 0)
		return r;
	if (strcmp(name, "..") == 0 && user_path_is_root(path))
		return 0;
	next = openat(path->at, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (next < 0 || fstat(next, &file) < 0)
		return -errno;
	if (S_ISLNK(file.st_mode))
		return user_path_follow(path, next);
	return user_path_go(path, cleanup_steal_fd(&next));
}

int user_path_open(int root, const char *path, uint32_t user, int *ret_fd)
{
	CLEANUP(user_path_cleanup) struct user_path walk = {.root = root, .at = -1, .user = user};
	char name[NAME_MAX + 1];
	int error = 0, r;

	if (path[0] != '/')
		return -EINVAL;
	if (strlen(path) >= PATH_MAX)
		return -ENAMETOOLONG;
	memcpy(walk.rest, path, strlen(path) + 1);
	r = user_path_go_to_root(&walk);
	while (r == 0 && user_path_next(&walk, name, &error))
		r = user_path_step(&walk, name);
	if (r == 0)
		r = error;
	if (r < 0)
		return r;
	*ret_fd = cleanup_steal_fd(&walk.at);
	return 0;
}
