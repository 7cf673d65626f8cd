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
struct news;
struct past;
struct registry;
struct store;
struct tally;
struct tracked;
struct worker;

enum past_kind {
	PAST_DOUBLE_FREE,
	PAST_UNKNOWN_FREE,
	PAST_SIZE_CHANGE,
	PAST_ALLOC_FAILED,
	PAST_LEAK,
	PAST_KINDS,
};

struct past_config {
	struct loop *loop;
	struct worker *work;
	struct registry *registry;
	struct collector *collector; /* what is kept of everybody comes from it */
	struct store *store;         /* NULL: nothing is kept, but everything told */
	struct symbols *symbols;     /* NULL: native frames stay addresses */
	void *context;
	/* Both in the loop's thread: news, one by one, and that a book was judged for good. */
	void (*told)(void *context, const struct news *news);
	void (*judged)(void *context, struct tracked *tracked);
};

int past_new(struct past **ret_past, const struct past_config *config);

/* The work must have been freed before. */
struct past *past_free(struct past *past);

/* Its owner has ended: from the loop's thread. */
void past_judge(struct past *past, struct tracked *tracked);

/* Something has happened in this book that cannot wait for the next second: a failed allocation. */
void past_hurry(struct past *past, struct tracked *tracked);

/*
 * Looks into all books for incidents at once. From any thread: for who is about to ask the store. What
 * is new is told by the loop a little later.
 */
void past_look(struct past *past);

/* Incidents of each kind since the start. From any thread. */
void past_incidents(struct past *past, uint64_t ret_counts[PAST_KINDS]);

/* What ended processes did in their lives, so that counters never go down. From any thread. */
void past_tally(struct past *past, struct tally *ret_tally);

/* Processes that have ended and left something. From any thread. */
uint64_t past_leaked(struct past *past);
