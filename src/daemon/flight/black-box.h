/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The flight recorder of the daemon: its thread, its view of the tracked books, and what makes it
 * keep a file: an allocation that fails, a process that ends and leaves something. A process that
 * fails all the time has one file, which is not made anew all the time, and a user has so many in a
 * minute.
 */

#include <stdbool.h>
#include <stdint.h>

#include "daemon/flight/flight-files.h"
#include "recording/flight/flight.h"

struct black_box;
struct symbols;
struct tracked;

#define BLACK_BOX_PENDING_MAX 256u /* files that wait to be written */
#define BLACK_BOX_FILES_BURST 8u   /* of a user at once; and then */
#define BLACK_BOX_FILES_PER_MINUTE 6u
#define BLACK_BOX_AGAIN_NS (30 * NS_PER_S) /* between two files of one process's failures */
#define BLACK_BOX_FILE_SHARE 8u            /* a file is at most this part of all files */

/* One processor's time for it. */
#define BLACK_BOX_PERCENT 5u

struct black_box_config {
	const char *state;       /* folder; outlives the box */
	uint64_t keep_s;         /* how long files are kept */
	uint64_t time_ns;        /* how long events are kept */
	uint64_t size_max;       /* of what is kept in memory; and of all files */
	struct symbols *symbols; /* NULL: native frames stay addresses */
};

struct black_box_counts {
	struct flight_counts flight;
	uint64_t files;   /* that were written */
	uint64_t refused; /* that were not: too many, or too soon */
	uint64_t failed;  /* that could not be */
};

/* 0 or a negative errno: without a folder for its files there is none. */
int black_box_new(struct black_box **ret_box, const struct black_box_config *config);
struct black_box *black_box_free(struct black_box *box);

/* A book that is tracked from now on, and one that is not any more. From the loop's thread. */
void black_box_add(struct black_box *box, struct tracked *tracked);
void black_box_remove(struct black_box *box, struct tracked *tracked);

/* Something has happened. From any thread; the file is there a little later. */
void black_box_keep(struct black_box *box, struct tracked *tracked, enum flight_files_why why);

/* From any thread. */
void black_box_counts(struct black_box *box, struct black_box_counts *ret_counts);
