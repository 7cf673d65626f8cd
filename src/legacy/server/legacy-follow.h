/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * "--log-events" for processes that keep their own books: their events are read from the books'
 * logs, a few times a second and in the worker's thread, sorted by time and printed as the old
 * server's lines. Lost events are counted and reported.
 */

#include <stdbool.h>
#include <stddef.h>

struct legacy_follow;
struct legacy_history;
struct loop;
struct log_writer;
struct registry;
struct tracked;
struct worker;

struct legacy_follow_config {
	struct loop *loop;
	struct worker *work;
	struct registry *registry;
	struct log_writer *log_writer;
	struct legacy_history *history; /* of buffers; NULL = not wanted */
	bool decimal_ids;
};

/* 0 or a negative errno. */
int legacy_follow_new(struct legacy_follow **ret_follow, const struct legacy_follow_config *config);

/*
 * A process has ended and its book is no longer in the list. If no round has seen it, because it lived for so
 * short a time, the next one prints what its book's log still has. In the loop's thread.
 */
void legacy_follow_ended(struct legacy_follow *follow, struct tracked *tracked);

/*
 * Prints text, from malloc(), after everything that has happened so far. In the loop's thread. 0, or -ENOMEM:
 * it was not taken.
 */
int legacy_follow_after_consume(struct legacy_follow *follow, char *text, size_t length);

/* No more rounds are begun. One that is at work ends with the work; free only after that. */
void legacy_follow_stop(struct legacy_follow *follow);

/* One more round, in the caller's thread: after legacy_follow_stop(), once no round is at work. */
void legacy_follow_finish(struct legacy_follow *follow);
struct legacy_follow *legacy_follow_free(struct legacy_follow *follow);
