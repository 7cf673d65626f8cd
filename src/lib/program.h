/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Where the program's file is, which the loader has no name for. The kernel knows, unless the loader itself was
 * started, with the program as an argument: then what it started is the loader, and the program is one of the
 * files that are mapped.
 */

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#define PROGRAM_PATH_SIZE PATH_MAX

/* @start: where its first page lies. For one thread at a time. False: not found; @ret_path is untouched. */
bool program_path(uintptr_t start, char *ret_path);

/* Where the loader lies; 0 = there is none. */
uintptr_t program_loader(void);
