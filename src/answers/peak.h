/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * ttmem.peak/1: what was live at the highest moments. A row is made from a snapshot's peak, or from the JSON of
 * the daemon or of a report.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "answers/buffers.h"
#include "answers/fields.h"
#include "model/sites/group.h"

struct document;
struct emit;
struct filter;
struct snapshot;
struct snapshot_peak;

struct peak_per_bank {
	uint64_t bytes;
	const char *bound;
	uint32_t banks; /* 0 = not known */
};

struct peak_row {
	uint32_t pid, device, type, bound;
	const char *comm;
	uint64_t device_uid, start_ns, bytes, time_ns, moment_ns, known, unknown, buffers;
	bool is_ended, is_exact, has_per_bank;
	struct peak_per_bank per_bank;
	struct buffers_groups groups;
};

struct peak_list {
	struct peak_row *rows;
	size_t count;

	/* Private. */
	size_t capacity;
	struct buffers_group_room *room;
};

#define PEAK_LIST_NULL ((struct peak_list){.rows = NULL})

extern const struct document peak_document; /* its row: a peak_list */
extern const struct field peak_fields[];
extern const struct field peak_list_fields[]; /* "peaks", which reading puts into a pool */

bool peak_is_wanted(const struct peak_row *row, const struct filter *filter);

/* Adds the peaks of a snapshot, which the list points into; @filter: NULL = all of them. 0 or -ENOMEM. */
int peak_list_add(struct peak_list *list, const struct snapshot *snapshot,
		  const struct filter *filter, enum group_kind kind);
void peak_list_deinit(struct peak_list *list);

/* The document; and one of its rows. 0 or -ENOMEM. */
int peak_put(struct emit *json, const struct snapshot *snapshot, enum group_kind kind);
int peak_put_row(struct emit *json, const char *key, const struct snapshot *snapshot,
		 const struct snapshot_peak *peak, enum group_kind kind);
