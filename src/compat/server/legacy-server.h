/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The server for clients of the old protocol, which work as they are: every dialect, any burst, any
 * split. It keeps a book on behalf of each such process, so that everybody else sees them like native
 * ones, and answers their questions in their own size from the books of all processes.
 *
 * A client that does wrong, is slow or stops reading costs itself something and nobody else: the loop
 * does a bounded piece of work for each and never waits.
 *
 * Lives in the loop's thread. At the end: legacy_server_stop(), worker_free(), registry_free(), and only
 * then legacy_server_free().
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

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
	struct collector *collector; /* answers questions from it */
	struct log_writer *log_writer;
	struct worker *work;     /* for questions */
	struct symbols *symbols; /* NULL: native frames in reports stay addresses */
	const char *path;        /* where to listen, or where the fd listens; NULL = not known */
	int fd; /* a socket that listens already, taken; -1 = make one at the path */
	bool log_events;
	bool decimal_ids;
	bool quiet;
	bool trace_wire;
	uint32_t patience_ms; /* so long a client may leave its answer unread; 0 = ten seconds */
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
	uint64_t refused_unseen; /* of a process outside our pid namespace */

	/* Connections that were refused or ended by us, by reason. */
	uint64_t ended_garbage;
	uint64_t ended_truncated; /* by themselves, in the middle of a message */
	uint64_t ended_slow;      /* did not read their answers */
	uint64_t ended_many;      /* the user had too many */
	uint64_t accept_pauses;   /* no descriptors, or too many connections: others wait */
	uint64_t stranger_pids;   /* messages for a process that the kernel does not confirm */
};

/* What can be asked for without a connection. */
enum legacy_report_kind {
	LEGACY_REPORT_REMAINING = 0,
	LEGACY_REPORT_KERNELS = 1,
	LEGACY_REPORT_SUMMARY = 2,    /* on SIGUSR1 */
	LEGACY_REPORT_STATISTICS = 3, /* every ten seconds, and at the end */
};

/*
 * 0 or a negative errno; -EADDRINUSE if somebody answers at the path, and @ret_holder (may be NULL) is
 * their pid or 0.
 */
int legacy_server_new(struct legacy_server **ret_server, const struct legacy_config *config,
		      pid_t *ret_holder);

/* No more connections or questions; the socket's file is removed, if it is ours. */
void legacy_server_stop(struct legacy_server *server);
struct legacy_server *legacy_server_free(struct legacy_server *server);

/* Prints a report through the log writer, soon. */
void legacy_server_report(struct legacy_server *server, enum legacy_report_kind kind);

/* The old lines for a process of any kind that ended and left something; only if events are logged. */
void legacy_server_dead(struct legacy_server *server, const struct legacy_lines_dead *dead);

/*
 * Goes on with a book that an earlier daemon kept for a process that still lives: what was live in it
 * is live in a new one. Takes book and pidfd in any case. 0 or a negative errno.
 */
int legacy_server_adopt_consume(struct legacy_server *server, struct scan_book *book, int pid_fd);

void legacy_server_counts(const struct legacy_server *server, struct legacy_counts *ret_counts);
