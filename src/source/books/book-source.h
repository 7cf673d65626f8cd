/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The source of books: scans /proc, asks the daemon for what cannot be seen there, and reads each book
 * into the snapshot. Can be asked again and again; books stay open between two times.
 */

#include <stddef.h>
#include <stdint.h>

struct collect_sources;
struct daemon_client;
struct scan;
struct scan_book;
struct snapshot;
struct source;
struct snapshot_request;
struct timebase;
struct view;

/* 0 or a negative errno. */
int book_source_new(struct source **ret_source);

/* For collect_machine(), with such a source; only lent. */
void book_source_sources(struct source *source, struct collect_sources *ret_sources);

/* The scan of such a source, for those who want more of a book than a snapshot holds; and the daemon. */
struct scan *book_source_scan(struct source *source);
struct daemon_client *book_source_remote(struct source *source);

/*
 * Who asks very often need not search each time: what was found counts for so long, or longer if searching
 * would take more than a BOOK_SEARCH_SHARE-th of a core. What it holds is read each time. 0, as at first:
 * searches each time.
 */
#define BOOK_SEARCH_SHARE 200u

void book_source_pace(struct source *source, uint64_t ns);

/* Only finds the books. 0 or a negative errno. */
int book_source_refresh(struct source *source);

/* Adds the owner of @book and its totals, and what else is wanted. @view is only lent. */
int book_collect(struct scan_book *book, const struct snapshot_request *request, struct view *view,
		 struct snapshot *snapshot);

/* Only the owner. */
int book_add_process(const struct scan_book *book, struct snapshot *snapshot, uint32_t *ret_index);

/* Who made it, which is whose memory it tells of: books for old clients are made by the daemon. */
uint32_t book_maker(const struct scan_book *book);

/* How the book's clock stands now. */
void book_timebase(const struct scan_book *book, struct timebase *ret_timebase);

/* What the last scan could not do, as notes. */
void book_note_scan(const struct scan *scan, struct snapshot *snapshot);

/* Once all sources were asked: why there is nothing to see, if so. @others: processes known otherwise. */
void book_note_nothing(const struct scan *scan, size_t others, struct snapshot *snapshot);
