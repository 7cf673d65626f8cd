/* SPDX-License-Identifier: Apache-2.0 */

/* Files are changed by descriptor: the heir may replace a name at any time. */

#include "base/files/heir.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

/* The owner of the folder of @path. False: it inherits nothing. */
static bool heir_find(const char *path, struct stat *ret_folder)
{
	const char *slash = strrchr(path, '/');
	CLEANUP_FREE char *folder = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
	CLEANUP_CLOSE int fd = -1;
	struct stat parent;

	if (geteuid() != 0 || !folder)
		return false;
	fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fd >= 0 && fstat(fd, ret_folder) == 0 && fstatat(fd, "..", &parent, 0) == 0 &&
	       ret_folder->st_uid != 0 && parent.st_uid == 0 &&
	       !(parent.st_mode & (S_IWGRP | S_IWOTH));
}

bool heir_is(const char *path, uid_t uid)
{
	struct stat folder;

	return heir_find(path, &folder) && folder.st_uid == uid;
}

int heir_give(int fd, const char *path)
{
	struct stat folder;

	if (!heir_find(path, &folder))
		return 0;
	return fchownat(fd, "", folder.st_uid, folder.st_gid, AT_EMPTY_PATH) < 0 ? -errno : 0;
}

int heir_give_path(const char *path)
{
	CLEANUP_CLOSE int fd = -1;
	struct stat folder, file;

	if (!heir_find(path, &folder))
		return 0;
	fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &file) < 0)
		return errno == ENOENT ? 0 : -errno;
	/* A second name may be anywhere, and not be meant for the heir. */
	if (!S_ISREG(file.st_mode) || file.st_nlink != 1 || file.st_uid == folder.st_uid)
		return 0;
	return heir_give(fd, path);
}
