/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The HTTP server: the command line's documents, a stream of changes, Prometheus metrics. It runs
 * in its own threads and knows nothing of books or databases; a provider supplies the data. One
 * thread serves the sockets and never blocks; one takes totals, one details, one asks other machines.
 *
 * Over TCP clients are anonymous, unless they are signed in (sign-in.h): totals are open, details
 * need a token; see docs/http.md. The same routes are served on the daemon's own socket, where the
 * client is known: see local-request.h.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "model/health.h"
#include "model/query.h"
#include "model/snapshot-request.h"

struct emit;
struct sessions;
struct leak_sites;
struct snapshot;
struct web;
struct web_incident;

/* Writes one whole document. @asker: NULL = over TCP, with the token: sees all. */
typedef int web_answer_fn(void *context, const struct query *query, const struct query_asker *asker,
			  struct emit *json);

struct web_provider {
	void *context;

	/*
	 * A finished snapshot of the moment; release it with snapshot_free(). Without buffers it
	 * may be shared and must not be changed, unless the request says otherwise. 0; of a moment
	 * of the past, -ENODATA if nothing is known of it, or -EAGAIN; or another negative errno.
	 * May be called by several threads at a time.
	 */
	int (*snapshot)(void *context, const struct snapshot_request *request,
			struct snapshot **ret_snapshot);

	/* How far back moments are known, for request->at_ns. From any thread. NULL: not at all. */
	int (*reach)(void *context, const struct query_asker *asker,
		     struct snapshot_reach *ret_reach);

	/*
	 * 0; -EINVAL for an invalid cursor, -EAGAIN if history is not available at present, -EOPNOTSUPP if none is recorded, or another negative errno:
	 * then discard the output. Called by two threads: one for askers of the daemon's own socket,
	 * the other for TCP.
	 * NULL: there is no history.
	 */
	web_answer_fn *leaks, *ended, *incidents, *history, *series, *moments, *peaks, *growth,
		*commands;

	/*
	 * Writes the old report of remaining buffers, as far as the asker may see them. 0 or a
	 * negative errno. NULL: not supported.
	 */
	int (*dump)(void *context, const struct query_asker *asker, uint64_t since_ns, FILE *out);

	/* What ended processes have left, by call site. From any thread. NULL: it is not counted. */
	void (*leak_sites)(void *context, struct leak_sites *ret_sites);

	/*
	 * Writes ttmem.fleet/1. May take seconds, but ends soon after @stop, which is atomic, was
	 * set. Called by one thread, which does nothing else. 0 or a negative errno. NULL: there is
	 * no fleet.
	 */
	int (*fleet)(void *context, const bool *stop, struct emit *json);

	/*
	 * For browsers that sign in: the store; whether an asker may see an incident, from any thread;
	 * and a user's name, which may take long. NULL: nobody can sign in.
	 */
	struct sessions *sessions;
	bool (*may_see)(void *context, const struct query_asker *asker,
			const struct web_incident *incident);
	void (*user_name)(void *context, uint32_t user, char *ret_name, size_t size);

	/*
	 * A number that counts up whenever incidents or leak reports were stored: those who show them
	 * are told. Must not take long. NULL: there is no history.
	 */
	uint64_t (*records)(void *context);

	/* Called by any of the threads, several at a time; must not take long. */
	void (*health)(void *context, struct health *ret_health);
};

/* Errors in the settings are explained in @ret_problem (for people) where that helps. */
struct web_config {
	const char *address;    /* "127.0.0.1:5392", "[::1]:0" */
	bool details;           /* for everybody, without a token */
	bool is_private;        /* without a token or signing in, there are no totals either */
	const char *hosts;      /* further names of the machine, separated by commas; NULL = none */
	const char *token_file; /* see web_load_token(), which may be tried later; NULL = none */
	uint32_t metrics_processes; /* how many of the largest have their own rows */
	uint32_t alive_ms;          /* longest silence on a stream; 0 = 1.5 s */
	uint32_t answer_ms;         /* until an answer is read; 0 = 60 s */
	const struct web_provider *provider;
};

/* 0 or a negative errno; @ret_problem is a static text or NULL. */
int web_new(struct web **ret_web, const struct web_config *config, const char **ret_problem);
struct web *web_free(struct web *web);

/*
 * The token for details, which are closed without one: reads the file, or creates it (mode 0600). A
 * server starts without one if it must; then this tells why, and may be tried again. 0 or a negative
 * errno; @ret_problem as above.
 */
int web_load_token(struct web *web, const char *path, const char **ret_problem);

/* Where it listens, with the actual port. */
const char *web_address(const struct web *web);

/*
 * An incident, for subscribers of the stream and for a collector (export/push.h). Subscribers who may
 * not see its details get kind, pid and device only. Texts may be NULL: not known.
 */
struct web_incident {
	const char *kind;
	uint32_t pid;
	uint32_t user; /* whose process it is */
	const char *user_name;
	uint32_t maker; /* who may see it, and where that counts: for the provider */
	const char *namespaces;
	const char *comm;
	uint32_t device;
	const char *type; /* static; NULL also if there are several */
	uint64_t bytes;
	uint64_t buffers;            /* of a leak; else 0 */
	uint64_t count;              /* occurrences since the last one that was told */
	const char *site;            /* its call site */
	const char *function, *file; /* of that */
	uint32_t line;               /* 0 = not known */
	const char *json;            /* all of it, an object as in ttmem.incidents/1 */
	size_t length;
};

/* From any thread; never waits. */
void web_tell_incident(struct web *web, const struct web_incident *incident);
