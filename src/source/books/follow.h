/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Follows a live book: reports its events as they happen, and how many were missed where the owner
 * was faster. A follower starts from exact counters at an event's number and continues from there,
 * so that totals stay exact with every event that is applied. After a gap it takes exact counters
 * again.
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
	uint64_t time_ns; /* of the last event; times shown never go back */
	struct log_place place;
	struct book_hot hot[BOOK_TYPES]; /* after the last event that was applied */
	struct book_hot after_gap[BOOK_TYPES];
};

/* One event, or a gap. */
struct follow_event {
	struct follow *follow;
	uint32_t shard; /* index */
	uint64_t time_ns;
	uint64_t number; /* of the event, or of the last one missed */
	uint64_t missed; /* if not 0, this many events were missed, and there is no event here */
	struct book_event event;
};

struct follow {
	struct scan_book *book; /* owned by the scan */
	int pid_fd;             /* -1 = the owner has exited */
	struct follow_shard *shards;
	size_t count, capacity;
	struct stacks *stacks; /* owned, for callers that show stacks; NULL = unused */
	bool from_start;
	bool is_over; /* the owner has exited and everything has been read */
};

/* Returns 0, or a negative errno to stop. */
typedef int follow_fn(void *context, const struct follow_event *event);

/* A pidfd of the book's owner; -1 if it has exited, even if its pid has been reused. */
int follow_open_owner(const struct scan_book *book, const struct proc *proc);

/* @from_start: report everything since the book was created, not only new events. */
int follow_new(struct follow **ret_follow, struct scan_book *book, const struct proc *proc,
	       bool from_start);
struct follow *follow_free(struct follow *follow);

/*
 * From now on nothing is left out: what is written after this is passed on by follow_poll(). Without it, by the
 * first follow_poll(). @view is only borrowed. A failure is also reported by follow_poll().
 */
int follow_begin(struct follow *follow, struct view *view);

/*
 * Passes everything new to @fn, in the order of each shard. @view and @log are only borrowed.
 * Returns 0, the result of @fn, or a negative errno if the book can no longer be read.
 */
int follow_poll(struct follow *follow, struct view *view, struct log *log, follow_fn *fn,
		void *context);

/* Updates the totals by an event from follow_poll(). */
void follow_apply(const struct follow_event *event);

/* For qsort(): ordered by time; within a shard by its log. */
int follow_compare(const void *left, const void *right);
