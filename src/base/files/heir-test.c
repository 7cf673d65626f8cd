/* SPDX-License-Identifier: Apache-2.0 */

/* What root leaves to whom. */

#include "base/files/heir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/testing/unit.h"

#define HEIR_USER 4242u

static char folder[512], file[600];

/* A folder of another user, in one with that mode, and a file of ours in it. */
static void make_folder(mode_t mode)
{
	int fd;

	if (geteuid() != 0)
		unit_skip("only root can give files away");
	(void)snprintf(folder, sizeof(folder), "%s/state", unit_dir());
	(void)snprintf(file, sizeof(file), "%s/file", folder);
	assert(chmod(unit_dir(), mode) == 0 && mkdir(folder, 0700) == 0);
	assert(chown(folder, HEIR_USER, HEIR_USER) == 0);
	fd = open(file, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	assert(fd >= 0 && close(fd) == 0);
}

static uid_t owner(const char *path)
{
	struct stat st;

	assert(lstat(path, &st) == 0);
	return st.st_uid;
}

UNIT(root_leaves_files_to_the_folders_owner)
{
	int fd;

	make_folder(0755);
	assert(heir_is(file, HEIR_USER) && !heir_is(file, 0) && !heir_is(file, HEIR_USER + 1));
	assert(heir_give_path(file) == 0 && owner(file) == HEIR_USER);
	assert(chown(file, 0, 0) == 0);
	fd = open(file, O_WRONLY | O_CLOEXEC);
	assert(fd >= 0 && heir_give(fd, file) == 0 && owner(file) == HEIR_USER);
	assert(close(fd) == 0);
	/* One that is not there. */
	assert(unlink(file) == 0 && heir_give_path(file) == 0);
}

/* Anybody could have made it and wait for what root leaves there. */
UNIT(a_folder_that_a_user_made_inherits_nothing)
{
	make_folder(01777);
	assert(!heir_is(file, HEIR_USER));
	assert(heir_give_path(file) == 0 && owner(file) == 0);
	assert(chmod(unit_dir(), 0755) == 0 && chown(unit_dir(), HEIR_USER, HEIR_USER) == 0);
	assert(heir_give_path(file) == 0 && owner(file) == 0);
	assert(chown(unit_dir(), 0, 0) == 0);
}

UNIT(files_with_other_names_and_links_are_not_given_away)
{
	char other[600];

	make_folder(0755);
	(void)snprintf(other, sizeof(other), "%s/other", unit_dir());
	assert(link(file, other) == 0);
	assert(heir_give_path(file) == 0 && owner(file) == 0);
	assert(unlink(file) == 0 && symlink(other, file) == 0);
	assert(heir_give_path(file) == 0 && owner(other) == 0 && owner(file) == 0);
}

UNIT(only_files_of_root_are_given_away)
{
	char below[700];

	make_folder(0755);
	(void)snprintf(below, sizeof(below), "%s/folder", folder);
	assert(mkdir(below, 0700) == 0 && heir_give_path(below) == 0 && owner(below) == 0);
	assert(chown(file, HEIR_USER, HEIR_USER + 1) == 0 && heir_give_path(file) == 0);
	assert(owner(file) == HEIR_USER);
	/* Without a slash, it lies in the current folder. */
	assert(chown(file, 0, 0) == 0 && chdir(folder) == 0 && heir_is("file", HEIR_USER));
	assert(heir_give_path("file") == 0 && owner(file) == HEIR_USER);
	assert(chdir("/") == 0 && !heir_is("file", 0));
	assert(heir_give(-1, file) == -EBADF);
}

/* A group that may write to the folder above could have made it. */
UNIT(a_folder_that_a_group_may_have_made_inherits_nothing)
{
	make_folder(0775);
	assert(!heir_is(file, HEIR_USER) && heir_give_path(file) == 0 && owner(file) == 0);
	assert(heir_give(-1, file) == 0);
}

UNIT(an_ordinary_user_gives_nothing_away)
{
	make_folder(0755);
	assert(setresuid(HEIR_USER, HEIR_USER, HEIR_USER) == 0);
	assert(!heir_is(file, HEIR_USER) && heir_give_path(file) == 0);
}
