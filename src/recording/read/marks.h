/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* All marks of a book that a recording has: a book itself has only the newest. */

#include "recording/read/recording-private.h"

struct mark_list;
struct reader;
struct snapshot;

/* A file from anybody may have endlessly many. */
#define MARKS_MAX 65536u

/*
 * Adds them, oldest first, to @list, which book_marks_deinit() ends; their texts live as long as
 * @snapshot. @reader: of the book as it was at its end. 0 or a negative errno.
 */
int marks_read(struct recording *recording, size_t book, struct reader *reader,
	       struct snapshot *snapshot, struct mark_list *list);
