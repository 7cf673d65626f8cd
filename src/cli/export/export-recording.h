/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Exports of recordings. */

#include <stddef.h>

struct export_count;
struct export_options;
struct feed_books;
struct filter;
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

/* Writes what the options say of the recording that they name. Return: exit code. */
int export_recording(struct export_options *options);
