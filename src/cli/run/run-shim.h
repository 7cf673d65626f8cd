/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The library that `ttmem run --metal-shim` puts in front of tt-metal. The dynamic linker only warns of a
 * library that it cannot preload, once for each process, and goes on without: so it is looked at first.
 */

#include <stddef.h>

/*
 * @ret_path: absolute, to be freed by the caller. 0, or a negative errno; then @ret_reason has a constant
 * text that follows the path in a message.
 */
int shim_find(const char *path, char **ret_path, const char **ret_reason);

/* The value of LD_PRELOAD with @shim in front of what is there. -ENAMETOOLONG if it is too long. */
int shim_preload(const char *shim, char *value, size_t size);
