/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Why an answer is empty: what was asked for is not there, may not be seen, or holds nothing. An
 * empty list without a word would look like "all is well".
 */

#include <stdbool.h>

struct filter;
struct session;
struct snapshot;

struct asked_for {
	const char *command;
	const struct filter *filter;
	bool is_json;    /* then an empty list is an answer, not a failure */
	bool rows;       /* buffers are shown, which only a book has, not just totals */
	bool is_missing; /* the result: something of it is not there, or may not be seen */
};

/*
 * Tells on stderr which processes and devices of the filter are not there or cannot be looked into.
 */
void asked_for_check(struct asked_for *asked, struct session *session,
		     const struct snapshot *snapshot);

/*
 * Adds a note that names processes whose buffers cannot be listed because they are not tracked: an empty list
 * would say that they hold nothing.
 */
void asked_for_note_untracked(const struct asked_for *asked, struct snapshot *snapshot);

/* The exit code of a command that has written its answer with @code. */
int asked_for_exit(const struct asked_for *asked, int code);

/* Tells that there is none of @what ("live buffer"), as far as the filter goes. */
void asked_for_tell_none(const struct asked_for *asked, const char *what);
