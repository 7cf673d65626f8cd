/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the book's tests share: a book as an application would make it (a sealed memfd with a writer
 * over it and a reader for it), reproducible random numbers, and operations that can be recorded,
 * printed and executed. The model that says what a book must then contain is in testing-model.h.
 *
 * Helpers assert: a test that cannot be set up has failed.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "book/format/layout.h"
#include "book/read/backing.h"
#include "book/read/reader.h"
#include "book/read/view.h"
#include "book/write/shard.h"
#include "book/write/writer.h"

/* Devices that tests use; operations name them in a 32-bit mask. */
#define TESTING_DEVICES 8u

/* A book of this size has room for about two devices' worth of everything. */
#define TESTING_SIZE (BOOK_POOL_OFFSET + UINT64_C(64) * 1024 * 1024)

struct testing_rng {
	uint64_t state;
};

/* From TTMEM_SEED, else from the clock. Printed, so that a failure can be reproduced. */
struct testing_rng testing_rng_new(void);
uint64_t testing_random(struct testing_rng *rng);

/* 0 .. limit - 1. */
uint32_t testing_below(struct testing_rng *rng, uint32_t limit);

/* Whether TTMEM_SOAK asks for the long version. */
bool testing_soak(void);

/* Whether TTMEM_TEST_QUICK asks for the short one: emulation is forty times slower. */
bool testing_quick(void);

/* Where the test files are: tests/corpus, or TTMEM_TEST_CORPUS if that is set. */
const char *testing_corpus(void);

struct testing_book {
	int fd;
	bool has_reader;
	uint8_t *base;
	uint64_t size;
	uint64_t room;
	uint32_t ring_events;
	uint32_t clock;
	uint64_t reserve_limit; /* bytes until reserve() begins to fail; UINT64_MAX = never */

	struct writer *writer; /* NULL in processes that only read */
	struct file_fd file;
	struct reader reader;
};

/* Makes, maps and seals the file; no writer yet, so that a child may become the writer. */
void testing_book_init(struct testing_book *book, uint64_t size, uint32_t ring_events);
void testing_book_write(struct testing_book *book);
void testing_book_read(struct testing_book *book);
void testing_book_deinit(struct testing_book *book);

/* All of the above for a test that both writes and reads. */
void testing_book_open(struct testing_book *book);

enum testing_kind {
	TESTING_ALLOC = 0,
	TESTING_FREE = 1,
	TESTING_FREE_ALL = 2,
	TESTING_HOOKED = 3,
	TESTING_FAILED = 4,
	TESTING_RESET_PEAK = 5,
	TESTING_END_SPACE = 6,
	TESTING_KINDS = 7,
};

/* One call of the writer. Its buffer's name is a number for testing_text(), not an id. */
struct testing_op {
	enum testing_kind kind;
	uint32_t device;
	uint32_t mesh; /* not 0: a mask of devices, for ALLOC and FREE; device is then ignored */
	struct shard_buffer buffer;
	uint64_t owner; /* 1 .. 31, 0 = none */
};

/* Facts about a completed operation that only the book knows. */
struct testing_facts {
	uint64_t last[TESTING_DEVICES][BOOK_TYPES]; /* time of the last event of each type */
	bool lost;                                  /* an allocation that found no room */
};

/* NULL for 0; else some text, including unusual ones. */
const char *testing_text(uint32_t number);
#define TESTING_TEXTS 8u

void testing_op_do(struct writer *writer, const struct testing_op *op);
void testing_op_print(const struct testing_op *op);

/* The facts of the operation that the writer has just completed. */
struct testing_facts testing_facts_of(struct writer *writer, const struct testing_op *op);

/* The first (or only) device of an operation. */
uint32_t testing_op_device(const struct testing_op *op);

/* A buffer as an application would have it; for tests that do not care about the rest. */
struct shard_buffer testing_buffer(uint32_t type, uint64_t address, uint64_t size);

/* Over 8 banks, so much in each. Returns its id. */
uint32_t testing_interleaved(struct writer *writer, uint64_t size_per_bank);

/* Of rows as they are, counters and number, but not of inexact, which is not part of any event. */
uint64_t testing_digest(const struct view *view);
