/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * ttmemd as a whole: its parts, and how they hang together. Nothing is decided here that a part could
 * decide. Everything but the provider's functions runs in the loop's thread.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "base/loop.h"
#include "base/socket-lock.h"
#include "base/worker.h"
#include "compat/server/legacy-server.h"
#include "daemon/config/config.h"
#include "daemon/custody/systemd.h"
#include "daemon/native/native-server.h"
#include "daemon/recorder/recorder.h"
#include "daemon/registry/access.h"
#include "daemon/registry/registry.h"
#include "web/server/web.h"

struct incident_hook;
struct collector;
struct journal;
struct keeper;
struct keeper_entry;
struct notice;
struct log_writer;
struct tracked_file;
struct tracked_file_entry;
struct store;
struct store_reader;
struct symbols;
struct symbols_learner;
struct worker;

struct daemon_restore {
	struct daemon_kept *list;
	size_t count, capacity;
};

#define DAEMON_ADDRESS 80 /* room for an address and a port */

struct daemon {
	const struct config *config;
	struct loop *loop;
	struct log_writer *log_writer;
	struct worker *scout; /* scans */
	struct worker *clerk; /* samples, judges the dead */
	struct worker *desk;  /* answers questions */
	struct store *store;
	uint64_t refreshed_ns;  /* the desk's: when it last began to look into all books */
	uint64_t store_reasons; /* of its troubles, so many were told */
	struct systemd systemd;
	struct systemd_fds handed;
	struct access access;
	struct socket_lock socket_lock; /* of the native socket */
	struct symbols *symbols;
	struct symbols_learner *learner;
	struct registry *registry;
	struct collector *collector;
	struct recorder *recorder;
	struct native *native;
	struct legacy_server *legacy;
	struct keeper *keeper;
	bool keeper_is_lost; /* and that was said */
	struct tracked_file *tracked_file;
	struct daemon_restore restore;
	struct tracked_file_entry
		*rolled; /* of the last daemon's roll: whose books have not come back */
	size_t rolled_count;
	struct tracked **judged; /* ended and judged, but perhaps not yet written */
	size_t judged_count, judged_capacity;
	struct worker_job flush;
	size_t flushing; /* so many of them are being waited for */
	size_t written;  /* so many of them are in the database */
	size_t unlisted; /* and so many of these are not on the roll that was made last */
	int flush_result;
	struct incident_hook *incident_hook;
	struct journal *journal; /* NULL = what we say does not end up in it */
	struct push *push;       /* NULL = nothing is pushed */
	struct web *web;
	char web_address[DAEMON_ADDRESS]; /* "" = HTTP is not served; outlives the server */
	struct web_provider provider;
	struct store_reader *web_reader;  /* the web thread's */
	struct store_reader *desk_reader; /* the desk's, which answers on the native socket */
	struct loop_source signals;
	struct loop_timer second; /* of housekeeping */
	uint64_t start_ns;
	bool is_ready;
	uint64_t ready_by; /* CLOCK_MONOTONIC: at the latest */

	pthread_mutex_t lock; /* for copies that other threads see, made once a second */
	struct registry_counts registry_counts;
	struct legacy_counts legacy_counts;
};

/* Everything up to serving; what is wrong is told on stderr. 0 or an exit code. */
int daemon_open(struct daemon *daemon, const struct config *config);

/* Serves until it is told to stop. 0 or a negative errno. */
int daemon_run(struct daemon *daemon);
void daemon_close(struct daemon *daemon);

/* What is wrong, on stderr. Return: the exit code. */
int daemon_fail(const char *what, const char *which, int r);
int daemon_fail_in_use(const char *path, uint32_t holder);

/* Opens what others connect to. 0 or an exit code. */
int daemon_serve_native(struct daemon *daemon);
int daemon_serve_legacy(struct daemon *daemon);
int daemon_serve_web(struct daemon *daemon);
int daemon_serve_push(struct daemon *daemon);

/* Tells an incident to everybody who wants to know. */
void daemon_tell(struct daemon *daemon, const struct notice *notice);

/* The old report of what remains, as far as @asker may see it. From any thread. */
int daemon_dump(void *context, const struct web_asker *asker, FILE *out);

/* What HTTP serves, over TCP and on the native socket. */
void daemon_provide(struct daemon *daemon, struct web_provider *ret_provider);

/* Books that outlive us: taken back at the start, given to whoever keeps them while we run. */
int daemon_keep_open(struct daemon *daemon);
void daemon_keep_added(struct daemon *daemon, struct tracked *tracked);
void daemon_keep_judged(struct daemon *daemon, struct tracked *tracked);
void daemon_keep_second(struct daemon *daemon);
void daemon_keep_settle(struct daemon *daemon);
void daemon_keep_finish(struct daemon *daemon);
void daemon_keep_close(struct daemon *daemon);
void daemon_keep_let_go(struct daemon *daemon, const struct keeper_entry *entry);

/* Books of the last daemon's: first all are collected, then the right ones are restored. */
void daemon_restore_add(void *context, const struct keeper_entry *entry, int fd);
void daemon_restore_add_handed(struct daemon *daemon);
void daemon_restore_all(struct daemon *daemon);
