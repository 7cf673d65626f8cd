/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Leaks and incidents as rows for the screen: their source (the daemon, or the books of living
 * processes) writes each as one row of facts and further lines that unfold.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/pool.h"

struct call_stack;
struct incident_row;
struct snapshot;

#define INCIDENT_ROWS_ROWS_MAX 1000u
#define INCIDENT_ROWS_LINES_MAX 400u /* of one row */

struct incident_rows_row {
	uint64_t time_ns; /* CLOCK_REALTIME; for a leak: when its process ended */
	const char *kind; /* "leak", "double_free" and so on */
	uint32_t pid;
	const char *comm;
	bool has_device;
	uint32_t device;
	const char *type; /* NULL = unknown, or several */
	bool has_address;
	uint64_t address;
	uint64_t bytes;
	uint64_t count;   /* repetitions; for a leak: buffers */
	const char *what; /* name, phase, how it ended; NULL = unknown */
	const char **lines;
	size_t line_count, line_capacity;
};

struct incident_rows {
	struct incident_rows_row *rows;
	size_t count, capacity;
	bool is_cut;     /* there are more than INCIDENT_ROWS_ROWS_MAX */
	uint64_t hidden; /* of other users, which may not be seen */
	struct pool texts;
};

struct incident_rows *incident_rows_new(void);
struct incident_rows *incident_rows_free(struct incident_rows *incident_rows);

/* Copies the texts. NULL: no memory, or too many rows (then is_cut is set). */
struct incident_rows_row *incident_rows_add(struct incident_rows *incident_rows,
					    const struct incident_rows_row *row);

/* Adds a line below the row; lines beyond the maximum are omitted. 0 or -ENOMEM. */
int incident_rows_line(struct incident_rows *incident_rows, struct incident_rows_row *row,
		       const char *format, ...) __attribute__((format(printf, 3, 4)));

/* The frames of a stack, one line each, innermost first. 0 or -ENOMEM. */
int incident_rows_stack(struct incident_rows *incident_rows, struct incident_rows_row *row,
			const struct call_stack *frames);

/* An incident with its lines. @now_ns: CLOCK_REALTIME. 0, also if there are too many, or -ENOMEM. */
int incident_rows_incident(struct incident_rows *incident_rows, const struct incident_row *incident,
			   uint64_t now_ns);

/* The incidents in a snapshot, as known to living processes. 0 or -ENOMEM. */
int incident_rows_from_snapshot(struct incident_rows *incident_rows,
				const struct snapshot *snapshot);
