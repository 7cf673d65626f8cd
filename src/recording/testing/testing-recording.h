/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Recordings for tests: of a book that the test itself writes, by the real recorder. Names, stacks,
 * marks, incidents and several devices are in it, and what the book was at the end is known.
 */

#include <stdint.h>

#include "book/testing/book-testing.h"

struct recorder;
struct scan_book;

struct testing_recording {
	struct testing_rng rng;
	struct testing_book book;
	struct scan_book *scan; /* the book, as a reader has it */
	struct recorder *recorder;
	int fd;
	uint32_t devices;
};

/* A book with @ring_events for each device and an empty recording at @path; see recorder_add(). */
void testing_recording_start(struct testing_recording *recording, const char *path,
			     uint32_t ring_events, bool is_new);

/* Random operations, @count of them. */
void testing_recording_act(struct testing_recording *recording, uint32_t count);

/* So many bytes of texts that cannot be compressed. */
void testing_recording_fill(struct testing_recording *recording, uint64_t bytes);

/* Ends the owner, if it shall, and the recording. The book stays. */
void testing_recording_finish(struct testing_recording *recording, bool is_ended);
void testing_recording_deinit(struct testing_recording *recording);

/* All of it: a file with about @events events. */
void testing_recording_make(const char *path, uint32_t events);
