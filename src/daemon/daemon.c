/* SPDX-License-Identifier: Apache-2.0 */

/* Opens everything in the order of dependencies, and closes it again. */

#include "daemon/daemon.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/files/user-file.h"
#include "base/threads/worker.h"
#include "daemon/custody/keeper.h"
#include "daemon/custody/tracked-file.h"
#include "daemon/fleet/fleet.h"
#include "daemon/flight/moment-cache.h"
#include "daemon/link/links.h"
#include "daemon/notify/incident-hook.h"
#include "daemon/notify/journal.h"
#include "daemon/notify/log-writer.h"
#include "daemon/registry/collector.h"
#include "daemon/registry/tracked.h"
#include "daemon/symbols/symbols-files.h"
#include "daemon/symbols/symbols-learner.h"
#include "daemon/symbols/symbols.h"
#include "store/store.h"
#include "web/export/push.h"
#include "web/server/sessions.h"

/* A process with very many descriptors can delay the first pass for as long as it likes. */
#define DAEMON_READY_NS UINT64_C(5000000000)
#define DAEMON_STORE_RETRY_MS 5000u /* after the disk was full: a try costs next to nothing */
#define DAEMON_PRIORITY (-10)       /* of the loop's thread, as for setpriority() */

int daemon_fail(const char *what, const char *which, int r)
{
	fprintf(stderr, "ttmemd: %s%s%s: %s\n", what, which ? " " : "", which ? which : "",
		user_file_error(r));
	return 1;
}

int daemon_fail_in_use(const char *path, uint32_t holder)
{
	fprintf(stderr, "ttmemd: %s is in use", path);
	if (holder)
		fprintf(stderr, " by process %" PRIu32, holder);
	fputs("; is another ttmemd running?\n", stderr);
	return 1;
}

/*
 * For other threads: updated whenever a process comes or goes, so that the figures are consistent.
 */
static void daemon_publish_counts(struct daemon *daemon)
{
	pthread_mutex_lock(&daemon->lock);
	registry_counts(daemon->registry, &daemon->registry_counts);
	recorder_exits(daemon->recorder, &daemon->exits);
	pthread_mutex_unlock(&daemon->lock);
}

static struct symbols_files_owner daemon_owner(const struct tracked *tracked)
{
	return (struct symbols_files_owner){
		.book = scan_book_number(tracked->id, tracked->process.start_ticks),
		.process = tracked->process,
		.user = tracked->maker,
	};
}

static void daemon_program(void *context, const struct tracked *tracked, int fd)
{
	const struct symbols_files_owner owner = daemon_owner(tracked);
	struct daemon *daemon = context;

	symbols_hold_consume(daemon->symbols, &owner, fd);
}

static void daemon_added(void *context, struct tracked *tracked)
{
	struct daemon *daemon = context;
	const struct symbols_files_owner owner = daemon_owner(tracked);

	/* First of all: the process may be about to end. */
	symbols_hold(daemon->symbols, &owner);
	recorder_add_book(daemon->recorder, tracked);
	if (daemon->black_box)
		black_box_add(daemon->black_box, tracked);
	daemon_keep_added(context, tracked);
	links_added(daemon->links, tracked);
	daemon_publish_counts(context);
}

static void daemon_failed(void *context, struct tracked *tracked)
{
	struct daemon *daemon = context;

	recorder_hurry(daemon->recorder, tracked);
}

static void daemon_ended(void *context, struct tracked *tracked)
{
	struct daemon *daemon = context;

	daemon_publish_counts(daemon); /* before it is known what it left */
	daemon_keep_ended(daemon, tracked);
	links_ended(daemon->links, tracked);
	recorder_judge(daemon->recorder, tracked);
}

/* The book that continues it has been added already. */
static void daemon_replaced(void *context, struct tracked *tracked)
{
	struct daemon *daemon = context;

	links_ended(daemon->links, tracked);
	daemon_keep_replaced(daemon, tracked);
}

static void daemon_told(void *context, const struct notice *notice)
{
	daemon_tell(context, notice);
}

/* In any thread. */
static void daemon_happened(void *context, struct tracked *tracked, bool has_ended)
{
	struct daemon *daemon = context;

	if (daemon->black_box)
		black_box_keep(daemon->black_box, tracked,
			       has_ended ? FLIGHT_FILES_ENDED : FLIGHT_FILES_FAILED);
}

/* Releases whoever waits for the daemon to be ready. */
static void daemon_ready(struct daemon *daemon)
{
	int ready = daemon->config->ready_fd;

	if (daemon->is_ready)
		return;
	daemon_publish_counts(daemon);
	daemon->is_ready = true;
	if (ready >= 0) {
		(void)!write(ready, "\n", 1); /* on failure the reader sees the end of file */
		(void)close(ready);
	}
	/* A supervisor that we cannot notify does not wait for us. */
	(void)systemd_notify_ready(&daemon->systemd);
}

/* All living processes are known: from now on answers are complete. */
static void daemon_first_pass(void *context)
{
	struct daemon *daemon = context;

	daemon_keep_settle(daemon);
	daemon->has_passed = true;
	daemon_legacy_told(daemon);
}

void daemon_legacy_told(struct daemon *daemon)
{
	if (daemon->has_passed && !daemon_legacy_is_awaited(daemon))
		daemon_ready(daemon);
}

static void daemon_signal(struct daemon *daemon, uint32_t number)
{
	switch (number) {
	case SIGHUP:
		log_writer_reopen(daemon->log_writer);
		daemon_legacy_signal(daemon, SIGHUP);
		break;
	case SIGUSR1:
		daemon_legacy_signal(daemon, SIGUSR1);
		break;
	default:
		(void)systemd_notify_stopping(&daemon->systemd); /* a courtesy */
		loop_stop(daemon->loop);
		break;
	}
}

static void daemon_signals_ready(struct loop_source *source, uint32_t events)
{
	struct daemon *daemon = container_of(source, struct daemon, signals);
	struct signalfd_siginfo info;

	while (read(source->fd, &info, sizeof(info)) == sizeof(info))
		daemon_signal(daemon, info.ssi_signo);
}

static int daemon_open_signals(struct daemon *daemon)
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
	daemon->signals.fd = signalfd(-1, &mine, SFD_CLOEXEC | SFD_NONBLOCK);
	if (daemon->signals.fd < 0)
		return -errno;
	daemon->signals.ready = daemon_signals_ready;
	return loop_add(daemon->loop, &daemon->signals, EPOLLIN);
}

/* Logs each problem of the store once. */
static void daemon_check_store(struct daemon *daemon)
{
	struct store_health health;

	if (!daemon->store)
		return;
	store_health(daemon->store, &health);
	if (health.reasons == daemon->store_reasons)
		return;
	daemon->store_reasons = health.reasons;
	log_writer_print(daemon->log_writer, "ttmemd: history in %s: %s\n", daemon->config->state,
			 health.reason);
}

static void daemon_second(struct loop_timer *timer)
{
	struct daemon *daemon = container_of(timer, struct daemon, second);

	daemon_publish_counts(daemon);
	if (clock_ns(CLOCK_MONOTONIC) > daemon->ready_by)
		daemon_ready(daemon);
	daemon_check_store(daemon);
	daemon_keep_flush(daemon);
	if (daemon->systemd.watchdog_ns)
		(void)systemd_notify_watchdog(&daemon->systemd); /* another follows soon */
	if (daemon->systemd.is_there)
		(void)systemd_notify_status(&daemon->systemd, "%" PRIu64 " processes tracked%s",
					    daemon->registry_counts.processes,
					    daemon_doors_closed(daemon)
						    ? "; something is missing: see ttmem status"
						    : "");
	/* Without memory for a timer the watchdog fires. */
	(void)loop_set(daemon->loop, timer, loop_now(daemon->loop) + NS_PER_S);
}

static void daemon_raise_limits(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) < 0)
		return;
	files.rlim_cur = files.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &files); /* on failure fewer books fit; counted */
}

static struct book_list *daemon_roster(void *context)
{
	return registry_books(context);
}

/* The source of everything that is shown or stored about the whole machine. */
static int daemon_open_collector(struct daemon *daemon)
{
	const struct collector_config config = {
		.context = daemon->registry,
		.book_list = daemon_roster,
		.proc = registry_proc(daemon->registry),
	};

	return collector_new(&daemon->collector, &config);
}

/* Who hears of incidents, besides the log. */
static int daemon_open_notices(struct daemon *daemon)
{
	const struct config *config = daemon->config;

	if (journal_is_stream(STDOUT_FILENO))
		(void)journal_new(&daemon->journal, NULL); /* on failure there is only the text */
	return config->on_incident ? incident_hook_new(&daemon->incident_hook, daemon->loop,
						       config->on_incident)
				   : 0;
}

/* What remembers, and who hears of it; the rest is open. */
static int daemon_open_past(struct daemon *daemon)
{
	const struct recorder_config recorder = {
		.loop = daemon->loop,
		.work = daemon->recorder_worker,
		.totals = daemon->exits_worker,
		.registry = daemon->registry,
		.collector = daemon->collector,
		.store = daemon->store,
		.symbols = daemon->symbols,
		.strict_close = daemon->config->strict_close,
		.context = daemon,
		.told = daemon_told,
		.judged = daemon_keep_judged,
		.happened = daemon_happened,
	};
	const struct symbols_learner_config learner = {
		.loop = daemon->loop,
		.registry = daemon->registry,
		.symbols = daemon->symbols,
	};
	int r = recorder_new_past(&daemon->recorder, &recorder);

	if (r == 0)
		r = symbols_learner_new(&daemon->learner, &learner);
	return r < 0 ? r : daemon_open_notices(daemon);
}

static int daemon_open_inside(struct daemon *daemon)
{
	const struct config *config = daemon->config;
	const struct store_config store = {
		.folder = config->state,
		.size_max = config->size_max,
		.keep_s = config->keep_s,
		.retry_ms = DAEMON_STORE_RETRY_MS,
		.start_ns = daemon->start_ns,
	};
	const struct registry_config registry = {
		.loop = daemon->loop,
		.work = daemon->recorder_worker,
		.search_worker = daemon->search_worker,
		.scan_s = config->scan_s,
		.hooks =
			{
				.context = daemon,
				.added = daemon_added,
				.notice = daemon_failed,
				.program = daemon_program,
				.ended = daemon_ended,
				.replaced = daemon_replaced,
			},
		.first_pass = daemon_first_pass,
	};
	const struct symbols_config symbols = {0};
	int r = store_open(&store, &daemon->store);

	if (r == 0)
		r = registry_new(&daemon->registry, &registry);
	if (r == 0)
		r = daemon_open_collector(daemon);
	if (r == 0)
		r = symbols_new(&daemon->symbols, &symbols);
	if (r == 0)
		r = daemon_open_black_box(daemon);
	return r < 0 ? r : daemon_open_past(daemon);
}

static int daemon_open_loop(struct daemon *daemon)
{
	const struct config *config = daemon->config;
	int r = loop_new(&daemon->loop);

	if (r == 0)
		r = daemon_open_signals(daemon);
	if (r < 0)
		return daemon_fail("cannot start", NULL, r);
	r = log_writer_new(&daemon->log_writer, config->log, STDOUT_FILENO, 0);
	if (r == 0)
		r = worker_new(&daemon->search_worker,
			       &(struct worker_config){.name = "search", .loop = daemon->loop});
	if (r == 0)
		r = worker_new(&daemon->recorder_worker,
			       &(struct worker_config){.name = "recorder", .loop = daemon->loop});
	if (r == 0)
		r = worker_new(&daemon->query_worker,
			       &(struct worker_config){.name = "queries", .loop = daemon->loop});
	if (r == 0)
		r = worker_new(&daemon->exits_worker,
			       &(struct worker_config){.name = "exits", .loop = daemon->loop});
	return r < 0 ? daemon_fail("cannot start", NULL, r) : 0;
}

int daemon_open(struct daemon *daemon, const struct config *config)
{
	int r;

	*daemon = (struct daemon){
		.config = config,
		.handed = SYSTEMD_FDS_NULL,
		.socket_lock = SOCKET_LOCK_NULL,
		.state_lock = -1,
		.signals = LOOP_SOURCE_NULL,
		.second = {.fire = daemon_second},
		.start_ns = clock_ns(CLOCK_REALTIME),
		.ready_by = clock_ns(CLOCK_MONOTONIC) + DAEMON_READY_NS,
	};
	(void)pthread_mutex_init(&daemon->lock, NULL); /* cannot fail on Linux */
	daemon_raise_limits();
	systemd_init(&daemon->systemd);
	r = systemd_listen_fds(&daemon->systemd, &daemon->handed);
	if (r < 0)
		return daemon_fail("cannot take over sockets", NULL, r);
	r = daemon_doors_claim(daemon); /* what follows cannot be undone */
	if (r == 0)
		r = daemon_open_loop(daemon);
	if (r != 0)
		return r;
	r = daemon_open_inside(daemon);
	if (r < 0)
		return daemon_fail("cannot start", NULL, r);
	r = access_init(&daemon->access, config->group, registry_namespaces(daemon->registry));
	if (r < 0)
		return daemon_fail("cannot look up group", config->group, r);
	r = daemon_link_open(daemon);
	if (r < 0)
		return daemon_fail("cannot start", NULL, r);
	/* Order: who keeps things, kept books, new clients. */
	daemon_keep_take(daemon);
	r = daemon_keep_open(daemon);
	if (r == 0)
		r = daemon_open_fleet(daemon);
	daemon->sessions = sessions_new();
	if (!daemon->sessions)
		return daemon_fail("cannot start", NULL, -ENOMEM);
	daemon_provide(daemon, &daemon->provider);
	if (r == 0)
		r = daemon_serve_native(daemon);
	if (r == 0)
		r = daemon_serve_push(daemon);
	daemon_publish_counts(daemon); /* connections that were taken over */
	if (r == 0)
		r = daemon_doors_open(daemon);
	if (r != 0)
		return r;
	daemon_legacy_open(daemon);
	r = registry_search(daemon->registry);
	if (r == 0)
		r = loop_set(daemon->loop, &daemon->second, 0);
	return r < 0 ? daemon_fail("cannot look for processes", NULL, r) : 0;
}

/*
 * Processes offer their books to the loop, and their ends are judged from what it has: on a busy machine a loop that is
 * not scheduled misses those that are gone by then. It needs little CPU time; the other threads may need more and are not
 * urgent. If the daemon was given another priority, it is kept.
 */
static void daemon_hurry(void)
{
	errno = 0;
	if (getpriority(PRIO_PROCESS, 0) == 0 && errno == 0)
		/* Without the privilege the priority stays as it is. */
		(void)setpriority(PRIO_PROCESS, 0, DAEMON_PRIORITY);
}

int daemon_run(struct daemon *daemon)
{
	const struct config *config = daemon->config;

	if (!config->quiet && !config->log_events && !config->log_history) {
		if (daemon->doors[HEALTH_DOOR_NATIVE].shown.is_open)
			log_writer_print(daemon->log_writer, "ttmemd %s: serving on %s\n",
					 DAEMON_VERSION, config->socket);
		if (daemon->web)
			log_writer_print(daemon->log_writer, "ttmemd: http://%s/\n",
					 web_address(daemon->web));
	}
	daemon_hurry();
	return loop_run(daemon->loop);
}

/* In reverse order; threads end before what they use. */
void daemon_close(struct daemon *daemon)
{
	daemon_legacy_close(
		daemon); /* first: it prints its last words, and we may be asked for books */
	if (daemon->loop)
		loop_cancel(daemon->loop, &daemon->doors_timer);
	daemon->web = web_free(daemon->web); /* what the recorder still reports goes elsewhere */
	fleet_free(daemon->fleet);
	if (daemon->web_reader)
		store_reader_close(daemon->web_reader);
	if (daemon->black_box)
		black_box_stop(daemon->black_box); /* what is judged can be let go */
	daemon_keep_finish(daemon);
	daemon->tracked_file = tracked_file_free(daemon->tracked_file);
	worker_free(daemon->search_worker);
	native_stop(daemon->native);
	worker_free(daemon->query_worker);
	if (daemon->query_reader)
		store_reader_close(daemon->query_reader);
	worker_free(daemon->recorder_worker);
	moment_cache_free(daemon->moments);
	black_box_free(daemon->black_box); /* who used it has ended */
	worker_free(daemon->exits_worker);
	daemon->push = push_free(daemon->push); /* until now its counts could be requested */
	symbols_learner_free(daemon->learner);
	native_free(daemon->native);
	daemon_link_close(daemon);
	daemon_keep_close(daemon);
	if (daemon->loop)
		loop_cancel(daemon->loop, &daemon->second);
	registry_free(daemon->registry);
	recorder_free_past(daemon->recorder);
	collector_free(daemon->collector);
	symbols_free(daemon->symbols);
	incident_hook_free(daemon->incident_hook);
	journal_free(daemon->journal);
	store_close(daemon->store);
	if (daemon->signals.fd >= 0) {
		loop_remove(daemon->loop, &daemon->signals);
		(void)close(daemon->signals.fd); /* nothing was written to it */
	}
	systemd_fds_deinit(&daemon->handed);
	socket_lock_close(&daemon->socket_lock);
	if (daemon->state_lock >= 0)
		(void)close(daemon->state_lock); /* a folder */
	sessions_free(daemon->sessions);
	loop_free(daemon->loop);
	log_writer_free(daemon->log_writer);
	pthread_mutex_destroy(&daemon->lock);
}
