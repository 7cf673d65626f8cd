/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Books of processes that have ended, until everybody lets go of them: first they wait to be read, one user
 * after the other, and then for what was read to be on disk. Their memory counts for the memory cgroup
 * that the process was in, so what waits is bounded for each group with a limit, and for each user. Of a
 * book without room only the totals are read, at once.
 *
 * Not thread-safe.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/process/memory-cgroup.h"
#include "base/quota.h"

struct exit_queue_book {
	void *context; /* whose it is; unique */
	uint32_t user;
	uint64_t bytes;
	struct memory_cgroup group; /* its limit is 0: none is known */
};

struct exit_queue_item {
	struct exit_queue_book book;
	bool is_taken;
	bool is_first; /* of its user's: it is larger than what may wait */
};

struct exit_queue {
	struct exit_queue_item *items; /* in the order in which they came */
	size_t count, capacity;
	struct quota books, bytes; /* shares of users; their turns are with the books */
};

#define EXIT_QUEUE_NULL                                                \
	((struct exit_queue){.books = {.total = EXIT_QUEUE_BOOKS_MAX}, \
			     .bytes = {.total = EXIT_QUEUE_BYTES_MAX}})

void exit_queue_deinit(struct exit_queue *queue);

/*
 * 0; -ENOSPC if there is no room for it, in its group or for its user, who then has another one that waits;
 * or -ENOMEM.
 */
int exit_queue_put(struct exit_queue *queue, const struct exit_queue_book *book);

/*
 * The next to be read: of the user whose turn it is, the first that does not fit into its group, or else
 * the first. NULL: none waits.
 */
void *exit_queue_take(struct exit_queue *queue);

/* Everybody has let go of it. Returns its context, or NULL if it is not in the queue. */
void *exit_queue_remove(struct exit_queue *queue, const void *context);
