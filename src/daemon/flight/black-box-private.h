/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Shared by the files of the flight recorder's thread; private to them. */

#include <pthread.h>

#include "base/quota.h"
#include "daemon/flight/black-box.h"

struct scan_book;
struct worker;

struct black_box_entry {
	struct tracked *tracked; /* NULL = it has ended, and nobody needs its book here */
	struct black_box_owner owner;
	struct scan_book *book; /* reads the tracked one's descriptor */
	uint64_t kept_ns;       /* CLOCK_MONOTONIC of its last file; 0 = none */
	uint64_t serial;        /* in which order they came */
	bool has_ended;
	struct ending ending;
};

struct black_box {
	struct black_box_config config;
	uint64_t start_ns; /* CLOCK_REALTIME */
	struct worker *worker;

	/* Used by the worker's thread only. */
	struct flight *flight;
	struct flight_files *files;
	struct quota_rate rate;
	struct black_box_entry *entries;
	size_t count, capacity;
	uint64_t serials;
	struct quota ended; /* books of ended processes; its total is their maximum */
	uint64_t expire_ns, tidy_ns;

	pthread_mutex_t lock; /* for the rest */
	struct black_box_counts counts;
	uint32_t pending;
	pthread_cond_t taken; /* CLOCK_MONOTONIC: see black-box-take.c */
};
