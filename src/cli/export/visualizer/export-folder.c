/* SPDX-License-Identifier: Apache-2.0 */

/* All names are relative to the folder that was checked at first, whatever others rename meanwhile. */

#include "cli/export/visualizer/export-folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/files/small-file.h"
#include "base/files/user-file.h"

#define EXPORT_FOLDER_TRIES 8

static int export_folder_open(int parent, const char *name)
{
	int fd = openat(parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

bool export_folder_has_only(int folder, const char *name)
{
	CLEANUP_CLOSEDIR DIR *listing = small_file_list(folder, ".");
	const struct dirent *entry;
	size_t found = 0;

	while (listing && (entry = readdir(listing))) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		if (strcmp(entry->d_name, name) != 0)
			return false;
		found++;
	}
	return found == 1;
}

/* What has the report's name. 0: nothing, or an earlier export of ours. */
static int export_folder_look(struct export_folder *folder, bool (*is_report)(int folder))
{
	CLEANUP_CLOSE int fd = export_folder_open(folder->parent, folder->name);
	struct stat st;

	folder->replaces = false;
	if (fd == -ENOENT)
		return 0;
	if (fd == -ENOTDIR || fd == -ELOOP)
		return EXPORT_FOLDER_OTHER;
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_uid != geteuid() || !is_report(fd))
		return EXPORT_FOLDER_OTHER;
	folder->replaces = true;
	return 0;
}

/* With the caller's usual rights: it is an ordinary folder of theirs. */
static int export_folder_make(struct export_folder *folder)
{
	for (int i = 0; i < EXPORT_FOLDER_TRIES; i++) {
		uint64_t number;

		if (getrandom(&number, sizeof(number), 0) != sizeof(number))
			return -EIO;
		snprintf(folder->temporary, sizeof(folder->temporary), ".ttmem-export-%016" PRIx64,
			 number);
		if (mkdirat(folder->parent, folder->temporary, 0777) == 0)
			return 0;
		if (errno != EEXIST)
			break;
	}
	*folder->temporary = '\0';
	return -errno;
}

int export_folder_begin(struct export_folder *folder, const char *path,
			bool (*is_report)(int folder))
{
	int r;

	*folder = EXPORT_FOLDER_NULL;
	r = user_file_open_parent(path, folder->name);
	if (r < 0)
		return r;
	folder->parent = r;
	r = export_folder_look(folder, is_report);
	if (r == 0)
		r = export_folder_make(folder);
	if (r != 0)
		return r;
	r = export_folder_open(folder->parent, folder->temporary);
	if (r < 0)
		return r;
	folder->folder = r;
	return 0;
}

/* Removes a folder and the files in it; those below it, which we never make, keep it there. */
static void export_folder_remove(int parent, const char *name)
{
	CLEANUP_CLOSE int fd = export_folder_open(parent, name);
	CLEANUP_CLOSEDIR DIR *listing = fd < 0 ? NULL : small_file_list(fd, ".");
	const struct dirent *entry;

	while (listing && (entry = readdir(listing)))
		(void)unlinkat(fd, entry->d_name, 0); /* what is left keeps the folder */
	(void)unlinkat(parent, name, AT_REMOVEDIR);   /* nobody can do more about it */
}

int export_folder_finish(struct export_folder *folder, bool (*is_report)(int folder))
{
	/* Somebody may have put something there meanwhile. */
	int r = export_folder_look(folder, is_report);

	if (r != 0)
		return r;
	if (renameat2(folder->parent, folder->temporary, folder->parent, folder->name,
		      folder->replaces ? RENAME_EXCHANGE : RENAME_NOREPLACE) < 0)
		return errno == EEXIST ? EXPORT_FOLDER_OTHER : -errno;
	/* Now the earlier export has the other name. */
	if (!folder->replaces)
		*folder->temporary = '\0';
	return 0;
}

void export_folder_deinit(struct export_folder *folder)
{
	if (*folder->temporary)
		export_folder_remove(folder->parent, folder->temporary);
	if (folder->folder >= 0)
		(void)close(folder->folder); /* only a place */
	if (folder->parent >= 0)
		(void)close(folder->parent); /* likewise */
	*folder = EXPORT_FOLDER_NULL;
}
