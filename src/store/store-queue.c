/* SPDX-License-Identifier: Apache-2.0 */

/* The queue between producers and the writer. */

#include "store/store-queue.h"

#include <errno.h>
#include <time.h>

#include "base/bits.h"
#include "base/clock.h"
#include "base/quota.h"
#include "base/threads/pthreads.h"
#include "store/store-item.h"

static void store_list_init(struct store_list *list)
{
	*list = (struct store_list){.last = &list->first};
}

static void store_lane_init(struct store_lane *lane)
{
	for (size_t i = 0; i < STORE_LISTS; i++)
		store_list_init(&lane->lists[i]);
}

void store_queue_init(struct store_queue *queue, size_t items, size_t bytes)
{
	*queue = (struct store_queue){0};
	store_lane_init(&queue->samples);
	for (size_t i = 0; i <= STORE_USERS_MAX; i++)
		store_lane_init(&queue->users[i]);
	queue->kinds[STORE_LANE_RECORDS].max = (struct store_load){items, bytes};
	/* One sample per second: a minute of them is more than a working writer falls behind. */
	queue->kinds[STORE_LANE_SAMPLES].max =
		(struct store_load){bits_max(items / 128, 4), bytes / 4};
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
	store_queue_free_list(queue->samples.lists[STORE_LIST_OTHERS].first);
	for (size_t i = 0; i <= STORE_USERS_MAX; i++) {
		for (size_t k = 0; k < STORE_LISTS; k++)
			store_queue_free_list(queue->users[i].lists[k].first);
	}
	(void)pthread_cond_destroy(&queue->done); /* nobody waits for or holds these any more */
	(void)pthread_cond_destroy(&queue->work);
	(void)pthread_mutex_destroy(&queue->lock);
}

static bool store_lane_is_empty(const struct store_lane *lane)
{
	return lane->lists[STORE_LIST_LEAKS].load.items == 0 &&
	       lane->lists[STORE_LIST_OTHERS].load.items == 0;
}

/* The user's own lane, an empty one, or the one of those who have none. */
static uint32_t store_queue_find(const struct store_queue *queue, uint32_t uid)
{
	uint32_t empty = STORE_USERS_MAX;

	for (uint32_t i = 0; i < STORE_USERS_MAX; i++) {
		if (queue->users[i].uid == uid)
			return i;
		if (empty == STORE_USERS_MAX && store_lane_is_empty(&queue->users[i]))
			empty = i;
	}
	return empty;
}

static struct store_list *store_queue_list(struct store_queue *queue, const struct store_item *item)
{
	if (item->kind == STORE_ITEM_SAMPLE)
		return &queue->samples.lists[STORE_LIST_OTHERS];
	return &queue->users[item->lane].lists[item->kind == STORE_ITEM_LEAK ? STORE_LIST_LEAKS
									     : STORE_LIST_OTHERS];
}

/*
 * Of items or of bytes: how many more of a kind of record fit into a lane. Not a struct quota: a lane has a
 * part that nobody else can take, and leak reports go before the rest of it.
 */
static uint64_t store_lane_room(uint64_t max, uint64_t used, uint64_t leaks, uint64_t others,
				enum store_list_kind kind)
{
	uint64_t own = leaks + others;
	uint64_t most = bits_max(own + quota_rest(max, used, own), max / STORE_USERS_MAX);

	/* What was put when there was more room stays. */
	most = bits_max(most, own);
	return kind == STORE_LIST_LEAKS ? most - own : quota_rest(most, own, others);
}

static struct store_load store_queue_lane_room(const struct store_queue *queue, uint32_t lane,
					       enum store_list_kind kind)
{
	const struct store_load *leaks = &queue->users[lane].lists[STORE_LIST_LEAKS].load;
	const struct store_load *others = &queue->users[lane].lists[STORE_LIST_OTHERS].load;
	const struct store_kind *all = &queue->kinds[STORE_LANE_RECORDS];

	return (struct store_load){
		.items = store_lane_room(all->max.items, all->load.items, leaks->items,
					 others->items, kind),
		.bytes = store_lane_room(all->max.bytes, all->load.bytes, leaks->bytes,
					 others->bytes, kind),
	};
}

size_t store_queue_room(struct store_queue *queue, uint32_t uid)
{
	size_t room;

	pthread_mutex_lock(&queue->lock);
	room = store_queue_lane_room(queue, store_queue_find(queue, uid), STORE_LIST_LEAKS).bytes;
	pthread_mutex_unlock(&queue->lock);
	return room;
}

static bool store_queue_fits(const struct store_queue *queue, const struct store_item *item)
{
	const struct store_kind *samples = &queue->kinds[STORE_LANE_SAMPLES];
	struct store_load room;

	if (item->kind == STORE_ITEM_SAMPLE)
		room = (struct store_load){
			samples->max.items - bits_min(samples->load.items, samples->max.items),
			samples->max.bytes - bits_min(samples->load.bytes, samples->max.bytes),
		};
	else
		room = store_queue_lane_room(queue, item->lane,
					     item->kind == STORE_ITEM_LEAK ? STORE_LIST_LEAKS
									   : STORE_LIST_OTHERS);
	return room.items > 0 && item->bytes <= room.bytes;
}

static void store_queue_charge(struct store_queue *queue, const struct store_item *item, bool is_in)
{
	struct store_load *loads[] = {
		&store_queue_list(queue, item)->load,
		&queue->kinds[item->kind == STORE_ITEM_SAMPLE ? STORE_LANE_SAMPLES
							      : STORE_LANE_RECORDS]
			 .load,
	};

	for (size_t i = 0; i < 2; i++) {
		loads[i]->items += is_in ? 1 : (uint64_t)-1;
		loads[i]->bytes += is_in ? item->bytes : 0 - (uint64_t)item->bytes;
	}
}

static void store_queue_count_dropped(struct store_queue *queue, enum store_lane_kind kind,
				      const struct store_item *item)
{
	if (kind == STORE_LANE_SAMPLES)
		queue->dropped_samples++;
	else if (item && item->kind == STORE_ITEM_INCIDENT)
		queue->dropped_incidents++;
	else if (item && item->kind == STORE_ITEM_ENDING)
		queue->dropped_endings++;
	else
		queue->dropped_leaks++; /* or one that could not be allocated: nothing is worse */
}

/* Lets @item take the place of one that it can join. Return: that one, to be freed; NULL = none. */
static struct store_item *store_queue_join(struct store_queue *queue, struct store_item *item)
{
	struct store_list *list = store_queue_list(queue, item);
	struct store_item **place = &list->first, *old;

	if (item->kind != STORE_ITEM_INCIDENT)
		return NULL;
	while (*place && !store_item_is_joinable(item, *place))
		place = &(*place)->next;
	old = *place;
	if (!old)
		return NULL;
	store_queue_charge(queue, old, false);
	if (store_item_join(item, old) < 0) {
		store_queue_charge(queue, old, true);
		return NULL;
	}
	item->next = old->next;
	item->number = old->number;
	*place = item;
	if (!item->next)
		list->last = &item->next;
	store_queue_charge(queue, item, true);
	queue->joined++;
	queue->cut += item->cut;
	return old;
}

static void store_queue_append(struct store_queue *queue, struct store_item *item)
{
	struct store_list *list = store_queue_list(queue, item);

	item->next = NULL;
	*list->last = item;
	list->last = &item->next;
	store_queue_charge(queue, item, true);
	queue->cut += item->cut;
	if (queue->waiting++ == 0)
		queue->oldest_ms = clock_ms(CLOCK_MONOTONIC);
	/* Else the writer waits for this batch's time already. */
	if (queue->waiting == 1 || queue->waiting == STORE_BATCH_ITEMS)
		pthread_cond_signal(&queue->work);
}

void store_queue_put_consume(struct store_queue *queue, enum store_lane_kind kind,
			     struct store_item *item)
{
	struct store_item *old = NULL;

	pthread_mutex_lock(&queue->lock);
	if (item && kind == STORE_LANE_RECORDS) {
		item->lane = store_queue_find(queue, item->processes[0].uid);
		if (item->lane < STORE_USERS_MAX)
			queue->users[item->lane].uid = item->processes[0].uid;
		old = store_queue_join(queue, item);
	}
	if (!old && item && store_queue_fits(queue, item)) {
		item->number = ++queue->kinds[kind].put;
		store_queue_append(queue, item);
	} else if (!old) {
		store_queue_count_dropped(queue, kind, item);
		old = item;
	}
	pthread_mutex_unlock(&queue->lock);
	store_item_free(old);
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

bool store_queue_is_waiting(struct store_queue *queue)
{
	bool is_waiting;

	pthread_mutex_lock(&queue->lock);
	is_waiting = queue->waiting > 0;
	pthread_mutex_unlock(&queue->lock);
	return is_waiting;
}

static struct store_item *store_list_pop(struct store_list *list)
{
	struct store_item *item = list->first;

	if (!item)
		return NULL;
	list->first = item->next;
	if (!list->first)
		list->last = &list->first;
	item->next = NULL;
	return item;
}

/* Of the lane whose turn it is: a leak report if there is one. NULL: all lanes are empty. */
static struct store_item *store_queue_next(struct store_queue *queue)
{
	for (size_t i = 0; i <= STORE_USERS_MAX; i++) {
		struct store_lane *lane = &queue->users[queue->turn];
		struct store_item *item = store_list_pop(&lane->lists[STORE_LIST_LEAKS]);

		queue->turn = (queue->turn + 1) % (STORE_USERS_MAX + 1);
		if (!item)
			item = store_list_pop(&lane->lists[STORE_LIST_OTHERS]);
		if (item)
			return item;
	}
	return NULL;
}

struct store_item *store_queue_take(struct store_queue *queue, enum store_lane_kind kind)
{
	struct store_kind *all = &queue->kinds[kind];
	struct store_item *list = NULL, **last = &list, *item;

	pthread_mutex_lock(&queue->lock);
	all->taken_of = all->taken ? all->taken_of : UINT64_MAX;
	for (size_t i = 0; kind == STORE_LANE_SAMPLES || i < STORE_BATCH_ITEMS; i++) {
		item = kind == STORE_LANE_SAMPLES
			       ? store_list_pop(&queue->samples.lists[STORE_LIST_OTHERS])
			       : store_queue_next(queue);
		if (!item)
			break;
		*last = item;
		last = &item->next;
		queue->waiting--;
		all->taken++;
		all->taken_of = bits_min(all->taken_of, item->number);
	}
	pthread_mutex_unlock(&queue->lock);
	return list;
}

void store_queue_put_back(struct store_queue *queue, enum store_lane_kind kind,
			  struct store_item *list)
{
	struct store_item *reversed = NULL;

	while (list) {
		struct store_item *next = list->next;

		list->next = reversed;
		reversed = list;
		list = next;
	}
	pthread_mutex_lock(&queue->lock);
	if (reversed)
		queue->oldest_ms = clock_ms(CLOCK_MONOTONIC);
	while (reversed) {
		struct store_item *item = reversed;
		struct store_list *to = store_queue_list(queue, item);

		reversed = item->next;
		item->next = to->first;
		if (!to->first)
			to->last = &item->next;
		to->first = item;
		queue->waiting++;
		queue->kinds[kind].taken--;
	}
	pthread_mutex_unlock(&queue->lock);
}

void store_queue_finish(struct store_queue *queue, enum store_lane_kind kind,
			struct store_item *list, bool dropped)
{
	pthread_mutex_lock(&queue->lock);
	for (const struct store_item *item = list; item; item = item->next) {
		store_queue_charge(queue, item, false);
		queue->kinds[kind].taken--;
		if (dropped)
			store_queue_count_dropped(queue, kind, item);
	}
	queue->hurry = queue->hurry && (queue->kinds[STORE_LANE_RECORDS].load.items > 0 ||
					queue->kinds[STORE_LANE_SAMPLES].load.items > 0);
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

static bool store_list_has_passed(const struct store_list *list, uint64_t number)
{
	return !list->first || list->first->number > number;
}

/* Whether no item up to these numbers waits or is being written. */
static bool store_queue_has_finished(const struct store_queue *queue,
				     const uint64_t wanted[STORE_LANES])
{
	uint64_t records = wanted[STORE_LANE_RECORDS];

	for (size_t i = 0; i < STORE_LANES; i++) {
		if (queue->kinds[i].taken > 0 && queue->kinds[i].taken_of <= wanted[i])
			return false;
	}
	for (size_t i = 0; i <= STORE_USERS_MAX; i++) {
		if (!store_list_has_passed(&queue->users[i].lists[STORE_LIST_LEAKS], records) ||
		    !store_list_has_passed(&queue->users[i].lists[STORE_LIST_OTHERS], records))
			return false;
	}
	return store_list_has_passed(&queue->samples.lists[STORE_LIST_OTHERS],
				     wanted[STORE_LANE_SAMPLES]);
}

int store_queue_flush(struct store_queue *queue, uint32_t timeout_ms)
{
	uint64_t until = clock_ms(CLOCK_MONOTONIC) + timeout_ms, wanted[STORE_LANES];
	int r = 0;

	pthread_mutex_lock(&queue->lock);
	for (size_t i = 0; i < STORE_LANES; i++)
		wanted[i] = queue->kinds[i].put;
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
