/* SPDX-License-Identifier: Apache-2.0 */

/* A ring that grows. */

#include "daemon/link/link-queue.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/quota.h"

void link_queue_deinit(struct link_queue *queue)
{
	struct link_item item;

	while (link_queue_take(queue, &item) == 0)
		free(item.text);
	free(queue->items);
	*queue = (struct link_queue){0};
}

/* Makes room for one more. */
static int queue_grow(struct link_queue *queue)
{
	size_t before = queue->capacity;
	struct link_item *grown =
		array_grow(queue->items, &queue->capacity, queue->count + 1, sizeof(*queue->items));

	if (!grown)
		return -ENOMEM;
	queue->items = grown;
	/* What went on at the beginning goes on where the room was added, which is as much at least. */
	if (queue->capacity > before && queue->first + queue->count > before) {
		size_t moved = queue->first + queue->count - before;

		memcpy(grown + before, grown, moved * sizeof(*grown));
	}
	return 0;
}

int link_queue_put(struct link_queue *queue, const struct link_item *item)
{
	int r = queue->count < LINK_QUEUE_MAX ? queue_grow(queue) : -ENOBUFS;

	if (r < 0) {
		free(item->text);
		return r;
	}
	queue->items[(queue->first + queue->count++) % queue->capacity] = *item;
	queue->text += item->length;
	return 0;
}

int link_queue_take(struct link_queue *queue, struct link_item *ret_item)
{
	if (queue->count == 0)
		return -ENOENT;
	*ret_item = queue->items[queue->first];
	queue->first = (queue->first + 1) % queue->capacity;
	queue->count--;
	queue->text -= ret_item->length;
	return 0;
}
