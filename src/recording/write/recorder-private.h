/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Shared by the files of the recorder; private to them. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "book/read/log.h"
#include "book/read/view.h"
#include "recording/format/columns.h"
#include "recording/format/layout.h"
#include "recording/write/chunk-writer.h"
#include "recording/write/recorder.h"

struct field;
struct namer;
struct scan_book;

/* All counters of a device. */
struct recorder_counters {
	struct book_hot hot[BOOK_TYPES];
	struct book_cold cold[BOOK_TYPES];
	struct book_warm warm[BOOK_TYPES];
};

/* What each call site did since the recording began; found by stack and type. */
struct recorder_sites {
	struct recording_site *sites;
	size_t count, capacity;
	uint32_t *places; /* number + 1 by hash; 0 = none */
	uint32_t mask;
	uint64_t seed;
};

struct recorder_shard {
	uint32_t device;
	bool is_new;    /* its first event is part of the recording */
	bool has_begun; /* its first keyframe is in the file */
	bool is_lost;   /* its ring was overrun, and no exact state could be had since */
	bool is_failed; /* it contradicts itself */
	uint64_t retry_ns;
	struct log_place place;
	uint64_t solid;     /* the first place of the ring that was not looked at */
	struct log log;     /* events that were read but are not in the file */
	uint64_t oldest_ns; /* when the first of those was read */

	/* As of event `done`, the last in the file. */
	uint64_t done;
	struct columns_table table;
	struct recorder_counters counters;
	struct recorder_sites sites;

	uint64_t since;    /* bytes of the file since the last keyframe */
	uint64_t keyframe; /* bytes of that */
};

struct recorder_book {
	struct scan_book *book; /* the caller's */
	uint32_t number;
	uint8_t *shadow; /* what the file has of the book before its pool; zeros where nothing */
	uint64_t arena_used[BOOK_ARENA_COUNT];
	uint64_t changes;    /* header.changes when devices were looked for */
	bool has_looked;     /* for devices */
	bool is_new;         /* see recorder_add() */
	uint64_t synced_ns;  /* when everything outside of events was read */
	uint32_t next_stack; /* the first whose frames have no names yet */
	struct recorder_shard **shards;
	size_t count, capacity;
};

struct recorder {
	struct chunk_writer *writer;
	struct recorder_sums sums;
	struct recorder_book **books;
	size_t count, capacity;
	uint64_t shards; /* of all books */
	uint64_t round_ns;
	size_t next; /* the book with which a round begins */
	unsigned int wait_ms;

	/* Used again and again. */
	struct view view;
	uint8_t *encoded; /* room for the events of a chunk */
	uint8_t *bytes;   /* of a RECORDING_BYTES */
	size_t bytes_used, bytes_capacity;
	uint32_t bytes_count;
	uint8_t *scratch;
};

/* An entry of this moment; @book may be NULL. */
struct recording_entry recorder_entry(const struct recorder_book *book, uint32_t kind,
				      uint32_t device);

/* recorder-bytes.c: what changed outside of events. */
int recorder_bytes_new(struct recorder_book *book);
int recorder_bytes_sync(struct recorder *recorder, struct recorder_book *book);
int recorder_bytes_shard(struct recorder *recorder, struct recorder_book *book, uint32_t device);
#define RECORDER_SCRATCH 65536u

/* recorder-shard.c: a device's events. */
int recorder_shard_new(struct recorder_shard **ret_shard, struct recorder_book *book,
		       uint32_t device);
struct recorder_shard *recorder_shard_free(struct recorder_shard *shard);
/* 1 if there was something new. */
int recorder_shard_poll(struct recorder *recorder, struct recorder_book *book,
			struct recorder_shard *shard);
int recorder_shard_flush(struct recorder *recorder, struct recorder_book *book,
			 struct recorder_shard *shard);
/* All that is left, and a last keyframe. */
int recorder_shard_end(struct recorder *recorder, struct recorder_book *book,
		       struct recorder_shard *shard);

/* recorder-past.c: where a device's recording begins. */
int recorder_past_begin(struct recorder *recorder, struct recorder_book *book,
			struct recorder_shard *shard);
/* Whether all events of the ring were ever written: 0, -EBADMSG, or another negative errno. */
int recorder_past_is_solid(struct recorder_shard *shard, struct reader *reader);
int recorder_past_take_view(struct recorder_shard *shard, const struct view *view);

/* recorder-sites.c */
int recorder_sites_count(struct recorder_sites *sites, const struct book_event *event,
			 double ns_per_stamp);
/* What lives now, after an exact state was taken instead of events. */
int recorder_sites_rebase(struct recorder_sites *sites, const struct columns_table *table);
void recorder_sites_deinit(struct recorder_sites *sites);

/* As JSON. 0 or a negative errno. */
int recorder_put_text(struct recorder *recorder, const struct recording_entry *entry,
		      const struct field *fields, const void *row);

/* recorder-names.c: names for the frames of all stacks since the last call. */
int recorder_names_write(struct recorder *recorder, struct recorder_book *book,
			 struct namer *namer);

/* recorder-count.c */
void recorder_count_page(const struct recorder_shard *shard, struct book_shard *page);
void recorder_count(struct recorder_counters *counters, struct reader *reader,
		    const struct book_event *event, uint64_t number);
void recorder_uncount(struct recorder_counters *counters, struct reader *reader,
		      const struct book_event *event);
