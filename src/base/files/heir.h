/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Whose the files in a folder are to be. A program that root runs by hand must not leave files that
 * the folder's own user can no longer read, as that user's next start would. So root gives what it
 * creates there to the owner of the folder, the heir, if root made the folder for that user: if
 * only root can have created it, as in /var/lib. A folder that a user made somewhere else inherits
 * nothing.
 */

#include <stdbool.h>
#include <sys/types.h>

/* Whether we are root and @uid is the heir of the folder of @path. */
bool heir_is(const char *path, uid_t uid);

/*
 * Gives the file to the heir of the folder of @path, if there is one. @fd: the file, open in any way
 * (O_PATH too). 0 or a negative errno.
 */
int heir_give(int fd, const char *path);

/* The same for a file that may be there: only a regular one with one name. */
int heir_give_path(const char *path);
