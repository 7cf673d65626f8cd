/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the parts of the past share; nobody else includes this. */

#include <pthread.h>

#include "base/loop.h"
#include "base/worker.h"
#include "daemon/recorder/recorder.h"
#include "model/snapshot.h"

struct view;

/*
 * Who held what when an allocation failed is read from everybody's books, at whatever these cost. So
 * the failures of one user take a tenth of our time at most: having read for a while, we do not for ten
 * times as long. Users are told apart by a few bits, which is enough.
 */
#define PAST_FAILURE_USERS 64u
#define PAST_FAILURE_REST 10u

struct past {
	struct past_config config;
	struct loop_timer timer;
	struct worker_job sample;
	uint64_t since_ns; /* CLOCK_REALTIME of its making */
	uint64_t passes;
	struct region_watch *regions;
	struct worker_job regions_job;
	bool is_waking; /* the job is under way; the loop's, likewise the next */
	bool is_woken;  /* and it is wanted once more */

	/*
	 * For what is below, and held for moments only: the loop takes it as well. Never while a book
	 * is read.
	 */
	pthread_mutex_t lock;
	uint64_t failures_after[PAST_FAILURE_USERS]; /* CLOCK_MONOTONIC */
	struct news *news;                           /* to be told, the latest first */
	uint64_t incidents[PAST_KINDS];
	uint64_t leaked;
	struct tally *ended; /* of all processes that have */
};

/* Counts and takes @news, which may be NULL. Without the lock. */
void past_add_news(struct past *past, enum past_kind kind, uint64_t count, struct news *news);

/* In the loop's thread: tells what is new. */
void past_tell(struct past *past);

/* Looks for incidents in one book that were not told yet. With that book's `look` held. */
void past_look_into(struct past *past, struct tracked *tracked, struct view *view);

/* A snapshot of one book. @symbols may be NULL. NULL: it cannot be read, or there is no memory. */
struct snapshot *past_read(struct tracked *tracked, bool buffers, struct view *view,
			   struct symbols *symbols);
