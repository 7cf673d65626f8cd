/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The store itself, for its own files. Each part belongs to one thread or is protected by one lock;
 * store->files is taken before store->lock.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "store/store-db.h"
#include "store/store-queue.h"
#include "store/store-series.h"
#include "store/store.h"

/* Which of the clock's words are believed. */
struct store_clock {
	bool started;
	struct store_now last;
	uint64_t believed_boot_ns; /* nothing is too old before then */
};

struct store {
	/* Set once. */
	struct store_config config; /* folder is ours; nothing is 0 */
	char *path;
	pthread_t thread;

	struct store_queue queue; /* has a lock of its own */

	/* The writer's alone. */
	struct store_db db;
	struct store_series series;
	struct store_clock clock;
	uint64_t retry_ms; /* CLOCK_MONOTONIC: nothing can be written before; 0 = it can */
	uint64_t kept_boot_ns;
	uint64_t limit; /* bytes of the file, as last seen: size_max, or less */
	bool is_told;   /* the reason was told, and nothing was written since */

	/*
	 * Held for reading by queries, for writing by the writer while it opens, closes or moves
	 * the files: a database must not be moved under somebody's feet.
	 */
	pthread_rwlock_t files;
	bool suspect; /* atomic: a reader found damage */

	pthread_mutex_t lock; /* for what follows */
	struct store_reader *readers;
	struct store_health health; /* without what the queue knows */
};

/* store-writer.c */
void *store_writer_main(void *argument); /* the store */
void store_writer_now(const struct store *store, struct store_now *ret_now);
int store_writer_fault(struct store *store, enum store_step step); /* 0 or -EIO */

/* store-keep.c: lets go of what is too old or too much, if it is time to. 0 or -EIO. */
int store_keep(struct store *store);

/* For store-size.c. Each returns -EIO for a failure. */

/* A number out of the database. */
int store_keep_ask(struct store *store, const char *sql, int64_t *ret_number);

/* Lets go of an eighth of the records. 1: there were some. */
int store_keep_drop_records(struct store *store);

/* Removes lines without points, and what else nothing refers to. */
int store_keep_sweep(struct store *store);

/* store-size.c: keeps the file within its limit. 0 or -EIO. */
int store_size(struct store *store);

/* store-reader.c: closes the connections of all readers; store->files is held for writing. */
void store_reader_part_all(struct store *store);
