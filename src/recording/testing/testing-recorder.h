/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Writes recordings of books of tests, chunk by chunk as a test says. It is the simplest that is
 * right, and no part of the recorder: so the reader has a second witness.
 */

#include <stdint.h>

#include "book/testing/book-testing.h"
#include "recording/format/columns.h"
#include "recording/format/layout.h"

struct chunk_writer;

struct testing_recorder {
	char path[256];
	int fd;
	struct chunk_writer *writer;
	uint32_t books;
};

void testing_recorder_init(struct testing_recorder *recorder);
void testing_recorder_open(struct testing_recorder *recorder, const char *path);
/* Bytes of the last chunk in the file. */
uint64_t testing_recorder_last(const struct testing_recorder *recorder);
void testing_recorder_end(struct testing_recorder *recorder);
void testing_recorder_deinit(struct testing_recorder *recorder);

struct testing_stream {
	uint64_t last; /* event that was recorded */
	struct columns_table table;
	struct book_hot hot[BOOK_TYPES];
};

struct testing_recorded {
	struct testing_recorder *recorder;
	struct testing_book *book;
	uint32_t number;
	struct testing_stream streams[TESTING_DEVICES];
};

void testing_recorded_init(struct testing_recorded *recorded, struct testing_recorder *recorder,
			   struct testing_book *book, uint32_t pid);
void testing_recorded_deinit(struct testing_recorded *recorded);

/* All that is not events, as it is now. */
void testing_recorded_bytes(const struct testing_recorded *recorded);
/* The events since the last call; at most @most of them. */
void testing_recorded_events(struct testing_recorded *recorded, uint32_t device, uint32_t most);
/* Events that no book has, and the state after them. */
void testing_recorded_put(struct testing_recorded *recorded, uint32_t device,
			  const struct book_event *events, uint32_t count);
void testing_recorded_state(struct testing_recorded *recorded, uint32_t device);
void testing_recorded_keyframe(struct testing_recorded *recorded, uint32_t device);
/* As if the events since the last call had been missed. */
void testing_recorded_gap(struct testing_recorded *recorded, uint32_t device);
void testing_recorded_ended(const struct testing_recorded *recorded, int status);
/* JSON of another kind. */
void testing_recorded_json(const struct testing_recorded *recorded, uint32_t kind,
			   const char *json);
