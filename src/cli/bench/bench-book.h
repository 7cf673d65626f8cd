/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* This process's own book, as the bench looks at it. */

#include <stdint.h>

/* A descriptor of the book, to be closed by the caller; -ENOENT if there is none. */
int bench_book_open(void);

/* Bytes of memory that the book takes; 0 if there is none. */
uint64_t bench_book_bytes(void);

/* Bytes of anonymous memory that this process has touched: the library's private half is among them. */
uint64_t bench_book_anonymous(void);
