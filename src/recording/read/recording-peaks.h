/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a source of a recording answers to requests for peaks. */

#include "book/format/layout.h"
#include "recording/read/recording.h"

struct snapshot;
struct snapshot_request;
struct view;

struct recording_peaks {
	struct recording *recording;
	const struct recording_moment *moment; /* until then */
	const struct snapshot_request *request;
	struct view *view;
	struct snapshot *snapshot;
	struct scan_book *book; /* as of the moment */
	uint64_t peak[BOOK_TYPES];
};

/* Adds the peaks of peaks->book, which is book @number of the recording. 0 or a negative errno. */
int recording_peaks_collect(struct recording_peaks *peaks, size_t number);
