/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Several streams merged by time. A stream is opened when its first event is due and closed after
 * its last one, so that memory is needed only for those that are being read: 4 MiB of events and a
 * table each.
 */

#include "recording/read/replay.h"

struct walk_stream {
	const struct recording_stream *stream;
	struct replay replay;
	bool is_open;
	size_t begin; /* the chunk to open it with */
	struct replay_cut from, to;
	size_t to_at;         /* the chunk in which @to is */
	uint64_t time_ns;     /* of what comes next; never goes back */
	uint32_t next, count; /* of the events of the chunk: those before @to */
	bool has_gap;         /* comes next */
	struct book_hot hot[BOOK_TYPES];
};

struct walk {
	struct recording *recording;
	const struct recording_filter *filter;
	struct walk_stream *streams;
	size_t count;
	size_t *heap; /* streams that have something left, the earliest on top */
	size_t heap_count;
	struct replay_counters counters; /* scratch */
};

/* 0 or a negative errno; deinit it in any case. */
int walk_init(struct walk *walk, struct recording *recording, const struct recording_filter *filter,
	      const struct recording_moment *from, const struct recording_moment *to);
void walk_deinit(struct walk *walk);

/* 1 and the next one, valid until the next call; 0 at the end; or a negative errno. */
int walk_next(struct walk *walk, struct recording_event *ret_event);

/*
 * Bytes of all streams of the walk together, of the types that the filter accepts and of processes
 * that have not ended before @time_ns.
 */
uint64_t walk_bytes(const struct walk *walk, uint64_t time_ns);
