/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Which of the loaded files are never unloaded: the program, the files that it needs, what those need, and who
 * says so itself. Others may stay for ever too, but nobody promises.
 *
 * A file is known by its name as others ask for it. Of two with one name the first in the loader's list is meant:
 * what came with the program is in front, and each is behind a file that needs it.
 *
 * All of these: one at a time.
 */

#include <link.h>
#include <stdbool.h>

/* Before a walk over the loader's list. */
void lasting_begin(void);

/* The next file of it. Return: whether it stays. */
bool lasting_meet(const struct dl_phdr_info *info);

/* Whether the file with this base was ever found to stay; if so it is still there. */
bool lasting_knows(uintptr_t base);
