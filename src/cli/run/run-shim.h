/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The library that `ttmem run --metal` loads in front of tt-metal. The dynamic linker only
 * warns about a library that it cannot preload, once per process, and continues without it: so it
 * is checked first.
 */

#include <stddef.h>

/*
 * The one that is installed with ttmem. @ret_path: absolute, freed by the caller. @ret_name: what was looked
 * for, static. 0, or a negative errno; then @ret_reason is a constant text that follows the name in a message.
 */
int shim_find(char **ret_path, const char **ret_name, const char **ret_reason);

/*
 * The value of LD_PRELOAD with @shim in front of its present value. -ENAMETOOLONG if it is too
 * long.
 */
int shim_preload(const char *shim, char *value, size_t size);

/*
 * The value of PYTHONPATH with a folder in front whose sitecustomize.py gives stacks the lines of Python.
 * A negative errno: it is not installed, or cannot be named there.
 */
int shim_python(char *value, size_t size);
