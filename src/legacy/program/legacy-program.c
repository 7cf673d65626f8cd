/* SPDX-License-Identifier: Apache-2.0 */

/* Opens everything in the order of dependencies, and closes it again. */

#include "legacy/program/legacy-program.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/files/socket-lock.h"
#include "base/quota.h"
#include "base/threads/loop.h"
#include "base/threads/worker.h"
#include "daemon/config/config.h"
#include "daemon/custody/systemd.h"
#include "daemon/notify/log-writer.h"
#include "daemon/registry/access.h"
#include "daemon/registry/collector.h"
#include "daemon/registry/registry.h"
#include "daemon/registry/tracked.h"
#include "daemon/symbols/symbols-files.h"
#include "daemon/symbols/symbols.h"
#include "legacy/program/legacy-left.h"
#include "legacy/program/legacy-link.h"
#include "legacy/server/legacy-server.h"
#include "source/books/scan.h"
#include "wire/link.h"

#define PROGRAM_SETTLE_NS \
	(5 * NS_PER_S)           /* for ttmemd to hand over the books of an earlier one of us */
#define PROGRAM_SERVED_ALREADY 3 /* our exit code, too: ttmemd knows it */
#define PROGRAM_PRIORITY (-10)   /* old clients wait for the loop, as for setpriority() */

struct program {
	const struct config *config;
	bool is_started; /* by ttmemd */
	bool is_open;    /* it serves, and not another one */
	int listening;   /* from it; -1 = none, or used */
	struct systemd systemd;
	struct systemd_fds handed;
	struct loop *loop;
	struct loop_source signals;
	struct log_writer *log_writer;
	struct log_writer *error_writer; /* NULL = errors go where lines go */
	struct worker *work;
	struct access access;
	struct registry *registry;
	struct collector *collector;
	struct symbols *symbols;
	struct legacy_link *link;
	struct legacy_held held;
	struct legacy_server *server;
	struct legacy_left left;
	struct loop_timer second;
	int status; /* of the socket: 0 = it listens, or why not */
	struct socket_lock_holder holder;
};

static int program_fail(const char *what, int r)
{
	fprintf(stderr, "ttmem-legacy: %s: %s\n", what, strerror(-r));
	return 1;
}

static void program_signal(struct program *program, uint32_t number)
{
	switch (number) {
	case SIGHUP:
		log_writer_reopen(program->log_writer);
		break;
	case SIGUSR1:
		if (program->server)
			legacy_server_report(program->server, LEGACY_REPORT_SUMMARY);
		break;
	default:
		(void)systemd_notify_stopping(&program->systemd); /* a courtesy */
		loop_stop(program->loop);
		break;
	}
}

static void program_signals_ready(struct loop_source *source, uint32_t events)
{
	struct program *program = container_of(source, struct program, signals);
	struct signalfd_siginfo info;

	while (read(source->fd, &info, sizeof(info)) == sizeof(info))
		program_signal(program, info.ssi_signo);
}

static int program_open_signals(struct program *program)
{
	sigset_t mine;

	sigemptyset(&mine);
	sigaddset(&mine, SIGTERM);
	sigaddset(&mine, SIGINT);
	sigaddset(&mine, SIGHUP);
	sigaddset(&mine, SIGUSR1);
	if (sigprocmask(SIG_BLOCK, &mine, NULL) < 0)
		return -errno;
	(void)signal(SIGPIPE, SIG_IGN); /* fails only for a signal that does not exist */
	program->signals.fd = signalfd(-1, &mine, SFD_CLOEXEC | SFD_NONBLOCK);
	if (program->signals.fd < 0)
		return -errno;
	program->signals.ready = program_signals_ready;
	return loop_add(program->loop, &program->signals, EPOLLIN);
}

static struct symbols_files_owner program_owner(const struct tracked *tracked)
{
	return (struct symbols_files_owner){
		.book = scan_book_number(tracked->id, tracked->process.start_ticks),
		.process = tracked->process,
		.user = tracked->maker,
	};
}

static void program_added(void *context, struct tracked *tracked)
{
	struct program *program = context;
	const struct symbols_files_owner owner = program_owner(tracked);

	symbols_hold(program->symbols, &owner);
}

static void program_ended(void *context, struct tracked *tracked)
{
	struct program *program = context;

	symbols_release(program->symbols, program_owner(tracked).book);
	if (program->server)
		legacy_server_ended(program->server, tracked);
}

static struct book_list *program_books(void *context)
{
	return registry_books(context);
}

/* What an earlier one of us has kept. */
static void program_take_left(void *context, struct scan_book *book, int pid_fd)
{
	struct program *program = context;

	legacy_left_add_consume(&program->left, book, pid_fd);
}

/* ttmemd is stopped by hand, and so are we, if it was one that has started us. */
static void program_stop(void *context)
{
	struct program *program = context;

	if (program->is_started)
		loop_stop(program->loop);
}

static int program_open_books(struct program *program)
{
	const struct registry_config registry = {
		.loop = program->loop,
		.work = program->work,
		.search_worker = program->work,
		.hooks = {.context = program, .added = program_added, .ended = program_ended},
	};
	const struct symbols_config symbols = {0};
	struct collector_config collector = {.book_list = program_books};
	int r = registry_new(&program->registry, &registry);

	if (r < 0)
		return r;
	collector.context = program->registry;
	collector.proc = registry_proc(program->registry);
	r = collector_new(&program->collector, &collector);
	if (r == 0)
		r = symbols_new(&program->symbols, &symbols);
	return r < 0 ? r
		     : access_init(&program->access, program->config->group,
				   registry_namespaces(program->registry));
}

static void program_hold(void *context, enum legacy_held_kind kind, int fd)
{
	struct program *program = context;

	if (kind != LEGACY_HELD_LISTENER)
		/* Without room for it, connections end with us. */
		(void)systemd_hold(&program->systemd, kind, fd);
}

static void program_release(void *context, enum legacy_held_kind kind, int fd)
{
	struct program *program = context;

	if (kind != LEGACY_HELD_LISTENER)
		/* Else the next one gets it once more, and sees that it is not current. */
		(void)systemd_release(&program->systemd, kind, fd);
}

static void program_take_held(struct program *program)
{
	struct legacy_held *held = &program->held;

	for (size_t i = 0; i < program->handed.held_count; i++) {
		struct systemd_held *from = &program->handed.held[i];

		if (from->what == LEGACY_HELD_LEDGER && held->ledger < 0)
			held->ledger = cleanup_steal_fd(&from->fd);
		else if (from->what == LEGACY_HELD_BOX && held->box_count < LEGACY_BOXES)
			held->boxes[held->box_count++] = cleanup_steal_fd(&from->fd);
	}
}

/* If both streams lead to the same place, one writer keeps the lines in order. */
static bool program_has_two_streams(const struct config *config)
{
	struct stat output, errors;

	return !config->log && !config->quiet && (config->log_events || config->log_history) &&
	       fstat(STDOUT_FILENO, &output) == 0 && fstat(STDERR_FILENO, &errors) == 0 &&
	       (output.st_dev != errors.st_dev || output.st_ino != errors.st_ino);
}

static int program_open_server(struct program *program)
{
	const struct config *config = program->config;
	struct legacy_config legacy = {
		.symbols = program->symbols,
		.loop = program->loop,
		.registry = program->registry,
		.collector = program->collector,
		.log_writer = program->log_writer,
		.errors = program->error_writer,
		.work = program->work,
		.access = &program->access,
		.path = config->legacy_socket,
		.fd = cleanup_steal_fd(&program->handed.legacy),
		.held = &program->held,
		.keeping = {.context = program->link,
			    .kept = legacy_link_kept,
			    .closed = legacy_link_closed,
			    .sync = legacy_link_sync,
			    .report = legacy_link_report},
		.log_events = config->log_events || config->log_history,
		.log_history = config->log_history,
		.decimal_ids = config->decimal_ids,
		.quiet = config->quiet,
		.trace_wire = config->trace_wire,
		.memory_max = config->legacy_memory,
	};

	if (program->systemd.books_max)
		legacy.custody = (struct legacy_custody){
			.context = program, .hold = program_hold, .release = program_release};
	return legacy_server_new(&program->server, &legacy);
}

static void program_say(const struct program *program, int r,
			const struct socket_lock_holder *holder)
{
	const char *path = program->config->legacy_socket;

	if (r == 0)
		fprintf(stderr, "ttmem-legacy: old clients on %s\n", path);
	else if (holder->kind == SOCKET_LOCK_NOTHING)
		fprintf(stderr, "ttmem-legacy: old clients are not served: %s: %s; trying again\n",
			path, strerror(-r));
	else if (holder->kind == SOCKET_LOCK_LIVE)
		fprintf(stderr,
			"ttmem-legacy: old clients are not served: %s: in use by process %" PRIu32
			" of user %" PRIu32 "; trying again\n",
			path, holder->pid, holder->uid);
	else
		fprintf(stderr,
			"ttmem-legacy: old clients are not served: %s: something of user %" PRIu32
			" is in the way: remove it; trying again\n",
			path, holder->uid);
}

/* Listens, if it does not yet or if the path no longer leads here. */
static void program_listen(struct program *program)
{
	struct socket_lock_holder holder = {.kind = SOCKET_LOCK_NOTHING};
	int r;

	if (strcmp(program->config->legacy_socket, CONFIG_NONE) == 0)
		return;
	r = legacy_server_listen(program->server, &holder);
	if (r != program->status && !program->is_started)
		program_say(program, r, &holder);
	program->status = r;
	program->holder = holder;
}

/* Whether another one of us serves. */
static bool program_is_served(const struct program *program)
{
	const struct socket_lock_holder *holder = &program->holder;

	return program->status < 0 && holder->kind == SOCKET_LOCK_LIVE &&
	       (holder->uid == 0 || holder->uid == geteuid()) &&
	       legacy_left_is_another(holder->pid);
}

static void program_tell_state(struct program *program)
{
	struct legacy_counts counts;
	struct link_state state = {
		.status = program->status,
		.holder = program->holder.pid,
		.holder_user = program->holder.uid,
		.holder_kind = (uint32_t)program->holder.kind,
		.has_history = program->config->log_history && !program->config->quiet,
	};

	legacy_server_counts(program->server, &counts);
	state.connections = counts.connections;
	state.clients = counts.clients;
	state.memory = counts.memory;
	state.accepted = counts.accepted;
	state.messages = counts.messages;
	state.questions = counts.questions;
	state.taken_over = counts.taken_over;
	state.in_doubt = counts.in_doubt;
	state.refused = counts.refused_device + counts.refused_type + counts.refused_size +
			counts.refused_room;
	state.refused_room = counts.refused_room;
	state.accept_pauses = quota_counted(QUOTA_LEGACY_PAUSES);
	state.connections_refused = quota_counted(QUOTA_LEGACY_CONNECTIONS);
	state.connections_slow = quota_counted(QUOTA_LEGACY_SLOW);
	state.log_left_out = quota_counted(QUOTA_LOG_LEFT_OUT);
	(void)snprintf(state.path, sizeof(state.path), "%s", program->config->legacy_socket);
	legacy_link_state(program->link, &state);
}

static void program_ready(struct program *program)
{
	int ready = program->config->ready_fd;

	if (ready >= 0) {
		(void)!write(ready, "\n", 1); /* on failure the reader sees the end of file */
		(void)close(ready);
	}
	/* A supervisor that we cannot notify does not wait for us. */
	(void)systemd_notify_ready(&program->systemd);
}

static void program_second(struct loop_timer *timer)
{
	struct program *program = container_of(timer, struct program, second);

	program_listen(program);
	program_tell_state(program);
	if (program->systemd.watchdog_ns)
		(void)systemd_notify_watchdog(&program->systemd); /* another follows soon */
	/* Without memory for a timer the watchdog fires. */
	(void)loop_set(program->loop, timer, loop_now(program->loop) + NS_PER_S);
}

static void program_raise_limits(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) < 0)
		return;
	files.rlim_cur = files.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &files); /* on failure fewer clients fit; counted */
}

/*
 * ttmemd first tells what it knows: books of an earlier one of us are continued before clients are read. Only if
 * there are connections of that one do we wait for a ttmemd that is restarted, too.
 */
static int program_settle(struct program *program)
{
	uint64_t until = clock_ns(CLOCK_MONOTONIC) + PROGRAM_SETTLE_NS;
	int r = 0;

	while (r == 0 && !legacy_link_is_settled(program->link) &&
	       (legacy_link_is_connected(program->link) || program->held.box_count > 0) &&
	       clock_ns(CLOCK_MONOTONIC) < until)
		r = loop_turn(program->loop, 100);
	return r;
}

static int program_open_loop(struct program *program)
{
	const struct config *config = program->config;
	int r = loop_new(&program->loop);

	if (r == 0)
		r = program_open_signals(program);
	if (r == 0)
		r = log_writer_new(&program->log_writer, config->log, STDOUT_FILENO, 0);
	if (r == 0 && program_has_two_streams(config))
		r = log_writer_new(&program->error_writer, NULL, STDERR_FILENO, 0);
	if (r == 0)
		r = worker_new(&program->work,
			       &(struct worker_config){.name = "queries", .loop = program->loop});
	return r;
}

static int program_open(struct program *program)
{
	struct legacy_link_config link = {
		.path = program->config->socket,
		.wants_lines = (program->config->log_events || program->config->log_history) &&
			       !program->config->quiet,
		.context = program,
		.left = program_take_left,
		.stop = program_stop,
	};
	int r;

	program_raise_limits();
	systemd_init(&program->systemd);
	r = systemd_listen_fds(&program->systemd, &program->handed);
	if (program->listening >= 0 && program->handed.legacy < 0)
		program->handed.legacy = cleanup_steal_fd(&program->listening);
	if (r == 0)
		r = program_open_loop(program);
	if (r == 0)
		r = program_open_books(program);
	if (r < 0)
		return r;
	program_take_held(program);
	link.loop = program->loop;
	link.registry = program->registry;
	r = legacy_link_new(&program->link, &link);
	if (r == 0)
		r = program_settle(program);
	if (r == 0)
		r = program_open_server(program);
	if (r < 0)
		return r;
	legacy_link_serve(program->link, program->server);
	legacy_left_continue(&program->left, program->server);
	program_listen(program);
	if (program->is_started && program_is_served(program))
		return PROGRAM_SERVED_ALREADY;
	program_tell_state(program);
	program->is_open = true;
	return loop_set(program->loop, &program->second, 0);
}

/* In reverse order; threads end before what they use. */
static void program_close(struct program *program)
{
	if (program->loop)
		loop_cancel(program->loop, &program->second);
	if (program->server)
		legacy_server_stop(program->server);
	worker_free(program->work);
	if (program->server && program->is_open)
		legacy_server_finish(program->server);
	legacy_left_deinit(&program->left);
	registry_free(program->registry);
	legacy_server_free(program->server);
	collector_free(program->collector);
	symbols_free(program->symbols);
	if (program->signals.fd >= 0) {
		loop_remove(program->loop, &program->signals);
		(void)close(program->signals.fd); /* likewise */
	}
	legacy_held_deinit(&program->held);
	systemd_fds_deinit(&program->handed);
	log_writer_free(program->error_writer);
	log_writer_free(program->log_writer);
	/* Last: a ttmemd that is stopped waits until it ends. */
	legacy_link_free(program->link);
	loop_free(program->loop);
}

/*
 * Old clients block in send() until the loop has read what they sent before, so on a busy machine a loop that
 * is not scheduled stalls them. If we were given another priority, it is kept.
 */
static void program_hurry(void)
{
	errno = 0;
	if (getpriority(PRIO_PROCESS, 0) == 0 && errno == 0)
		/* Without the privilege the priority stays as it is. */
		(void)setpriority(PRIO_PROCESS, 0, PROGRAM_PRIORITY);
}

int legacy_program_run(const struct config *config, bool is_started, int listening)
{
	struct program program = {
		.config = config,
		.is_started = is_started,
		.handed = SYSTEMD_FDS_NULL,
		.held = LEGACY_HELD_NULL,
		.signals = LOOP_SOURCE_NULL,
		.second = {.fire = program_second},
	};
	int r;

	program.listening = listening;
	r = program_open(&program);

	if (r == 0) {
		program_ready(&program);
		program_hurry();
		r = loop_run(program.loop);
	}
	program_close(&program);
	return r < 0 ? program_fail("cannot serve old clients", r) : r;
}
