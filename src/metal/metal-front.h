/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the files that stand in front of tt-metal's functions share (metal-fronts.c, metal-front-traces.c). */

#include <stdbool.h>

/* A C function with a name of C++. */
#define METAL_FRONT(name) __asm__(name) __attribute__((visibility("default")))

#define METAL_HERE __builtin_return_address(0)

/* Whether anything is to be reported. What was, before it was refused, is not believed any more. */
bool metal_is_on(void);
