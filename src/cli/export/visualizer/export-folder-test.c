/* SPDX-License-Identifier: Apache-2.0 */

/* A report appears whole or not at all, and takes the place of nothing but a report. */

#include "cli/export/visualizer/export-folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/testing/unit.h"

#define FILE_NAME "report"

static bool is_report(int folder)
{
	return export_folder_has_only(folder, FILE_NAME);
}

static void put(int folder, const char *name, const char *byte)
{
	int fd = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	assert(fd >= 0 && write(fd, byte, 1) == 1 && close(fd) == 0);
}

static char content(const char *name)
{
	int fd = open(unit_path(name), O_RDONLY | O_CLOEXEC);
	char byte;

	assert(fd >= 0 && read(fd, &byte, 1) == 1 && close(fd) == 0);
	return byte;
}

/* Nothing but folder @name is left. */
static bool is_alone(const char *name)
{
	int fd = open(unit_dir(), O_PATH | O_DIRECTORY | O_CLOEXEC);
	bool is = export_folder_has_only(fd, name);

	assert(close(fd) == 0);
	return is;
}

static void make(const char *name, const char *byte)
{
	struct export_folder folder;

	assert(export_folder_begin(&folder, unit_path(name), is_report) == 0);
	put(folder.folder, FILE_NAME, byte);
	assert(export_folder_finish(&folder, is_report) == 0);
	export_folder_deinit(&folder);
}

UNIT(an_earlier_report_is_replaced)
{
	make("a", "1");
	assert(content("a/" FILE_NAME) == '1' && is_alone("a"));
	make("a/", "2");
	assert(content("a/" FILE_NAME) == '2' && is_alone("a"));
}

UNIT(what_is_not_finished_leaves_nothing)
{
	struct export_folder folder;

	assert(export_folder_begin(&folder, unit_path("a"), is_report) == 0);
	put(folder.folder, FILE_NAME, "1");
	put(folder.folder, "b", "1");
	assert(access(unit_path("a"), F_OK) < 0);
	export_folder_deinit(&folder);
	assert(rmdir(unit_dir()) == 0 && mkdir(unit_dir(), 0700) == 0);
}

UNIT(an_unfinished_report_leaves_the_earlier_one)
{
	struct export_folder folder;

	make("a", "1");
	assert(export_folder_begin(&folder, unit_path("a"), is_report) == 0);
	put(folder.folder, FILE_NAME, "2");
	export_folder_deinit(&folder);
	assert(content("a/" FILE_NAME) == '1' && is_alone("a"));
}

static void refuses(const char *name)
{
	struct export_folder folder;

	assert(export_folder_begin(&folder, unit_path(name), is_report) == EXPORT_FOLDER_OTHER);
	export_folder_deinit(&folder);
}

UNIT(nothing_else_is_replaced)
{
	int fd;

	assert(mkdir(unit_path("empty"), 0700) == 0);
	refuses("empty");
	make("a", "1");
	fd = open(unit_path("a"), O_PATH | O_CLOEXEC);
	put(fd, "notes", "n");
	assert(close(fd) == 0);
	refuses("a");
	assert(content("a/notes") == 'n' && content("a/" FILE_NAME) == '1');
	make("b", "2");
	assert(symlink("b", unit_path("link")) == 0);
	refuses("link");
	refuses("b/" FILE_NAME);
}

UNIT(what_came_meanwhile_is_not_replaced)
{
	struct export_folder folder;

	assert(export_folder_begin(&folder, unit_path("a"), is_report) == 0);
	put(folder.folder, FILE_NAME, "1");
	assert(mkdir(unit_path("a"), 0700) == 0);
	assert(export_folder_finish(&folder, is_report) == EXPORT_FOLDER_OTHER);
	export_folder_deinit(&folder);
	assert(rmdir(unit_path("a")) == 0);
	assert(rmdir(unit_dir()) == 0 && mkdir(unit_dir(), 0700) == 0);
}

UNIT(a_report_of_another_user_is_not_replaced)
{
	if (geteuid() != 0)
		unit_skip("needs root");
	make("a", "1");
	assert(chown(unit_path("a"), 1001, 1001) == 0);
	refuses("a");
}

UNIT(a_folder_that_is_not_there)
{
	struct export_folder folder;

	assert(export_folder_begin(&folder, unit_path("no/such"), is_report) == -ENOENT);
	export_folder_deinit(&folder);
	assert(export_folder_begin(&folder, "/", is_report) == -EINVAL);
	export_folder_deinit(&folder);
}
