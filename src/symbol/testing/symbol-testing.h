/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * For tests: real programs, compiled in the test's folder, and the addresses in them according to
 * nm.
 */

#include <stddef.h>
#include <stdint.h>

/*
 * Lines of the C program with its labels (at_plain and so on), and with the calls of inlined
 * functions.
 */
#define TESTING_LINE_PLAIN 9
#define TESTING_LINE_HIDDEN 15
#define TESTING_LINE_INNER 20
#define TESTING_LINE_MIDDLE 27
#define TESTING_LINE_OUTER 33

/* Runs a command in the test's folder; it must succeed. Without a compiler the case is skipped. */
void testing_run(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Lets every user into the test's folder. Where that takes more than its mode the case is skipped. */
void testing_let_in(void);

/* Writes program.c and program.cc there. */
void testing_sources(void);

/* Full path of a file there. The fourth call from now overwrites the text. */
const char *testing_path(const char *name);

/* Opens a file there for reading. */
int testing_open(const char *name);

/* The address of a symbol in a file there. */
uint64_t testing_address(const char *name, const char *symbol);

/* Reads a whole file there; the caller frees it. */
uint8_t *testing_read(const char *name, size_t *ret_size);
void testing_write(const char *name, const void *bytes, size_t size);
