/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Allocations and frees by device and type, of living and exited processes, since the daemon
 * started. Counters of a monitoring system must never go down, so a process's counts are added here
 * when it exits. Bounded: beyond TALLY_MAX devices everything is counted in one last row.
 */

#include <stddef.h>
#include <stdint.h>

#include "model/snapshot.h"

#define TALLY_MAX 128u
#define TALLY_OTHER UINT32_MAX /* number of the row for the rest */

struct tally_row {
	uint32_t device;
	uint64_t unique_id; /* 0 = identified by number */
	uint64_t allocs[BOOK_TYPES];
	uint64_t frees[BOOK_TYPES];
};

struct tally {
	size_t count;
	struct tally_row rows[TALLY_MAX];
};

/* The row of a device, added if needed. */
struct tally_row *tally_row(struct tally *tally, uint32_t device, uint64_t unique_id);

/* Adds what process @index of a snapshot has counted since the daemon started. */
void tally_add_process(struct tally *tally, const struct snapshot *snapshot, uint32_t index);

/* Adds all rows of @more. */
void tally_add(struct tally *tally, const struct tally *more);

/* Raises each figure to that of @last: reported counters never go down. */
void tally_raise(struct tally *tally, const struct tally *last);
