/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A recording that is open for reading. Opening reads only indexes; everything else is read when it
 * is asked for. A file may come from anybody: nothing in it is trusted.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/ending.h"
#include "model/snapshot-recording.h"
#include "recording/format/layout.h"

struct json_t;
struct mark_list;
struct namer;
struct reader;
struct recording;
struct scan_book;
struct snapshot;
struct source;

#define RECORDING_WHY_SIZE 256u

/*
 * 0 or a negative errno, then with one line for users in @ret_why: no recording, of a later version,
 * not readable. A file that ends too early is none of these: see recording_facts.
 */
int recording_open(struct recording **ret_recording, const char *path,
		   char ret_why[RECORDING_WHY_SIZE]);
struct recording *recording_free(struct recording *recording);

/* For CLEANUP(). */
static inline void recording_cleanup(struct recording **recording)
{
	recording_free(*recording);
}

/* Whether a file begins like a recording; everything else about it may be wrong. */
bool recording_is_file(const char *path);

struct recording_facts {
	const char *path;
	const char *command; /* that was recorded; NULL = none, such as with --all */
	const char *host;
	uint64_t start_ns, end_ns; /* CLOCK_REALTIME: the first and the last moment in it */
	uint64_t events;           /* that are in it */
	uint64_t missed;           /* events in gaps */
	size_t books;
	bool is_complete; /* it was ended in order */
	uint64_t torn;    /* bytes at the end that are no whole chunk */
};

const struct recording_facts *recording_facts(const struct recording *recording);
struct snapshot_recording recording_describe(const struct recording *recording);
/* Says in @snapshot of which recording it is. */
void recording_tell(const struct recording *recording, struct snapshot *snapshot);

/* What a book's owner was; the book's number is its place in the file. */
struct recording_owner {
	struct recording_book book;
	uint64_t first_ns, last_ns; /* of its events */
	bool has_ended;
	struct ending ending;
};

const struct recording_owner *recording_owner(const struct recording *recording, size_t book);

/* A moment: a time, and for one device the very event after which it is. */
struct recording_moment {
	uint64_t time_ns;      /* CLOCK_REALTIME */
	uint32_t book, device; /* RECORDING_NONE = all are taken by time */
	uint64_t number;       /* of the last event of that device that has happened */
};

/* Restricts what is asked for; 0 and RECORDING_NONE mean all. */
struct recording_filter {
	uint32_t pid;
	uint32_t device; /* RECORDING_NONE = all */
	uint32_t types;  /* bits; 0 = all */
};

#define RECORDING_FILTER_ALL ((struct recording_filter){.device = RECORDING_NONE})

/*
 * What users write: seconds since the start ("12.5", "90s", "2m30s"), the time of day ("16:03:12"),
 * the name of a mark or a phase (its end), "start", "peak", "failed" (the first allocation that
 * failed), "end". -ENOENT with one line for users in @ret_why.
 */
int recording_find(struct recording *recording, const char *text,
		   const struct recording_filter *filter, struct recording_moment *ret_moment,
		   char ret_why[RECORDING_WHY_SIZE]);

/*
 * When the bytes of all types and devices that the filter accepts were highest, all books together.
 * Exact for one type of one device; of several, a moment that was higher by less than what the types
 * were apart may be missed in a recording with very many such moments. -ENOENT: nothing was ever in
 * use.
 */
int recording_peak(struct recording *recording, const struct recording_filter *filter,
		   struct recording_moment *ret_moment, uint64_t *ret_bytes);

/*
 * Bytes in use over time, from the index alone: what was in use at the end of each step, and the most
 * within it. Of several devices, @high is the sum of what each had at most, so they need not have been
 * there together.
 */
struct recording_sample {
	uint64_t time_ns;
	uint64_t bytes[BOOK_TYPES];
	uint64_t high[BOOK_TYPES];
	uint8_t unknown; /* a bit for each type of which a process may have had more */
};

struct recording_span {
	uint64_t from_ns, to_ns; /* CLOCK_REALTIME */
};

/* @count samples of @span; NULL = from the start to the end. 0 or a negative errno. */
int recording_timeline(struct recording *recording, const struct recording_filter *filter,
		       const struct recording_span *span, struct recording_sample *ret_samples,
		       size_t count);

/*
 * The same for one device of one process, with the events of it instead of the chunks that they are in.
 * @samples: of recording_timeline() with the same arguments. 0 or a negative errno.
 */
int recording_timeline_refine(struct recording *recording, const struct recording_filter *filter,
			      const struct recording_span *span, struct recording_sample *samples,
			      size_t count);

/*
 * The book as it was: an ordinary book that nobody writes, with its owner as it was then. The caller
 * owns it. 0, -ENOENT if the book did not exist yet, or another negative errno.
 */
int recording_restore(struct recording *recording, size_t book,
		      const struct recording_moment *moment, struct scan_book **ret_book);

/*
 * Whether the recording has the state of a book at a time: false if what it has of a device begins later,
 * or if events of that time are missing.
 */
bool recording_knows(const struct recording *recording, size_t book, uint64_t time_ns);

/* Restored books may take so much, instead of what the size of the file allows. */
void recording_limit(struct recording *recording, uint64_t room);

/* All books as they were, for session_take() and everything else that takes a source. */
int recording_source_new(struct source **ret_source, struct recording *recording,
			 const struct recording_moment *moment);

/* A book as it was at the end, without its devices: for its texts. As recording_restore(). */
int recording_outline(struct recording *recording, size_t book, struct scan_book **ret_book);

/*
 * All marks of a book, oldest first, are added to @list, which book_marks_deinit() ends. @reader: of the
 * outline; texts live as long as @snapshot. 0 or a negative errno.
 */
int recording_marks(struct recording *recording, size_t book, struct reader *reader,
		    struct snapshot *snapshot, struct mark_list *list);

/* Names for the native frames of its stacks, from the file alone; lives as long as the recording. */
struct namer *recording_namer(struct recording *recording);

/* An event, or a gap. */
struct recording_event {
	size_t book;
	uint32_t device;
	uint64_t time_ns;
	uint64_t number;
	const struct book_event *event; /* NULL = a gap */
	const struct recording_gap *gap;
	const struct book_hot *hot; /* BOOK_TYPES counters of the device after it */
};

/* 0, or what ends the walk. */
typedef int recording_fn(void *context, const struct recording_event *event);

/*
 * Every event after @from up to @to (NULL = from the beginning, to the end), of all devices that the
 * filter accepts, in order of time; those of a device in their own order.
 */
int recording_walk(struct recording *recording, const struct recording_filter *filter,
		   const struct recording_moment *from, const struct recording_moment *to,
		   recording_fn *fn, void *context);

/*
 * What each call site of a book's device did up to a moment. The caller frees the array. The difference of
 * two moments is what happened between them.
 */
int recording_sites(struct recording *recording, size_t book, uint32_t device,
		    const struct recording_moment *moment, struct recording_site **ret_sites,
		    size_t *ret_count);

/* Bit length of ns / 1024: a buffer that lived for less than about a millisecond is a temporary. */
#define RECORDING_SHORT_LIFE 10u

static inline uint64_t recording_short_lives(const struct recording_site *site)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i <= RECORDING_SHORT_LIFE; i++)
		sum += site->lives[i];
	return sum;
}

/* Sets of buffers, which may overlap: whether a buffer with this record is in one of them. */
struct recording_sets {
	size_t count;
	bool (*has)(void *context, size_t set, const struct book_record *record);
	void *context;
};

/* The most that the buffers of a set and type held at one time, and when that first was so. */
struct recording_most {
	uint64_t bytes;
	struct recording_moment moment;
};

/*
 * Of one device of a book, from its events. @ret_most: BOOK_TYPES for each set. @ret_is_exact: false if it
 * may have been more, because events are missing. 0, -ENOENT if nothing is known of the device, or
 * another negative errno.
 */
int recording_most(struct recording *recording, size_t book, uint32_t device,
		   const struct recording_sets *sets, struct recording_most *ret_most,
		   bool *ret_is_exact);
