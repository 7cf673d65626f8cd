/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * `ttmem bench`: the cost of an event, beside the figures it is judged by.
 *
 * Everything is measured in one run, in rounds: each round measures one batch of every row, so that
 * a slow phase of the machine affects all of them. A row's p50 is the median of its batches' means.
 * Its p99 is over single events, one in 64 of which is timed, in separate batches: a timer inside a
 * batch would be measured with it. Ratios are what counts; they compare rows of one run.
 *
 * A part measures some rows; bench.c runs the parts in turn.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/bench/bench-machine.h"

struct bench_goal;

#define BENCH_ROUNDS 31u
#define BENCH_ROUNDS_QUICK 15u
#define BENCH_ROWS_MAX 48u
#define BENCH_FIGURES_MAX 32u
#define BENCH_NOTES_MAX 16u
#define BENCH_RESULTS_MAX 64u
#define BENCH_SAMPLE_EVERY 64u

#define BENCH_MESH 32u
#define BENCH_STACK_WHAT "stack_" /* prefix of the child's name, followed by that of the row */

/* Devices of the rows, so that no row disturbs another's table. */
#define BENCH_DEVICE_EVENT 0u /* and the two after it: one for each size */
#define BENCH_DEVICE_NAMED 3u
#define BENCH_DEVICE_PAIR 4u /* and the one after it */
#define BENCH_DEVICE_SHARED 6u
#define BENCH_DEVICE_CROWD 7u
#define BENCH_DEVICE_SMALL 8u
#define BENCH_DEVICE_LARGE 9u
#define BENCH_DEVICE_RECORDED 10u
#define BENCH_DEVICE_MESH 32u

/* Numbers in the order they were measured. */
struct bench_series {
	double *values;
	size_t count;
	size_t capacity;
};

struct bench_row {
	const char *name;
	uint64_t live;               /* live buffers on each device meanwhile; 0 = does not apply */
	struct bench_series means;   /* ns per event, one for each batch */
	struct bench_series samples; /* ns of single events */

	/* For the report; NAN = there is none: */
	double p50, p99;
	double x_getppid, x_floor, x_socket; /* p50 / theirs */
};

/* A result other than a time. */
struct bench_figure {
	const char *name;
	uint64_t live;
	double value;
	const char *unit;
};

/* How a goal was met. */
struct bench_result {
	const struct bench_goal *goal;
	double value;     /* NAN = not measured */
	uint32_t verdict; /* enum bench_goals_verdict */
};

struct bench {
	bool is_quick;
	bool is_large;   /* also measure what needs gigabytes */
	bool has_python; /* also measure calls from Python */
	unsigned int rounds;
	double ticks_per_ns; /* of bench_measure_ticks() */
	double timer_ns;     /* what timing adds to one event */

	struct bench_row rows[BENCH_ROWS_MAX];
	size_t row_count;
	struct bench_figure figures[BENCH_FIGURES_MAX];
	size_t figure_count;
	char notes[BENCH_NOTES_MAX][160];
	size_t note_count;

	/* For the report, too: */
	struct bench_machine machine;
	struct bench_result results[BENCH_RESULTS_MAX];
	size_t result_count;
};

/* One set of rows. A part that cannot be measured explains it in a note and leaves its rows out. */
struct bench_part {
	void (*open)(struct bench *bench);
	void (*round)(struct bench *bench);
	void (*close)(void);
};

extern const struct bench_part bench_calls;    /* empty_call, off, getppid */
extern const struct bench_part bench_floor;    /* floor */
extern const struct bench_part bench_events;   /* event, event_named, event_recorded */
extern const struct bench_part bench_threads;  /* event_2threads_..., mesh32_per_device */
extern const struct bench_part bench_crowd;    /* threads_..._total, threads_..._tenure */
extern const struct bench_part bench_socket;   /* socket_baseline */
extern const struct bench_part bench_snapshot; /* snapshot, snapshot_pread */
extern const struct bench_part bench_stack;    /* event_default..., event_stack... */
extern const struct bench_part bench_children; /* first_event, memory */
extern const struct bench_part bench_python;   /* python_event..., if requested */

/* Runs in the fresh processes that bench_children starts. Return: exit code. */
int bench_children_run(int argc, char **argv);

/*
 * Runs "ttmem bench --child WHAT [ARGUMENT]" and reads @count numbers. False if they did not
 * arrive.
 */
bool bench_children_ask(const char *what, const char *argument, uint32_t count, double *ret_values);

/*
 * The child of bench_stack: prints means of batches, then single events. 0, or 1 if an event had no
 * stack.
 */
int bench_stack_run(const char *name, const char *live);

/* Runs a program and reads @count numbers from it. False if they did not arrive. */
bool bench_children_numbers(const char *program, const char *const *arguments, uint32_t count,
			    double *ret_values);

struct bench_row *bench_row_add(struct bench *bench, const char *name, uint64_t live);
struct bench_row *bench_row_find(struct bench *bench, const char *name, uint64_t live);
void bench_figure_add(struct bench *bench, const char *name, uint64_t live, double value,
		      const char *unit);
const struct bench_figure *bench_figure_find(const struct bench *bench, const char *name,
					     uint64_t live);
void bench_note(struct bench *bench, const char *format, ...) __attribute__((format(printf, 2, 3)));
