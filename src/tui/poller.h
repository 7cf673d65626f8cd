/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Two threads that read, so that the one that draws and handles keys never waits. One takes totals
 * at a steady pace, for the charts. The other takes the details of the current view: buffers, call
 * sites, the history. Each keeps only its newest result; if it is not fetched in time a newer one
 * replaces it, and nothing queues up.
 *
 * The observer must not distort what it observes: neither thread uses more than its share of a core
 * (1/POLLER_SHARE). What costs more is read less often than requested.
 *
 * The data comes from a feed, one for each thread; the threads own them.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/sites/group.h"
#include "model/sites/site-rows.h"
#include "model/snapshot-request.h"
#include "tui/series.h"

struct call_site;
struct incident_rows;
struct poller;
struct snapshot;

#define POLLER_SHARE 40u         /* for totals: ten readings a second of a hundred processes fit */
#define POLLER_DETAILS_SHARE 50u /* for details, while totals are read once a second */
#define POLLER_REASON_SIZE 256

/* The state of ttmemd. */
enum poller_daemon {
	POLLER_DAEMON_NONE = 0, /* not running, or not wanted */
	POLLER_DAEMON_HELPS = 1,
	POLLER_DAEMON_FAILS = 2, /* it is slow, or not trusted; see the reason */
};

struct poller_feed {
	void *context;
	/* A finished snapshot. @names: resolve stack frames to names. 0 or a negative errno. */
	int (*take)(void *context, const struct snapshot_request *request, bool names,
		    struct snapshot **ret_snapshot);
	/* Adds the daemon's history. 0, more than 0 if it does not answer, or a negative errno. */
	int (*recall)(void *context, struct incident_rows *incident_rows);
	/* The state of the daemon since the last call of the others. */
	enum poller_daemon (*daemon)(void *context, char *ret_reason, size_t size);
	void (*free)(void *context);
	/*
	 * Adds what was before @until_ns to the charts of what is in @snapshot; asked for once, at
	 * the first reading, if the daemon helps, and for each moment of a recording. May be NULL.
	 * Return: likewise.
	 */
	int (*chart)(void *context, const struct snapshot *snapshot, uint64_t until_ns,
		     struct series_set *set);
	/* To another moment of a recording, CLOCK_REALTIME. NULL: it is none. 0 or a negative errno. */
	int (*move)(void *context, uint64_t at_ns);
};

enum poller_kind {
	POLLER_NOTHING = 0,
	POLLER_BUFFERS,
	POLLER_SITES,
	POLLER_PAST,
};

/* What a view wants to see in detail, and when. */
struct poller_wish {
	enum poller_kind kind;
	uint64_t at_ns; /* a moment of a recording, for totals too; 0 = now */
	uint32_t pid;   /* for buffers */
	size_t limit;   /* for buffers; 0 = all */
	enum snapshot_order order;
};

struct poller_totals {
	uint64_t time_ns;  /* CLOCK_MONOTONIC */
	uint64_t pause_ns; /* at least, until the next reading */
	int error;         /* 0, or why there is no snapshot */
	struct snapshot *snapshot;
	struct series_set before; /* what the daemon knows of the time before the first reading */
	enum poller_daemon daemon;
	char reason[POLLER_REASON_SIZE];
};

struct poller_details {
	struct poller_wish wish;
	uint64_t pause_ns;
	int error;
	bool from_daemon;          /* for the history */
	struct snapshot *snapshot; /* NULL for the daemon's data */
	struct group_list sites;   /* largest first */
	struct site_rows lines;    /* of code, of the sites */
	struct incident_rows *incident_rows;
};

/* @devices: selects devices for details. Consumes the feeds in any case. 0 or a negative errno. */
int poller_new(struct poller **ret_reader, uint32_t refresh_ms, const struct filter *devices,
	       const struct poller_feed feeds[2]);

/*
 * Ends the threads. One that hangs in its feed is abandoned with what it owns: the process is about
 * to end.
 */
struct poller *poller_free(struct poller *poller);

/* Becomes readable when there is something new. */
int poller_fd(const struct poller *poller);

/* A new result, which the caller owns; NULL if there is none. */
struct poller_totals *poller_take_totals(struct poller *poller);
struct poller_details *poller_take_details(struct poller *poller);

struct poller_totals *poller_totals_free(struct poller_totals *totals);
/* Fills in the sites of the snapshot. 0 or -ENOMEM. */
int poller_details_group(struct poller_details *details);
struct poller_details *poller_details_free(struct poller_details *details);

/* What to read in detail from now on; a different wish is read at once. */
void poller_wish(struct poller *poller, const struct poller_wish *wish);

bool poller_same_wish(const struct poller_wish *a, const struct poller_wish *b);
