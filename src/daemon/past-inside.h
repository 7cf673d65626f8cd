/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the parts of the past share; nobody else includes this. */

#include <pthread.h>

#include "base/loop.h"
#include "core/snapshot.h"
#include "daemon/past.h"
#include "daemon/work.h"

struct view;

#define PAST_PEAKS_MAX 4096u /* devices; beyond it there are no sampled peaks */

struct past_peak {
	uint64_t unique_id;
	uint32_t device;
	uint64_t bytes[BOOK_TYPES];
};

struct past {
	struct past_config config;
	struct loop_timer timer;
	struct work_job sample;
	uint64_t passes;

	pthread_mutex_t lock; /* for what is below */
	struct news *news;    /* to be told, the latest first */
	uint64_t incidents[PAST_KINDS];
	uint64_t leaked;
	struct tally *ended; /* of all processes that have */
	struct past_peak *peaks;
	size_t peak_count, peak_capacity;
};

/* With the lock held. Takes @news, which may be NULL. */
void past_add_news(struct past *past, struct news *news);

/* In the loop's thread: tells what is new. */
void past_tell(struct past *past);

/*
 * Looks for incidents in one book that were not told yet. @everything: what all processes hold now, for
 * failed allocations; may be NULL, and then it is read if need be. With the lock held.
 */
void past_look_into(struct past *past, struct tracked *tracked, struct view *view);

/* A snapshot of one book. @symbols may be NULL. NULL: it cannot be read, or there is no memory. */
struct snapshot *past_read(struct tracked *tracked, bool buffers, struct view *view,
			   struct symbols *symbols);
