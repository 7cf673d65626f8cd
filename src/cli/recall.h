/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Lists that the daemon remembers. They come in pages; these put them together again: as one document,
 * byte by byte as the daemon wrote it, or row by row for commands that print text.
 */

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct native_request;
struct remote;

#define RECALL_PAGES_MAX 1000u /* a daemon whose pages never end is wrong */

/*
 * All pages as one document. @list: the member that goes on from page to page. Nothing is written unless
 * the first page has come; if a later one does not, the document is whole and its "next" says where it
 * was cut. 0, a remote_outcome, or a negative errno.
 */
int recall_document(struct remote *remote, const struct native_request *request, const char *list,
		    FILE *out);

/* Only the rows of all pages, as a JSON array that the caller frees. */
int recall_list(struct remote *remote, const struct native_request *request, const char *list,
		char **ret_text);

/* One row. Numbers are reals: exact to 2^53, which is enough for people. 0, or a negative errno. */
typedef int recall_fn(void *context, const json_t *row);

int recall_rows(struct remote *remote, const struct native_request *request, const char *list,
		recall_fn *fn, void *context);

/* Members of a row; what is missing or of another kind is 0 or NULL. */
uint64_t recall_number(const json_t *row, const char *key);
const char *recall_text(const json_t *row, const char *key);

/* Tells why a command that needs the daemon fails. Return: exit code. */
int recall_fail(const char *command, const struct remote *remote, int result);

/*
 * Where the value of a member of the outermost object lies in the text of a document. 0, -ENOENT, or
 * -EBADMSG for what is no such text.
 */
int recall_find(const char *text, size_t length, const char *key, size_t *ret_begin,
		size_t *ret_end);
