/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The peaks of single processes. Each book has its own, and the snapshot of ended processes adds up what
 * several books of a process had, at whatever time.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct scan_book;

struct run_high {
	uint32_t process; /* index in the snapshot of ended processes */
	uint32_t device, type;
	uint64_t bytes;
	bool is_exact; /* false: two books were written at the same time: at least */
	bool execed;   /* the book ended before the process */
};

struct run_highs {
	struct run_high *rows;
	size_t count, capacity;
};

/* Adds the peaks of a book whose owner has ended or called exec. 0 or a negative errno. */
int run_highs_read(struct run_highs *highs, struct scan_book *book, uint32_t process, bool execed);

/* Sorts by process, device and type, one row for each: the highest of its books. */
void run_highs_finish(struct run_highs *highs);
