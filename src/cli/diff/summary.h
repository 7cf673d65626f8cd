/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A run in sums that can be compared with those of another one: totals for each device and type, and
 * rows for each call site, name or phase. Keys have no lines and no addresses, so that a site whose
 * lines have moved is the same site. Which values are known depends on where they come from: a report
 * of `ttmem run --json` has no counts, a recording has all.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/pool.h"
#include "base/text.h"
#include "model/sites/group.h"
#include "model/sites/site.h"

struct snapshot;

enum summary_value {
	SUMMARY_PEAK = 0,        /* bytes at the highest moment of each device and type */
	SUMMARY_END = 1,         /* bytes at the end */
	SUMMARY_BUFFERS = 2,     /* at the end */
	SUMMARY_ALLOCS = 3,      /* since the beginning */
	SUMMARY_FREES = 4,       /* likewise */
	SUMMARY_TEMPORARIES = 5, /* buffers that lived only for a moment */
	SUMMARY_VALUES = 6,
};

#define SUMMARY_NO_DEVICE UINT32_MAX

struct summary_row {
	uint32_t device; /* of a total; SUMMARY_NO_DEVICE */
	uint32_t type;
	const char *key;   /* of a row; NULL = what has none, and in totals */
	struct site *site; /* of its stack, without lines; NULL = none; the summary's */
	uint64_t values[SUMMARY_VALUES]; /* sums saturate */
};

struct summary_list {
	struct summary_row *rows; /* by device, type and key, once it is finished */
	size_t count;
	uint32_t known;  /* bit 1 << value */
	size_t capacity; /* private */
};

struct summary {
	enum group_kind kind; /* of the rows: GROUP_SITE, GROUP_PHASE or GROUP_NAME */
	struct summary_list totals;
	struct summary_list rows;
	struct pool texts;
};

#define SUMMARY_NULL ((struct summary){.kind = GROUP_SITE})

void summary_deinit(struct summary *summary);

/*
 * What buffers are called, as the summary's kind wants it. Without a stack, sites are told apart by their
 * name without its numbers, or else by their phase.
 */
struct summary_buffer {
	const struct stack *stack; /* NULL = none; likewise the next two */
	const char *name, *phase;
};

#define SUMMARY_KEY TEXT_CLEAN_SIZE(POOL_TEXT_MAX)

struct summary_name {
	const char *key;        /* NULL = none */
	struct site site;       /* of its stack, without lines; its rank may be 0 */
	char text[SUMMARY_KEY]; /* private */
};

#define SUMMARY_NAME_NULL ((struct summary_name){.key = NULL})

/* Texts live as long as the buffer's and the name. */
void summary_name_init(struct summary_name *name, const struct summary *summary,
		       const struct summary_buffer *buffer);

/* A value of a total or of a row; equal ones are added up. */
void summary_add_total(struct summary *summary, uint32_t device, uint32_t type,
		       enum summary_value value, uint64_t amount);
void summary_add_row(struct summary *summary, uint32_t type, const struct summary_name *name,
		     enum summary_value value, uint64_t amount);

/* Which of a snapshot's buffers: all, or those of one device and type. */
struct summary_part {
	uint32_t device; /* SUMMARY_NO_DEVICE = all */
	uint32_t type;   /* BOOK_TYPES = all */
};

/* Rows of a snapshot's buffers: SUMMARY_END, with their number, or SUMMARY_PEAK. */
void summary_add_buffers(struct summary *summary, const struct snapshot *snapshot,
			 const struct summary_part *part, enum summary_value bytes);

/* What a snapshot's counters say of the end, and of what came before it but for peaks. */
void summary_add_counters(struct summary *summary, const struct snapshot *snapshot);

/* The order of finished lists; 0 for rows that are about the same. */
int summary_compare_keys(const struct summary_row *a, const struct summary_row *b);

/* Sorts and adds up; after that nothing is added. */
void summary_finish(struct summary *summary);
