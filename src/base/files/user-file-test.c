/* SPDX-License-Identifier: Apache-2.0 */

/* Output goes where the user has said, and never where another user has led it. */

#include "base/files/user-file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/small-file.h"
#include "base/testing/unit.h"

#define OTHER 1001 /* any user but us */

static const char *content(const char *name)
{
	static char text[64];

	(void)small_file_read(AT_FDCWD, unit_path(name), text, sizeof(text));
	return text;
}

static int put(const char *name, int flags, const char *text)
{
	int fd = user_file_open(unit_path(name), flags, 0600);

	if (fd < 0)
		return fd;
	assert(fcntl(fd, F_GETFD) == FD_CLOEXEC);
	assert(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	assert(close(fd) == 0);
	return 0;
}

/* As in /tmp: anybody may create, and the folder is root's. */
static void make_shared(void)
{
	assert(mkdir(unit_path("shared"), 0700) == 0);
	assert(chmod(unit_path("shared"), 01777) == 0);
	assert(put("victim", 0, "precious") == 0);
}

UNIT(a_file_is_created_appended_and_truncated)
{
	assert(put("new", O_APPEND, "one") == 0);
	assert(put("new", O_APPEND, "two") == 0);
	assert(strcmp(content("new"), "onetwo") == 0);
	assert(put("new", O_TRUNC, "3") == 0);
	assert(strcmp(content("new"), "3") == 0);
	assert(put("no/such", 0, "") == -ENOENT);
	assert(put("", 0, "") == -EISDIR);
	assert(put("new/", 0, "") == -EISDIR);
	assert(put("new/below", 0, "") == -ENOTDIR);
}

UNIT(own_links_are_followed)
{
	assert(mkdir(unit_path("folder"), 0700) == 0);
	assert(symlink("folder", unit_path("alias")) == 0);
	assert(symlink("../target", unit_path("folder/link")) == 0);
	assert(put("alias/link", 0, "x") == 0);
	assert(strcmp(content("target"), "x") == 0);
	assert(symlink(unit_path("target"), unit_path("absolute")) == 0);
	assert(put("absolute", O_TRUNC, "abs") == 0);
	assert(strcmp(content("target"), "abs") == 0);
	assert(symlink("loop", unit_path("loop")) == 0);
	assert(put("loop", 0, "") == -ELOOP);
	assert(put("./././././././././././folder/../new", 0, "y") == 0);
	assert(strcmp(content("new"), "y") == 0);
}

UNIT(a_link_of_another_user_in_a_shared_folder_is_refused)
{
	if (geteuid() != 0)
		unit_skip("only root makes files of others");
	make_shared();
	assert(symlink("../victim", unit_path("shared/link")) == 0);
	assert(put("shared/link", O_APPEND, "!") == 0); /* our own */
	assert(lchown(unit_path("shared/link"), OTHER, OTHER) == 0);
	assert(put("shared/link", O_TRUNC, "evil") == USER_FILE_FOREIGN);
	assert(strcmp(content("victim"), "precious!") == 0);
	/* Of whoever owns the folder. */
	assert(chown(unit_path("shared"), OTHER, OTHER) == 0);
	assert(put("shared/link", O_APPEND, "!") == 0);
	/* Nobody else can have put it there. */
	assert(chown(unit_path("shared"), 0, 0) == 0 && chmod(unit_path("shared"), 0755) == 0);
	assert(put("shared/link", O_APPEND, "!") == 0);
	/* A group that may write is others too. */
	assert(chmod(unit_path("shared"), 0775) == 0);
	assert(put("shared/link", O_APPEND, "!") == USER_FILE_FOREIGN);
}

UNIT(a_link_on_the_way_is_refused)
{
	if (geteuid() != 0)
		unit_skip("only root makes files of others");
	make_shared();
	assert(symlink("..", unit_path("shared/way")) == 0);
	assert(lchown(unit_path("shared/way"), OTHER, OTHER) == 0);
	assert(put("shared/way/victim", O_TRUNC, "evil") == USER_FILE_FOREIGN);
	assert(strcmp(content("victim"), "precious") == 0);
}

UNIT(the_folder_of_a_path_is_opened_by_the_same_rules)
{
	char name[NAME_MAX + 1], link[8], longest[3 + NAME_MAX + 2] = "no/";
	struct stat ours, found;
	int fd;

	make_shared();
	assert(symlink("shared", unit_path("own")) == 0);
	assert(stat(unit_path("shared"), &ours) == 0);
	fd = user_file_open_parent(unit_path("own/./new//"), name);
	assert(fd >= 0 && strcmp(name, "new") == 0);
	assert(fstat(fd, &found) == 0 && found.st_ino == ours.st_ino);
	/* What has that name may be a link: it is the caller's to look at. */
	assert(symlink("/", unit_path("shared/new")) == 0);
	assert(close(fd) == 0);
	fd = user_file_open_parent(unit_path("shared/new"), name);
	assert(fd >= 0 && readlinkat(fd, name, link, sizeof(link)) == 1);
	assert(close(fd) == 0);
	assert(user_file_open_parent(unit_path("no/such"), name) == -ENOENT);
	assert(user_file_open_parent(unit_path("victim/below"), name) == -ENOTDIR);
	assert(user_file_open_parent("/", name) == -EINVAL);
	assert(user_file_open_parent("", name) == -EINVAL);
	assert(user_file_open_parent("a/..", name) == -EINVAL);
	/* Whether or not there is a folder for it. */
	memset(longest + 3, 'a', NAME_MAX);
	assert(user_file_open_parent(longest, name) == -ENOENT);
	longest[3 + NAME_MAX] = 'a';
	assert(user_file_open_parent(longest, name) == -ENAMETOOLONG);
	fd = user_file_open_parent("a", name);
	assert(fd >= 0 && close(fd) == 0);
	if (geteuid() != 0)
		unit_skip("needs root");
	assert(symlink("..", unit_path("shared/theirs")) == 0);
	assert(lchown(unit_path("shared/theirs"), OTHER, OTHER) == 0);
	assert(user_file_open_parent(unit_path("shared/theirs/new"), name) == USER_FILE_FOREIGN);
}

UNIT(hard_links_and_pipes_of_others_are_refused)
{
	if (geteuid() != 0)
		unit_skip("only root makes files of others");
	make_shared();
	assert(link(unit_path("victim"), unit_path("shared/hard")) == 0);
	assert(put("shared/hard", O_TRUNC, "evil") == USER_FILE_FOREIGN);
	assert(strcmp(content("victim"), "precious") == 0);
	assert(mkfifo(unit_path("shared/pipe"), 0666) == 0);
	assert(lchown(unit_path("shared/pipe"), OTHER, OTHER) == 0);
	/* Opening it would wait for a reader. */
	assert(put("shared/pipe", 0, "") == USER_FILE_FOREIGN);
	assert(put("shared/file", 0, "a") == 0);
	assert(lchown(unit_path("shared/file"), OTHER, OTHER) == 0);
	assert(put("shared/file", 0, "b") == USER_FILE_FOREIGN);
	assert(strstr(user_file_error(USER_FILE_FOREIGN), "another user"));
	assert(strcmp(user_file_error(-ENOENT), "No such file or directory") == 0);
}

UNIT(own_files_are_created_with_their_folders_and_found)
{
	char text[8] = "";
	int fd = user_file_open_own(unit_path("a/b/own"), O_RDONLY, 0);

	assert(fd == -ENOENT && access(unit_path("a"), F_OK) < 0);
	fd = user_file_open_own(unit_path("a/b/own"), O_WRONLY | O_CREAT | O_TRUNC, 0600);
	assert(fd >= 0 && write(fd, "x", 1) == 1 && close(fd) == 0);
	assert(symlink("a/b", unit_path("alias")) == 0);
	fd = user_file_open_own(unit_path("alias/own"), O_RDONLY, 0);
	assert(fd >= 0 && read(fd, text, sizeof(text)) == 1 && close(fd) == 0);
	/* A pipe that nobody writes to. */
	assert(mkfifo(unit_path("a/pipe"), 0600) == 0);
	fd = user_file_open_own(unit_path("a/pipe"), O_RDONLY, 0);
	assert(fd >= 0 && close(fd) == 0);
}

UNIT(nothing_of_others_is_on_the_way_to_an_own_file)
{
	static const int flags[] = {O_RDONLY, O_WRONLY | O_CREAT | O_TRUNC};

	if (geteuid() != 0)
		unit_skip("only root makes files of others");
	make_shared();
	assert(mkdir(unit_path("home"), 0755) == 0 && chown(unit_path("home"), OTHER, OTHER) == 0);
	assert(symlink("../victim", unit_path("home/link")) == 0);
	assert(symlink("..", unit_path("home/way")) == 0);
	for (size_t i = 0; i < 2; i++) {
		assert(user_file_open_own(unit_path("home/link"), flags[i], 0600) ==
		       USER_FILE_OTHERS);
		assert(user_file_open_own(unit_path("home/way/victim"), flags[i], 0600) ==
		       USER_FILE_OTHERS);
		assert(user_file_open_own(unit_path("home/.config/new"), flags[i], 0600) ==
		       USER_FILE_OTHERS);
	}
	assert(access(unit_path("home/.config"), F_OK) < 0);
	assert(strcmp(content("victim"), "precious") == 0);
	assert(strstr(user_file_error(USER_FILE_OTHERS), "another user"));
}

UNIT(descriptors_are_named_by_their_numbers)
{
	static const struct {
		const char *path;
		int number;
	} names[] = {
		{"/dev/stdin", 0},    {"/dev/stdout", 1},       {"/dev/stderr", 2},
		{"/dev/fd/63", 63},   {"/dev/fd/", -1},         {"/dev/fd/6x", -1},
		{"/dev/fd/-1", -1},   {"/dev/fd/12345678", -1}, {"/proc/self/fd/7", 7},
		{"/dev/stderr/", -1}, {"/tmp/dev/fd/3", -1},
	};
	char path[32];
	int ends[2], fd;
	char got[4] = "";

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert(user_file_number(names[i].path) == names[i].number);
	assert(pipe2(ends, O_CLOEXEC) == 0);
	snprintf(path, sizeof(path), "/dev/fd/%d", ends[1]);
	fd = user_file_open(path, O_TRUNC, 0600);
	assert(fd > 2 && fd != ends[1]);
	assert(write(fd, "abc", 3) == 3 && read(ends[0], got, 3) == 3 && strcmp(got, "abc") == 0);
	assert(close(fd) == 0 && close(ends[0]) == 0 && close(ends[1]) == 0);
	assert(user_file_open(path, 0, 0600) == -EBADF);
}

/* A shell's redirection stays what it is: not truncated, written on where it has got to. */
UNIT(a_redirected_file_keeps_its_position)
{
	char path[32];
	int file = open(unit_path("out"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600), fd;

	assert(file >= 0 && write(file, "first", 5) == 5);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
	fd = user_file_open(path, O_TRUNC, 0600);
	assert(fd >= 0 && write(fd, "second", 6) == 6);
	assert(write(file, "third", 5) == 5);
	assert(close(fd) == 0 && close(file) == 0);
	assert(strcmp(content("out"), "firstsecondthird") == 0);
}

UNIT(as_many_links_are_followed_as_the_kernel_follows)
{
	char name[8], target[8] = "end";

	for (int i = 0; i < 41; i++) {
		(void)snprintf(name, sizeof(name), "%d", i);
		assert(symlink(target, unit_path(name)) == 0);
		memcpy(target, name, sizeof(target));
	}
	assert(put("39", 0, "x") == 0 && strcmp(content("end"), "x") == 0); /* 40 of them */
	assert(put("40", 0, "y") == -ELOOP && strcmp(content("end"), "x") == 0);
}

UNIT(paths_have_a_longest)
{
	char path[PATH_MAX + 8], target[PATH_MAX], name[NAME_MAX + 1];
	int fd;

	assert(chdir(unit_dir()) == 0);
	memset(path, '/', sizeof(path));
	path[0] = '.';
	strcpy(path + PATH_MAX - 4, "new");
	fd = user_file_open(path, 0, 0600);
	assert(fd >= 0 && close(fd) == 0 && access("new", F_OK) == 0);
	strcpy(path + PATH_MAX - 4, "long");
	assert(user_file_open(path, 0, 0600) == -ENAMETOOLONG);
	assert(user_file_open_parent(path, name) == -ENAMETOOLONG && access("long", F_OK) < 0);
	/* A link makes the path longer: both parts together fit, or do not. */
	memset(target, '/', sizeof(target));
	target[0] = '.';
	target[PATH_MAX - 6] = '\0';
	assert(symlink(target, "way") == 0);
	fd = user_file_open("way/file", 0, 0600);
	assert(fd >= 0 && close(fd) == 0 && access("file", F_OK) == 0);
	assert(user_file_open("way/files", 0, 0600) == -ENAMETOOLONG && access("files", F_OK) < 0);
}

UNIT(a_name_has_as_many_bytes_as_the_file_system_takes)
{
	char path[NAME_MAX + 8] = "./", name[NAME_MAX + 1];
	int fd;

	memset(path + 2, 'a', NAME_MAX + 1);
	assert(user_file_open_parent(path, name) == -ENAMETOOLONG);
	path[2 + NAME_MAX] = '\0';
	fd = user_file_open_parent(path, name);
	assert(fd >= 0 && strcmp(name, path + 2) == 0 && close(fd) == 0);
	assert(user_file_open_parent(".", name) == -EINVAL);
	fd = user_file_open_parent("..a", name);
	assert(fd >= 0 && strcmp(name, "..a") == 0 && close(fd) == 0);
	fd = user_file_open_parent("/a", name);
	assert(fd >= 0 && strcmp(name, "a") == 0 && close(fd) == 0);
}

/* In a folder of ours a second name is ours too. */
UNIT(hard_links_in_own_folders_are_written_to)
{
	assert(put("one", 0, "1") == 0 && link(unit_path("one"), unit_path("two")) == 0);
	assert(put("two", O_TRUNC, "2") == 0 && strcmp(content("one"), "2") == 0);
	assert(put(".", 0, "") == -EISDIR && put("..", 0, "") == -EISDIR);
}

UNIT(an_own_file_is_opened_as_wanted)
{
	char text[8] = "";
	int fd;

	assert(put("file", 0, "text") == 0);
	fd = user_file_open_own(unit_path("file"), O_RDONLY, 0);
	assert(fd >= 0 && fcntl(fd, F_GETFD) == FD_CLOEXEC);
	assert(read(fd, text, sizeof(text)) == 4 && write(fd, "x", 1) < 0 && close(fd) == 0);
	fd = user_file_open_own(unit_path("file"), O_WRONLY | O_CREAT | O_TRUNC, 0600);
	assert(fd >= 0 && close(fd) == 0 && content("file")[0] == '\0');
	/* Without O_CREAT nothing is created. */
	assert(user_file_open_own(unit_path("other"), O_RDONLY, 0) == -ENOENT);
	assert(access(unit_path("other"), F_OK) < 0);
	assert(strcmp(user_file_error(-EBADMSG), "damaged: what is in it cannot be true") == 0);
}

/* What root has put into a shared folder is nobody's trap. */
UNIT(files_of_root_and_of_the_folders_owner_are_not_foreign)
{
	if (geteuid() != 0)
		unit_skip("only root makes files of others");
	make_shared();
	assert(put("shared/roots", 0, "a") == 0 && put("shared/owners", 0, "a") == 0);
	assert(put("shared/other", 0, "a") == 0 && chmod(unit_dir(), 0755) == 0);
	assert(chmod(unit_path("shared/roots"), 0666) == 0);
	assert(chmod(unit_path("shared/owners"), 0666) == 0);
	assert(chmod(unit_path("shared/other"), 0666) == 0);
	assert(chown(unit_path("shared"), OTHER, OTHER) == 0);
	assert(chown(unit_path("shared/owners"), OTHER, OTHER) == 0);
	assert(chown(unit_path("shared/other"), OTHER + 1, OTHER + 1) == 0);
	assert(seteuid(OTHER + 2) == 0);
	assert(put("shared/roots", 0, "b") == 0 && put("shared/owners", 0, "b") == 0);
	assert(put("shared/other", 0, "b") == USER_FILE_FOREIGN);
	assert(seteuid(0) == 0);
}
