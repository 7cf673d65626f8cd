/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Adding a whole record to a file, for the logs that a person asks for. The file is opened, written to
 * once and closed for each, so that records of several threads and processes never mix, nothing is lost
 * in a crash, and no descriptor of ours lies around in the application.
 */

#include <stdbool.h>

struct iovec;

/*
 * Appends the pieces to @path, which is made if need be, with one writev(). Anything but a plain file,
 * or a file that would become larger than the process may make it, is left alone. @is_shared: the place is
 * one where others may have put a file, and then only one of our own is taken. Changes no errno, and is no
 * place where a thread can be cancelled.
 */
void append_record(const char *path, bool is_shared, const struct iovec *pieces, int count);
