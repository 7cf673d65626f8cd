/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Shared by the parts of the server for the old protocol; no one else includes this. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/files/socket-lock.h"
#include "base/process-id.h"
#include "base/quota.h"
#include "base/threads/loop.h"
#include "daemon/registry/access.h"
#include "daemon/registry/registry.h"
#include "legacy/server/legacy-book.h"
#include "legacy/server/legacy-box.h"
#include "legacy/server/legacy-ledger.h"
#include "legacy/server/legacy-server.h"
#include "legacy/wire/legacy-stream.h"
#include "source/proc/proc.h"

struct legacy_batch;
struct legacy_follow;
struct legacy_log;
struct legacy_question;
struct writer;

#define LEGACY_CHAINS 1024u
#define LEGACY_FAMILY_MAX 64u /* pids that one connection may send for */

/* A process that speaks the old protocol, and its book. */
struct legacy_client {
	struct registry_keeper keeper;
	struct legacy_server *server;
	struct legacy_client *next; /* in its hash chain */
	struct proc_facts facts;    /* start_ticks 0: it exited before we could read them */
	struct legacy_book *keep;
	struct writer *writer;         /* owned by the keep */
	const struct tracked *tracked; /* borrowed: as long as this; NULL = not in the registry */
	struct book_id old;            /* the book that this one continues; inode 0 = none */
};

/* A pid that messages give as their sender, and the client it stands for. */
struct legacy_member {
	int32_t pid;
	struct legacy_client *client;
};

struct legacy_connection {
	struct legacy_server *server;
	struct legacy_connection *before, *after;
	struct loop_source source;
	struct loop_timer timer; /* silence, rest, a slow reader or a retry: one at a time */
	uint32_t watched;        /* events that the loop waits for */
	uint64_t read_ns;        /* time of the last read */

	/* The peer as the kernel recorded it at connect. */
	uint32_t pid;
	uint32_t uid;
	struct proc_facts facts; /* start_ticks 0: not available */
	struct access_peer who;  /* the same peer, for what it may see */

	struct legacy_member last; /* the sender of the last message */
	struct legacy_member *family;
	uint32_t family_count;
	uint32_t lookups; /* of pids other than the peer's */

	struct legacy_slot *slot; /* what the next daemon gets; never NULL */
	struct legacy_question
		*question; /* first in the spill; nothing is read until it is answered */
	uint8_t *out;      /* an answer being sent */
	size_t out_begin, out_end;
	bool ends_after; /* close after the answer */
	bool is_resting; /* sends so much that it is read by timer and not watched */
	bool is_held;    /* the first message in the spill waits for memory or descriptors */
	bool is_partial; /* what is in the socket is no message yet: report only what is new */
	bool asks;       /* has asked a question: read in small pieces */

	struct legacy_stream stream;
};

/* What a process has spoken last. */
struct legacy_spoken {
	struct process_id process;
	uint32_t dialect;
};

#define LEGACY_SPOKEN 512u /* the newest of those that share a place */

struct legacy_server {
	struct legacy_config config;
	struct socket_lock socket_lock; /* of the path; unused with a given socket */
	struct loop_source accepting;
	struct loop_timer accept_again;
	struct loop_timer statistics;
	bool is_stopped;
	bool is_paused; /* not accepting for the moment */

	struct legacy_connection *connections; /* newest first */
	struct legacy_client *clients[LEGACY_CHAINS];
	struct legacy_spoken spoken[LEGACY_SPOKEN];  /* by pid */
	struct quota user_connections, user_clients; /* how many each user has */
	struct quota memory;                         /* of all books */

	struct legacy_question *questions; /* for the next batch */
	struct legacy_question **questions_end;
	struct legacy_batch *batch; /* being answered; NULL = none */
	bool is_syncing;            /* the next batch waits for what ttmemd knows */

	struct legacy_log *log;         /* NULL = events are not printed */
	struct legacy_history *history; /* NULL = not wanted */
	struct legacy_follow *follow;   /* the same for native processes */
	struct legacy_counts counts;

	struct legacy_ledger *ledger;
	int ledger_fd;
	struct legacy_held held; /* by an earlier daemon; owned */
	bool is_continued;       /* the ledger is an earlier daemon's */
	bool is_held;            /* the ledger, by somebody else too */
	uint32_t next_slot;      /* where to look for a free one */
	struct legacy_box box;
	bool restored[LEGACY_CONNECTIONS_MAX]; /* slots, while connections are restored */
};

/* legacy-server.c */
/* Accepts pending connections. False: there may be more. */
bool legacy_server_let_in(struct legacy_server *server);

/* legacy-connection.c */
/* @slot: of a connection that an earlier daemon had; NULL = it is new. */
int legacy_connection_new_consume(struct legacy_server *server, int fd, struct legacy_slot *slot);
/* If the server was stopped, the connection stays open where it is held, for the next daemon. */
void legacy_connection_free(struct legacy_connection *connection);
/* Takes the answer; @bytes may be NULL. */
void legacy_connection_answer(struct legacy_connection *connection, uint8_t *bytes, size_t length,
			      bool is_last);
/* Reads what is left of an exited process. True: nothing is left here. */
bool legacy_connection_drain(struct legacy_connection *connection,
			     const struct legacy_client *client);
/* The client is being freed. */
void legacy_connection_forget(struct legacy_connection *connection,
			      const struct legacy_client *client);

/* legacy-handover.c */
/* Takes the ledger of an earlier daemon, or makes one. 0 or a negative errno. */
int legacy_handover_open(struct legacy_server *server);
/* Takes its connections, and begins to hold ours. */
void legacy_handover_start(struct legacy_server *server);
/* A slot for a new connection; NULL = none. */
struct legacy_slot *legacy_handover_slot(struct legacy_server *server, int fd);
void legacy_handover_add(struct legacy_connection *connection);
void legacy_handover_remove(struct legacy_connection *connection);
/* Gives everything to a holder that has nothing. */
void legacy_handover_hold(struct legacy_server *server);

/* The socket that accepts: from now on, and before another one takes its place. */
void legacy_handover_hold_listener(struct legacy_server *server);
void legacy_handover_forget_listener(struct legacy_server *server);

/* legacy-reading.c */
enum legacy_reading {
	LEGACY_READS = 0,
	LEGACY_WAITS = 1,
	LEGACY_IS_OVER = 2, /* and freed */
};

/* Before the first byte, once the peer is known. */
void legacy_reading_begin(struct legacy_connection *connection);
/* Reads once. *@ret_more: there may be more to read. */
int legacy_reading_read(struct legacy_connection *connection, bool *ret_more);
/* Continues after a wait: with the spill, or because the client was silent. */
int legacy_reading_go_on(struct legacy_connection *connection);
/* The question at the beginning of the spill has its answer. */
void legacy_reading_answered(struct legacy_connection *connection);

/* legacy-client.c */
/*
 * The client of that process, created if needed. @peer_fd: a connection of its own, -1 = none. 0 or
 * a negative errno: -ENOSPC if there are too many, -EMFILE and the like if a retry may succeed.
 */
int legacy_client_get(struct legacy_server *server, const struct proc_facts *facts, int peer_fd,
		      struct legacy_client **ret_client);
/*
 * legacy_client_make() creates a client that is not published yet, with an empty book that
 * continues @old (NULL = none). The second function publishes it; it always takes book and pidfd,
 * and on failure the client too.
 */
int legacy_client_make(struct legacy_server *server, const struct proc_facts *facts,
		       const struct book_header *old, struct legacy_client **ret_client,
		       struct scan_book **ret_book);
int legacy_client_add_consume(struct legacy_client *client, struct scan_book *book, int pid_fd);
void legacy_client_free(struct legacy_client *client);
/* Readable, as the pidfd of a process that has ended is. A negative errno on failure. */
int legacy_client_ended_fd(void);

/* legacy-family.c */
/*
 * Finds the process that calls itself @pid and may use the connection of @peer: a descendant in the
 * same pid namespace and of the same user. -ESRCH if the kernel knows none.
 */
int legacy_family_find(const struct proc *proc, const struct proc_facts *peer, uint32_t pid,
		       struct proc_facts *ret_facts);

/* legacy-event.c */
/* Whether the message is an event for a book rather than a question. */
bool legacy_event_is(const struct legacy_message *message);
/* Whether the event is valid; if not, it is counted and logged. */
bool legacy_event_check(struct legacy_server *server, const struct legacy_message *message);
void legacy_event_apply(struct legacy_client *client, const struct legacy_message *message);

/* legacy-question.c */
void legacy_question_put(struct legacy_server *server, struct legacy_connection *connection,
			 const struct legacy_message *message);
void legacy_question_put_report(struct legacy_server *server, enum legacy_report_kind kind);
/* The connection has ended; no one waits for the answer. */
void legacy_question_abandon(struct legacy_question *question);
void legacy_question_free_all(struct legacy_server *server);
