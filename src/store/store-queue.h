/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The queue between producers and the writer. Bounded in items and bytes. What the writer has taken
 * but not yet written still counts: the bound is one of memory.
 *
 * Points have a lane of their own. Records have a lane per user, and the writer takes one item of
 * each in turn, so that a flood of one user's costs another one's neither room nor order:
 *
 *	a user may have as much as is then left for all others (base/quota.h), and in any case one
 *	in STORE_USERS_MAX of the bound;
 *	of that, incidents may take only as much as is then left for leak reports;
 *	users beyond STORE_USERS_MAX who have something in the queue share one lane.
 *
 * An incident that waits is joined by further ones of the same call site in the same process.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct store_item;

#define STORE_USERS_MAX 64u    /* lanes of users; the one after them is for all others */
#define STORE_BATCH_ITEMS 512u /* records that the writer takes at once */

enum store_lane_kind {
	STORE_LANE_RECORDS = 0,
	STORE_LANE_SAMPLES = 1,
	STORE_LANES = 2,
};

enum store_list_kind {
	STORE_LIST_LEAKS = 0,
	STORE_LIST_OTHERS = 1, /* incidents and ends; samples in their lane */
	STORE_LISTS = 2,
};

/* Items and bytes; both are bounded alike. */
struct store_load {
	uint64_t items, bytes;
};

struct store_list {
	struct store_item *first, **last; /* waiting, oldest first */
	struct store_load load;           /* including what the writer has */
};

struct store_lane {
	uint32_t uid;
	struct store_list lists[STORE_LISTS];
};

/* All items of a kind. */
struct store_kind {
	struct store_load load, max;
	uint64_t put;      /* number of the newest item */
	uint64_t taken;    /* items that the writer has */
	uint64_t taken_of; /* the lowest number of those that it took last */
};

struct store_queue {
	pthread_mutex_t lock; /* protects everything; held for a short time */
	pthread_cond_t work;  /* for the writer */
	pthread_cond_t done;  /* for store_queue_flush() */
	struct store_kind kinds[STORE_LANES];
	struct store_lane samples;
	struct store_lane users[STORE_USERS_MAX + 1];
	size_t turn;        /* the lane that is next */
	size_t waiting;     /* items in the lists */
	uint64_t oldest_ms; /* when the first of them was queued */
	uint64_t cut;
	uint64_t joined; /* incidents that joined a waiting one */
	uint64_t dropped_leaks, dropped_incidents, dropped_endings, dropped_samples;
	bool hurry;   /* a flush is waiting */
	bool stalled; /* the writer cannot write at present */
	bool stopping;
};

void store_queue_init(struct store_queue *queue, size_t items, size_t bytes);
void store_queue_deinit(struct store_queue *queue);

/* Bytes of leak reports that still fit into a user's lane. */
size_t store_queue_room(struct store_queue *queue, uint32_t uid);

/* Consumes the item in any case; NULL is one that could not be allocated. */
void store_queue_put_consume(struct store_queue *queue, enum store_lane_kind kind,
			     struct store_item *item);

/*
 * For the writer: waits until a batch is due (@batch_ms after its first item, or as soon as it is
 * large or someone flushes), at most for @idle_ms. Return: false if the queue is stopping.
 */
bool store_queue_wait(struct store_queue *queue, uint32_t batch_ms, uint32_t idle_ms);

bool store_queue_is_waiting(struct store_queue *queue);

/*
 * Takes a batch of records, one of each user in turn, or all samples; the writer owns it until it is
 * finished or put back.
 */
struct store_item *store_queue_take(struct store_queue *queue, enum store_lane_kind kind);
void store_queue_put_back(struct store_queue *queue, enum store_lane_kind kind,
			  struct store_item *list);

/* Frees the list. @dropped: it was not written. */
void store_queue_finish(struct store_queue *queue, enum store_lane_kind kind,
			struct store_item *list, bool dropped);

void store_queue_stall(struct store_queue *queue, bool stalled);
void store_queue_stop(struct store_queue *queue);

/* 0, -EAGAIN or -ETIMEDOUT. */
int store_queue_flush(struct store_queue *queue, uint32_t timeout_ms);
