/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The server for clients of the old protocol, which run unchanged: every dialect, any burst, any
 * split. It keeps a book on behalf of each such process, so that everything else sees it like a
 * native one, and answers its questions in its own dialect from the books of all processes.
 *
 * A client that misbehaves, is slow or stops reading hurts only itself: the loop does a bounded
 * amount of work for each client and never waits.
 *
 * Lives in the loop's thread. Shut down in this order: legacy_server_stop(), worker_free(),
 * registry_free(), legacy_server_free().
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct access;
struct legacy_server;
struct loop;
struct log_writer;
struct registry;
struct scan_book;
struct legacy_lines_dead;
struct symbols;
struct worker;

#define LEGACY_CONNECTIONS_MAX 4096u
#define LEGACY_CONNECTIONS_PER_USER 2048u
#define LEGACY_CLIENTS_MAX 4096u /* processes with a book */
#define LEGACY_CLIENTS_PER_USER 1024u
#define LEGACY_MEMORY_MAX (UINT64_C(2) << 30) /* of all their books together */

struct legacy_config {
	struct loop *loop;
	struct registry *registry;
	struct collector *collector; /* for the answers */
	struct log_writer *log_writer;
	struct worker *work;         /* for questions */
	const struct access *access; /* who may see what; NULL = clients see nothing but totals */
	struct symbols *symbols;     /* NULL: native frames in reports remain addresses */
	const char *path;            /* where to listen, or where @fd listens; NULL = not known */
	int fd;                      /* a listening socket, taken; -1 = create one at the path */
	bool log_events;
	bool decimal_ids;
	bool quiet;
	bool trace_wire;
	uint32_t patience_ms; /* for a client to read its answer; 0 = ten seconds */
};

struct legacy_counts {
	uint64_t connections; /* open now */
	uint64_t clients;     /* processes with a book now */
	uint64_t memory;      /* bytes of their books */
	uint64_t accepted;
	uint64_t messages;
	uint64_t questions;

	/* Messages that were refused, by reason. */
	uint64_t refused_device; /* out of range */
	uint64_t refused_type;   /* no such buffer type */
	uint64_t refused_size;   /* 0, or more than any device has */
	uint64_t refused_room;   /* too many processes, or no memory for another book */
	uint64_t refused_unseen; /* from a process outside our pid namespace */

	/* Connections that were refused or closed, by reason. */
	uint64_t ended_garbage;
	uint64_t ended_truncated; /* by the client, in the middle of a message */
	uint64_t ended_slow;      /* did not read their answers */
	uint64_t ended_many;      /* the user had too many */
	uint64_t accept_pauses;   /* no descriptors, or too many connections: new ones wait */
	uint64_t stranger_pids;   /* messages with a pid that the kernel does not confirm */
};

/* Reports that need no connection. */
enum legacy_report_kind {
	LEGACY_REPORT_REMAINING = 0,
	LEGACY_REPORT_KERNELS = 1,
	LEGACY_REPORT_SUMMARY = 2,    /* on SIGUSR1 */
	LEGACY_REPORT_STATISTICS = 3, /* every ten seconds, and at the end */
};

/*
 * 0 or a negative errno; -EADDRINUSE if a server answers at the path; then @ret_holder (may be
 * NULL) is its pid or 0.
 */
int legacy_server_new(struct legacy_server **ret_server, const struct legacy_config *config,
		      pid_t *ret_holder);

/* Accepts no more connections or questions; removes the socket's file if it is ours. */
void legacy_server_stop(struct legacy_server *server);
struct legacy_server *legacy_server_free(struct legacy_server *server);

/* Queues a report for the log writer. */
void legacy_server_report(struct legacy_server *server, enum legacy_report_kind kind);

/*
 * Prints the old lines for a process of any kind that exited and left buffers; only if events are
 * logged.
 */
void legacy_server_dead(struct legacy_server *server, const struct legacy_lines_dead *dead);

/*
 * Continues a book that an earlier daemon kept for a process that is still alive: its live buffers
 * are live in a new book. Always takes book and pidfd. 0 or a negative errno.
 */
int legacy_server_adopt_consume(struct legacy_server *server, struct scan_book *book, int pid_fd);

void legacy_server_counts(const struct legacy_server *server, struct legacy_counts *ret_counts);
