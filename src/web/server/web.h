/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The HTTP server: the same documents as the command line's, a stream of changes, Prometheus metrics. It
 * runs in threads of its own and knows nothing of books or databases; what it serves it asks from a
 * provider. One thread serves the sockets and never waits; one asks for totals, one for details.
 *
 * Nobody is known over TCP: totals are open, details need a token. docs/http.md tells the rest. The same
 * routes are served on the daemon's own socket, where who asks is known: see local-request.h.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "model/snapshot-request.h"
#include "model/tally.h"

struct emit;
struct snapshot;
struct web;

/* Who asks on the daemon's own socket, as the kernel tells. */
struct web_asker {
	uint32_t uid;
	bool sees_all;    /* else the details of this user's own processes */
	uint64_t came_ns; /* CLOCK_MONOTONIC: when the request arrived */
};

/* A page of the past. */
struct web_past_query {
	const struct web_asker *asker; /* NULL = over TCP, with the token: sees all */
	uint32_t pid;                  /* 0 = any */
	const char *kind;              /* of incidents; NULL = any */
	uint64_t since_ns;             /* 0 = from the beginning */
	size_t limit;
	const char *cursor; /* as an earlier page's "next" gave it, NULL = first page */
};

struct web_history_query {
	const struct web_asker *asker; /* as above */
	bool only_past;                /* nothing of living processes */
	uint64_t address;
	struct filter filter;
};

/* Lines over time; written as {"schema":"ttmem.series/1", ...}. */
struct web_series_query {
	const struct web_asker *asker; /* as above; lines are everybody's */
	uint64_t from_ns, to_ns;       /* 0 = a quarter of an hour ago, now */
	uint32_t step_s;               /* 1, 10, 60; 0 = as fits */
	uint32_t pid;                  /* 0 = whole devices */
	struct filter filter;          /* devices and type */
	size_t limit;
	const char *cursor;
};

#define WEB_INCIDENT_KINDS 5u
extern const char *const web_incident_kinds[WEB_INCIDENT_KINDS]; /* "double_free", ... "leak" */
bool web_is_incident_kind(const char *kind);

/* The daemon about itself, for /healthz and /metrics. */
struct web_health {
	bool store_runs;
	uint64_t store_queued, store_written, store_dropped, store_bytes;
	uint64_t books, books_refused, ended, leaked, unobserved_exits;
	uint64_t legacy_connections, legacy_messages, legacy_refused;
	uint64_t incidents[WEB_INCIDENT_KINDS]; /* since start, in the order of the kinds */
	uint64_t start_ns;                      /* CLOCK_REALTIME of the daemon's start */
	uint64_t lines_dropped;
	bool pushes; /* to a collector; then also: */
	uint64_t push_sent, push_failed, push_partial, push_dropped, push_queued;
	const char *http;             /* where it is served, NULL = nowhere; lent */
	const char *version, *socket; /* lent */

	/*
	 * What processes that have ended had counted: tally_add_process() once for each, but not
	 * before it has left the roster. Health is asked for before the snapshot it is shown with,
	 * so that nothing is counted twice; what is counted in neither for a moment does not show.
	 */
	struct tally past;
};

struct web_provider {
	void *context;

	/*
	 * A finished snapshot of this moment, to be let go with snapshot_free(). Without buffers others
	 * may have it as well, so that it must not be changed, unless the request says otherwise. 0
	 * or a negative errno. May be called by several threads at a time.
	 */
	int (*snapshot)(void *context, const struct snapshot_request *request,
			struct snapshot **ret_snapshot);

	/*
	 * Write one whole document. 0; -EINVAL for a cursor that makes no sense, -EAGAIN if the past
	 * cannot be asked at present, -EOPNOTSUPP if nothing is remembered, or another negative
	 * errno: then nothing of use was written. By two threads: one asks with an asker, the other
	 * without. NULL: there is no past.
	 */
	int (*leaks)(void *context, const struct web_past_query *query, struct emit *json);
	int (*incidents)(void *context, const struct web_past_query *query, struct emit *json);
	int (*history)(void *context, const struct web_history_query *query, struct emit *json);
	int (*series)(void *context, const struct web_series_query *query, struct emit *json);

	/*
	 * Writes the old report of remaining buffers, as far as the asker may see them. 0 or a
	 * negative errno. NULL: there is none.
	 */
	int (*dump)(void *context, const struct web_asker *asker, FILE *out);

	/* By any of the threads, several at a time; must not take long. */
	void (*health)(void *context, struct web_health *ret_health);
};

/* What is wrong with the settings is told in @ret_problem (for people), as far as it helps. */
struct web_config {
	const char *address;    /* "127.0.0.1:5392", "[::1]:0" */
	bool details;           /* for everybody, without a token */
	const char *hosts;      /* further names that it has, separated by commas; NULL = none */
	const char *token_file; /* made (mode 0600) if it is not there; NULL = no details */
	uint32_t metrics_processes; /* so many largest ones have rows of their own */
	uint32_t alive_ms;          /* a stream is not silent for longer; 0 = 15 s */
	uint32_t answer_ms;         /* for an answer to be read; 0 = 60 s */
	const struct web_provider *provider;
};

/* 0 or a negative errno; @ret_problem is a static text or NULL. */
int web_new(struct web **ret_web, const struct web_config *config, const char **ret_problem);
struct web *web_free(struct web *web);

/* Where it listens, the port known. */
const char *web_address(const struct web *web);

/* An incident, for those who listen to the stream. Who has no token is told kind, pid and device. */
struct web_incident {
	const char *kind;
	uint32_t pid;
	uint32_t device;
	const char *json; /* the whole of it, an object as in ttmem.incidents/1 */
	size_t length;
};

/* From any thread; never waits. */
void web_tell_incident(struct web *web, const struct web_incident *incident);
