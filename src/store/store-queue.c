/* SPDX-License-Identifier: Apache-2.0 */

/* The queue between producers and the writer. */

#include "store/store-queue.h"

#include <errno.h>
#include <time.h>

#include "base/bits.h"
#include "base/clock.h"
#include "base/pthreads.h"
#include "store/store-item.h"

#define STORE_BATCH_ITEMS 512u /* this many form a batch at once */

void store_queue_init(struct store_queue *queue, size_t items, size_t bytes)
{
	*queue = (struct store_queue){0};
	for (size_t i = 0; i < STORE_LANES; i++)
		queue->lanes[i].last = &queue->lanes[i].first;
	queue->lanes[STORE_LANE_RECORDS].items_max = items;
	queue->lanes[STORE_LANE_RECORDS].bytes_max = bytes;
	/* One sample per second: a minute of them is more than a working writer falls behind. */
	queue->lanes[STORE_LANE_SAMPLES].items_max = bits_max(items / 64, 4);
	queue->lanes[STORE_LANE_SAMPLES].bytes_max = bytes / 2;
	pthreads_init(&queue->lock, &queue->work);
	pthreads_init_condition(&queue->done);
}

static void store_queue_free_list(struct store_item *list)
{
	while (list) {
		struct store_item *next = list->next;

		store_item_free(list);
		list = next;
	}
}

void store_queue_deinit(struct store_queue *queue)
{
	for (size_t i = 0; i < STORE_LANES; i++)
		store_queue_free_list(queue->lanes[i].first);
	(void)pthread_cond_destroy(&queue->done); /* nobody waits for or holds these any more */
	(void)pthread_cond_destroy(&queue->work);
	(void)pthread_mutex_destroy(&queue->lock);
}

size_t store_queue_room(struct store_queue *queue, enum store_lane_kind kind)
{
	struct store_lane *lane = &queue->lanes[kind];
	size_t room;

	pthread_mutex_lock(&queue->lock);
	room = lane->bytes_max - bits_min(lane->bytes, lane->bytes_max);
	pthread_mutex_unlock(&queue->lock);
	return room;
}

void store_queue_put_consume(struct store_queue *queue, enum store_lane_kind kind,
			     struct store_item *item)
{
	struct store_lane *lane = &queue->lanes[kind];

	pthread_mutex_lock(&queue->lock);
	if (!item || lane->items >= lane->items_max ||
	    item->bytes > lane->bytes_max - bits_min(lane->bytes, lane->bytes_max)) {
		lane->dropped++;
		pthread_mutex_unlock(&queue->lock);
		store_item_free(item);
		return;
	}
	item->next = NULL;
	*lane->last = item;
	lane->last = &item->next;
	lane->items++;
	lane->bytes += item->bytes;
	queue->cut += item->cut;
	lane->put++;
	if (queue->waiting++ == 0)
		queue->oldest_ms = clock_ms(CLOCK_MONOTONIC);
	/* Else the writer waits for this batch's time already. */
	if (queue->waiting == 1 || queue->waiting == STORE_BATCH_ITEMS)
		pthread_cond_signal(&queue->work);
	pthread_mutex_unlock(&queue->lock);
}

/* Return: whether @until_ms has passed. */
static bool store_queue_sleep(struct store_queue *queue, pthread_cond_t *cond, uint64_t until_ms)
{
	return !pthreads_wait(cond, &queue->lock, until_ms * NS_PER_MS);
}

bool store_queue_wait(struct store_queue *queue, uint32_t batch_ms, uint32_t idle_ms)
{
	uint64_t idle = clock_ms(CLOCK_MONOTONIC) + idle_ms;
	bool going;

	pthread_mutex_lock(&queue->lock);
	while (!queue->stopping) {
		uint64_t until = idle;

		/* While nothing can be written, only the time of the next attempt ends the wait. */
		if (queue->waiting > 0 && !queue->stalled) {
			if (queue->hurry || queue->waiting >= STORE_BATCH_ITEMS)
				break;
			until = bits_min(until, queue->oldest_ms + batch_ms);
		}
		if (store_queue_sleep(queue, &queue->work, until))
			break;
	}
	going = !queue->stopping;
	pthread_mutex_unlock(&queue->lock);
	return going;
}

struct store_item *store_queue_take(struct store_queue *queue, enum store_lane_kind kind)
{
	struct store_lane *lane = &queue->lanes[kind];
	struct store_item *list;

	pthread_mutex_lock(&queue->lock);
	list = lane->first;
	lane->first = NULL;
	lane->last = &lane->first;
	for (const struct store_item *item = list; item; item = item->next)
		queue->waiting--;
	pthread_mutex_unlock(&queue->lock);
	return list;
}

void store_queue_put_back(struct store_queue *queue, enum store_lane_kind kind,
			  struct store_item *list)
{
	struct store_lane *lane = &queue->lanes[kind];
	struct store_item **end = &list;

	pthread_mutex_lock(&queue->lock);
	for (; *end; end = &(*end)->next)
		queue->waiting++;
	if (list) {
		if (!lane->first)
			lane->last = end;
		*end = lane->first;
		lane->first = list;
		queue->oldest_ms = clock_ms(CLOCK_MONOTONIC);
	}
	pthread_mutex_unlock(&queue->lock);
}

static bool store_queue_is_empty(const struct store_queue *queue)
{
	for (size_t i = 0; i < STORE_LANES; i++) {
		if (queue->lanes[i].items > 0)
			return false;
	}
	return true;
}

void store_queue_finish(struct store_queue *queue, enum store_lane_kind kind,
			struct store_item *list, bool dropped)
{
	struct store_lane *lane = &queue->lanes[kind];

	pthread_mutex_lock(&queue->lock);
	for (const struct store_item *item = list; item; item = item->next) {
		lane->items--;
		lane->bytes -= item->bytes;
		lane->dropped += dropped;
		lane->finished++;
	}
	queue->hurry = queue->hurry && !store_queue_is_empty(queue);
	pthread_cond_broadcast(&queue->done);
	pthread_mutex_unlock(&queue->lock);
	store_queue_free_list(list);
}

void store_queue_stall(struct store_queue *queue, bool stalled)
{
	pthread_mutex_lock(&queue->lock);
	queue->stalled = stalled;
	if (stalled)
		queue->hurry = false;
	pthread_cond_broadcast(&queue->done);
	pthread_mutex_unlock(&queue->lock);
}

void store_queue_stop(struct store_queue *queue)
{
	pthread_mutex_lock(&queue->lock);
	queue->stopping = true;
	pthread_cond_signal(&queue->work);
	pthread_mutex_unlock(&queue->lock);
}

/* Items of a lane are finished in order. */
static bool store_queue_has_finished(const struct store_queue *queue,
				     const uint64_t wanted[STORE_LANES])
{
	for (size_t i = 0; i < STORE_LANES; i++) {
		if (queue->lanes[i].finished < wanted[i])
			return false;
	}
	return true;
}

int store_queue_flush(struct store_queue *queue, uint32_t timeout_ms)
{
	uint64_t until = clock_ms(CLOCK_MONOTONIC) + timeout_ms, wanted[STORE_LANES];
	int r = 0;

	pthread_mutex_lock(&queue->lock);
	for (size_t i = 0; i < STORE_LANES; i++)
		wanted[i] = queue->lanes[i].put;
	while (r == 0 && !store_queue_has_finished(queue, wanted)) {
		queue->hurry = !queue->stalled;
		pthread_cond_signal(&queue->work);
		if (queue->stalled)
			r = -EAGAIN;
		else if (store_queue_sleep(queue, &queue->done, until))
			r = store_queue_has_finished(queue, wanted) ? 0 : -ETIMEDOUT;
	}
	pthread_mutex_unlock(&queue->lock);
	return r;
}
