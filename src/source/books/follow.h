/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Following a living book: its events as they happen, and how many were missed where the owner was
 * faster. A follower starts from exact counters at an event's number and goes on from there, so that
 * totals stay exact with every event that is applied; after a miss it takes exact counters again.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "book/format/layout.h"
#include "book/read/log.h"

struct proc;
struct scan_book;
struct stacks;
struct view;

struct follow_shard {
	uint32_t device;
	uint64_t unique_id;
	uint64_t next;    /* number of the first event not seen */
	uint64_t time_ns; /* of the last event: what is shown never goes back */
	struct log_place place;
	struct book_hot hot[BOOK_TYPES]; /* as of the last event that was applied */
	struct book_hot after_gap[BOOK_TYPES];
};

/* One event, or a gap. */
struct follow_event {
	struct follow *follow;
	uint32_t shard; /* index */
	uint64_t time_ns;
	uint64_t number; /* of the event, or of the last one missed */
	uint64_t missed; /* not 0: so many events were missed, and there is none in here */
	struct book_event event;
};

struct follow {
	struct scan_book *book; /* the scan's */
	int pid_fd;             /* -1 = the owner has ended */
	struct follow_shard *shards;
	size_t count, capacity;
	struct stacks *stacks; /* the follower's, for whoever shows them; NULL = nobody has */
	bool from_start;
	bool is_over; /* the owner has ended and everything has been read */
};

/* Return: 0, or a negative errno to stop. */
typedef int follow_fn(void *context, const struct follow_event *event);

/* @from_start: everything since the book was made, not only what comes. */
int follow_new(struct follow **ret_follow, struct scan_book *book, const struct proc *proc,
	       bool from_start);
struct follow *follow_free(struct follow *follow);

/*
 * Gives everything new to @fn, in the order of each shard. @view and @log are only lent. 0, what @fn
 * returned, or a negative errno if the book can no longer be read.
 */
int follow_poll(struct follow *follow, struct view *view, struct log *log, follow_fn *fn,
		void *context);

/* Updates the totals by an event that follow_poll() gave. */
void follow_apply(const struct follow_event *event);

/* For qsort(): the order of time; within a shard that of its log. */
int follow_compare(const void *left, const void *right);
