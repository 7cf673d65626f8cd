/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What was live at the highest moments of a family: for each device and type, in the process that held
 * the most. Of the others only the amount is kept, so that many processes need no more memory than few.
 */

#include <stddef.h>
#include <stdint.h>

struct namer;
struct scan_book;
struct snapshot;
struct snapshot_peak;
struct view;

/* Each snapshot is of one process and has only those of its peaks that are the highest, sorted. */
struct run_peaks {
	struct snapshot **tops;
	size_t count, capacity;
};

/* A process has ended: looks at its book, if it held more than others. 0 or a negative errno. */
int run_peaks_add(struct run_peaks *peaks, struct scan_book *book, struct view *view,
		  struct namer *namer);

/* The highest of a device and type, and the snapshot that it is of; NULL = none. */
const struct snapshot_peak *run_peaks_find(const struct run_peaks *peaks, uint32_t device,
					   uint32_t type, const struct snapshot **ret_snapshot);

void run_peaks_deinit(struct run_peaks *peaks);
