/* SPDX-License-Identifier: Apache-2.0 */

/* One list: it is short enough to be looked through. */

#include "daemon/recorder/exit-queue.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/bits.h"
#include "base/quota.h"

void exit_queue_deinit(struct exit_queue *queue)
{
	free(queue->items);
	free(queue->lanes);
	*queue = EXIT_QUEUE_NULL;
}

static struct exit_queue_lane *exit_queue_lane(const struct exit_queue *queue, uint32_t user)
{
	for (size_t i = 0; i < queue->lane_count; i++) {
		if (queue->lanes[i].user == user)
			return &queue->lanes[i];
	}
	return NULL;
}

/* Whether the user may have one more. One may always wait. */
static bool exit_queue_has_share(const struct exit_queue *queue, const struct exit_queue_book *book)
{
	const struct exit_queue_lane *lane = exit_queue_lane(queue, book->user);

	return !lane ||
	       (quota_rest(EXIT_QUEUE_BOOKS_MAX, queue->count, lane->books) >= 1 &&
		quota_rest(EXIT_QUEUE_BYTES_MAX, queue->bytes, lane->bytes) >= book->bytes);
}

static uint64_t exit_queue_group_max(const struct memory_cgroup *group)
{
	return bits_max(group->limit / EXIT_QUEUE_GROUP_SHARE, EXIT_QUEUE_GROUP_MIN);
}

/* Likewise for the group. */
static bool exit_queue_has_room(const struct exit_queue *queue, const struct exit_queue_book *book)
{
	const struct memory_cgroup *group = &book->group;
	uint64_t bytes = 0;
	size_t books = 0;

	for (size_t i = 0; i < queue->count && group->limit; i++) {
		const struct exit_queue_book *other = &queue->items[i].book;

		if (!other->group.limit || other->group.inode != group->inode ||
		    other->group.device != group->device)
			continue;
		bytes += other->bytes;
		books++;
	}
	return books == 0 || bytes + book->bytes <= exit_queue_group_max(group);
}

static struct exit_queue_lane *exit_queue_get_lane(struct exit_queue *queue, uint32_t user)
{
	struct exit_queue_lane *lane = exit_queue_lane(queue, user);

	if (lane)
		return lane;
	lane = array_grow(queue->lanes, &queue->lane_capacity, queue->lane_count + 1,
			  sizeof(*lane));
	if (!lane)
		return NULL;
	queue->lanes = lane;
	lane += queue->lane_count++;
	*lane = (struct exit_queue_lane){.user = user};
	return lane;
}

int exit_queue_put(struct exit_queue *queue, const struct exit_queue_book *book)
{
	struct exit_queue_item *items;
	struct exit_queue_lane *lane;

	if (!exit_queue_has_share(queue, book) || !exit_queue_has_room(queue, book))
		return -ENOSPC;
	items = array_grow(queue->items, &queue->capacity, queue->count + 1, sizeof(*items));
	if (!items)
		return -ENOMEM;
	queue->items = items;
	lane = exit_queue_get_lane(queue, book->user);
	if (!lane)
		return -ENOMEM;
	items[queue->count++] = (struct exit_queue_item){
		.book = *book,
		.is_first = book->group.limit && book->bytes > exit_queue_group_max(&book->group),
	};
	queue->bytes += book->bytes;
	lane->bytes += book->bytes;
	lane->books++;
	return 0;
}

void *exit_queue_take(struct exit_queue *queue)
{
	struct exit_queue_item *next = NULL;
	struct exit_queue_lane *next_lane = NULL;

	for (size_t i = 0; i < queue->count; i++) {
		struct exit_queue_item *item = &queue->items[i];
		struct exit_queue_lane *lane = exit_queue_lane(queue, item->book.user);

		if (item->is_taken)
			continue;
		if (!next || lane->turn < next_lane->turn ||
		    (lane == next_lane && item->is_first && !next->is_first)) {
			next = item;
			next_lane = lane;
		}
	}
	if (!next)
		return NULL;
	next->is_taken = true;
	next_lane->turn = ++queue->turns;
	return next->book.context;
}

void *exit_queue_remove(struct exit_queue *queue, const void *context)
{
	struct exit_queue_lane *lane;
	void *removed;
	size_t i = 0;

	while (i < queue->count && queue->items[i].book.context != context)
		i++;
	if (i == queue->count)
		return NULL;
	removed = queue->items[i].book.context;
	lane = exit_queue_lane(queue, queue->items[i].book.user);
	queue->bytes -= queue->items[i].book.bytes;
	if (lane) { /* who has a book has one */
		lane->bytes -= queue->items[i].book.bytes;
		lane->books--;
	}
	if (lane && lane->books == 0)
		*lane = queue->lanes[--queue->lane_count];
	queue->count--;
	memmove(&queue->items[i], &queue->items[i + 1], (queue->count - i) * sizeof(*queue->items));
	return removed;
}
