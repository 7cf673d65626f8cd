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
	quota_deinit(&queue->books);
	quota_deinit(&queue->bytes);
	*queue = EXIT_QUEUE_NULL;
}

/* Whether the user may have one more. One may always wait. */
static bool exit_queue_has_share(const struct exit_queue *queue, const struct exit_queue_book *book)
{
	return quota_used(&queue->books, book->user) == 0 ||
	       (quota_room(&queue->books, book->user) >= 1 &&
		quota_room(&queue->bytes, book->user) >= book->bytes);
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

int exit_queue_put(struct exit_queue *queue, const struct exit_queue_book *book)
{
	struct exit_queue_item *items;

	if (!exit_queue_has_share(queue, book) || !exit_queue_has_room(queue, book))
		return -ENOSPC;
	items = array_grow(queue->items, &queue->capacity, queue->count + 1, sizeof(*items));
	if (!items)
		return -ENOMEM;
	queue->items = items;
	if (quota_add(&queue->books, book->user, 1) < 0)
		return -ENOMEM;
	if (quota_add(&queue->bytes, book->user, book->bytes) < 0) {
		quota_give(&queue->books, book->user, 1);
		return -ENOMEM;
	}
	items[queue->count++] = (struct exit_queue_item){
		.book = *book,
		.is_first = book->group.limit && book->bytes > exit_queue_group_max(&book->group),
	};
	return 0;
}

void *exit_queue_take(struct exit_queue *queue)
{
	struct exit_queue_item *next = NULL;
	uint64_t next_turn = 0;

	for (size_t i = 0; i < queue->count; i++) {
		struct exit_queue_item *item = &queue->items[i];
		uint64_t turn = quota_turn(&queue->books, item->book.user);

		if (item->is_taken)
			continue;
		if (!next || turn < next_turn ||
		    (item->book.user == next->book.user && item->is_first && !next->is_first)) {
			next = item;
			next_turn = turn;
		}
	}
	if (!next)
		return NULL;
	next->is_taken = true;
	quota_had_turn(&queue->books, next->book.user);
	return next->book.context;
}

void *exit_queue_remove(struct exit_queue *queue, const void *context)
{
	void *removed;
	size_t i = 0;

	while (i < queue->count && queue->items[i].book.context != context)
		i++;
	if (i == queue->count)
		return NULL;
	removed = queue->items[i].book.context;
	quota_give(&queue->books, queue->items[i].book.user, 1);
	quota_give(&queue->bytes, queue->items[i].book.user, queue->items[i].book.bytes);
	queue->count--;
	memmove(&queue->items[i], &queue->items[i + 1], (queue->count - i) * sizeof(*queue->items));
	return removed;
}
