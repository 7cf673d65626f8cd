/* SPDX-License-Identifier: Apache-2.0 */

/* The folder in /tmp counts only if nobody else can have put anything there. */

#include "base/files/own-socket.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/testing/unit.h"

UNIT(a_session_has_a_folder)
{
	char path[32];

	assert(setenv("XDG_RUNTIME_DIR", "/run/user/1", 1) == 0);
	assert(own_socket_find(path, sizeof(path)) == 0);
	assert(strcmp(path, "/run/user/1/ttmem/ttmemd.sock") == 0);
	assert(own_socket_find(path, strlen(path)) == -ENAMETOOLONG);
}

/* Makes the folder anew with @owner and @mode, and looks for it as @user. */
static int test_find(const char *folder, uid_t user, uid_t owner, mode_t mode)
{
	char path[64], expected[80];
	int r;

	assert(mkdir(folder, 0700) == 0 && chown(folder, owner, 0) == 0);
	assert(chmod(folder, mode) == 0 && seteuid(user) == 0);
	r = own_socket_find(path, sizeof(path));
	assert(seteuid(0) == 0 && rmdir(folder) == 0);
	snprintf(expected, sizeof(expected), "%s/ttmemd.sock", folder);
	assert(strcmp(path, expected) == 0);
	return r;
}

UNIT(the_folder_in_tmp_must_be_ours)
{
	const uid_t user = 1000000 + (uid_t)getpid(); /* nobody's */
	char folder[64], path[64];

	if (geteuid() != 0)
		unit_skip("needs root");
	snprintf(folder, sizeof(folder), "/tmp/ttmem-%u", user);
	assert(unsetenv("XDG_RUNTIME_DIR") == 0);
	assert(test_find(folder, user, user, 0700) == 0);
	assert(test_find(folder, user, user, 0755) == 0);
	assert(test_find(folder, user, user, 0720) == -EPERM);
	assert(test_find(folder, user, user, 0702) == -EPERM);
	assert(test_find(folder, user, user + 1, 0700) == -EPERM);
	assert(test_find(folder, user, 0, 0700) == -EPERM);

	assert(seteuid(user) == 0);
	assert(own_socket_find(path, sizeof(path)) == -ENOENT);
	assert(own_socket_find(path, strlen(path)) == -ENAMETOOLONG);
	assert(symlink(".", folder) == 0);
	assert(own_socket_find(path, sizeof(path)) == -EPERM); /* whoever it is that made it */
	assert(unlink(folder) == 0);
	/* XDG says that a relative path counts as none. */
	assert(setenv("XDG_RUNTIME_DIR", "run", 1) == 0);
	assert(own_socket_find(path, sizeof(path)) == -ENOENT);
	assert(seteuid(0) == 0);
}
