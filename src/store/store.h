/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The history: incidents, leak reports, ends of processes, runs of the daemon and time series, in a
 * database.
 *
 * One thread writes; everybody else only enqueues. A put copies what it needs out of a snapshot,
 * never waits and never fails its caller: what does not fit into the bounded queue is dropped and
 * counted. Trouble with the file stops nothing, and is reported by store_health(): a file that is
 * damaged, or of a version that cannot be converted, is set aside (three of them are kept) and a new
 * one is created;
 * while the disk is full or the folder cannot be written, data waits in the queue, with an attempt
 * every minute.
 *
 * What is kept, and for how long:
 *
 *	incidents, leaks, ends	`keep_s` after they were last seen
 *	points every second	an hour
 *	points every 10 s	a day
 *	points every minute	30 days (each of the three: `keep_s` if that is less)
 *
 * and all of it together within `size_max`: beyond it the finest points are deleted first, oldest
 * before newer, then the coarser ones, then the lists of buffers in leak reports, then records. A
 * coarser point keeps the maximum and the last value of those it replaces, and exists once its time
 * is over.
 *
 * Numbers above 2^62-1 are stored as 2^62-1, except addresses, sizes and unique ids, which are
 * exact.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/ending.h"
#include "base/process-id.h"
#include "model/snapshot.h"

struct store;
struct store_reader;

#define STORE_FILE "history.db" /* in the folder; a file set aside has a time appended */
#define STORE_ANY UINT32_MAX    /* in a query: any device, any type */

#define STORE_SIZE_DEFAULT (UINT64_C(512) << 20)
#define STORE_SIZE_MIN (UINT64_C(1) << 20) /* less has no room for a single leak report */
#define STORE_KEEP_DEFAULT (UINT64_C(30) * 86400)

/* Limits of one put; the rest is counted as cut. */
#define STORE_SAMPLES_MAX 16384u       /* points of one sample */
#define STORE_PROCESS_SAMPLES_MAX 256u /* of those, for one process */
#define STORE_LEAK_SITES_MAX 256u      /* of a leak report, largest first */
#define STORE_HOLDERS_MAX 32u          /* of a failed allocation: processes, and as many sites */
#define STORE_PHASES_MAX 16u           /* of a call site of a leak report */
#define STORE_NAMES_MAX 16u            /* of a call site, largest first */

/*
 * A leak report lists its buffers in the order of the snapshot, up to so many, and as many as fit
 * into so many bytes: packed, and before that with each text once in 2048 buffers. The packed list
 * also takes at most an eighth of the queue (4 MiB) and a 16th of the file's maximum size. Reports
 * keep their lists until all lists together exceed a quarter of the file's maximum size, or until
 * the file would be too large: then the oldest of the user who has the most bytes go first.
 */
#define STORE_LEAK_BUFFERS_MAX (UINT32_C(1) << 17)
#define STORE_LEAK_RAW_MAX (UINT32_C(64) << 20)
#define STORE_LISTS_SHARE 4u /* of the maximum size: one in so many bytes */

/* Limits of the file besides its size; the oldest of the user who has the most goes first. */
#define STORE_SITES_MAX 10000u
#define STORE_LEAKS_MAX 10000u
#define STORE_ENDINGS_MAX 10000u
#define STORE_RUNS_MAX 1000u  /* of the daemon */
#define STORE_EXAMPLES_MAX 4u /* of a site: newest examples */
#define STORE_SEEN_MAX 50000u

#define STORE_LIMIT_MAX 10000u /* rows per page */

/* One moment. Boot time distinguishes a clock that was set from time that has passed. */
struct store_now {
	uint64_t real_ns; /* CLOCK_REALTIME */
	uint64_t boot_ns; /* CLOCK_BOOTTIME */
};

/* Where tests can inject faults. */
enum store_step {
	STORE_STEP_OPEN = 0,
	STORE_STEP_ITEM = 1,
	STORE_STEP_COMMIT = 2,
	STORE_STEP_KEEP = 3,
};

/* All are called by the writer's thread. */
struct store_hooks {
	void *context;
	void (*clock)(void *context, struct store_now *ret_now); /* NULL: the system's clocks */
	void (*busy)(void *context);                             /* before each batch; for tests */
	int (*fault)(void *context, enum store_step step); /* SQLite code to fail with, or 0 */
};

/* 0 means the default, except for the folder. */
struct store_config {
	const char *folder; /* created if missing */
	uint64_t size_max;  /* bytes of the database and its log */
	uint64_t keep_s;
	uint32_t batch_ms;  /* 1000: the longest that something waits to be written */
	uint32_t retry_ms;  /* 60000: after the file could not be opened or the disk was full */
	uint64_t start_ns;  /* CLOCK_REALTIME: of the daemon; when the file is first opened */
	size_t queue_items; /* 8192; a user alone gets half, see store-queue.h */
	size_t queue_bytes; /* 32 MiB likewise, and a quarter as much again for points */
	struct store_hooks hooks;
};

struct store_health {
	bool running;    /* false: nothing can be written at present */
	uint64_t queued; /* waiting items */
	uint64_t queued_bytes;
	uint64_t written;         /* items */
	uint64_t records;         /* of those: incidents and leak reports */
	uint64_t dropped_records; /* what is no sample and did not fit into the queue */
	uint64_t dropped_leaks;   /* of those: leak reports */
	uint64_t joined;          /* incidents that were counted with one that waited */
	uint64_t dropped_samples; /* samples */
	uint64_t refused;         /* items that the database refused: our own bug */
	uint64_t cut;             /* rows beyond the limits of one put */
	uint64_t batches;
	uint64_t size;       /* bytes of the database and its log */
	uint64_t size_limit; /* size_max, or less if the disk has little left */
	uint64_t set_aside;  /* files, since store_open() */

	/*
	 * Why something last failed, "" = nothing ever did. @reasons counts up with each new one,
	 * so that each is reported once.
	 */
	uint64_t reasons;
	uint64_t reason_ns;
	char reason[256];
};

/* Starts the writer. Problems with the folder show in store_health(). 0 or a negative errno. */
int store_open(const struct store_config *config, struct store **ret_store);

/* Writes what waits, once, and ends. All readers must be closed before. */
struct store *store_close(struct store *store);

/* The totals at one moment: whole devices, and each living process. */
void store_put_sample(struct store *store, const struct snapshot *snapshot);

/*
 * An incident as it is in its process's book now. The same one with a higher count raises the count
 * by the difference, so that nobody needs to remember what was put before, not even across a
 * restart. Those of kind "leak" are ignored: store_put_leak() stores more.
 */
void store_put_incident(struct store *store, const struct snapshot *snapshot,
			const struct snapshot_incident *incident);

/* The same for a failed allocation, with the holders of memory on that device in @snapshot. */
void store_put_failure(struct store *store, const struct snapshot *snapshot,
		       const struct snapshot_incident *incident);

/*
 * What @process, which has ended, left: its buffers in @snapshot or, if it had no book, its totals. None
 * is no leak and puts nothing.
 */
void store_put_leak(struct store *store, const struct snapshot *snapshot, uint32_t process,
		    const struct ending *ending);

/* That @process has ended, whether it left something or not. */
void store_put_ending(struct store *store, const struct snapshot *snapshot, uint32_t process,
		      const struct ending *ending);

/*
 * Waits until everything put so far is written. 0, -ETIMEDOUT, or -EAGAIN: nothing can be written
 * at present. For tests, and before exiting.
 */
int store_flush(struct store *store, uint32_t timeout_ms);

void store_health(struct store *store, struct store_health *ret_health);

/*
 * Reading, on a separate connection: from any thread, but a reader from one thread at a time. One
 * query sees the data of one moment. Row functions return 0, a positive number to end the query, or
 * a negative errno that the query returns; texts are valid until they return. They must not run
 * queries themselves, nor take long: the log cannot be emptied while a query runs. A query that
 * takes 10 s ends with -ETIME.
 */
int store_reader_open(struct store *store, struct store_reader **ret_reader);
struct store_reader *store_reader_close(struct store_reader *reader);

/* The end of a page. All zero: from the beginning. */
struct store_cursor {
	int64_t major, minor;
	bool more; /* set by queries: there is a next page */
};

struct store_process {
	struct process_id id;
	uint32_t ns_pid;
	uint32_t user_id;
	uint64_t start_ns;
	const char *comm;
	const char *user; /* NULL = unknown; likewise the others */
	const char *container;
	const char *source;
};

/* A call site with everything that ever happened there: for one user and one program name. */
struct store_site {
	int64_t id;
	const char *kind;
	uint32_t type; /* SNAPSHOT_TYPE_NONE = unknown */
	uint32_t user_id;
	const char *comm;
	const char *name;          /* without numbers, for sites without a stack; NULL = none */
	const char *phase;         /* for sites without a stack or a name */
	const struct stack *stack; /* NULL = none */
	uint64_t count;            /* for leaks: processes */
	uint64_t processes;        /* in which it happened; at least, of what is long ago */
	const char *devices;       /* on which it happened, "0,1"; for leaks: of the example */
	uint64_t bytes;            /* leaked */
	uint64_t buffers;
	uint64_t first_ns, last_ns;
};

/* For a leak, address and size are those of one of its buffers, and count is how many there are. */
struct store_incident {
	struct store_site site;
	struct store_process process;     /* of the example */
	struct snapshot_incident example; /* the newest; its process index is not valid */
	uint64_t device_uid;

	/* The share of the example's process; only if the filter names a pid. */
	uint64_t own_count, own_bytes, own_buffers;
};

/*
 * A holder of memory on the device of a failed allocation: that type and types in the same memory.
 */
struct store_holder {
	struct store_process process;
	uint32_t type;
	uint64_t used;
	uint64_t buffers;
};

/* A call site's share: of such a holding over all processes, or of a leak. */
struct store_part {
	uint32_t type;
	const char *name; /* what all of them are called, without numbers; NULL = differently */
	const char *phase;
	const struct stack *stack; /* NULL = none */
	uint64_t bytes;
	uint64_t buffers;
	uint64_t oldest_ns; /* for a leak */

	/*
	 * What its buffers are called: how many names there are, 0 = not known (an earlier version
	 * stored it); and of the largest "BYTES BUFFERS NAME", separated, NULL = none. The name is
	 * empty for buffers without one.
	 */
#define STORE_PARTS_SEPARATOR '\x1e'
	uint64_t name_count;
	const char *names;

	/* For a leak: the phases of its buffers, largest buffers first, separated; NULL = none. */
	const char *phases;
};

/* Functions may be NULL. Holders and parts follow their incident. */
struct store_incident_rows {
	void *context;
	int (*incident)(void *context, const struct store_incident *incident);
	int (*holder)(void *context, const struct store_holder *holder);
	int (*part)(void *context, const struct store_part *part);
};

struct store_leak {
	int64_t id;
	struct store_process process;
	struct ending ending;
	uint64_t bytes;
	uint64_t buffers;
	uint64_t listed; /* buffers that are kept: see STORE_LEAK_BUFFERS_MAX */
	uint64_t offset; /* of these, so many were on earlier pages; then it comes without parts */
};

/*
 * Likewise. If a function returns a positive number, the next page begins with that leak or that
 * buffer; so none may do so at the first one of a page.
 */
struct store_leak_rows {
	void *context;
	int (*leak)(void *context, const struct store_leak *leak);
	int (*part)(void *context, const struct store_part *part);
	int (*buffer)(void *context, const struct snapshot_buffer *buffer, uint64_t device_uid);
	uint32_t buffers_max; /* of each leak; 0 = all */
};

/* Who asks; asked for every owner of a row. NULL: sees everything. */
struct store_sees {
	const void *context;
	bool (*may_see)(const void *context, uint32_t uid, const char *namespaces);
};

/* Newest first. 0 or NULL: no restriction. */
struct store_filter {
	const char *kind; /* for incidents */
	struct store_sees sees;
	uint32_t pid;      /* incidents: with an example of that process, which is returned */
	uint64_t since_ns; /* last seen, or ended, not before */
	size_t limit;      /* incidents or leaks; 0 = STORE_LIMIT_MAX */
	uint64_t until_ms; /* CLOCK_MONOTONIC: -ETIME then, if not earlier */
	struct store_cursor after;
};

int store_query_incidents(struct store_reader *reader, const struct store_filter *filter,
			  const struct store_incident_rows *rows, struct store_cursor *ret_next);
/* 1 if there is an incident of that kind, else 0. A newer version may have stored other kinds. */
int store_query_has_kind(struct store_reader *reader, const char *kind);
int store_query_leaks(struct store_reader *reader, const struct store_filter *filter,
		      const struct store_leak_rows *rows, struct store_cursor *ret_next);

/* How many incidents, or leak reports, there are that @sees does not see. 0 or a negative errno. */
int store_query_other_incidents(struct store_reader *reader, const struct store_sees *sees,
				uint64_t *ret_count);
int store_query_other_leaks(struct store_reader *reader, const struct store_sees *sees,
			    uint64_t *ret_count);

/* A process that has ended; what it left, unless the report about that was deleted. */
struct store_ended {
	struct store_process process;
	struct ending ending;
	uint64_t bytes;
	uint64_t buffers;
};

/* Newest first. As for leaks: a positive number ends the page before that row. */
int store_query_endings(struct store_reader *reader, const struct store_filter *filter,
			int (*row)(void *context, const struct store_ended *ended), void *context,
			struct store_cursor *ret_next);
int store_query_other_endings(struct store_reader *reader, const struct store_sees *sees,
			      uint64_t *ret_count);

/* How a run of the daemon has ended. */
enum store_run_state {
	STORE_RUN_GOES_ON = 0,
	STORE_RUN_ENDED = 1, /* in order */
	STORE_RUN_LOST = 2,  /* not: end_ns is its last sign of life, 0 = there is none */
};

struct store_run {
	uint64_t start_ns, end_ns;
	enum store_run_state state;
};

/* Those that were there between two times, oldest first. */
int store_query_runs(struct store_reader *reader, uint64_t from_ns, uint64_t to_ns,
		     int (*row)(void *context, const struct store_run *run), void *context);

struct store_series_query {
	uint64_t from_ns, to_ns;   /* both inclusive; to_ns 0 = no end */
	uint32_t step_s;           /* 1, 10 or 60; 0 = the finest that reaches back to from_ns */
	bool whole_devices;        /* not single processes */
	struct process_id process; /* of either part: 0 = any */
	uint32_t device;           /* STORE_ANY */
	uint64_t device_uid;       /* 0 = any */
	uint32_t type;             /* STORE_ANY */
	size_t limit;
	struct store_cursor after;
};

struct store_point {
	int64_t series;               /* the same for all points of one series */
	struct store_process process; /* pid 0: a whole device */
	uint32_t device;
	uint64_t device_uid;
	uint32_t type;
	uint64_t time_ns; /* the start of its time */
	uint32_t step_s;  /* its duration */
	uint64_t used, used_max;
	uint64_t buffers, buffers_max;
};

/* CLOCK_REALTIME of the oldest point; 0 = there is none. 0 or a negative errno. */
int store_query_series_from(struct store_reader *reader, uint64_t *ret_time_ns);

/* Sorted by time. */
int store_query_series(struct store_reader *reader, const struct store_series_query *query,
		       int (*row)(void *context, const struct store_point *point), void *context,
		       struct store_cursor *ret_next);
