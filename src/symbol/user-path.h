/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Follows a path with the rights of another user, whatever our own are: a file that anybody may read
 * can be in a folder that is closed to most. Becoming that user for a moment would need rights that
 * the daemon does not have otherwise, so the modes are compared here.
 */

#include <stdint.h>

/*
 * Opens @path, which is absolute, below @root with O_PATH, if @user may search every folder on the
 * way; links are followed, those of /proc only as text. 0; -EACCES; -ELOOP; or another negative
 * errno. Whether @user may read the file itself is left to the caller.
 */
int user_path_open(int root, const char *path, uint32_t user, int *ret_fd);

#define USER_PATH_READ 04u
#define USER_PATH_SEARCH 01u

/*
 * 0, or -EACCES if @user lacks one of @rights on an open file or folder. The groups of the user are
 * not known here. So a right that only a group has does not count, nor one that a group lacks; and
 * where there is an access control list, only the owner's rights do.
 */
int user_path_check(int fd, uint32_t user, uint32_t rights);
