/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Shared by the parts of the server for the old protocol; no one else includes this. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/loop.h"
#include "base/socket-lock.h"
#include "compat/server/legacy-book.h"
#include "compat/server/legacy-server.h"
#include "compat/wire/legacy-stream.h"
#include "daemon/registry/access.h"
#include "daemon/registry/registry.h"
#include "source/proc/proc.h"

struct legacy_batch;
struct legacy_follow;
struct legacy_log;
struct legacy_question;
struct writer;

#define LEGACY_READ_SIZE 65536u /* per read, and per connection and turn */
#define LEGACY_CHAINS 1024u
#define LEGACY_FAMILY_MAX 64u /* pids that one connection may send for */

/* A process that speaks the old protocol, and its book. */
struct legacy_client {
	struct registry_keeper keeper;
	struct legacy_server *server;
	struct legacy_client *next; /* in its hash chain */
	struct proc_facts facts;    /* start_ticks 0: it exited before we could read them */
	struct legacy_book *keep;
	struct writer *writer; /* owned by the keep */
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

	struct legacy_question *question; /* nothing is read until it is answered */
	uint8_t *held;                    /* a message waiting for memory or descriptors */
	enum legacy_dialect held_dialect;
	uint8_t *spill; /* bytes read behind that message or the question */
	size_t spill_begin, spill_end;
	uint8_t *out; /* an answer being sent */
	size_t out_begin, out_end;
	bool has_ended;  /* at end of file */
	bool ends_after; /* close after the answer */
	bool is_resting; /* sends so much that it is read by timer and not watched */
	bool asks;       /* has asked a question: read in small pieces */

	struct legacy_stream stream;
};

/* A user's counts. */
struct legacy_user {
	uint32_t uid;
	uint32_t connections;
	uint32_t clients;
};

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
	struct legacy_user *users;
	size_t user_count, user_capacity;
	struct keep_budget budget;

	struct legacy_question *questions; /* for the next batch */
	struct legacy_question **questions_end;
	struct legacy_batch *batch; /* being answered; NULL = none */

	struct legacy_log *log;       /* NULL = events are not printed */
	struct legacy_follow *follow; /* the same for native processes */
	struct legacy_counts counts;
	uint8_t buffer[LEGACY_READ_SIZE];
};

/* legacy-server.c */
/* Accepts pending connections. False: there may be more. */
bool legacy_server_let_in(struct legacy_server *server);
struct legacy_user *legacy_server_user(struct legacy_server *server, uint32_t uid);

/* legacy-connection.c */
int legacy_connection_new_consume(struct legacy_server *server, int fd);
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
