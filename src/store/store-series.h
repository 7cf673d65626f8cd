/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Writes points. The series of one second are mostly those of the second before, so their ids are
 * remembered from one to the next, in the same order: no look-up, and no hash table whose
 * collisions could be provoked.
 */

#include <stddef.h>
#include <stdint.h>

struct store_db;
struct store_item;
struct store_known_process;
struct store_known_series;

/* Steps coarser than a second; each is made from the one before. */
#define STORE_ROLLS 2

struct store_series {
	struct store_known_process *processes;
	size_t process_count;
	struct store_known_series *lines;
	size_t line_count;

	int64_t rolling[STORE_ROLLS]; /* start of the current point; -1 = unknown */
};

#define STORE_SERIES_NULL             \
	(struct store_series)         \
	{                             \
		.rolling = { -1, -1 } \
	}

/* 0 or -EIO, see store-db.h. */
int store_series_write(struct store_series *series, struct store_db *db,
		       const struct store_item *item);

/* Forgets ids, which are wrong after a rollback or after series were deleted. */
void store_series_forget(struct store_series *series);
