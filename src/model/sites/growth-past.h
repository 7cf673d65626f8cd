/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Whether a call site has been growing, judged from the past. Two facts are combined: when the site's
 * live buffers were allocated, which its process knows, and how many bytes of that type the process has
 * held, which the daemon recorded. A leak has survivors of all ages, and its process holds more and more
 * even when it holds least. A cache that replaces its entries has survivors of all ages, too, but does
 * not hold more; memory that rises and falls has held as much before; a model that is being loaded
 * stops.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GROWTH_PAST_BUCKETS 120u
#define GROWTH_PAST_LEAST_NS \
	UINT64_C(45000000000) /* a shorter time may be the loading of a model */

/* How far back to look, and by which steps. A leak of one buffer an hour needs the longest. */
#define GROWTH_PAST_SPANS 3u

struct growth_past_span {
	uint64_t span_ns;
	uint32_t step_s;
};

extern const struct growth_past_span growth_past_spans[GROWTH_PAST_SPANS];

/* What a process held on one device of one type: extremes of each part of the time. */
struct growth_past_line {
	uint64_t device;
	uint32_t type;
	uint64_t low[GROWTH_PAST_BUCKETS],
		high[GROWTH_PAST_BUCKETS]; /* low > high: nothing known */
	uint64_t last[GROWTH_PAST_BUCKETS];
};

/* The recorded past of a process. */
struct growth_past {
	uint32_t pid;
	uint64_t begin_ns, end_ns; /* of the buckets; set by the caller */
	uint64_t known_ns;         /* the first point; 0 = none */
	struct growth_past_line *lines;
	size_t count, capacity;
};

#define GROWTH_PAST_NULL ((struct growth_past){.pid = 0})

void growth_past_deinit(struct growth_past *past);

/* A point; those of a line must come in order of time. 0, or -ENOMEM. */
int growth_past_add(struct growth_past *past, uint64_t device, uint32_t type, uint64_t time_ns,
		    uint64_t bytes);

/* Call it after the last point. */
void growth_past_finish(struct growth_past *past);

/* Whether it holds more of something even when it holds least: else no site of it can have grown. */
bool growth_past_rises(const struct growth_past *past);

/* A live buffer. */
struct growth_birth {
	uint64_t time_ns;
	uint64_t bytes;
};

/* Over which time a site has grown. */
struct growth_verdict {
	uint64_t span_ns; /* 0 = it has not */
	uint64_t bytes;   /* allocated in that time and alive */
	uint64_t buffers; /* likewise */
};

/* @births: all live buffers of a site, in order of time. */
struct growth_verdict growth_past_judge(const struct growth_past *past, uint32_t type,
					const struct growth_birth *births, size_t count);

/*
 * Whether the process has held as much of @type before as in the last @span_ns: then what rose in that
 * time also falls. @bytes: how much it rose.
 */
bool growth_past_has_seen(const struct growth_past *past, uint32_t type, uint64_t span_ns,
			  uint64_t bytes);
