/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Bytes in use over time, from events: of each step what was in use when that was most, all types
 * together, so that the highest point of the chart is the peak. What a process had is gone when it ends.
 * Books reach back differently: what was in use before the first event that a recording has of a process is
 * not known, unless that is the process's very first one.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "recording/read/recording.h"

struct snapshot;

struct report_device {
	uint64_t seen_ns; /* of its last event; 0 = it had none */
	uint64_t bytes[BOOK_TYPES];
};

struct report_end {
	uint64_t time_ns;
	uint32_t book;
};

struct report_timeline {
	struct recording *recording;
	uint64_t start_ns, length_ns;
	struct recording_sample *samples; /* owned, likewise the next two; REPORT_SAMPLES */
	struct report_device **books;     /* BOOK_DEVICES of each; NULL = none yet */
	struct report_end *ends;          /* of processes, in order of time */
	size_t book_count, end_count, ended;
	size_t step;
	uint64_t most;       /* in this step */
	uint64_t peak_bytes; /* the most of all, and the event after which it was so */
	struct recording_moment peak;
	uint64_t now[BOOK_TYPES];
};

void report_timeline_init(struct report_timeline *timeline, struct recording *recording);
void report_timeline_deinit(struct report_timeline *timeline);

/* The device of an event; NULL if there is no such device. */
struct report_device *report_timeline_device(struct report_timeline *timeline,
					     const struct recording_event *event);

/* An event or a gap: they come in order of time. */
void report_timeline_add(struct report_timeline *timeline, struct report_device *device,
			 const struct recording_event *event);

/* After the last one. @end: for devices that had no events, and so have what they have at the end. */
void report_timeline_finish(struct report_timeline *timeline, const struct snapshot *end);
