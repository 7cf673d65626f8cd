/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The single-stepper of step-test.c: a child does operations on a book. For those that are to be
 * stepped, its parent reads the book after every instruction, by the rule for the dead and by the
 * one for the living, and asserts that it is exactly the model before or exactly the model after
 * the next event.
 */

#include <stdbool.h>
#include <stdint.h>

#include "book/read/idle-counters.h"
#include "book/testing/book-testing.h"
#include "book/testing/testing-model.h"
#include "book/testing/testing-step.h"

struct testing_walk_op {
	struct testing_op op;
	bool walked;
	bool lost; /* an allocation that must fail for lack of room */
};

struct testing_walk {
	struct testing_stepper stepper;
	struct testing_book book;
	struct testing_model *model;
	bool has_shapes; /* the book has those of the model; to be set before the walk is run */
	struct view *dead;
	struct view *living;
	struct testing_facts *facts; /* of each operation, from the child */
	struct testing_walk_op *ops;
	uint32_t count;
	uint32_t modelled; /* operations that the model has applied */

	/* While an operation is stepped. */
	uint64_t digest[TESTING_DEVICES];
	uint64_t left[TESTING_DEVICES]; /* events still to come */
	uint64_t reset_type;
	uint64_t checkpoint[BOOK_CHECKPOINTS][2];    /* number and digest, as last seen complete */
	struct idle_counters known[TESTING_DEVICES]; /* of all steps so far */
};

struct testing_walk *testing_walk_new(uint64_t size, uint32_t ring_events);
void testing_walk_free(struct testing_walk *walk);

/* Adds an operation. The result may be changed until the walk is run. */
struct testing_walk_op *testing_walk_add(struct testing_walk *walk, const struct testing_op *op,
					 bool walked);

/* Does all operations and checks those that are to be stepped. Return: instructions. */
uint64_t testing_walk_run(struct testing_walk *walk);
