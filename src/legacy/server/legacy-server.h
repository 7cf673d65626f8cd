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
 * legacy_server_finish(), registry_free(), legacy_server_free().
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/book-id.h"
#include "base/process-id.h"
#include "base/quota.h"

struct access;
struct legacy_history;
struct legacy_server;
struct loop;
struct log_writer;
struct registry;
struct scan_book;
struct socket_lock_holder;
struct seed_lines_dead;
struct symbols;
struct tracked;
struct worker;

/* What outlives the daemon, where somebody holds it. */
enum legacy_held_kind {
	LEGACY_HELD_LEDGER = 1,   /* a memory file: the state of the connections */
	LEGACY_HELD_BOX = 2,      /* a socket with the connections in it */
	LEGACY_HELD_LISTENER = 3, /* the socket that accepts */
};

#define LEGACY_BOXES 4u /* one, or two if a daemon was killed while it replaced it */

/* What an earlier daemon has left; -1 = none. */
struct legacy_held {
	int ledger;
	int listener;
	int boxes[LEGACY_BOXES];
	size_t box_count;
};

#define LEGACY_HELD_NULL ((struct legacy_held){.ledger = -1, .listener = -1})

void legacy_held_deinit(struct legacy_held *held);

/* Who holds it; all NULL = nobody. The fd stays the caller's. */
struct legacy_custody {
	void *context;
	void (*hold)(void *context, enum legacy_held_kind kind, int fd);
	void (*release)(void *context, enum legacy_held_kind kind, int fd);
};

/* Who is told of the books that the server keeps: ttmemd, over the link. All NULL = nobody. */
struct legacy_keeping {
	void *context;
	/* A new one; it continues @old, or nothing (inode 0). */
	void (*kept)(void *context, const struct tracked *tracked, struct book_id old);
	/* Its process has ended, and nothing more will be written to it. */
	void (*closed)(void *context, const struct tracked *tracked, struct book_id old);
	/*
	 * Learns what ttmemd knows by now, and then calls legacy_server_synced(). False: there is no ttmemd, and
	 * nothing is called.
	 */
	bool (*sync)(void *context);
	/* The report that legacy_server_ask() asked for; text NULL = there is none. */
	void (*report)(void *context, const char *text, size_t length);
};

struct legacy_config {
	struct loop *loop;
	struct registry *registry;
	struct collector *collector; /* for the answers */
	struct log_writer *log_writer;
	struct log_writer *errors;   /* for refused messages; NULL = @log_writer */
	struct worker *work;         /* for questions */
	const struct access *access; /* who may see what; NULL = clients see nothing but totals */
	struct symbols *symbols;     /* NULL: native frames in reports remain addresses */
	const char *path;            /* where to listen, or where @fd listens; NULL = not known */
	int fd;                   /* a listening socket, taken; -1 = see legacy_server_listen() */
	struct legacy_held *held; /* NULL = none; taken */
	struct legacy_custody custody;
	struct legacy_keeping keeping;
	bool log_events;
	bool log_history; /* with the history of each buffer */
	bool decimal_ids;
	bool quiet;
	bool trace_wire;
	uint64_t memory_max;  /* of all books together; 0 = LEGACY_MEMORY_MAX */
	uint32_t patience_ms; /* for a client to read its answer; 0 = ten seconds */
};

struct legacy_counts {
	uint64_t connections; /* open now */
	uint64_t clients;     /* processes with a book now */
	uint64_t memory;      /* bytes of their books */
	uint64_t accepted;
	uint64_t messages;
	uint64_t questions;
	uint64_t taken_over; /* connections of an earlier daemon */
	uint64_t in_doubt;   /* messages during which an earlier daemon was killed */

	/* Messages that were refused, by reason. */
	uint64_t refused_device; /* out of range */
	uint64_t refused_type;   /* no such buffer type */
	uint64_t refused_size;   /* 0, or more than any device has */
	uint64_t refused_room;   /* too many processes, or the user's share is used up */
	uint64_t refused_unseen; /* from a process outside our pid namespace */

	/* Connections that were refused or closed, by reason. */
	uint64_t ended_garbage;
	uint64_t ended_truncated; /* by the client, in the middle of a message */
	uint64_t stranger_pids;   /* messages with a pid that the kernel does not confirm */
};

/* Reports that need no connection. */
enum legacy_report_kind {
	LEGACY_REPORT_REMAINING = 0,
	LEGACY_REPORT_KERNELS = 1,
	LEGACY_REPORT_SUMMARY = 2,    /* on SIGUSR1 */
	LEGACY_REPORT_STATISTICS = 3, /* every ten seconds, and at the end */
};

/* 0 or a negative errno. Without a given socket it serves nobody yet, but adopts books. */
int legacy_server_new(struct legacy_server **ret_server, const struct legacy_config *config);

/*
 * Listens at the path, if it does not yet or if the path no longer leads here; may be tried any
 * number of times. 0, or a negative errno as of socket_lock_open(); connections go on.
 */
int legacy_server_listen(struct legacy_server *server, struct socket_lock_holder *ret_holder);

/*
 * Accepts no more connections or questions; removes the socket's file if it is ours and nobody holds the
 * socket.
 */
void legacy_server_stop(struct legacy_server *server);
/* Prints what is left to be said; no job may be at work any more. */
void legacy_server_finish(struct legacy_server *server);
struct legacy_server *legacy_server_free(struct legacy_server *server);

/* Whoever held things has lost them: gives them again. */
void legacy_server_hold(struct legacy_server *server);

/* Whether a connection may still have messages of that process, which has ended. */
bool legacy_server_hears(const struct legacy_server *server, struct process_id process);

/* Asks for the report of remaining buffers with their history, for ttmemd: legacy_keeping.report(). */
void legacy_server_ask(struct legacy_server *server);

/* Answers are up to date: as legacy_keeping.sync() says. */
void legacy_server_synced(struct legacy_server *server);

/* Books of all clients, for a ttmemd that has just begun. */
void legacy_server_each(struct legacy_server *server,
			void (*each)(void *context, const struct tracked *tracked,
				     struct book_id old),
			void *context);

/* Text for the log, from malloc(): printed after the lines of everything that has happened so far. */
void legacy_server_lines_consume(struct legacy_server *server, char *text, size_t length);

/* Queues a report for the log writer. */
void legacy_server_report(struct legacy_server *server, enum legacy_report_kind kind);

/*
 * Prints the old lines for a process of any kind that exited and left buffers; only if events are
 * logged.
 */
void legacy_server_dead(struct legacy_server *server, const struct seed_lines_dead *dead);

/* A process has ended, and its book is no longer in the list: its events are printed if none was yet. */
void legacy_server_ended(struct legacy_server *server, struct tracked *tracked);

/*
 * Continues a book that an earlier daemon kept: its live buffers are live in a new book. Always takes
 * book and pidfd (-1 = the process has ended). 0 or a negative errno.
 */
int legacy_server_adopt_consume(struct legacy_server *server, struct scan_book *book, int pid_fd);

/* Of all buffers; NULL = not wanted. May be used by several threads. */
struct legacy_history *legacy_server_history(struct legacy_server *server);

void legacy_server_counts(const struct legacy_server *server, struct legacy_counts *ret_counts);
