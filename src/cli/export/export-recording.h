/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Exports of recordings. */

#include <stdbool.h>
#include <stddef.h>

struct export_count;
struct export_options;
struct feed_books;
struct filter;
struct recording;
struct session;
struct snapshot;

struct export_counts {
	struct snapshot *snapshot;
	const struct filter *filter;
	struct export_count *list; /* owned by the caller */
	size_t count, capacity;
};

/*
 * What each stack had allocated up to the end of @books, of the processes of the snapshot, whose texts they
 * get. 0 or a negative errno.
 */
int export_counts_find(struct export_counts *counts, struct feed_books *books);

/* A report is of one process: the only one, if none is named. False: there are several. */
bool export_recording_choose(struct export_options *options, const struct recording *recording);

/* Writes a file of the session's recording up to its moment, of which @snapshot is. Return: exit code. */
int export_recording(const struct export_options *options, struct session *session,
		     struct snapshot *snapshot);
