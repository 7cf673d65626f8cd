/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What libttmem-metal.so does when this tt-metal is not what it takes it for: it says so once, in one
 * line and in the book, and tracks nothing from then on. The application continues.
 */

#include <stdbool.h>

bool metal_refused(void);

/*
 * In case that it could not be written into the book at that time, or in a forked child's, which it is not
 * in yet.
 */
void metal_refusal_to_book(void);

/* Prints the reason and writes it into the book, if nothing was refused before. */
void metal_refuse(const char *format, ...) __attribute__((format(printf, 1, 2)));
