/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Call sites whose bytes keep growing. Several exact snapshots are compared: a site grows if its
 * bytes never fell from one to the next and rose at least twice (once, if there are only two or
 * three snapshots). One large allocation is not growth, and neither is a pool that rises and falls.
 * Where the past of a process is known (model/sites/growth-past.h), it decides: it is much longer than the
 * time that people wait.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/pool.h"
#include "base/process-id.h"
#include "model/sites/group.h"
#include "model/sites/growth-past.h"

struct snapshot;

struct growth_site {
	struct process_id process;
	const char *comm;
	struct call_site last; /* as of the last snapshot; its names are in the growth's list */
	const char *stem;      /* of its name, which identifies it without a stack */
	size_t listed;         /* names in the list */
	uint64_t first_bytes, first_buffers;
	uint32_t rises;
	bool fell;
	double survivors_per_second; /* by the ages of its live buffers; 0 = not known */
	struct growth_verdict past;  /* over the longest time */
	bool has_past;               /* the daemon has recorded its process */
	bool past_is_known;          /* long enough to decide */
	bool was_held;               /* what rose had been held before: it also falls */
};

enum growth_confidence {
	GROWTH_LOW,    /* seen for seconds */
	GROWTH_MEDIUM, /* for a minute or two */
	GROWTH_HIGH,
};

/*
 * One line over time as the history has it. The straight line that fits it best decides whether it
 * grows, because a line that rises and falls may end high or low by chance.
 */
struct growth_line {
	uint64_t count;
	uint64_t first_ns, last_ns;
	uint64_t first_bytes, last_bytes;
	double mean_s, mean_bytes; /* times are seconds since the first point */
	double spread, product;    /* sums of squares and products of deviations from the means */
};

/* A whole process over time: the sum of its lines. */
struct growth_trend {
	uint32_t pid;
	uint64_t first_ns, last_ns;
	uint64_t first_bytes, last_bytes;
	double per_second;
};

#define GROWTH_TRENDS_MAX 32u

struct growth {
	struct growth_site *sites;
	size_t count;
	struct call_site *names; /* of all sites, when they were last seen: of each the largest */
	size_t name_count;
	struct growth_trend trends[GROWTH_TRENDS_MAX];
	size_t trend_count;
	uint32_t samples;
	uint64_t first_ns, last_ns;
	uint64_t past_ns; /* the longest past that was looked at; 0 = none */
	size_t too_young; /* processes whose past is too short to decide */
	/* Set by the caller: sites of a process that has ended stay as they were, instead of falling. */
	bool keeps_ended;
	struct pool texts;
};

#define GROWTH_NULL     \
	(struct growth) \
	{               \
		0       \
	}

/* Adds a snapshot with buffers; keeps no reference to it. 0 or -ENOMEM. */
int growth_add(struct growth *growth, const struct snapshot *snapshot);

/*
 * Judges the sites of one process by its past, or, if that is NULL, all sites only by the ages of their
 * buffers. @snapshot: the last that was added. 0 or -ENOMEM.
 */
int growth_recall(struct growth *growth, const struct snapshot *snapshot,
		  const struct growth_past *past);

/*
 * Drops what does not grow and sorts the rest by how much it has grown. @is_asked: what rose in the snapshots
 * counts even where a past is known, because someone chose how long to look.
 */
void growth_finish(struct growth *growth, bool is_asked);

/* Over what time a site has grown, by how much, and how fast, and how sure that is. */
uint64_t growth_span(const struct growth *growth, const struct growth_site *site);
uint64_t growth_bytes(const struct growth_site *site);
uint64_t growth_buffers(const struct growth_site *site);
double growth_per_second(const struct growth *growth, const struct growth_site *site);
enum growth_confidence growth_confidence(const struct growth *growth,
					 const struct growth_site *site);
const char *growth_confidence_name(enum growth_confidence confidence);

void growth_deinit(struct growth *growth);

/* Points must come in order of time. */
void growth_line_add(struct growth_line *line, uint64_t time_ns, uint64_t bytes);

/* Adds a line to a process's trend, which starts as zeros except for its pid. */
void growth_trend_add(struct growth_trend *trend, const struct growth_line *line);
