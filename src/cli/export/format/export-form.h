/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a format of another tool is fed with: a moment, which is a snapshot, and the course of
 * events up to it, if there is a recording. A format knows neither books nor recordings, so tests can
 * feed it by hand. Each has a file of its own that defines a struct export_form.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct snapshot;

enum export_kind {
	EXPORT_CALL, /* a call of the application about a buffer */
	EXPORT_GAP,  /* events that are not known */
	EXPORT_MARK, /* a moment that the application named */
};

/*
 * Texts live until the export ends, and equal ones have equal addresses. A time is never less than
 * that of the event before.
 */
struct export_event {
	enum export_kind kind;
	uint32_t process; /* index into the owners */
	uint32_t device;
	uint32_t op; /* enum book_op */
	uint32_t type;
	uint32_t thread;
	uint32_t space;
	uint32_t refs;
	uint64_t time_ns; /* CLOCK_REALTIME */
	uint64_t number;  /* in the order of the device; 0 = live when the recording began */
	uint64_t address;
	uint64_t size;
	uint64_t bytes;    /* device memory that it stands for; 0 = it lies in another buffer */
	const char *name;  /* of the buffer, or the mark; NULL = none */
	const char *phase; /* NULL = none; likewise the stacks */
	const struct stack *stack; /* of this call */
	const struct stack *birth; /* of the call that allocated the buffer */
	uint64_t used;             /* bytes of the type in use on the device after it */
	uint64_t missed;           /* of a gap: how many events */
};

struct export_owner {
	uint32_t pid;
	const char *comm;
};

/* What one stack has allocated up to the moment; only a recording knows. */
struct export_count {
	uint32_t process; /* index into the snapshot */
	uint32_t device;
	uint32_t type;
	const struct stack *stack; /* of the snapshot; NULL = none */
	uint64_t allocs;
	uint64_t bytes;
};

struct export_target {
	FILE *out;
	const struct snapshot *snapshot; /* the moment, with buffers */
	const char *command;             /* that was recorded; NULL = not known */
	uint64_t start_ns;               /* of the course; 0 = there is none */
	uint64_t rows_max;               /* events that a format keeps in memory */
	const struct export_owner *owners;
	size_t owner_count;
	const struct export_count *counts; /* NULL = not known */
	size_t count_count;
	char problem[256]; /* why a format cannot go on; then it need not be fed anymore */
};

/* Whether writing has failed is for the caller to ask. */
struct export_form {
	const char *name; /* for --format */
	bool is_course;   /* needs a recording */
	bool is_binary;   /* not for terminals */
	/* Return: its state. */
	void *(*begin)(struct export_target *target);
	/* NULL = the course is not needed. */
	void (*event)(void *state, const struct export_event *event);
	void (*finish)(void *state);
	void (*free)(void *state);
};

extern const struct export_form export_chrome;
extern const struct export_form export_csv;
extern const struct export_form export_firefox;
extern const struct export_form export_folded;
extern const struct export_form export_heaptrack;
extern const struct export_form export_memory_viz;
extern const struct export_form export_perfetto;
extern const struct export_form export_pprof;
extern const struct export_form export_speedscope;
