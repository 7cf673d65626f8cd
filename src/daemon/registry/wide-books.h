/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Books of users with more devices than have rows: what has no row is read as one sum, see
 * source/books/book-rest.h. How much is read of such books to bring the sums up to date is bounded
 * for each user and reading, so that one user's devices cost others no more, however many there are
 * and however often they change. Those that were not looked at for longest are first; the sums of
 * those that get no turn are shown as old. At the first time a book is always read.
 */

#include <stdbool.h>
#include <stddef.h>

struct book_list;
struct snapshot;
struct view;

/* Places of books that are read for one user: a device, or its counters. The last book is finished. */
#define WIDE_BOOKS_LOOKS_MAX 2048u

/*
 * Before the books are read into @snapshot. @latest says which books are wide, and what may be a
 * card; NULL: none is. To be called by one thread at a time. 0 or -ENOMEM.
 */
int wide_books_prepare(const struct book_list *book_list, const struct snapshot *latest,
		       struct view *view, struct snapshot *snapshot);
