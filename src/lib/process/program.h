/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Finds the path of the program's file, for which the loader has no name. The kernel knows it,
 * unless the loader itself was started with the program as an argument: then the kernel's path is
 * the loader's, and the program is one of the mapped files.
 */

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#define PROGRAM_PATH_SIZE PATH_MAX

/* @start: its first page. Callers serialize. False: not found; @ret_path is untouched. */
bool program_path(uintptr_t start, char *ret_path);

/* The loader's address; 0 = there is none. */
uintptr_t program_loader(void);
