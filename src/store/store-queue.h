/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The queue between producers and the writer. Bounded in items and bytes, with one lane for records
 * and one for points, so that a flood of one does not affect the other. What the writer has taken
 * but not yet written still counts: the bound is one of memory.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct store_item;

enum store_lane_kind {
	STORE_LANE_RECORDS = 0,
	STORE_LANE_SAMPLES = 1,
	STORE_LANES = 2,
};

struct store_lane {
	struct store_item *first, **last; /* waiting, oldest first */
	size_t items, bytes;              /* including those that the writer has */
	size_t items_max, bytes_max;
	uint64_t dropped;
	uint64_t put, finished; /* in total; neither includes items that were dropped on arrival */
};

struct store_queue {
	pthread_mutex_t lock; /* protects everything; held for a few instructions at a time */
	pthread_cond_t work;  /* for the writer */
	pthread_cond_t done;  /* for store_queue_flush() */
	struct store_lane lanes[STORE_LANES];
	size_t waiting;     /* items in the lists */
	uint64_t oldest_ms; /* when the first of them was queued */
	uint64_t cut;
	bool hurry;   /* a flush is waiting */
	bool stalled; /* the writer cannot write at present */
	bool stopping;
};

void store_queue_init(struct store_queue *queue, size_t items, size_t bytes);
void store_queue_deinit(struct store_queue *queue);

/* Bytes that still fit into a lane. */
size_t store_queue_room(struct store_queue *queue, enum store_lane_kind kind);

/* Consumes the item in any case; NULL is one that could not be allocated. */
void store_queue_put_consume(struct store_queue *queue, enum store_lane_kind kind,
			     struct store_item *item);

/*
 * For the writer: waits until a batch is due (@batch_ms after its first item, or as soon as it is
 * large or someone flushes), at most for @idle_ms. Return: false if the queue is stopping.
 */
bool store_queue_wait(struct store_queue *queue, uint32_t batch_ms, uint32_t idle_ms);

/* Takes everything that waits in a lane; the writer owns it until it is finished or put back. */
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
