/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a book must contain, kept in the simplest way: a table of live buffers, counters, and the
 * last 4096 frees of each device. It knows nothing about slots, rings, blocks or checkpoints. Most
 * tests check that it agrees with a view of the book in every field.
 */

#include <stdbool.h>
#include <stdint.h>

#include "book/testing/book-testing.h"
#include "book/write/index.h"

#define TESTING_MODEL_BUCKETS 65536u
#define TESTING_SHAPES 6u

/* The record as a reader must see it, but with a number for testing_text() as its name. */
struct testing_row {
	struct book_record record;
	uint32_t device;
	uint32_t owners; /* bit n: owner n has it */
	uint32_t next;   /* 1 + next of its bucket, or of the free list */
	uint32_t stamp;  /* the last comparison that saw it */
	uint64_t order;  /* younger rows have higher ones; times do not tell, they may be equal */
};

struct testing_grave {
	uint64_t address;
	uint32_t type;
	uint32_t space;
};

struct testing_shard {
	bool exists;
	uint64_t number; /* of the last event */
	uint64_t inexact;
	uint64_t inexact_soon; /* may be marked already: the mark precedes the event */
	uint64_t live;
	struct book_hot hot[BOOK_TYPES];
	struct book_cold cold[BOOK_TYPES];
	struct book_warm warm[BOOK_TYPES];
	struct testing_grave graves[BOOK_GRAVES];
	uint64_t grave_count;
};

struct testing_model {
	struct testing_shard shards[TESTING_DEVICES];
	uint32_t buckets[TESTING_MODEL_BUCKETS];
	struct testing_row *rows;
	uint32_t count;
	uint32_t capacity;
	uint32_t free_row;
	uint32_t stamp;
	uint64_t orders;
	struct book_shape shapes[TESTING_SHAPES]; /* by id; all zero: there is no such shape */
};

struct testing_model *testing_model_new(void);
struct testing_model *testing_model_free(struct testing_model *model);

/* Does the operation; @facts as the book has them. */
void testing_model_apply(struct testing_model *model, const struct testing_op *op,
			 const struct testing_facts *facts);

/* Ends one buffer as free_all does; for tests that check between its events. */
void testing_model_end(struct testing_model *model, struct testing_row *row, uint64_t time);

/* Whether free_all with these arguments ends @row. */
bool testing_model_is_meant(const struct testing_row *row, const struct testing_op *op);

/* How many events the operation will publish on its first device. */
uint64_t testing_model_events(const struct testing_model *model, const struct testing_op *op);

/*
 * Gives a fresh book some shapes, with and without a known occupancy; ids 1 to TESTING_SHAPES - 1.
 * @writer may be NULL, if another process has the book.
 */
void testing_model_shapes(struct testing_model *model, struct writer *writer);

struct testing_row *testing_model_find(const struct testing_model *model, uint32_t device,
				       struct index_key key);

/* The @n-th live row in some order, NULL beyond the last. */
struct testing_row *testing_model_row(const struct testing_model *model, uint32_t n);

/* Whether the view is exactly what the model has; if not, prints the differences. */
bool testing_model_is(struct testing_model *model, uint32_t device, struct reader *reader,
		      const struct view *view);

/* Reads every device both ways and compares each with the model. */
bool testing_model_is_book(struct testing_model *model, struct reader *reader);
