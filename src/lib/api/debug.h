/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * TTMEM_DEBUG=FILE: a line for every call that says what was requested and whether it was recorded.
 * It answers "does my call reach the library at all?". The file is opened, appended to and closed
 * for each line, so that the library keeps no descriptor open in the application.
 */

#include <stdbool.h>

/* Reads the environment; debug_is_on() does not change afterwards. */
void debug_open(void);
bool debug_is_on(void);

/* The first line: whether tracking is wanted, and whether there is a book. */
void debug_opened(bool wanted, bool has_book);

void debug_line(const char *format, ...) __attribute__((format(printf, 1, 2)));
