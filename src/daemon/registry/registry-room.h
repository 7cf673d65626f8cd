/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Whether there is room for one more book. A process has few books, and those of one user must not take
 * the place of everybody else's: each costs three of our descriptors.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define REGISTRY_PROCESS_BOOKS_MAX 16u /* a library that is there several times */

struct book_list;
struct scan_book;

/* @max: of all books. Half of them for one user, but for root and the one who runs us. */
bool registry_room(const struct book_list *book_list, size_t max, const struct scan_book *book);
