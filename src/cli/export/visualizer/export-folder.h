/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The folder of a report. It is written under another name beside its place and renamed when it is
 * complete, so nobody ever sees half of one; and it takes the place of an earlier export only, never of
 * anything else.
 */

#include <limits.h>
#include <stdbool.h>

enum export_folder_outcome {
	EXPORT_FOLDER_OTHER = 1, /* something that is not an earlier export has the name */
};

struct export_folder {
	int parent; /* both are opened with O_PATH */
	int folder;
	bool replaces; /* there is an earlier export */
	char name[NAME_MAX + 1];
	char temporary[NAME_MAX + 1]; /* empty = none is there */
};

#define EXPORT_FOLDER_NULL ((struct export_folder){.parent = -1, .folder = -1})

/*
 * Makes the folder that is to become @path. @is_report: see struct export_format. 0, an
 * export_folder_outcome, or a negative errno; for user_file_error().
 */
int export_folder_begin(struct export_folder *folder, const char *path,
			bool (*is_report)(int folder));

/* Gives it its name. The same results. */
int export_folder_finish(struct export_folder *folder, bool (*is_report)(int folder));

/* Removes what was not finished. */
void export_folder_deinit(struct export_folder *folder);

/* Whether the only file in a folder is @name. */
bool export_folder_has_only(int folder, const char *name);
