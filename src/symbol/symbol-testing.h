/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * For tests: real programs, made by the compiler in the folder of the test, and where things are in
 * them according to nm.
 */

#include <stddef.h>
#include <stdint.h>

/* Lines of the C program where its labels (at_plain and so on) are, and the calls of those inlined. */
#define TESTING_LINE_PLAIN 9
#define TESTING_LINE_HIDDEN 15
#define TESTING_LINE_INNER 20
#define TESTING_LINE_MIDDLE 27
#define TESTING_LINE_OUTER 33

/* Runs a command in the folder of the test; it must succeed. Without a compiler the case is skipped. */
void testing_run(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Writes program.c and program.cc there. */
void testing_sources(void);

/* Full name of a file there. The text is overwritten by the fourth call from now. */
const char *testing_path(const char *name);

/* Opens it for reading. */
int testing_open(const char *name);

/* The address of a symbol in a file there. */
uint64_t testing_address(const char *name, const char *symbol);

/* Takes a whole file there into memory: the caller's to free. */
uint8_t *testing_read(const char *name, size_t *ret_size);
void testing_write(const char *name, const void *bytes, size_t size);
