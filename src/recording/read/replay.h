/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The events of one stream, from a keyframe on. Only counters are kept as of each event; the table
 * is as of the end of the last chunk that was taken apart, because that is what the next one needs.
 */

#include "recording/format/columns.h"
#include "recording/read/recording-private.h"

/* Where a stream is to be cut: after this event, or after the last one with at most this stamp. */
struct replay_cut {
	bool has_number;
	uint64_t number, stamp;
};

struct replay_counters {
	struct book_hot hot[BOOK_TYPES];
	struct book_cold cold[BOOK_TYPES];
	struct book_warm warm[BOOK_TYPES]; /* the caller counts them: they need the book's shapes */
	uint64_t inexact;
	uint64_t graves;
};

struct replay {
	struct recording *recording;
	const struct recording_stream *stream;
	size_t next;     /* the next chunk of the stream */
	uint64_t number; /* of the last event in the table */
	struct columns_table table;
	struct book_shard page;    /* of the keyframe it began with */
	bool has_page;             /* false: it began with the device's first event */
	struct book_event *events; /* of the last chunk; RECORDING_EVENTS_MAX have room */
	uint32_t count;
	uint64_t first; /* number of events[0] */
	struct recording_gap gap;
};

enum replay_outcome {
	REPLAY_EVENTS = 1, /* there are events */
	REPLAY_GAP = 2,    /* some are missing; the table is as of the keyframe after them */
};

/* Which chunk of the stream a cut is in: events or a keyframe. -ENOENT: it is before all of them. */
int replay_find(const struct recording *recording, const struct recording_stream *stream,
		const struct replay_cut *cut, size_t *ret_at);

/*
 * The chunk to begin with so that @at and at least @events events before its end are seen without a
 * gap, or as many as there are. -EBADMSG: there is no way to it.
 */
int replay_begin(const struct recording *recording, const struct recording_stream *stream,
		 size_t at, uint64_t events, size_t *ret_begin);

/* Begins with a chunk from replay_begin(). 0 or a negative errno. Deinit it in any case. */
int replay_init(struct replay *replay, struct recording *recording,
		const struct recording_stream *stream, size_t begin);
void replay_deinit(struct replay *replay);

/* The place of the next chunk that has or lacks events; the stream's count if there is none. */
size_t replay_next(struct replay *replay);

/* 0: the stream has ended; a replay_outcome; or a negative errno. */
int replay_step(struct replay *replay);

/* The same, but the table stays as it is: for the chunk in which a cut is. */
int replay_step_aside(struct replay *replay);

/* How many of the events of the last step are before a cut. */
uint32_t replay_before(const struct replay *replay, const struct replay_cut *cut);

/* The counters of the page. */
void replay_counters(const struct replay *replay, struct replay_counters *ret_counters);

/* Everything but warm counters. */
void replay_count(struct replay_counters *counters, const struct book_event *event,
		  uint64_t number);
