/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Finds the loaded files that are never unloaded: the program, the files that it needs, what those
 * need, and files marked so themselves (DF_1_NODELETE). Others may stay forever too, but that is
 * not guaranteed.
 *
 * A file is known by the name under which others need it. If two have the same name, the first in
 * the loader's list is meant: files loaded with the program come first, and each comes after a file
 * that needs it.
 *
 * Callers serialize all of these.
 */

#include <link.h>
#include <stdbool.h>

/* Before a walk over the loader's list. */
void permanent_files_begin(void);

/* The next file of the list. Return: whether it stays. */
bool permanent_files_meet(const struct dl_phdr_info *info);

/* Whether the file with this base was ever found to be permanent; if so it is still loaded. */
bool permanent_files_knows(uintptr_t base);
