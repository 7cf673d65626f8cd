/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Which tt-metal this is, for people: nothing is decided by it. */

#include <stddef.h>

/*
 * "BUILD-ID, version VERSION, PATH" of the library with that path. Parts that are not known say so; what
 * does not fit is cut off.
 */
void metal_version_describe(const char *library, char *text, size_t size);
