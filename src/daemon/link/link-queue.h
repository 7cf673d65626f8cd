/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What one link is still to be told, in order. It names books and holds none: one that has ended before its
 * turn would otherwise stay in memory for a peer that does not read.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/book-id.h"
#include "wire/link.h"

#define LINK_QUEUE_TEXT_MAX (UINT64_C(16) << 20)

struct link_item {
	enum link_kind kind;
	struct book_id book;
	uint64_t number; /* LINK_SYNCED */
	char *text;      /* LINK_LINES; NULL = none */
	size_t length;
};

struct link_queue {
	struct link_item *items;
	size_t first, count, capacity;
	uint64_t text; /* bytes of all */
};

void link_queue_deinit(struct link_queue *queue);

/* Takes its text in any case. 0, -ENOBUFS if there are too many, or -ENOMEM. */
int link_queue_put(struct link_queue *queue, const struct link_item *item);

/* The next one, whose text is the caller's. 0, or -ENOENT if there is none. */
int link_queue_take(struct link_queue *queue, struct link_item *ret_item);
