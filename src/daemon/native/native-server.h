/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The native socket. The first bytes of a packet tell what it is: an offer of a book, which goes to the
 * registry with its connection, a question for descriptors (wire/native.h), or an HTTP request
 * (wire/http-request.h). Questions are answered by a worker,
 * one after the other for each connection, and the loop sends the answer as the socket takes it. Who
 * sends garbage, does not read, or holds too many connections loses its connection; nobody else
 * anything.
 */

#include <stdbool.h>
#include <stdint.h>

struct access;
struct accept_peer;
struct loop;
struct native;
struct proc;
struct book_list;
struct snapshot;
struct web_provider;
struct worker;

/*
 * Connections that ask, or have not yet said what they want; those of offers are the registry's. Beyond
 * the first number an idle one makes room, of whoever has most.
 */
#define NATIVE_CONNECTIONS_MAX 1024u
#define NATIVE_USER_CONNECTIONS_MAX 64u

#define NATIVE_FIRST_NS UINT64_C(10000000000)  /* to say what one wants */
#define NATIVE_IDLE_NS UINT64_C(60000000000)   /* between two questions */
#define NATIVE_STUCK_NS UINT64_C(10000000000)  /* without taking a packet */
#define NATIVE_ANSWER_NS UINT64_C(60000000000) /* to take a whole answer */

struct native_hooks {
	void *context;
	/* Takes the peer with its book, e.g. registry_add_peer_consume(). In the loop's thread. */
	int (*offer_consume)(void *context, struct accept_peer *peer);

	/* The current list, counted, e.g. registry_books(). In the worker's thread. */
	struct book_list *(*book_list)(void *context);
	/* A shared picture of the machine, begun not before @since_ns: collector_totals(). */
	int (*totals)(void *context, uint64_t since_ns, struct snapshot **ret_snapshot);
};

struct native_config {
	struct loop *loop;
	struct worker *work;                 /* freed before the server is */
	const struct proc *proc;             /* to check owners of offered books */
	const struct access *access;         /* only lent, likewise the provider */
	const struct web_provider *provider; /* of what HTTP serves */
	struct native_hooks hooks;
};

struct native_counts {
	uint64_t connections; /* now */
	uint64_t offers;      /* since the start, and so the others */
	uint64_t offers_refused;
	uint64_t requests;
	uint64_t garbage;
	uint64_t stuck;       /* that did not read, or said nothing */
	uint64_t turned_away; /* beyond the limits */
};

/* 0 or a negative errno. Takes @listening (not blocking) in any case. */
int native_new_consume(struct native **ret_native, const struct native_config *config,
		       int listening);

/* Before the worker is freed: questions that still wait are not answered. NULL is fine. */
void native_stop(struct native *native);
struct native *native_free(struct native *native);

/* From any thread. */
void native_counts(struct native *native, struct native_counts *ret_counts);
