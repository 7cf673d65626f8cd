/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Setting a database aside: it gets the time behind its name and is never touched again, but for
 * the oldest ones, which make way. Nobody may have it open.
 */

#include <stddef.h>
#include <stdint.h>

#define STORE_ASIDE_MAX 3u

/*
 * Moves STORE_FILE of @folder and its log. @ret_name: what it is called now. 0 or a negative errno.
 */
int store_aside(const char *folder, uint64_t now_ns, char *ret_name, size_t size);

/* Removes STORE_FILE and what belongs to it, if that is a plain file. */
void store_aside_remove(const char *folder);
