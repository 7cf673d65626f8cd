/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the parts of the server for the old protocol share; nobody else includes this. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/loop.h"
#include "base/socket-lock.h"
#include "compat/server/legacy-book.h"
#include "compat/server/legacy-server.h"
#include "compat/wire/legacy-stream.h"
#include "daemon/registry/registry.h"
#include "source/proc/proc.h"

struct legacy_batch;
struct legacy_follow;
struct legacy_log;
struct legacy_question;
struct writer;

#define LEGACY_READ_SIZE 65536u /* at once, and for one connection in one turn */
#define LEGACY_CHAINS 1024u
#define LEGACY_FAMILY_MAX 64u /* pids that one connection may speak for */

/* A process that speaks the old protocol, and its book. */
struct legacy_client {
	struct registry_keeper keeper;
	struct legacy_server *server;
	struct legacy_client *next; /* in its chain */
	struct proc_facts facts;    /* start_ticks 0: it was gone before we could look */
	struct legacy_book *keep;
	struct writer *writer; /* the keep's */
};

/* A number that messages carry as their sender's, and whom it stands for. */
struct legacy_member {
	int32_t pid;
	struct legacy_client *client;
};

struct legacy_connection {
	struct legacy_server *server;
	struct legacy_connection *before, *after;
	struct loop_source source;
	struct loop_timer timer; /* silence, rest, a slow reader or another try: one at a time */
	uint32_t watched;        /* events in the loop */
	uint64_t read_ns;        /* when it was read last */

	/* The peer as the kernel knew it when it connected. */
	uint32_t pid;
	uint32_t uid;
	struct proc_facts facts; /* start_ticks 0: not to be had */

	struct legacy_member last; /* whom the last message was from */
	struct legacy_member *family;
	uint32_t family_count;
	uint32_t lookups; /* of pids that were not the peer's */

	struct legacy_question *question; /* not read until it is answered */
	uint8_t *held;                    /* a message that waits for memory or descriptors */
	enum legacy_dialect held_dialect;
	uint8_t *spill; /* bytes that were read and must wait for that */
	size_t spill_begin, spill_end;
	uint8_t *out; /* an answer on its way */
	size_t out_begin, out_end;
	bool has_ended;  /* nothing more will come */
	bool ends_after; /* the answer ends with the connection */
	bool is_resting; /* sends so much that it is read by the clock, and not watched */
	bool asks;       /* has asked before: read in small pieces */

	struct legacy_stream stream;
};

/* A user's share. */
struct legacy_user {
	uint32_t uid;
	uint32_t connections;
	uint32_t clients;
};

struct legacy_server {
	struct legacy_config config;
	struct socket_lock
		socket_lock; /* of the path; with a socket from elsewhere there is none */
	struct loop_source accepting;
	struct loop_timer accept_again;
	struct loop_timer statistics;
	bool is_stopped;
	bool is_paused; /* accepts nobody for the moment */

	struct legacy_connection *connections; /* newest first */
	struct legacy_client *clients[LEGACY_CHAINS];
	struct legacy_user *users;
	size_t user_count, user_capacity;
	struct keep_budget budget;

	struct legacy_question *questions; /* for the next batch */
	struct legacy_question **questions_end;
	struct legacy_batch *batch; /* at work; NULL = none */

	struct legacy_log *log;       /* NULL = events are not printed */
	struct legacy_follow *follow; /* likewise, of native processes */
	struct legacy_counts counts;
	uint8_t buffer[LEGACY_READ_SIZE];
};

/* legacy-server.c */
/* Accepts whoever waits. False: there may be more. */
bool legacy_server_let_in(struct legacy_server *server);
struct legacy_user *legacy_server_user(struct legacy_server *server, uint32_t uid);

/* legacy-connection.c */
int legacy_connection_new_consume(struct legacy_server *server, int fd);
void legacy_connection_free(struct legacy_connection *connection);
/* Takes the answer; @bytes may be NULL. */
void legacy_connection_answer(struct legacy_connection *connection, uint8_t *bytes, size_t length,
			      bool is_last);
/* Reads on behalf of a process that has ended. True: there is nothing left of it here. */
bool legacy_connection_drain(struct legacy_connection *connection,
			     const struct legacy_client *client);
/* The client is no more. */
void legacy_connection_forget(struct legacy_connection *connection,
			      const struct legacy_client *client);

/* legacy-client.c */
/*
 * The client of that process, made if need be. @pid_fd: taken, -1 = not known yet; @peer_fd: a
 * connection of its own, -1 = none. 0 or a negative errno: -ENOSPC if there are too many, -EMFILE and
 * the like if a later try may do better.
 */
int legacy_client_get(struct legacy_server *server, const struct proc_facts *facts, int peer_fd,
		      struct legacy_client **ret_client);
/*
 * A client with an empty book that goes on from @old (NULL = none), which nobody knows yet; and telling
 * everybody, which takes book and pidfd in any case, and the client if it fails.
 */
int legacy_client_make(struct legacy_server *server, const struct proc_facts *facts,
		       const struct book_header *old, struct legacy_client **ret_client,
		       struct scan_book **ret_book);
int legacy_client_add_consume(struct legacy_client *client, struct scan_book *book, int pid_fd);
void legacy_client_free(struct legacy_client *client);

/* legacy-family.c */
/*
 * A process that calls itself @pid and may use the connection of @peer: it descends from it, and lives
 * in the same pid namespace as the same user. -ESRCH if the kernel knows none.
 */
int legacy_family_find(const struct proc *proc, const struct proc_facts *peer, uint32_t pid,
		       struct proc_facts *ret_facts);

/* legacy-event.c */
/* Whether it is an event that goes into a book, and not a question. */
bool legacy_event_is(const struct legacy_message *message);
/* Whether it may go in; else it is counted and told. */
bool legacy_event_check(struct legacy_server *server, const struct legacy_message *message);
void legacy_event_apply(struct legacy_client *client, const struct legacy_message *message);

/* legacy-question.c */
void legacy_question_put(struct legacy_server *server, struct legacy_connection *connection,
			 const struct legacy_message *message);
void legacy_question_put_report(struct legacy_server *server, enum legacy_report_kind kind);
/* The connection has ended; nobody waits for the answer. */
void legacy_question_abandon(struct legacy_question *question);
void legacy_question_free_all(struct legacy_server *server);
