/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Sets a database aside: appends the time to its name and never touches it again, except that the
 * oldest ones are removed. Nobody may have it open.
 */

#include <stddef.h>
#include <stdint.h>

#define STORE_QUARANTINE_MAX 3u

/* Renames STORE_FILE of @folder and its log. @ret_name: the new name. 0 or a negative errno. */
int store_aside(const char *folder, uint64_t now_ns, char *ret_name, size_t size);

/* Removes STORE_FILE and the files that belong to it, if it is a regular file. */
void store_quarantine_remove(const char *folder);
