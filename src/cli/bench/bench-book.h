/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* This process's own book, for the benchmark. */

#include <stdint.h>

/* A descriptor of the book, which the caller closes; -ENOENT if there is none. */
int bench_book_open(void);

/* Bytes of memory that the book takes; 0 if there is none. */
uint64_t bench_book_bytes(void);

/* Bytes of anonymous memory that this process has touched, including the library's private half. */
uint64_t bench_book_anonymous(void);
