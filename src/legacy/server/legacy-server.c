/* SPDX-License-Identifier: Apache-2.0 */

/* Listens, accepts, and counts the connections of each user. */

#include "legacy/server/legacy-server.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "daemon/notify/log-writer.h"
#include "daemon/registry/collector.h"
#include "legacy/server/legacy-follow.h"
#include "legacy/server/legacy-history.h"
#include "legacy/server/legacy-log.h"
#include "legacy/server/legacy-private.h"
#include "legacy/server/legacy-report.h"
#include "model/snapshot.h"

#define SERVER_ACCEPTS 64                    /* per turn */
#define SERVER_AGAIN_NS UINT64_C(100000000)  /* after running out of descriptors */
#define SERVER_STATISTICS_NS (10 * NS_PER_S) /* as in the old server */

/* New connections wait in the backlog. */
static void server_pause(struct legacy_server *server)
{
	struct loop *loop = server->config.loop;

	quota_count(QUOTA_LEGACY_PAUSES, 1);
	server->is_paused = true;
	loop_remove(loop, &server->accepting);
	/* If the timer cannot be set, the end of the next connection resumes accepting. */
	(void)loop_set(loop, &server->accept_again, loop_now(loop) + SERVER_AGAIN_NS);
}

static bool server_accept_one(struct legacy_server *server)
{
	int fd;

	if (server->counts.connections >= LEGACY_CONNECTIONS_MAX) {
		server_pause(server);
		return false;
	}
	fd = accept4(server->accepting.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd < 0) {
		if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
			server_pause(server);
		return errno == EINTR || errno == ECONNABORTED;
	}
	/* On refusal the connection is closed; the reason was counted. */
	(void)legacy_connection_new_consume(server, fd, NULL);
	return true;
}

bool legacy_server_let_in(struct legacy_server *server)
{
	for (int i = 0; i < SERVER_ACCEPTS; i++) {
		if (server->is_paused || server->is_stopped || !server_accept_one(server))
			return true;
	}
	return false;
}

static void server_accept(struct loop_source *source, uint32_t events)
{
	/* If more are pending, the socket stays readable. */
	(void)legacy_server_let_in(container_of(source, struct legacy_server, accepting));
}

static void server_accept_again(struct loop_timer *timer)
{
	struct legacy_server *server = container_of(timer, struct legacy_server, accept_again);

	if (server->is_stopped)
		return;
	server->is_paused = false;
	if (loop_add(server->config.loop, &server->accepting, EPOLLIN) < 0)
		server_pause(server);
}

static void server_tell_statistics(struct loop_timer *timer)
{
	struct legacy_server *server = container_of(timer, struct legacy_server, statistics);
	struct loop *loop = server->config.loop;

	legacy_server_report(server, LEGACY_REPORT_STATISTICS);
	/* Cannot fail: the timer was set before, so there is room for it. */
	(void)loop_set(loop, timer, loop_now(loop) + SERVER_STATISTICS_NS);
}

static void server_tell_listening(struct legacy_server *server)
{
	if (server->log)
		legacy_log_banner(server->log, server->config.path ? server->config.path
								   : "a socket of systemd");
}

static int server_start_log(struct legacy_server *server)
{
	const struct legacy_config *config = &server->config;
	struct legacy_follow_config follow = {
		.loop = config->loop,
		.work = config->work,
		.registry = config->registry,
		.log_writer = config->log_writer,
		.decimal_ids = config->decimal_ids,
	};
	struct legacy_log_config log = {
		.log_writer = config->log_writer,
		.errors = config->errors,
		.decimal_ids = config->decimal_ids,
	};
	int r;

	if (!config->log_events || config->quiet)
		return 0;
	if (config->log_history) {
		server->history = legacy_history_new();
		if (!server->history)
			return -ENOMEM;
		log.history = follow.history = server->history;
	}
	server->log = legacy_log_new(&log);
	if (!server->log)
		return -ENOMEM;
	if (server->accepting.fd >= 0)
		server_tell_listening(server);
	r = legacy_follow_new(&server->follow, &follow);
	if (r < 0)
		return r;
	return loop_set(config->loop, &server->statistics,
			loop_now(config->loop) + SERVER_STATISTICS_NS);
}

/* Takes a socket that listens already. */
static int server_take(struct legacy_server *server, int fd)
{
	int flags = fcntl(fd, F_GETFL);

	server->accepting.fd = fd;
	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 ||
	    fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
		return -errno;
	return loop_add(server->config.loop, &server->accepting, EPOLLIN);
}

/*
 * The socket of an earlier daemon, with the clients that wait there. As long as it is held, nobody else
 * can have the path. If that leads elsewhere by now, legacy_server_listen() tries to have it.
 */
static int server_adopt_listener(struct legacy_server *server)
{
	uint64_t device = 0, inode = 0;

	if (server->held.listener < 0 || !server->config.path)
		return 0;
	/* Without a ledger the path's name must do. */
	(void)legacy_ledger_listener(server->held.ledger, &device, &inode);
	if (socket_lock_adopt(&server->socket_lock, server->config.path, server->held.listener,
			      device, inode) < 0)
		return 0;
	server->held.listener = -1;
	server->accepting.fd = server->socket_lock.fd;
	return loop_add(server->config.loop, &server->accepting, EPOLLIN);
}

static void server_cleanup(struct legacy_server **server)
{
	legacy_server_free(*server);
}

int legacy_server_new(struct legacy_server **ret_server, const struct legacy_config *config)
{
	CLEANUP(server_cleanup) struct legacy_server *server = calloc(1, sizeof(*server));
	int r;

	if (!server) {
		if (config->fd >= 0)
			(void)close(config->fd); /* nothing was written to it */
		return -ENOMEM;
	}
	server->config = *config;
	server->memory.total = config->memory_max ? config->memory_max : LEGACY_MEMORY_MAX;
	server->user_connections = (struct quota){.id = QUOTA_LEGACY_CONNECTIONS,
						  .total = LEGACY_CONNECTIONS_MAX,
						  .each = LEGACY_CONNECTIONS_PER_USER};
	server->user_clients =
		(struct quota){.total = LEGACY_CLIENTS_MAX, .each = LEGACY_CLIENTS_PER_USER};
	server->held = LEGACY_HELD_NULL;
	if (config->held) {
		server->held = *config->held;
		*config->held = LEGACY_HELD_NULL;
	}
	server->ledger_fd = -1;
	server->box = LEGACY_BOX_NULL;
	server->questions_end = &server->questions;
	server->socket_lock = SOCKET_LOCK_NULL;
	server->accepting = (struct loop_source){.fd = -1, .ready = server_accept};
	server->accept_again.fire = server_accept_again;
	server->statistics.fire = server_tell_statistics;
	r = config->fd >= 0 ? server_take(server, config->fd) : server_adopt_listener(server);
	if (r == 0)
		r = legacy_handover_open(server);
	if (r == 0)
		r = server_start_log(server);
	if (r < 0)
		return r;
	legacy_handover_start(server);
	*ret_server = cleanup_steal(server);
	return 0;
}

/* Accepts no more; removes the socket's file if it is ours, unless it is left to the next daemon. */
static void server_close_socket(struct legacy_server *server, bool is_left)
{
	loop_cancel(server->config.loop, &server->accept_again);
	server->is_paused = false;
	loop_remove(server->config.loop, &server->accepting);
	if (is_left && server->socket_lock.fd >= 0) {
		socket_lock_leave(&server->socket_lock);
	} else if (server->socket_lock.fd >= 0) {
		legacy_handover_forget_listener(server);
		socket_lock_close(&server->socket_lock);
	} else if (server->accepting.fd >= 0) {
		(void)close(server->accepting.fd); /* nothing was written to it */
	}
	server->accepting.fd = -1;
}

int legacy_server_listen(struct legacy_server *server, struct socket_lock_holder *ret_holder)
{
	int r;

	if (server->is_stopped)
		return -ESHUTDOWN;
	if (server->accepting.fd >= 0) {
		/* Only of a given socket is the path somebody else's to keep. */
		if (server->socket_lock.fd < 0 || socket_lock_is_there(&server->socket_lock))
			return 0;
		server_close_socket(server, false);
	}
	r = socket_lock_open(&server->socket_lock, server->config.path, SOCK_STREAM, ret_holder);
	if (r < 0)
		return r;
	server->accepting.fd = server->socket_lock.fd;
	r = loop_add(server->config.loop, &server->accepting, EPOLLIN);
	if (r < 0) {
		*ret_holder = (struct socket_lock_holder){.kind = SOCKET_LOCK_NOTHING};
		server_close_socket(server, false);
		return r;
	}
	legacy_handover_hold_listener(server);
	server_tell_listening(server);
	return 0;
}

/* What every old server printed at its end. The loop has ended, so this thread may read. */
static void server_say_goodbye(struct legacy_server *server)
{
	struct log_writer *log_writer = server->config.log_writer;
	struct snapshot *snapshot = NULL;
	CLEANUP_FREE char *text = NULL;
	size_t length = 0;
	FILE *out;

	legacy_log_flush(server->log);
	if (collector_totals(server->config.collector, clock_ns(CLOCK_MONOTONIC), &snapshot) < 0)
		return;
	out = open_memstream(&text, &length);
	if (out) {
		legacy_report_goodbye(out, snapshot, server->history);
		if (fclose(out) == 0)
			(void)log_writer_put(log_writer, text,
					     length); /* it reports what it drops */
	}
	snapshot_free(snapshot);
}

void legacy_server_stop(struct legacy_server *server)
{
	struct loop *loop = server->config.loop;

	if (server->is_stopped)
		return;
	server->is_stopped = true;
	loop_cancel(loop, &server->statistics);
	if (server->follow)
		legacy_follow_stop(server->follow);
	server_close_socket(server, server->config.custody.hold != NULL);
}

void legacy_server_finish(struct legacy_server *server)
{
	if (server->follow)
		legacy_follow_finish(server->follow);
	if (server->log)
		server_say_goodbye(server);
}

struct legacy_server *legacy_server_free(struct legacy_server *server)
{
	if (!server)
		return NULL;
	legacy_server_stop(server);
	while (server->connections)
		legacy_connection_free(server->connections);
	legacy_question_free_all(server);
	for (size_t i = 0; i < LEGACY_CHAINS; i++) {
		while (server->clients[i])
			legacy_client_free(server->clients[i]);
	}
	legacy_follow_free(server->follow);
	legacy_log_free(server->log);
	legacy_history_free(server->history);
	legacy_held_deinit(&server->held);
	legacy_box_deinit(&server->box);
	legacy_ledger_close(server->ledger);
	if (server->ledger_fd >= 0)
		(void)close(server->ledger_fd); /* memory: nothing to lose */
	quota_deinit(&server->user_connections);
	quota_deinit(&server->user_clients);
	quota_deinit(&server->memory);
	free(server);
	return NULL;
}

void legacy_server_report(struct legacy_server *server, enum legacy_report_kind kind)
{
	if (!server->is_stopped)
		legacy_question_put_report(server, kind);
}

void legacy_server_hold(struct legacy_server *server)
{
	if (!server->is_stopped)
		legacy_handover_hold(server);
}

void legacy_server_each(struct legacy_server *server,
			void (*each)(void *context, const struct tracked *tracked,
				     struct book_id old),
			void *context)
{
	for (size_t i = 0; i < LEGACY_CHAINS; i++) {
		for (struct legacy_client *at = server->clients[i]; at; at = at->next) {
			if (at->tracked)
				each(context, at->tracked, at->old);
		}
	}
}

void legacy_server_lines_consume(struct legacy_server *server, char *text, size_t length)
{
	legacy_log_flush(server->log);
	if (server->follow && legacy_follow_after_consume(server->follow, text, length) == 0)
		return;
	legacy_log_pieces(server->config.log_writer, text, length);
	free(text);
}

bool legacy_server_hears(const struct legacy_server *server, struct process_id process)
{
	const struct legacy_connection *at = server->connections;

	while (at && (at->pid != process.pid || (at->facts.id.start_ticks != 0 &&
						 at->facts.id.start_ticks != process.start_ticks)))
		at = at->after;
	return at;
}

void legacy_server_dead(struct legacy_server *server, const struct seed_lines_dead *dead)
{
	if (server->log)
		legacy_log_dead(server->log, dead);
}

void legacy_server_ended(struct legacy_server *server, struct tracked *tracked)
{
	if (server->follow)
		legacy_follow_ended(server->follow, tracked);
}

struct legacy_history *legacy_server_history(struct legacy_server *server)
{
	return server->history;
}

void legacy_server_counts(const struct legacy_server *server, struct legacy_counts *ret_counts)
{
	*ret_counts = server->counts;
	ret_counts->memory = server->memory.used;
	ret_counts->refused_room += server->memory.refused;
}
