/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Lists that the daemon remembers. They come in pages; these put them together again: as one document, or
 * row by row for commands that print text.
 */

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct daemon_client;

#define DAEMON_PAGES_PAGES_MAX 1000u /* a daemon whose pages never end is wrong */
#define DAEMON_PAGES_PAGE 100u       /* rows, unless the query says; each may be large */

struct daemon_pages_query {
	const char *document; /* "leaks", "incidents" or "series" */
	const char *list;     /* the member that goes on from page to page */
	uint32_t pid;         /* 0 = any */
	uint32_t limit;       /* rows of a page, 0 = DAEMON_PAGES_PAGE */
	uint64_t from_ns;     /* of series; 0 = as the daemon likes, and so the step */
	uint32_t step_s;
};

/*
 * All pages as one document. Nothing is written unless the first page has come; if a later one does not,
 * the document is whole and its "next" says where it was cut. 0, a daemon_client_outcome, or a negative errno.
 */
int daemon_pages_document(struct daemon_client *remote, const struct daemon_pages_query *query,
			  FILE *out);

/* One row. 0, or a negative errno. */
typedef int daemon_pages_fn(void *context, const json_t *row);

int daemon_pages_rows(struct daemon_client *remote, const struct daemon_pages_query *query,
		      daemon_pages_fn *fn, void *context);

/*
 * A document of the daemon's; NULL if it is none. Numbers are exact; but if one is beyond 2^63, which only
 * a program that lies about its memory can cause, all of them are rounded to 53 bits.
 */
json_t *daemon_pages_load(const char *text, size_t length);

/* For CLEANUP(). */
void daemon_pages_unload(json_t **json);

/* Members of a row; what is missing or of another kind is 0 or NULL. */
uint64_t daemon_pages_number(const json_t *row, const char *key);
const char *daemon_pages_text(const json_t *row, const char *key);

/* Tells why a command that needs the daemon fails. Return: exit code. */
int daemon_pages_fail(const char *command, const struct daemon_client *remote, int result);
