/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The native socket. The first bytes of a packet say what it is: an offer of a book, which goes to
 * the registry with its connection; the beginning of a link (wire/link.h), which goes to whoever has
 * the links; a request for descriptors (wire/native.h); or an HTTP request (wire/http-request.h). A worker answers requests, one at a time per connection and a few of
 * each user, and the loop sends the answer as the socket accepts it. A client that sends
 * garbage, does not read, or holds too many connections loses its connection; no other client is
 * affected.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/quota.h"

struct access;
struct access_peer;
struct accept_peer;
struct loop;
struct native;
struct proc;
struct book_list;
struct snapshot;
struct web_provider;
struct worker;

#define NATIVE_FIRST_NS UINT64_C(10000000000)  /* until the first packet */
#define NATIVE_IDLE_NS UINT64_C(60000000000)   /* between two requests */
#define NATIVE_STUCK_NS UINT64_C(10000000000)  /* without accepting a packet */
#define NATIVE_ANSWER_NS UINT64_C(60000000000) /* to receive a whole answer */

struct native_hooks {
	void *context;
	/* Takes the peer with its book, e.g. registry_add_peer_consume(). In the loop's thread. */
	int (*offer_consume)(void *context, struct accept_peer *peer);
	/* Takes the peer, which begins a link and @wants LINK_WANT_...; links_add_consume(). NULL = nobody does */
	void (*link_consume)(void *context, struct accept_peer *peer, uint32_t want);

	/*
	 * The current list of tracked books, counted, e.g. registry_books(). In the worker's
	 * thread.
	 */
	struct book_list *(*book_list)(void *context);
	/* A shared snapshot of the machine, begun at @since_ns or later: collector_totals(). */
	int (*totals)(void *context, uint64_t since_ns, struct snapshot **ret_snapshot);
	/*
	 * A recording of the flight recorder that @asker may see, as a descriptor for reading, or a negative
	 * errno: flight_files_open(). In the worker's thread.
	 */
	int (*recording)(void *context, const char *name, const struct access_peer *asker);
};

struct native_config {
	struct loop *loop;
	struct worker *work;                 /* must be freed before the server */
	const struct proc *proc;             /* to verify the owners of offered books */
	const struct access *access;         /* borrowed, like the provider */
	const struct web_provider *provider; /* for HTTP */
	struct native_hooks hooks;
};

struct native_counts {
	uint64_t connections; /* currently open */
	uint64_t offers;      /* since the start, like all below */
	uint64_t offers_refused;
	uint64_t requests;
	uint64_t garbage;
};

/* A server without a socket: it serves nobody yet. 0 or a negative errno. */
int native_new(struct native **ret_native, const struct native_config *config);

/*
 * Accepts connections at @listening (nonblocking), and no longer at the socket before it. Takes
 * ownership even on failure. 0 or a negative errno; connections go on.
 */
int native_listen_consume(struct native *native, int listening);

/* Before the worker is freed: questions that still wait are not answered. NULL is fine. */
void native_stop(struct native *native);
struct native *native_free(struct native *native);

/* From any thread. */
void native_counts(struct native *native, struct native_counts *ret_counts);
