/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Whether there is room for one more book. A process has few books, and those of one user must not
 * crowd out everybody else's: each costs three of our descriptors.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define REGISTRY_PROCESS_BOOKS_MAX 16u /* a library may be loaded several times */

struct book_list;
struct scan_book;
struct tracked;

/*
 * @max: limit for all books. One user may have half of them, except for root and the daemon's own
 * user. Not a struct quota: the list has the processes and users of all books, and is counted when a book
 * comes. @old: a book that goes for it; NULL = none.
 */
bool registry_room(const struct book_list *book_list, size_t max, const struct scan_book *book,
		   const struct tracked *old);
