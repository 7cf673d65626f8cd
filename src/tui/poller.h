/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Two threads that read, so that the one that draws and handles keys never waits. One takes totals
 * at a steady pace, for the charts. The other takes the details of the current view: buffers, call
 * sites, the history. Each keeps only its newest result; if it is not fetched in time a newer one
 * replaces it, and nothing queues up.
 *
 * The observer must not distort what it observes: neither thread uses more than its share of a core
 * (1/READER_SHARE). What costs more is read less often than requested.
 *
 * The data comes from a feed, one for each thread; the threads own them.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/snapshot-request.h"

struct group;
struct past;
struct reader;
struct snapshot;

#define READER_SHARE 40u         /* for totals: ten readings a second of a hundred processes fit */
#define READER_DETAILS_SHARE 50u /* for details, while totals are read once a second */
#define READER_REASON_SIZE 256

/* The state of ttmemd. */
enum reader_daemon {
	READER_DAEMON_NONE = 0, /* not running, or not wanted */
	READER_DAEMON_HELPS = 1,
	READER_DAEMON_FAILS = 2, /* it is slow, or not trusted; see the reason */
};

struct reader_feed {
	void *context;
	/* A finished snapshot. @names: resolve stack frames to names. 0 or a negative errno. */
	int (*take)(void *context, const struct snapshot_request *request, bool names,
		    struct snapshot **ret_snapshot);
	/* Adds the daemon's history. 0, more than 0 if it does not answer, or a negative errno. */
	int (*recall)(void *context, struct past *past);
	/* The state of the daemon since the last call of the two. */
	enum reader_daemon (*daemon)(void *context, char *ret_reason, size_t size);
	void (*free)(void *context);
};

enum reader_kind {
	READER_NOTHING = 0,
	READER_BUFFERS,
	READER_SITES,
	READER_PAST,
};

/* What a view wants to see in detail. */
struct reader_wish {
	enum reader_kind kind;
	uint32_t pid; /* for buffers */
	size_t limit; /* for buffers; 0 = all */
	enum snapshot_order order;
};

struct reader_totals {
	uint64_t time_ns;  /* CLOCK_MONOTONIC */
	uint64_t pause_ns; /* at least, until the next reading */
	int error;         /* 0, or why there is no snapshot */
	struct snapshot *snapshot;
	enum reader_daemon daemon;
	char reason[READER_REASON_SIZE];
};

struct reader_details {
	struct reader_wish wish;
	uint64_t pause_ns;
	int error;
	bool from_daemon;          /* for the history */
	struct snapshot *snapshot; /* NULL for the daemon's data */
	struct group *groups;      /* of call sites, largest first */
	size_t group_count;
	struct past *past;
};

/* @devices: selects devices for details. Consumes the feeds in any case. 0 or a negative errno. */
int reader_new(struct reader **ret_reader, uint32_t refresh_ms, const struct filter *devices,
	       const struct reader_feed feeds[2]);

/*
 * Ends the threads. One that hangs in its feed is abandoned with what it owns: the process is about
 * to end.
 */
struct reader *reader_free(struct reader *reader);

/* Becomes readable when there is something new. */
int reader_fd(const struct reader *reader);

/* A new result, which the caller owns; NULL if there is none. */
struct reader_totals *reader_take_totals(struct reader *reader);
struct reader_details *reader_take_details(struct reader *reader);

struct reader_totals *reader_totals_free(struct reader_totals *totals);
struct reader_details *reader_details_free(struct reader_details *details);

/* What to read in detail from now on; a different wish is read at once. */
void reader_wish(struct reader *reader, const struct reader_wish *wish);

bool reader_same_wish(const struct reader_wish *a, const struct reader_wish *b);
