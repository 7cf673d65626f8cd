/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The books of a recording, and the texts that its events name by number. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "base/pool.h"
#include "recording/read/recording.h"

struct filter;
struct snapshot;
struct stack;
struct stacks;

/* Texts or stacks by their numbers in a book. */
struct feed_texts {
	struct map index;
	const void **list;
	size_t capacity;
};

struct feed_book {
	struct scan_book *book; /* as it was at the end; NULL = not needed yet, or not to be had */
	struct stacks *stacks;
	bool is_tried;
	struct feed_texts strings, calls;
};

struct feed_books {
	struct recording *recording;
	struct recording_moment until;
	struct feed_book *list; /* one for each of the recording */
	size_t count;
	struct pool pool;
};

void feed_books_init(struct feed_books *books, struct recording *recording,
		     const struct recording_moment *until);
void feed_books_deinit(struct feed_books *books);

/* A book as it was at the end; NULL = there is none. */
struct feed_book *feed_books_get(struct feed_books *books, size_t number);

/* A string or stack of a book; NULL = none. They live as long as the books, equal ones once. */
const char *feed_books_string(struct feed_books *books, size_t number, uint32_t id);
const struct stack *feed_books_stack(struct feed_books *books, size_t number, uint32_t id);

/* A text from elsewhere, likewise; NULL stays NULL. */
const char *feed_books_text(struct feed_books *books, const char *text);

/* Whether the user wants to see a device of a book. */
bool feed_books_wants(struct feed_books *books, size_t number, uint32_t device,
		      const struct filter *filter);

/*
 * The live buffers of a device as they were at a moment, in a snapshot of the caller's; and the number of
 * the device's last event then. -ENOENT: it did not exist. 0 or a negative errno.
 */
int feed_books_live(struct feed_books *books, size_t number, uint32_t device,
		    const struct recording_moment *moment, struct snapshot **ret_snapshot,
		    uint64_t *ret_last);

/* The number of a device's last event at the end; 0 = none. */
uint64_t feed_books_last(struct feed_books *books, size_t number, uint32_t device);
