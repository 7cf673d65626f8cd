/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What goes into the memory of the past: the totals of every second, incidents as they appear in the
 * books, and of every process that has ended what it left. Books are read in a worker's thread; what
 * people should hear of is handed to the loop as news.
 */

#include <stdbool.h>
#include <stdint.h>

#include "book/format/layout.h"

struct collector;
struct loop;
struct notice;
struct recorder;
struct registry;
struct store;
struct tally;
struct tracked;
struct worker;

enum recorder_kind {
	RECORDER_DOUBLE_FREE,
	RECORDER_UNKNOWN_FREE,
	RECORDER_SIZE_CHANGE,
	RECORDER_ALLOC_FAILED,
	RECORDER_LEAK,
	RECORDER_KINDS,
};

struct recorder_config {
	struct loop *loop;
	struct worker *work;
	struct registry *registry;
	struct collector *collector; /* what is kept of everybody comes from it */
	struct store *store;         /* NULL: nothing is kept, but everything told */
	struct symbols *symbols;     /* NULL: native frames stay addresses */
	void *context;
	/* Both in the loop's thread: news, one by one, and that a book was judged for good. */
	void (*told)(void *context, const struct notice *notice);
	void (*judged)(void *context, struct tracked *tracked);
};

int recorder_new(struct recorder **ret_past, const struct recorder_config *config);

/* The work must have been freed before. */
struct recorder *recorder_free(struct recorder *recorder);

/* Its owner has ended: from the loop's thread. */
void recorder_judge(struct recorder *recorder, struct tracked *tracked);

/* Something has happened in this book that cannot wait for the next second: a failed allocation. */
void recorder_hurry(struct recorder *recorder, struct tracked *tracked);

/*
 * Looks into all books for incidents at once. From any thread: for who is about to ask the store. What
 * is new is told by the loop a little later.
 */
void recorder_look(struct recorder *recorder);

/* Incidents of each kind since the start. From any thread. */
void recorder_incidents(struct recorder *recorder, uint64_t ret_counts[RECORDER_KINDS]);

/* What ended processes did in their lives, so that counters never go down. From any thread. */
void recorder_tally(struct recorder *recorder, struct tally *ret_tally);

/* Processes that have ended and left something. From any thread. */
uint64_t recorder_leaked(struct recorder *recorder);
