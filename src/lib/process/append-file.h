/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Appends whole records to a file, for the logs that a user asks for. The file is opened, written
 * once and closed for each record, so that records of several threads and processes never mix,
 * nothing is lost in a crash, and the library keeps no descriptor open in the application.
 */

#include <stdbool.h>

struct iovec;

/*
 * Appends the pieces to @path with one writev(), creating the file if needed. Does nothing if @path
 * is not a regular file or if it would exceed RLIMIT_FSIZE. /dev/stderr, /dev/fd/N and the like are the
 * application's descriptors, of any kind; what would block there is lost. @is_shared: others can create files in
 * that folder, so only a file that we own is written. Preserves errno and is not a cancellation
 * point.
 */
void append_file_record(const char *path, bool is_shared, const struct iovec *pieces, int count);
