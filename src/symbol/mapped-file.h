/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Finds the file that a running process has loaded, whatever its path refers to now. A program that
 * was reinstalled or deleted still runs the old file, and the kernel has links to it: /proc/PID/exe
 * to the program, /proc/PID/map_files to every mapped file. The first is open to whoever may
 * inspect the process; the second needs CAP_CHECKPOINT_RESTORE or CAP_SYS_ADMIN.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/process-id.h"

#define MAPPED_FILE_MAPS_MAX \
	131072u /* lines of /proc/PID/maps to read; twice the kernel's default limit */

struct stat;

/*
 * The program if @path is its name, else the file mapped at @base (0 = not known). Opened with
 * O_PATH only: it may be anything, and the caller has to check that it is the file that was meant.
 * 0, -ENOENT if there is no such file, or another negative errno.
 */
int mapped_file_look(struct process_id owner, const char *path, uint64_t base, int *ret_fd);

/* Whether a process of @user's, with no more rights than that, has the file mapped. */
bool mapped_file_has(struct process_id owner, uint32_t user, const struct stat *file);

/*
 * The name of an open file, as it is where its process is; even if it was deleted. The caller frees
 * it. NULL: it has none.
 */
char *mapped_file_name(int fd);

/* Takes a file, which is opened with O_PATH. @path: its name in the process. False: enough. */
typedef bool mapped_file_fn(void *context, const char *path, int fd);

/*
 * The program of a process, and then the libraries that have code. Those below /usr and /lib are
 * left out if they are ours: packages do not disappear with the process. 0, or a negative errno: there is no
 * such process any more, or we may not look into it.
 */
int mapped_file_all(struct process_id id, mapped_file_fn *fn, void *context);
