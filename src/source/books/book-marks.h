/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The marks that a book still has: the newest BOOK_MARKS. */

#include <stdint.h>

#include "model/mark.h"

struct scan_book;
struct snapshot;

/*
 * Adds them to @marks, oldest first; their texts live as long as @snapshot. @ret_lost: how many older
 * ones have been overwritten. 0 or a negative errno.
 */
int book_marks_read(struct scan_book *book, struct snapshot *snapshot, struct mark_list *marks,
		    uint64_t *ret_lost);

/* For CLEANUP(). */
void book_marks_deinit(struct mark_list *marks);
