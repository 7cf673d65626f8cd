/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Lists kept by the daemon. They arrive in pages, which are merged here: into one document, or row
 * by row for commands that print text.
 */

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "answers/answers.h"
#include "answers/document-take.h"
#include "model/query.h"

struct call_stack;
struct daemon_client;

#define DAEMON_PAGES_PAGES_MAX 1000000u /* of about a MiB at most: more mean a faulty daemon */

struct daemon_pages_query {
	const struct answer *answer;
	struct query query; /* with a limit: only one page, from its cursor on */
	bool names;         /* name the frames that the daemon could not name */
};

/* Whether a text can be a cursor. */
bool daemon_pages_is_cursor(const char *text);

/*
 * Writes all pages as one document. Nothing is written before the first page has arrived, which
 * @ret_is_begun tells; if a later one fails, the document is still well-formed and its "next" says
 * where it was cut. 0, a daemon_client_outcome, or a negative errno.
 */
int daemon_pages_document(struct daemon_client *remote, const struct daemon_pages_query *query,
			  FILE *out, bool *ret_is_begun);

/* Handles one row, of the struct that the answer has. 0, or a negative errno. */
typedef int daemon_pages_row_fn(void *context, const void *row);

/*
 * Hands out all rows, which are there until the call ends. @ret_hidden: how many there are of other users that the
 * asker may not see, also on failure; may be NULL.
 */
int daemon_pages_each(struct daemon_client *remote, const struct daemon_pages_query *query,
		      daemon_pages_row_fn *fn, void *context, uint64_t *ret_hidden);

/* Tells of such rows, which @what names ("leak report"), unless there are none. */
void daemon_pages_print_hidden(uint64_t hidden, const char *what);

/* A document that comes as a whole; NULL if it is invalid. 0, a daemon_client_outcome, or a negative errno. */
int daemon_pages_ask(struct daemon_client *remote, enum answers_id id, const struct query *query,
		     json_t **ret_document);

/* Prints the stack of a row, innermost frame first, one per line. */
void daemon_pages_print_stack(const struct call_stack *stack, const char *indent);

/* The line about the recording of a row; NULL = none. */
void daemon_pages_print_recording(const char *path);

/* Explains why a command that needs the daemon failed. Return: exit code. */
int daemon_pages_fail(const char *command, const struct daemon_client *remote, int result);
