/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Files that a user has named for output. In a folder that others may write to, such as /tmp, somebody
 * else may have put a link, a hard link or a FIFO under that name, so that we overwrite what only we may
 * write, or wait for ever. What another user has put there is refused, as the kernel does where
 * fs.protected_symlinks and its siblings are set; here also where they are not, for folders that are not
 * sticky, and for every part of the path.
 */

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

/* Refused for that reason. No file system returns it. */
#define USER_FILE_FOREIGN (-EKEYREJECTED)

/* Refused by user_file_open_own(). The same. */
#define USER_FILE_OTHERS (-EOWNERDEAD)

/*
 * Opens @path for writing. @flags: O_APPEND or O_TRUNC, or 0; it is created with @mode if it is not there.
 * /dev/stdout, /dev/stderr and /dev/fd/N are the descriptors that they name, with their position. Return:
 * a descriptor, or a negative errno.
 */
int user_file_open(const char *path, int flags, mode_t mode);

/*
 * Opens a file that belongs to the user's own settings, where a variable of the environment says: it may be
 * another user's that sudo has kept, whose links are not to be followed and in whose folders nothing is to
 * be created. So all folders on the way must be ours or root's. @flags: O_RDONLY, or O_WRONLY with O_CREAT,
 * which also creates the folders that are missing. Waits for no pipe. Return: a descriptor, or a negative
 * errno.
 */
int user_file_open_own(const char *path, int flags, mode_t mode);

/*
 * Opens the folder that the last name of @path is in, with O_PATH, by the same rules. The name itself goes
 * to @ret_name; nothing need be there, and a link there is not followed. Slashes at the end are ignored.
 * Return: a descriptor, or a negative errno; -EINVAL for a path without a name, such as "/" or "..".
 */
int user_file_open_parent(const char *path, char ret_name[NAME_MAX + 1]);

/* Why it failed, for people. */
const char *user_file_error(int error);

/*
 * The descriptor that a path names: /dev/stderr, /dev/fd/N, /proc/self/fd/N; -1 = it is no such path. Header
 * only, because libttmem uses it too.
 */
static inline int user_file_number(const char *path)
{
	static const char *const folders[] = {"/dev/fd/", "/proc/self/fd/"};
	static const char *const names[] = {"/dev/stdin", "/dev/stdout", "/dev/stderr"};

	for (int i = 0; i < 3; i++) {
		if (strcmp(path, names[i]) == 0)
			return i;
	}
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		const char *digits = path + strlen(folders[i]);
		size_t count;

		if (strncmp(path, folders[i], strlen(folders[i])) != 0)
			continue;
		count = strspn(digits, "0123456789");
		if (count > 0 && count <= 7 && !digits[count])
			return atoi(digits); /* NOLINT(cert-err34-c): seven digits */
	}
	return -1;
}
