/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Names of C++ functions as people wrote them. The decoder is that of the C++ runtime, which every
 * machine with a C++ program has; elfutils brings none. It is known to take very long and to nest very
 * deeply for names that are made for it, so it is only ever called in a process of its own, with limits.
 * It takes no names of more than 1024 bytes; here those of which the identifiers are most are decoded, too.
 */

#include <stddef.h>

#define DEMANGLE_NAME_MAX 4096u /* bytes; longer ones stay as they are */

/* @name as text that ends in NUL and is cut, on a UTF-8 boundary, to fit. A name of C++ is decoded. */
void demangle_name(const char *name, char *ret_text, size_t size);
