/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The file of a recording: opened for whoever records, and what was recorded into it in a line. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct recorder_sums;

/* Overwrites @path. A descriptor, or a negative errno after the reason was reported. */
int record_file_open(const char *command, const char *path);

/*
 * A file that is not there yet: "ttmem-WHAT.ttrec", or with a number. @ret_path has room for @size bytes.
 * As above.
 */
int record_file_make(const char *command, const char *what, char *ret_path, size_t size);

/*
 * "ttmem-PID-WHY.ttrec" in a folder, or with a number. A descriptor, or a negative errno; nothing is
 * reported.
 */
int record_file_make_in(const char *folder, uint32_t pid, const char *why, char *ret_path,
			size_t size);

/* On stderr. @result: of recorder_finish(). */
void record_file_tell(const char *command, const char *path, const struct recorder_sums *sums,
		      int result);
