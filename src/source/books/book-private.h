/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Shared by the files that read a book; private to them. */

#include <stdbool.h>
#include <stdint.h>

#include "book/read/log.h"
#include "model/snapshot.h"
#include "model/timebase.h"

#define BOOK_TEXTS 1024u  /* entries of the cache from string ids to texts */
#define BOOK_STACKS 4096u /* likewise from stack ids */
#define BOOK_SHAPES 256u  /* likewise from shape ids */
#define BOOK_MODULES 64u  /* likewise from module ids */
#define BOOK_STACK_FRAMES 64u

struct book_frame;
struct book_incident;
struct book_peaks;
struct book_rest;
struct namer_place;
struct scan_book;
struct snapshot_request;
struct stack;
struct view;

struct book_reading {
	struct scan_book *book;
	const struct snapshot_request *request;
	struct view *view;
	struct snapshot *snapshot;
	struct timebase timebase;
	uint64_t deadline;
	bool is_late; /* no time for all rows: from now on only totals are read */
	uint32_t process;

	/*
	 * The book's totals cache is valid (recalls) or is being filled (learns), which the first
	 * failure stops.
	 */
	bool recalls, learns;
	size_t recalled; /* shards of the totals cache that have been passed */

	const struct book_rest *rest; /* its devices are not read; NULL = none */
	struct book_rest *fills;      /* one that is being made; NULL = none */

	struct book_peaks *peaks; /* NULL unless the request wants them */

	/* NULL until the first text or shape: most reads are of totals. */
	struct book_caches {
		struct {
			uint32_t id;
			const char *text;
		} texts[BOOK_TEXTS];
		struct {
			uint32_t id;
			struct book_shape shape;
		} shapes[BOOK_SHAPES];
		struct {
			uint32_t id;
			struct book_module module;
		} modules[BOOK_MODULES];
	} * caches;
	struct book_stack_known {
		uint32_t id;
		const struct stack *stack; /* NULL = none */
	} * stacks;                        /* NULL until the first one */
};

void book_reading_deinit(struct book_reading *reading);

/* Module @id, as reader_module(): the frames of all stacks are in the same few. */
int book_module(struct book_reading *reading, uint32_t id, struct book_module *ret_module);

/* NULL if there is no memory; then nothing is cached. */
struct book_caches *book_caches(struct book_reading *reading);

static inline struct snapshot_process *book_process(const struct book_reading *reading)
{
	return &reading->snapshot->processes[reading->process];
}

/* Adds the owner and totals of all devices; @rest gets the heads of the shards. 0 or -ENOMEM. */
int book_collect_whole(struct scan_book *book, struct view *view, struct snapshot *snapshot,
		       struct book_rest *rest);

/* book-rest.c: a shard that was read; the sum as a part of the process. 0 or -ENOMEM. */
void book_rest_add_head(struct book_rest *rest, const struct view *view);
int book_rest_collect(const struct book_reading *reading);

/* The first device at or after @device that is not in the rest; BOOK_DEVICES = none. */
uint32_t book_rest_next_single(const struct book_rest *rest, uint32_t device);

/* Adds what the book declares about devices. Returns 0 or a negative errno. */
int book_devices(struct book_reading *reading);

/* A string of the book as text of the snapshot; NULL = none. */
const char *book_text(struct book_reading *reading, uint32_t id);

/*
 * Describes where a native frame is, for a namer. @path is that of the module, NULL if unknown.
 * Returns false if there is nothing to ask the namer for.
 */
bool book_place(const struct scan_book *book, const struct book_frame *frame,
		const struct book_module *module, const char *path, struct namer_place *ret_place);

/* A stack of the book; NULL = none. */
const struct stack *book_stack(struct book_reading *reading, uint32_t id);

/* See struct snapshot_party. */
uint64_t book_stack_key(struct book_reading *reading, uint32_t id);

/*
 * The order in which a stack's frames are shown, innermost first; see book-merge.c. @native of them
 * are native, the rest of @count, at most BOOK_STACK_FRAMES, Python. Returns how many are shown.
 */
size_t book_merge(struct book_reading *reading, const struct book_frame *frames, size_t native,
		  size_t count, uint8_t *ret_order);

/*
 * Reads a shard's log, as much of it as its owner does not overwrite meanwhile. @log: as for log_start().
 * Returns 0 or a negative errno; -EOVERFLOW: the owner was too fast.
 */
int book_log_read(struct reader *reader, const struct book_shard *page, uint32_t device,
		  struct log *log);

/* Entries first to count - 1 of the list are valid, oldest first. */
struct book_graves {
	struct book_grave *list; /* NULL until the first one */
	uint64_t first, count;
};

/* Reads a shard's graveyard, without graves that the owner may have been overwriting meanwhile. */
int book_graves_read(struct reader *reader, const struct book_shard *page, uint32_t device,
		     struct book_graves *graves);
void book_graves_deinit(struct book_graves *graves);

/*
 * For the request's held_at_close: incidents of this kind; with @rows, for its closed: rows. 0 or a negative
 * errno.
 */
int book_collect_held(struct book_reading *reading, bool rows);

/* Gives an incident its explanation, if there is memory for it. The view's records are another moment's then. */
void book_explain_failed(struct book_reading *reading, const struct book_incident *failed,
			 struct snapshot_incident *incident);

/* Adds the book's incidents. Returns 0 or a negative errno. */
int book_collect_incidents(struct book_reading *reading);

/*
 * Rows, see book-rows.c: whether the book has to be read, where in it the wanted rows begin (the
 * first device, and a device's first slot), whether there are enough; and the rows of the view.
 * Returns 0 or a negative errno.
 */
bool book_rows_touch(const struct book_reading *reading);
uint32_t book_rows_first_device(const struct book_reading *reading);
uint32_t book_rows_first(const struct book_reading *reading, uint32_t device);
bool book_rows_done(const struct book_reading *reading);
void book_rows_late(struct book_reading *reading, uint32_t slot); /* time ran out after this slot */
int book_rows(struct book_reading *reading);

/* Adds a row for what closing a device has ended. */
int book_rows_closed(struct book_reading *reading, uint32_t device,
		     const struct book_record *record);

/* Whether rows of this device are requested, and there is still time for them. */
bool book_wants_rows(const struct book_reading *reading, uint32_t device);

/*
 * For the request's at_peak: the peaks of a shard and their rows. @device's view is read, as by
 * view_read(), and the result is that of the reading. Then the rows: 0 or -ENOMEM.
 */
int book_peaks_read_shard(struct book_reading *reading, uint32_t device);
int book_peaks_rows(struct book_reading *reading);

/* BOOK_INEXACT_... of a shard as an enum snapshot_bound of a type. */
uint32_t book_bound(uint64_t inexact, uint32_t type);
