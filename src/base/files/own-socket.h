/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Where a user's own ttmemd listens: below XDG_RUNTIME_DIR or, where no session has set that (su, cron,
 * containers), in a folder of /tmp that is named after the user. Anybody may have made that one, so it counts only
 * if it is the user's and nobody else may write to it. For ttmemd, the command and libttmem.
 */

#include <stddef.h>

/*
 * @ret_path is filled except for -ENAMETOOLONG. Return: 0, which says nothing about the socket; -ENOENT = the folder
 * in /tmp is not there; -EPERM = it is not ours.
 */
int own_socket_find(char *ret_path, size_t size);
