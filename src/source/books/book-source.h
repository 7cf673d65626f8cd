/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The source of books: scans /proc, asks the daemon for what cannot be seen there, and reads each
 * book into the snapshot. It can be collected from repeatedly; books stay open in between.
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
struct timebase_now;
struct view;

/* Returns 0 or a negative errno. */
int book_source_new(struct source **ret_source);

/* The arguments of collect_machine() for such a source; only borrowed. */
void book_source_sources(struct source *source, struct collect_sources *ret_sources);

/*
 * The source's scan, for callers that need more of a book than a snapshot holds; and its daemon
 * client.
 */
struct scan *book_source_scan(struct source *source);
struct daemon_client *book_source_remote(struct source *source);

/*
 * Spares frequent callers a search each time: its result is reused for @ns, or longer if searching
 * would take more than a BOOK_SEARCH_SHARE-th of a core. The books themselves are read each time.
 * 0, the default: search each time.
 */
#define BOOK_SEARCH_SHARE 200u

void book_source_pace(struct source *source, uint64_t ns);

/* Only searches for books. Returns 0 or a negative errno. */
int book_source_refresh(struct source *source);

/* Adds the owner of @book, its totals and whatever else is requested. @view is only borrowed. */
int book_collect(struct scan_book *book, const struct snapshot_request *request, struct view *view,
		 struct snapshot *snapshot);

/* Adds only the owner. */
int book_add_process(const struct scan_book *book, struct snapshot *snapshot, uint32_t *ret_index);

/* The user whose memory the book describes: books of old clients are created by the daemon. */
uint32_t book_maker(const struct scan_book *book);

/* This moment on the book's clock and on ours; of a restored book, its own moment. */
void book_now(const struct scan_book *book, struct timebase_now *ret_now);

/* The current relation of the book's clock to ours. */
void book_timebase(const struct scan_book *book, struct timebase *ret_timebase);

/* Adds notes on what the last scan could not do. */
void book_note_scan(const struct scan *scan, struct snapshot *snapshot);

/*
 * After all sources were read: notes why there is nothing to show, if so. @others: processes known
 * otherwise.
 */
void book_note_nothing(const struct scan *scan, size_t others, struct snapshot *snapshot);
