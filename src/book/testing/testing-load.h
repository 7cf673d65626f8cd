/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A process whose threads write a book at full speed, or at a rate, and note in a side channel what
 * the book must contain after each event: a hash of the live rows and a hash of the counters, by
 * event number. The note is written before the event is published, so whoever sees event n in the
 * book, of a living or of a killed writer, finds its note.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "book/testing/book-testing.h"

/* The required state of a shard after one event. */
struct testing_note {
	uint64_t number;
	uint64_t rows;
	uint64_t counters;
};

struct testing_load_shared;

struct testing_load {
	struct testing_book *book;
	uint32_t devices;
	uint32_t threads;
	uint32_t keys;  /* buffers that may live on each device; about half of them do */
	uint32_t rate;  /* events per second of each thread; 0 = full speed */
	uint32_t notes; /* kept for each device; a power of two */
	uint64_t seed;

	struct testing_load_shared *shared;
	pid_t pid;
};

/* Starts the process; it makes the book's writer. */
void testing_load_start(struct testing_load *load);

/* Waits until the first half of the keys lives on every device. */
void testing_load_wait(struct testing_load *load);

/* Ends it: by SIGKILL, or by a request. Must be called; frees the side channel with @load. */
void testing_load_kill(struct testing_load *load);
void testing_load_stop(struct testing_load *load);
void testing_load_deinit(struct testing_load *load);

/* Events so far, on all devices. */
uint64_t testing_load_events(const struct testing_load *load);

/* The note of an event; false if it has been overwritten since. */
bool testing_load_note(const struct testing_load *load, uint32_t device, uint64_t number,
		       struct testing_note *ret_note);

/* The hashes of a view; rows is 0 if it has none. */
struct testing_note testing_load_of(const struct view *view);
