/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* ttmem.series/1: lines over time, of the daemon's database or of a recording; the page and the command read them. */

#include <stddef.h>
#include <stdint.h>

#include "answers/fields.h"

struct document;

/* In JSON an array of its numbers in this order. */
struct series_point {
	uint64_t time_ns, used, buffers,
		used_max; /* the last values of the step, and its largest */
};

struct series_row {
	uint32_t pid; /* 0 = the whole device */
	uint32_t device, type;
	uint64_t device_uid;               /* 0 = not known */
	double step_s;                     /* that a point stands for */
	const struct series_point *points; /* oldest first */
	size_t point_count;
};

struct series_answer {
	const struct series_row *rows;
	size_t count;
};

extern const struct field series_fields[];    /* of a row */
extern const struct document series_document; /* its row: an answer */
