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
#define RECORDER_FAILURE_USERS 64u
#define RECORDER_FAILURE_REST 10u

struct recorder {
	struct recorder_config config;
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
	uint64_t failures_after[RECORDER_FAILURE_USERS]; /* CLOCK_MONOTONIC */
	struct notice *notice;                           /* to be told, the latest first */
	uint64_t incidents[RECORDER_KINDS];
	uint64_t leaked;
	struct tally *ended; /* of all processes that have */
};

/* Counts and takes @news, which may be NULL. Without the lock. */
void recorder_add_news(struct recorder *recorder, enum recorder_kind kind, uint64_t count,
		       struct notice *notice);

/* In the loop's thread: tells what is new. */
void recorder_tell(struct recorder *recorder);

/* Looks for incidents in one book that were not told yet. With that book's `look` held. */
void recorder_look_into(struct recorder *recorder, struct tracked *tracked, struct view *view);

/* A snapshot of one book. @symbols may be NULL. NULL: it cannot be read, or there is no memory. */
struct snapshot *recorder_read(struct tracked *tracked, bool buffers, struct view *view,
			       struct symbols *symbols);
