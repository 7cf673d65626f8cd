/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Demangles the names of C++ functions with the C++ runtime, which every machine with a C++ program
 * has; elfutils has no demangler. The runtime is known to take very long and to recurse very deeply
 * on crafted names, so it is only called in a separate process, with limits. It refuses names
 * longer than 1024 bytes; this module decodes those too if they consist mostly of identifiers.
 */

#include <stddef.h>

#define DEMANGLE_NAME_MAX 4096u /* bytes; longer names are not decoded */

/*
 * Copies @name, demangled if it is a C++ name, NUL-terminated and cut on a UTF-8 boundary to fit.
 */
void demangle_name(const char *name, char *ret_text, size_t size);
