/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The checked reader. Nothing in a book is trusted: data is copied once, the copy is checked, and
 * only the copy is used. A reader holds one book's header and interned strings; view.h reads the
 * state of a shard, log.h its events.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "book/format/layout.h"
#include "book/read/backing.h"

/* A copy of an arena, read on demand. */
struct reader_copy {
	uint8_t *bytes;
	uint64_t used;
	uint32_t refused; /* times in a row that the arena was invalid */
	uint32_t misses;  /* reads for an id that does not exist, since reader_retry() */
};

/* Why a book is refused. reader_strerror() has the text for users. */
enum reader_outcome {
	READER_NOT_YET = 1,     /* no magic: still being created, or not a book at all */
	READER_BAD_VERSION = 2, /* written by a later library, or by one that is too old */
	READER_BAD_SIZE = 3,    /* too small, too large, or not what the header says */
	READER_BAD_LAYOUT = 4,  /* sizes in the header that this version never writes */
};

struct reader {
	struct book_file *file; /* owned by the caller */
	struct book_header header;

	struct reader_copy strings;
	struct reader_copy shapes;

	/*
	 * Arenas only grow: what was within one once still is, so their headers are read again
	 * only for what was added, and a segment is checked once.
	 */
	struct book_arena arenas[BOOK_ARENA_COUNT];
	uint64_t segments_checked[BOOK_ARENA_COUNT]; /* a bit for each */

	/* A range known to have no hole: a book is sealed, so what was stored once stays. */
	uint64_t solid_from;
	uint64_t solid_to;
};

/* 0, a negative errno, or a positive reader_outcome. @file must outlive the reader. */
int reader_init(struct reader *reader, struct book_file *file);
void reader_deinit(struct reader *reader);

/* What a result of reader_init() means, as text for users; the string is static. */
const char *reader_strerror(int result);

/* Read the changing half of the header again (state, counters of rejected calls, incidents). */
int reader_refresh(struct reader *reader);

/* The first device at or after @device whose shard has been used; -ENXIO if there is none. */
int64_t reader_next_shard(struct reader *reader, uint32_t device);

/* What the application declared about a device. -ENOENT if nothing; -EAGAIN if it kept changing. */
int reader_device(struct reader *reader, uint32_t device, struct book_device *ret_device);

/*
 * Which of @count devices from @first on may be declared, as bits: only those are worth a
 * reader_device(). Covers at most one page of them, READER_DECLARED_MAX.
 */
#define READER_DECLARED_MAX (BOOK_PAGE / (uint32_t)sizeof(struct book_device))
int reader_declared(struct reader *reader, uint32_t first, uint32_t count, uint32_t *ret_devices);

/* Entry @index of a kind; -ENOENT if it is not committed. */
int reader_incident(struct reader *reader, uint32_t kind, uint32_t index,
		    struct book_incident *ret_incident);

/* Mark @number, counted from 0; -ENOENT if it is overwritten or not yet written. */
int reader_mark(struct reader *reader, uint64_t number, struct book_mark *ret_mark);

/* Used and lost bytes of an arena, for display. */
int reader_arena(struct reader *reader, uint32_t kind, struct book_arena *ret_arena);

/*
 * The bytes of string @id, NULL if there is no such string; valid until the next call with this
 * reader. The application wrote them, so they may be any bytes.
 */
const char *reader_string(struct reader *reader, uint32_t id, size_t *ret_length);

/*
 * The next string that begins with @prefix; @after: the one found before, 0 = the first. 0: there is none.
 * Reads all strings, so it is not for what is asked for often.
 */
uint32_t reader_find_string(struct reader *reader, const char *prefix, uint32_t after);

/* Shape @id; all zero for 0 and for ids that do not exist. */
struct book_shape reader_shape(struct reader *reader, uint32_t id);

/* A new reading begins: ids that did not exist may exist now. */
void reader_retry(struct reader *reader);

/* Whether the book says what buffers take: version 1 does not. */
bool reader_has_warm(const struct reader *reader);

/* What a buffer takes in all banks together, or EVENT_OCCUPIED_UNKNOWN. */
uint64_t reader_occupied(struct reader *reader, const struct book_record *record);

/*
 * Stack @id: its head and its frames, native ones first, each list innermost first; at most the
 * first @max. Return: the number of frames in @ret_frames; 0 also for ids that do not exist.
 */
size_t reader_stack(struct reader *reader, uint32_t id, struct book_stack *ret_head,
		    struct book_frame *ret_frames, size_t max);

/* Module @id. 0, -ENOENT for ids that do not exist, or another negative errno. */
int reader_module(struct reader *reader, uint32_t id, struct book_module *ret_module);

/*
 * Whether there is no hole from @offset to @end: 1, 0, or a negative errno. The answer is kept,
 * because looking for the end of the data takes longer than copying it.
 */
int reader_is_solid(struct reader *reader, uint64_t offset, uint64_t end);

/* Whether a run of units lies in the pool and the segment table assigns it to this owner. */
bool reader_segment_is(struct reader *reader, uint32_t unit, uint32_t units, uint32_t owner,
		       uint32_t kind);
