/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * ttmemd as a whole: its parts and how they are connected. Nothing is decided here that a part
 * could decide. Everything but the provider's functions runs in the loop's thread.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "base/files/socket-lock.h"
#include "base/process-id.h"
#include "base/process/child.h"
#include "base/threads/loop.h"
#include "base/threads/worker.h"
#include "daemon/config/config.h"
#include "daemon/custody/keeper.h"
#include "daemon/custody/systemd.h"
#include "daemon/doors/listener.h"
#include "daemon/flight/black-box.h"
#include "daemon/native/native-server.h"
#include "daemon/recorder/recorder.h"
#include "daemon/registry/access.h"
#include "daemon/registry/registry.h"
#include "model/health.h"
#include "web/server/web.h"
#include "wire/link.h"

struct emit;
struct incident_hook;
struct collector;
struct journal;
struct keeper;
struct links;
struct notice;
struct log_writer;
struct moment_cache;
struct tracked_file;
struct tracked_file_entry;
struct sessions;
struct store;
struct store_reader;
struct symbols;
struct symbols_learner;
struct worker;

struct daemon_restore {
	struct daemon_kept *list;
	size_t count, capacity;
};

/* An ended process whose report may not be on disk. */
struct daemon_judged {
	struct keeper_entry entry;
	struct tracked *tracked; /* NULL = its book was let go */
};

struct daemon_door {
	struct health_door shown; /* changed under the daemon's lock */
	bool is_told;

	/* For one that is in use, and not known by whom: a worker looks for that process. */
	struct daemon *daemon;
	struct worker_job look;
	bool is_looked_for;
	uint64_t looked_ns; /* CLOCK_MONOTONIC of the last search; 0 = none for this problem */
	const char *look_where;
	uint32_t user_id; /* known without a search, or HEALTH_NOBODY */
	struct listener listener;
	int look_result;
};

/* The program for old clients, where we have started it. */
struct daemon_legacy {
	struct child child;
	struct loop_timer again;
	uint64_t started_ns, delay_ns;
	int problem;    /* why it does not run; 0 = it does, or need not */
	bool is_closed; /* none is started any more */
};

#define DAEMON_ADDRESS 80 /* room for an address and a port */

struct daemon {
	const struct config *config;
	struct loop *loop;
	struct log_writer *log_writer;
	struct worker *search_worker;   /* passes over /proc */
	struct worker *recorder_worker; /* samples, judges exited processes */
	struct worker *query_worker;    /* answers queries */
	struct worker *exits_worker;    /* lets books of exited processes go: only short jobs */
	struct store *store;
	uint64_t refreshed_ns;  /* query worker only: when it last began to read all books */
	uint64_t store_reasons; /* number of store problems logged so far */
	struct systemd systemd;
	struct systemd_fds handed;
	struct access access;
	struct socket_lock socket_lock; /* of the native socket */
	bool native_is_given;           /* it is systemd's */
	int state_lock;                 /* descriptor; -1 = the state folder cannot be locked */
	struct symbols *symbols;
	struct symbols_learner *learner;
	struct registry *registry;
	struct collector *collector;
	struct recorder *recorder;
	struct black_box *black_box;  /* NULL = there is none */
	struct moment_cache *moments; /* likewise */
	struct native *native;
	struct links *links; /* with programs that keep books */
	struct daemon_link_path *link_paths;
	struct daemon_report *reports; /* asked for over a link */
	uint64_t report_number;        /* of the last one */
	struct daemon_legacy legacy;
	struct keeper *keeper;
	bool keeper_is_lost; /* and that was logged */
	struct tracked_file *tracked_file;
	struct daemon_restore restore;
	struct tracked_file_entry *expected; /* tracked by the previous daemon, book not yet back */
	size_t expected_count;
	uint64_t missed_before;       /* unobserved exits that earlier daemons have counted */
	struct daemon_judged *ending; /* ended, but not yet judged and copied */
	size_t ending_count, ending_capacity;
	struct daemon_judged *judged; /* ended and judged, but perhaps not yet written */
	size_t judged_count, judged_capacity;
	struct worker_job flush;
	size_t flushing; /* number of them that the running flush covers */
	size_t written;  /* number of them that are in the database */
	size_t unlisted; /* and of these, number no longer in the file of tracked processes */
	int flush_result;
	struct incident_hook *incident_hook;
	struct journal *journal;   /* NULL = our output does not go to the journal */
	struct push *push;         /* NULL = nothing is pushed */
	struct fleet *fleet;       /* NULL = no other machines are known */
	struct sessions *sessions; /* browsers that are signed in */
	struct web *web;
	char web_address[DAEMON_ADDRESS]; /* "" = HTTP is not served; outlives the server */
	struct web_provider provider;
	struct store_reader *web_reader; /* used by the web thread */
	struct store_reader
		*query_reader; /* used by the query worker, which answers on the native socket */
	struct daemon_door doors[HEALTH_DOORS];
	bool doors_speak; /* changes are logged */
	struct loop_timer doors_timer;
	uint64_t doors_delay_ns; /* until the next try */
	struct loop_source signals;
	struct loop_timer second; /* housekeeping */
	uint64_t start_ns;
	bool has_passed; /* over /proc, once */
	bool is_ready;
	uint64_t ready_by; /* CLOCK_MONOTONIC: deadline */

	pthread_mutex_t lock; /* for copies that other threads read */
	struct registry_counts registry_counts;
	struct recorder_exits exits;
	struct link_state link_state; /* of ttmem-legacy; all zero = there is none */
};

/* Another daemon runs here already; no exit code. Nothing was said, because we have an old server's name. */
#define DAEMON_RUNS_ALREADY (-1)

/* Opens everything up to serving; reports errors on stderr. 0, an exit code, or the above. */
int daemon_open(struct daemon *daemon, const struct config *config);

/* Serves until it is asked to stop. 0 or a negative errno. */
int daemon_run(struct daemon *daemon);
void daemon_close(struct daemon *daemon);

/* Reports an error on stderr. Returns the exit code. */
int daemon_fail(const char *what, const char *which, int r);
int daemon_fail_in_use(const char *path, uint32_t holder);

/* Prepares what clients connect to; doors open it. 0 or an exit code. */
int daemon_serve_native(struct daemon *daemon);
int daemon_serve_push(struct daemon *daemon);

int daemon_open_fleet(struct daemon *daemon);

/* Starts the HTTP server. 0 or a negative errno: -EADDRINUSE if the port is taken. */
int daemon_serve_web(struct daemon *daemon);

/*
 * What others may have: sockets, a port, files. daemon_doors_claim() makes sure that no other daemon
 * runs here; daemon_doors_open() opens what can be had and fails only if that is nothing. Both
 * return 0 or an exit code. Later each is tried again.
 */
int daemon_doors_claim(struct daemon *daemon);
int daemon_doors_open(struct daemon *daemon);

/*
 * The door of old clients is another program's, which listens at @where or says why not (as
 * socket_lock_open(); @holder NULL = it does not run). @where NULL: there is no such program any more.
 */
void daemon_doors_legacy(struct daemon *daemon, const char *where, int status,
			 const struct socket_lock_holder *holder);

/* How many are closed. In the loop's thread. */
uint32_t daemon_doors_closed(const struct daemon *daemon);

/* Passes a notice to every consumer. */
void daemon_tell(struct daemon *daemon, const struct notice *notice);

/* Links with programs that keep books; a connection that begins one, which is taken. */
int daemon_link_open(struct daemon *daemon);
void daemon_link_close(struct daemon *daemon);
void daemon_link_consume(void *context, struct accept_peer *peer, uint32_t want);

/*
 * Has the program that prints the old server's lines print those about a process that has ended and left
 * something, or a notice about that. False: there is none, so it goes to our log.
 */
void daemon_link_dead(struct daemon *daemon, const struct notice *notice);
bool daemon_link_lines(struct daemon *daemon, const struct notice *notice);

/*
 * The report of remaining buffers with the history of each, from the program that has it. From any thread but the
 * loop's. 0, or a negative errno: -ENOENT if nobody has it.
 */
int daemon_report(struct daemon *daemon, FILE *out);
void daemon_report_take(void *context, uint64_t number, const char *text, size_t length);
/* Nobody answers any more. */
void daemon_report_drop(struct daemon *daemon);

/* access_may_see() for the store; @context is the peer. */
bool daemon_may_see(const void *context, uint32_t maker, const char *namespaces);

/* The legacy report of remaining buffers, as far as @asker may see them. From any thread. */
int daemon_dump(void *context, const struct query_asker *asker, uint64_t since_ns, FILE *out);
web_answer_fn daemon_growth, daemon_commands;

/* The history, for the thread that asks. 0, or a negative errno: -EOPNOTSUPP if there is none. */
int daemon_reader(struct daemon *daemon, const struct query_asker *asker,
		  struct store_reader **ret_reader);

/* The flight recorder, if there is to be one. 0 or a negative errno. */
int daemon_open_black_box(struct daemon *daemon);

/* Moments of the past, for the provider. From any thread but the loop's. */
int daemon_moments_snapshot(struct daemon *daemon, const struct snapshot_request *request,
			    struct snapshot **ret_snapshot);
int daemon_moments_reach(void *context, const struct query_asker *asker,
			 struct snapshot_reach *ret_reach);
web_answer_fn daemon_moments_list;

/* What HTTP serves, over TCP and on the native socket. */
void daemon_provide(struct daemon *daemon, struct web_provider *ret_provider);

/*
 * Books that outlive the daemon: taken back at the start, handed to the keeper or systemd while it
 * runs.
 */
void daemon_keep_take(struct daemon *daemon);
int daemon_keep_open(struct daemon *daemon);
void daemon_keep_added(struct daemon *daemon, struct tracked *tracked);
void daemon_keep_ended(struct daemon *daemon, struct tracked *tracked);
/* Another book continues it: it is let go, and nobody judges it. */
void daemon_keep_replaced(void *context, struct tracked *tracked);
void daemon_keep_judged(void *context, struct tracked *tracked, bool is_read);
void daemon_keep_copied(void *context, struct tracked *tracked, bool may_wait);
void daemon_keep_flush(struct daemon *daemon);
void daemon_keep_settle(struct daemon *daemon);
void daemon_keep_finish(struct daemon *daemon);
void daemon_keep_close(struct daemon *daemon);
void daemon_keep_let_go(struct daemon *daemon, const struct keeper_entry *entry);

/* Books of the previous daemon: all are collected first, then the right ones are restored. */
void daemon_restore_add(void *context, const struct keeper_entry *entry, int fd);
void daemon_restore_add_handed(struct daemon *daemon);
void daemon_restore_all(struct daemon *daemon);

/*
 * The program for old clients: started, started again, told of a signal, and ended with us. Whether it is
 * wanted at all.
 */
void daemon_legacy_open(struct daemon *daemon);
void daemon_legacy_close(struct daemon *daemon);
void daemon_legacy_signal(const struct daemon *daemon, int number);
bool daemon_legacy_is_wanted(const struct daemon *daemon);
/* If it cannot be started, its door says so. */
void daemon_legacy_show(struct daemon *daemon);
/* None is linked any more: one is started, if none of ours runs. */
void daemon_legacy_gone(struct daemon *daemon);
/* Whether there is one that has not yet said what it serves. */
bool daemon_legacy_is_awaited(const struct daemon *daemon);
/* It has said so, or cannot be started: we may be ready. */
void daemon_legacy_told(struct daemon *daemon);
/* This process becomes that program, under its name. Returns the exit code if it cannot. */
int daemon_legacy_become(char **argv);
