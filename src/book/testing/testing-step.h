/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Single-stepping a writer: a child does a list of actions, and its parent may read the book after
 * every instruction of any of them. The parent then sees what everybody would see if the child had
 * been killed at that instruction.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct testing_stepper;

struct testing_stepper_ops {
	/* In the child. Action @i, which is stepped through if is_walked() says so. */
	void (*act)(struct testing_stepper *stepper, uint32_t i);
	bool (*is_walked)(struct testing_stepper *stepper, uint32_t i);
	/* In the child, after action @i and never stepped through; may be NULL. */
	void (*note)(struct testing_stepper *stepper, uint32_t i);
	/* In the parent, after each instruction of action @i. */
	void (*check)(struct testing_stepper *stepper, uint32_t i);
};

/* What child and parent both see. */
struct testing_stepper_shared {
	volatile uint32_t at;   /* the action that comes next or is in progress */
	volatile uint32_t done; /* actions that are over */
};

struct testing_stepper {
	const struct testing_stepper_ops *ops;
	uint32_t count; /* of actions */
	void *context;  /* owned by the test; the child has its own copy */
	uint64_t steps; /* instructions stepped so far */

	pid_t pid;
	struct testing_stepper_shared *shared;
};

/* Starts the child and stops it before its first action. Skips the test without ptrace. */
void testing_stepper_start(struct testing_stepper *stepper);

/* Runs to the next action to be stepped; false: there was none, and the child has exited. */
bool testing_stepper_next(struct testing_stepper *stepper, uint32_t *ret_i);

/* Steps through that action. */
void testing_stepper_walk(struct testing_stepper *stepper);

/* Memory that child and parent share; freed when the process exits. */
void *testing_stepper_share(size_t size);
