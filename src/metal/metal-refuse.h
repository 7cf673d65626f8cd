/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What libttmem-metal.so does when this tt-metal is not what it takes it for: it says so once, in one
 * line, and tracks nothing from then on. The application continues.
 */

#include <stdbool.h>

bool metal_refused(void);

/* Prints the reason, if nothing was refused before. */
void metal_refuse(const char *format, ...) __attribute__((format(printf, 1, 2)));
