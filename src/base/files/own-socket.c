/* SPDX-License-Identifier: Apache-2.0 */

/* One path from the environment and the effective user; no folder is made. */

#include "base/files/own-socket.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define OWN_SOCKET_NAME "/ttmemd.sock"

/* XDG says that relative paths must be ignored. A link may be another user's. */
int own_socket_find(char *ret_path, size_t size)
{
	const char *runtime = secure_getenv("XDG_RUNTIME_DIR");
	char folder[sizeof("/tmp/ttmem-4294967295")];
	struct stat st;
	int n;

	if (runtime && *runtime == '/') {
		n = snprintf(ret_path, size, "%s/ttmem" OWN_SOCKET_NAME, runtime);
		return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
	}
	(void)snprintf(folder, sizeof(folder), "/tmp/ttmem-%u", geteuid()); /* fits */
	n = snprintf(ret_path, size, "%s" OWN_SOCKET_NAME, folder);
	if (n < 0 || (size_t)n >= size)
		return -ENAMETOOLONG;
	if (lstat(folder, &st) < 0)
		return -errno;
	return S_ISDIR(st.st_mode) && st.st_uid == geteuid() && !(st.st_mode & (S_IWGRP | S_IWOTH))
		       ? 0
		       : -EPERM;
}
