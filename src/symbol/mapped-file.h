/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The file that a living process has loaded, whatever its name leads to by now. A program that was installed
 * anew, or deleted, runs on with the old file, and the kernel still leads to it: /proc/PID/exe to the
 * program, /proc/PID/map_files to whatever is mapped. Who may look at a process may use the first; the
 * second is for those with CAP_CHECKPOINT_RESTORE or CAP_SYS_ADMIN.
 */

#include <stdint.h>

#define MAPPED_FILE_MAPS_MAX \
	131072u /* lines of /proc/PID/maps that are looked at; twice what is usual */

/*
 * The program, if @path is its name, else what is mapped at @base (0 = not known). It is only seen (O_PATH):
 * it may be anything, and the caller has to check that it is the file that was meant. 0, -ENOENT if there
 * is no such file, or another negative errno.
 */
int mapped_file_look(uint32_t pid, const char *path, uint64_t base, int *ret_fd);
