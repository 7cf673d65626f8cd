/* SPDX-License-Identifier: Apache-2.0 */

/* Paths as another user may follow them. The kernel, asked as that user, is the judge. */

#include "symbol/user-path.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/testing/unit.h"

#define SOMEBODY 54321u

static void put(const char *name, mode_t mode)
{
	FILE *file = fopen(unit_path(name), "we");

	assert(file && fclose(file) == 0 && chmod(unit_path(name), mode) == 0);
}

static void folder(const char *name, mode_t mode)
{
	assert(mkdir(unit_path(name), 0700) == 0 && chmod(unit_path(name), mode) == 0);
}

static void begin(void)
{
	if (getuid() != 0)
		unit_skip("needs root to be others");
	assert(chmod(unit_dir(), 0755) == 0);
	folder("open", 0755);
	folder("closed", 0700);
	put("open/file", 0644);
	put("closed/file", 0644);
}

/* Below the test's folder, whose parents may be closed: what is above is not looked at. */
static int walk(const char *path, uint32_t user)
{
	int root = open(unit_dir(), O_PATH | O_DIRECTORY | O_CLOEXEC), fd = -1;
	int r = user_path_open(root, path, user, &fd);

	if (r == 0)
		r = user_path_check(fd, user, USER_PATH_READ);
	if (fd >= 0)
		assert(close(fd) == 0);
	assert(close(root) == 0);
	return r;
}

/* What the kernel says to a process of that user whose root is the test's folder. */
static int real(const char *path, uint32_t user)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		if (chroot(unit_dir()) < 0 || chdir("/") < 0 || setgid(user) < 0 ||
		    setuid(user) < 0)
			_exit(100);
		_exit(open(path, O_RDONLY | O_CLOEXEC) < 0 ? errno : 0);
	}
	assert(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
	assert(WEXITSTATUS(status) != 100);
	return -WEXITSTATUS(status);
}

static void assert_same(const char *path, uint32_t user, int wanted)
{
	assert(walk(path, user) == wanted);
	assert(real(path, user) == wanted);
}

UNIT(a_closed_folder_closes_what_is_in_it)
{
	begin();
	assert_same("/open/file", SOMEBODY, 0);
	assert_same("/closed/file", SOMEBODY, -EACCES);
	assert_same("/closed/file", 0, 0);
	assert_same("/closed/none", SOMEBODY, -EACCES); /* not even whether it is there */
	assert_same("/open/none", SOMEBODY, -ENOENT);
	assert_same("/closed/../open/file", SOMEBODY, -EACCES);
	assert(chown(unit_path("closed"), SOMEBODY, SOMEBODY) == 0);
	assert_same("/closed/file", SOMEBODY, 0);
	/* An owner without rights has none, whatever others have. */
	assert(chmod(unit_path("closed"), 0077) == 0);
	assert_same("/closed/file", SOMEBODY, -EACCES);
}

UNIT(links_lead_where_the_user_may_go)
{
	begin();
	assert(symlink("../closed/file", unit_path("open/relative")) == 0);
	assert(symlink("/closed/file", unit_path("open/absolute")) == 0);
	assert(symlink("/open/../open/./file", unit_path("open/fine")) == 0);
	assert(symlink("../../../../open", unit_path("open/up")) == 0);
	assert(symlink("loop", unit_path("open/loop")) == 0);
	assert_same("/open/relative", SOMEBODY, -EACCES);
	assert_same("/open/absolute", SOMEBODY, -EACCES);
	assert_same("/open/fine", SOMEBODY, 0);
	assert_same("/open/up/file", SOMEBODY, 0);
	assert_same("/open/loop", SOMEBODY, -ELOOP);
	assert_same("/../../open/file", SOMEBODY, 0);
}

UNIT(slashes_in_a_row_are_one)
{
	begin();
	assert_same("////////open///file", SOMEBODY, 0);
	assert_same("////////closed///file", SOMEBODY, -EACCES);
}

/* The kernel would let a member of the group in; its members are not known here. */
UNIT(rights_of_a_group_alone_do_not_count)
{
	begin();
	assert(chmod(unit_path("closed"), 0750) == 0);
	assert(walk("/closed/file", SOMEBODY) == -EACCES);
	assert(chmod(unit_path("closed"), 0705) == 0);
	assert(walk("/closed/file", SOMEBODY) == -EACCES);
	assert(chmod(unit_path("closed"), 0711) == 0);
	assert_same("/closed/file", SOMEBODY, 0);
	assert(chmod(unit_path("closed/file"), 0640) == 0);
	assert_same("/closed/file", SOMEBODY, -EACCES);
}

/* With this list somebody is the only one whom the kernel refuses. */
UNIT(what_has_an_access_control_list_is_the_owners)
{
	const struct {
		uint32_t version;
		struct {
			uint16_t tag, rights;
			uint32_t id;
		} entries[5];
	} list = {2,
		  {{0x01, 7, UINT32_MAX},
		   {0x02, 0, SOMEBODY},
		   {0x04, 5, UINT32_MAX},
		   {0x10, 5, UINT32_MAX},
		   {0x20, 5, UINT32_MAX}}};

	begin();
	if (setxattr(unit_path("open"), "system.posix_acl_access", &list, sizeof(list), 0) < 0)
		unit_skip("no access control lists here");
	assert_same("/open/file", SOMEBODY, -EACCES);
	assert(walk("/open/file", SOMEBODY + 1) == -EACCES);
	assert(chown(unit_path("open"), SOMEBODY, SOMEBODY) == 0);
	assert_same("/open/file", SOMEBODY, 0);
}

UNIT(a_path_is_absolute_and_not_too_long)
{
	char path[8192];

	begin();
	assert(walk("open/file", SOMEBODY) == -EINVAL);
	memset(path, 'x', sizeof(path));
	path[0] = '/';
	path[300] = '\0';
	assert(walk(path, SOMEBODY) == -ENAMETOOLONG);
	path[300] = 'x';
	path[sizeof(path) - 1] = '\0';
	assert(walk(path, SOMEBODY) == -ENAMETOOLONG);
}

UNIT(limits_are_those_of_the_kernel)
{
	char path[8192], name[32], target[PATH_MAX] = "open/file";

	begin();
	for (int i = 1; i <= 41; i++) {
		snprintf(name, sizeof(name), "link%d", i);
		assert(symlink(target, unit_path(name)) == 0);
		strcpy(target, name);
	}
	assert_same("/link40", SOMEBODY, 0);
	assert_same("/link41", SOMEBODY, -ELOOP);
	memset(path, 'x', sizeof(path));
	path[0] = '/';
	path[1 + NAME_MAX] = '\0';
	assert_same(path, SOMEBODY, -ENOENT);
	path[1 + NAME_MAX] = 'x';
	path[2 + NAME_MAX] = '\0';
	assert_same(path, SOMEBODY, -ENAMETOOLONG);
	memset(path, '/', sizeof(path));
	strcpy(path + PATH_MAX - 1 - strlen("open/file"), "open/file");
	assert_same(path, SOMEBODY, 0);
	memset(path, '/', sizeof(path));
	strcpy(path + PATH_MAX - strlen("open/file"), "open/file");
	assert_same(path, SOMEBODY, -ENAMETOOLONG);
}

UNIT(the_root_is_a_path)
{
	int root, fd = -1;

	begin();
	root = open(unit_dir(), O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert(root >= 0);
	for (size_t i = 0; i < 4; i++) {
		static const char *const names[] = {"/", "//.", "/..", "/open/.."};
		struct stat ours, found;

		assert(user_path_open(root, names[i], SOMEBODY, &fd) == 0);
		assert(fstat(root, &ours) == 0 && fstat(fd, &found) == 0);
		assert(ours.st_ino == found.st_ino && fcntl(fd, F_GETFD) == FD_CLOEXEC);
		assert(close(fd) == 0);
	}
	assert(user_path_check(-1, SOMEBODY, USER_PATH_READ) == -EBADF);
	assert(user_path_open(-1, "/", SOMEBODY, &fd) == -EBADF);
	assert(close(root) == 0);
}

/* Each right on its own, of the owner and of others. */
UNIT(every_right_that_is_wanted_is_needed)
{
	int fd;

	begin();
	fd = open(unit_path("open/file"), O_RDONLY | O_CLOEXEC);
	assert(fd >= 0 && fchmod(fd, 0644) == 0);
	assert(user_path_check(fd, SOMEBODY, USER_PATH_READ) == 0);
	assert(user_path_check(fd, SOMEBODY, USER_PATH_SEARCH) == -EACCES);
	assert(user_path_check(fd, SOMEBODY, USER_PATH_READ | USER_PATH_SEARCH) == -EACCES);
	assert(user_path_check(fd, 0, USER_PATH_READ | USER_PATH_SEARCH) == 0);
	assert(fchown(fd, SOMEBODY, 0) == 0 && fchmod(fd, 0400) == 0);
	assert(user_path_check(fd, SOMEBODY, USER_PATH_READ) == 0);
	assert(user_path_check(fd, SOMEBODY, USER_PATH_READ | USER_PATH_SEARCH) == -EACCES);
	assert(user_path_check(fd, SOMEBODY + 1, USER_PATH_READ) == -EACCES);
	assert(fchmod(fd, 0100) == 0);
	assert(user_path_check(fd, SOMEBODY, USER_PATH_READ | USER_PATH_SEARCH) == -EACCES);
	assert(close(fd) == 0);
}
