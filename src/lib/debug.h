/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * TTMEM_DEBUG=FILE: a line for every call, saying what was asked and whether it was recorded. For the
 * question "does my call reach the library at all?". The file is opened, appended to and closed for each
 * line, so that no descriptor of ours lies around in the application.
 */

#include <stdbool.h>

/* Reads the environment; the answer of debug_is_on() is fixed from then on. */
void debug_open(void);
bool debug_is_on(void);

/* The first line: is tracking wanted, and is there a book? */
void debug_opened(bool wanted, bool has_book);

void debug_line(const char *format, ...) __attribute__((format(printf, 1, 2)));
