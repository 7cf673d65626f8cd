/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Writing points. The lines of one second are mostly those of the second before, so their numbers
 * are remembered from one to the next, both in one order: no look-up, and no table whose collisions
 * somebody could choose.
 */

#include <stddef.h>
#include <stdint.h>

struct store_db;
struct store_item;
struct store_known_process;
struct store_known_series;

/* Steps coarser than a second; each is made of the one before. */
#define STORE_ROLLS 2

struct store_series {
	struct store_known_process *processes;
	size_t process_count;
	struct store_known_series *lines;
	size_t line_count;

	int64_t rolling[STORE_ROLLS]; /* where the point begins that time is in; -1 = not known */
};

#define STORE_SERIES_NULL             \
	(struct store_series)         \
	{                             \
		.rolling = { -1, -1 } \
	}

/* 0 or -EIO, see store-db.h. */
int store_series_write(struct store_series *series, struct store_db *db,
		       const struct store_item *item);

/* Forgets numbers, which are wrong after a rollback and after lines were deleted. */
void store_series_forget(struct store_series *series);
