/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The store itself, for its own files. Each part belongs to one thread or is protected by one lock.
 * Lock order: store->files before store->lock.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "store/store-db.h"
#include "store/store-queue.h"
#include "store/store-series.h"
#include "store/store.h"

/* When the clock can be trusted. */
struct store_clock {
	bool started;
	struct store_now last;
	uint64_t believed_boot_ns; /* nothing counts as too old before then */
};

struct store {
	/* Set once. */
	struct store_config config; /* we own folder; no field is 0 */
	char *path;
	pthread_t thread;

	struct store_queue queue; /* has a lock of its own */

	/* Used only by the writer. */
	struct store_db db;
	struct store_series series;
	struct store_clock clock;
	uint64_t retry_ms; /* CLOCK_MONOTONIC: no attempt to write before; 0 = none is pending */
	uint64_t kept_boot_ns;
	uint64_t limit;      /* bytes of the file, as last determined: size_max, or less */
	uint64_t start_ns;   /* of this run; 0 = nothing was opened yet */
	bool run_is_written; /* into the file that is open */
	bool is_told;        /* the reason was reported, and nothing has been written since */

	/*
	 * Held for reading by queries, for writing by the writer while it opens, closes or renames
	 * the files: a database must not be renamed while it is in use.
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

/* store-runs.c: a failure is not worth more than another attempt at the next batch. */
void store_runs_begin(struct store *store);
void store_runs_end(struct store *store);

/* store-retention.c: deletes what is too old or too much, if it is time to. 0 or -EIO. */
int store_keep(struct store *store);

/* For store-size.c. Each returns -EIO for a failure. */

/* Reads a number from the database. */
int store_keep_ask(struct store *store, const char *sql, int64_t *ret_number);

/*
 * Deletes the oldest lists of buffers, an eighth at most, if all have more than @most bytes. 1: they
 * had.
 */
int store_keep_drop_lists(struct store *store, uint64_t most);

/* Deletes an eighth of the records. 1: there were some. */
int store_keep_drop_records(struct store *store);

/* Removes series without points, and whatever else is unreferenced. */
int store_keep_sweep(struct store *store);

/* store-size.c: keeps the file within its limit. 0 or -EIO. */
int store_size(struct store *store);

/* store-reader.c: closes the connections of all readers; store->files is held for writing. */
void store_reader_part_all(struct store *store);
