/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Two threads that read, so that the one which draws and hears the keys never waits. One takes totals at an
 * even pace, for the charts. The other takes what the view on the screen wants to see in detail: buffers,
 * call sites, the past. Each keeps one finished result, the newest; who is slow to fetch it misses the
 * older ones, and nothing queues up.
 *
 * Who looks must not be what is seen: neither thread uses more than its share of a core (READER_SHARE-th). What
 * costs more than that is read less often than was asked for.
 *
 * Where facts come from is a feed, one for each thread; the threads own them.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/request.h"

struct group;
struct past;
struct reader;
struct snapshot;

#define READER_SHARE 40u         /* for totals: ten looks a second at a hundred processes need it */
#define READER_DETAILS_SHARE 50u /* for details, while totals are read once a second */
#define READER_REASON_SIZE 256

/* Whether ttmemd helps. */
enum reader_daemon {
	READER_DAEMON_NONE = 0, /* there is none, or none is wanted */
	READER_DAEMON_HELPS = 1,
	READER_DAEMON_FAILS = 2, /* it is slow, or a stranger; the reason tells */
};

struct reader_feed {
	void *context;
	/* A finished snapshot. @names: the frames of stacks are to have names. 0 or a negative errno. */
	int (*take)(void *context, const struct source_request *request, bool names,
		    struct snapshot **ret_snapshot);
	/* Adds what the daemon remembers. 0, more than 0 if it does not answer, or a negative errno. */
	int (*recall)(void *context, struct past *past);
	/* How it is with the daemon since the last call of the two. */
	enum reader_daemon (*daemon)(void *context, char *ret_reason, size_t size);
	void (*free)(void *context);
};

enum reader_kind {
	READER_NOTHING = 0,
	READER_BUFFERS,
	READER_SITES,
	READER_PAST,
};

/* What a view wants in detail. */
struct reader_wish {
	enum reader_kind kind;
	uint32_t pid; /* of buffers */
	size_t limit; /* of buffers; 0 = all */
	enum snapshot_order order;
};

struct reader_totals {
	uint64_t time_ns;  /* CLOCK_MONOTONIC */
	uint64_t pause_ns; /* until the next ones, at least */
	int error;         /* 0, or why there is no snapshot */
	struct snapshot *snapshot;
	enum reader_daemon daemon;
	char reason[READER_REASON_SIZE];
};

struct reader_details {
	struct reader_wish wish;
	uint64_t pause_ns;
	int error;
	bool from_daemon;          /* of the past */
	struct snapshot *snapshot; /* NULL for what the daemon told */
	struct group *groups;      /* of call sites, largest first */
	size_t group_count;
	struct past *past;
};

/* @devices: chooses devices for details. The feeds are taken in any case. 0 or a negative errno. */
int reader_new(struct reader **ret_reader, uint32_t refresh_ms, const struct filter *devices,
	       const struct reader_feed feeds[2]);

/*
 * Ends the threads. One that is held by somebody who does not answer is left to itself, with what it
 * owns: the process is about to end.
 */
struct reader *reader_free(struct reader *reader);

/* Becomes readable when something new is there. */
int reader_fd(const struct reader *reader);

/* What is new, the caller's; NULL if nothing is. */
struct reader_totals *reader_take_totals(struct reader *reader);
struct reader_details *reader_take_details(struct reader *reader);

struct reader_totals *reader_totals_free(struct reader_totals *totals);
struct reader_details *reader_details_free(struct reader_details *details);

/* What is to be read in detail from now on; what differs from before is read at once. */
void reader_wish(struct reader *reader, const struct reader_wish *wish);

bool reader_same_wish(const struct reader_wish *a, const struct reader_wish *b);
