/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Doors: what the daemon needs of the machine and others may have, such as a path in /tmp or a port.
 * One that is taken costs what is served there and nothing else. What is missing, and who has it, is
 * logged once; each is tried again every few seconds, and what was open is checked: others may
 * remove a socket from /tmp. All of this is in the loop's thread; health reads copies.
 */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/files/small-file.h"
#include "base/files/user-file.h"
#include "daemon/daemon.h"
#include "daemon/doors/listener.h"
#include "daemon/doors/state-lock.h"
#include "daemon/notify/journal.h"
#include "daemon/notify/log-writer.h"
#include "source/proc/proc.h"
#include "web/server/address.h"

#define DOORS_RETRY_NS NS_PER_S /* after a change; doubled up to the next */
#define DOORS_RETRY_MAX_NS (10 * NS_PER_S)
#define DOORS_LOOK_NS (60 * NS_PER_S)
#define DOORS_LOOK_MAX_NS (NS_PER_S / 2) /* of searching for the process that has a port */

static const struct {
	const char *missing; /* for a door that is closed */
	const char *back;    /* once it is open again, before its place */
	const char *after;
} doors_words[HEALTH_DOORS] = {
	[HEALTH_DOOR_NATIVE] = {"library and command are not served", "serving on ", ""},
	[HEALTH_DOOR_LEGACY] = {"old clients are not served", "old clients on ", ""},
	[HEALTH_DOOR_HTTP] = {"HTTP is not served", "http://", "/"},
	[HEALTH_DOOR_TOKEN] = {"HTTP shows no details", "details over HTTP need the token in ", ""},
	[HEALTH_DOOR_JOURNAL] = {"the journal gets no entries", "entries go to the journal at ",
				 ""},
	[HEALTH_DOOR_HISTORY] = {"nothing is remembered", "history in ", ""},
	[HEALTH_DOOR_LOG] = {"the log cannot be opened", "the log is ", ""},
};

static enum health_door_id doors_id(const struct daemon_door *door)
{
	return (enum health_door_id)(door - door->daemon->doors);
}

/* Logs what has changed since it was last told. */
static void doors_say(struct daemon *daemon, enum health_door_id id)
{
	struct daemon_door *door = &daemon->doors[id];

	if (door->is_told || !daemon->doors_speak)
		return;
	door->is_told = true;
	if (health_is_closed(&door->shown))
		log_writer_print(daemon->log_writer, "ttmemd: %s: %s: %s; trying again\n",
				 doors_words[id].missing, door->shown.where, door->shown.problem);
	else
		log_writer_print(daemon->log_writer, "ttmemd: %s%s%s\n", doors_words[id].back,
				 door->shown.where, doors_words[id].after);
}

/* Whether it says at the start what it serves; an old server does not. */
static bool doors_greets(const struct daemon *daemon)
{
	const struct config *config = daemon->config;

	return !config->quiet && !config->log_events && !config->log_history;
}

/* @where is borrowed. */
static void doors_opened(struct daemon *daemon, enum health_door_id id, const char *where)
{
	struct daemon_door *door = &daemon->doors[id];

	if (door->shown.is_open)
		return;
	door->looked_ns = 0;
	/* The first time daemon_run() tells it, or else the program for old clients comes later. */
	door->is_told =
		door->shown.since_ns == 0 && (id != HEALTH_DOOR_LEGACY || !doors_greets(daemon));
	pthread_mutex_lock(&daemon->lock);
	door->shown = (struct health_door){
		.is_wanted = true,
		.is_open = true,
		.user_id = HEALTH_NOBODY,
		.since_ns = clock_ns(CLOCK_REALTIME),
		.where = where,
	};
	pthread_mutex_unlock(&daemon->lock);
	doors_say(daemon, id);
}

/* @now: all but the time. */
static void doors_closed(struct daemon *daemon, enum health_door_id id,
			 const struct health_door *now)
{
	struct daemon_door *door = &daemon->doors[id];
	bool is_new = !health_is_closed(&door->shown);

	if (!is_new && strcmp(door->shown.problem, now->problem) == 0)
		return;
	door->is_told = false;
	pthread_mutex_lock(&daemon->lock);
	door->shown = (struct health_door){
		.is_wanted = true,
		.pid = now->pid,
		.user_id = now->user_id,
		.since_ns = is_new ? clock_ns(CLOCK_REALTIME) : door->shown.since_ns,
		.where = now->where,
	};
	memcpy(door->shown.problem, now->problem, sizeof(now->problem));
	pthread_mutex_unlock(&daemon->lock);
}

static void doors_close_for(struct daemon *daemon, enum health_door_id id, const char *where,
			    const char *problem)
{
	struct health_door now = {.where = where, .user_id = HEALTH_NOBODY};

	(void)snprintf(now.problem, sizeof(now.problem), "%s", problem); /* may be cut */
	daemon->doors[id].looked_ns = 0;
	doors_closed(daemon, id, &now);
	doors_say(daemon, id);
}

static void doors_explain(struct health_door *now, const struct socket_lock_holder *holder, int r)
{
	static const char *const kinds[] = {
		[SOCKET_LOCK_NOTHING] = "",           [SOCKET_LOCK_LIVE] = "",
		[SOCKET_LOCK_DEAD] = "a dead socket", [SOCKET_LOCK_FOLDER] = "a folder",
		[SOCKET_LOCK_LINK] = "a link",        [SOCKET_LOCK_FILE] = "a file",
	};

	now->pid = holder->pid;
	now->user_id = holder->kind == SOCKET_LOCK_NOTHING ? HEALTH_NOBODY : holder->uid;
	if (holder->kind == SOCKET_LOCK_NOTHING)
		(void)snprintf(now->problem, sizeof(now->problem), "%s", strerror(-r));
	else if (holder->kind == SOCKET_LOCK_LIVE && holder->pid)
		(void)snprintf(now->problem, sizeof(now->problem),
			       "in use by process %" PRIu32 " of user %" PRIu32, holder->pid,
			       holder->uid);
	else if (holder->kind == SOCKET_LOCK_LIVE)
		(void)snprintf(now->problem, sizeof(now->problem), "in use by user %" PRIu32,
			       holder->uid);
	else
		(void)snprintf(now->problem, sizeof(now->problem),
			       "%s of user %" PRIu32 " is in the way: remove it",
			       kinds[holder->kind], holder->uid);
}

static void doors_look_run(struct worker_job *job)
{
	struct daemon_door *door = container_of(job, struct daemon_door, look);
	const struct proc *proc = registry_proc(door->daemon->registry);
	uint64_t deadline = clock_ns(CLOCK_MONOTONIC) + DOORS_LOOK_MAX_NS;
	struct address address;

	if (doors_id(door) == HEALTH_DOOR_HTTP)
		door->look_result =
			address_parse(door->look_where, &address) < 0
				? -ENOENT
				: listener_find_tcp(proc, &address, deadline, &door->listener);
	else
		door->look_result =
			listener_find_unix(proc, door->look_where, deadline, &door->listener);
}

static void doors_look_done(struct worker_job *job)
{
	struct daemon_door *door = container_of(job, struct daemon_door, look);
	struct health_door now = {.where = door->shown.where, .user_id = HEALTH_NOBODY};
	struct socket_lock_holder holder = {.kind = SOCKET_LOCK_LIVE, .uid = door->user_id};

	door->is_looked_for = false;
	if (!health_is_closed(&door->shown) || !door->looked_ns)
		return; /* it is open by now, or something else is the matter */
	if (door->look_result == 0) {
		holder.pid = door->listener.pid;
		holder.uid = door->user_id == HEALTH_NOBODY ? door->listener.uid : door->user_id;
	} else if (doors_id(door) == HEALTH_DOOR_HTTP) {
		holder.kind = SOCKET_LOCK_NOTHING;
	} else {
		holder.kind = SOCKET_LOCK_DEAD;
	}
	doors_explain(&now, &holder, -EADDRINUSE);
	doors_closed(door->daemon, doors_id(door), &now);
	doors_say(door->daemon, doors_id(door));
}

/*
 * It is in use: a worker finds out by whom, and nothing is told before. The process may change, so
 * this is repeated now and then.
 */
static void doors_look(struct daemon *daemon, enum health_door_id id, const char *where,
		       uint32_t user_id)
{
	struct health_door now = {.where = where, .user_id = user_id};
	struct daemon_door *door = &daemon->doors[id];
	uint64_t time = clock_ns(CLOCK_MONOTONIC);

	if (door->is_looked_for ||
	    (door->looked_ns && door->user_id == user_id && time - door->looked_ns < DOORS_LOOK_NS))
		return;
	if (!door->looked_ns || door->user_id != user_id) {
		(void)snprintf(now.problem, sizeof(now.problem), "%s", strerror(EADDRINUSE));
		doors_closed(daemon, id, &now);
	}
	door->looked_ns = time;
	door->look_where = where;
	door->user_id = user_id;
	door->daemon = daemon;
	door->look = (struct worker_job){.run = doors_look_run, .done = doors_look_done};
	door->is_looked_for = worker_put(daemon->search_worker, &door->look);
}

static void doors_close_socket(struct daemon *daemon, enum health_door_id id, const char *path,
			       const struct socket_lock_holder *holder, int r)
{
	struct health_door now = {.where = path};

	if (holder->kind == SOCKET_LOCK_LIVE && holder->pid == 0) {
		doors_look(daemon, id, path, holder->uid);
		return;
	}
	daemon->doors[id].looked_ns = 0;
	doors_explain(&now, holder, r);
	doors_closed(daemon, id, &now);
	doors_say(daemon, id);
}

/*
 * Whether who has our socket is another daemon: a process of ours or of root, by its name, or the
 * service manager, which listens for one. Any name is free for others to take, so that does not
 * suffice.
 */
static bool doors_is_daemon(const struct socket_lock_holder *holder)
{
	char path[48], comm[32];

	if (holder->kind != SOCKET_LOCK_LIVE || (holder->uid != 0 && holder->uid != geteuid()))
		return false;
	if (holder->pid <= 1)
		return true; /* outside of our pid namespace, or about to listen */
	(void)snprintf(path, sizeof(path), "/proc/%" PRIu32 "/comm", holder->pid);
	return small_file_read_line(AT_FDCWD, path, comm, sizeof(comm)) > 0 &&
	       strcmp(comm, "ttmemd") == 0;
}

/* Another daemon with the same state, perhaps at another socket. */
static int doors_lock_state(struct daemon *daemon)
{
	struct proc proc;
	uint32_t holder = 0;
	int r = proc_open(&proc);

	if (r < 0)
		return daemon_fail("cannot look for processes", NULL, r);
	r = state_lock_open(&proc, daemon->config->state, &daemon->state_lock, &holder);
	proc_close(&proc);
	return r == -EBUSY ? daemon_fail_in_use(daemon->config->state, holder) : 0;
}

int daemon_doors_claim(struct daemon *daemon)
{
	const struct config *config = daemon->config;
	struct socket_lock_holder holder;
	int r;

	/* On failure it is made later, and its doors say why. */
	(void)config_make_state_folder(config);
	if (daemon->handed.native < 0 && config_make_socket_folder(config) == 0) {
		r = socket_lock_open(&daemon->socket_lock, config->socket, SOCK_SEQPACKET, &holder);
		if (r < 0 && doors_is_daemon(&holder))
			return config->is_old_name ? DAEMON_RUNS_ALREADY
						   : daemon_fail_in_use(config->socket, holder.pid);
	}
	return doors_lock_state(daemon);
}

static int doors_try_socket(struct daemon *daemon, struct socket_lock_holder *ret_holder)
{
	const struct config *config = daemon->config;
	int fd, r;

	if (daemon->socket_lock.fd >= 0 && !socket_lock_is_there(&daemon->socket_lock))
		socket_lock_close(&daemon->socket_lock);
	else if (daemon->doors[HEALTH_DOOR_NATIVE].shown.is_open)
		return 0;
	*ret_holder = (struct socket_lock_holder){.kind = SOCKET_LOCK_NOTHING};
	if (daemon->socket_lock.fd < 0) {
		r = config_make_socket_folder(config);
		if (r == 0)
			r = socket_lock_open(&daemon->socket_lock, config->socket, SOCK_SEQPACKET,
					     ret_holder);
		if (r < 0)
			return r;
	}
	fd = fcntl(daemon->socket_lock.fd, F_DUPFD_CLOEXEC, 3); /* the lock keeps its own */
	return fd < 0 ? -errno : native_listen_consume(daemon->native, fd);
}

static void doors_try_native(struct daemon *daemon)
{
	const char *path = daemon->config->socket;
	struct socket_lock_holder holder;
	int r = 0;

	if (!daemon->native_is_given)
		r = doors_try_socket(daemon, &holder);
	if (r < 0)
		doors_close_socket(daemon, HEALTH_DOOR_NATIVE, path, &holder, r);
	else
		doors_opened(daemon, HEALTH_DOOR_NATIVE, path);
}

void daemon_doors_legacy(struct daemon *daemon, const char *where, int status,
			 const struct socket_lock_holder *holder)
{
	struct health_door *shown = &daemon->doors[HEALTH_DOOR_LEGACY].shown;

	if (!where || (shown->where && strcmp(where, shown->where) != 0)) {
		pthread_mutex_lock(&daemon->lock);
		*shown = (struct health_door){0};
		pthread_mutex_unlock(&daemon->lock);
	}
	if (where && status < 0 && !holder)
		doors_close_for(daemon, HEALTH_DOOR_LEGACY, where, strerror(-status));
	else if (where && status < 0)
		doors_close_socket(daemon, HEALTH_DOOR_LEGACY, where, holder, status);
	else if (where)
		doors_opened(daemon, HEALTH_DOOR_LEGACY, where);
}

static void doors_try_token(struct daemon *daemon)
{
	const char *path = daemon->config->token_file, *problem = NULL;
	int r = web_load_token(daemon->web, path, &problem);

	if (r < 0)
		doors_close_for(daemon, HEALTH_DOOR_TOKEN, path, problem ? problem : strerror(-r));
	else
		doors_opened(daemon, HEALTH_DOOR_TOKEN, path);
}

static void doors_try_http(struct daemon *daemon)
{
	int r = 0;

	if (strcmp(daemon->config->http, CONFIG_NONE) == 0)
		return;
	if (!daemon->web)
		r = daemon_serve_web(daemon);
	if (r == -EADDRINUSE)
		doors_look(daemon, HEALTH_DOOR_HTTP, daemon->config->http, HEALTH_NOBODY);
	else if (r < 0)
		doors_close_for(daemon, HEALTH_DOOR_HTTP, daemon->config->http, strerror(-r));
	else
		doors_opened(daemon, HEALTH_DOOR_HTTP, daemon->web_address);
	if (daemon->web)
		doors_try_token(daemon);
}

static void doors_try_journal(struct daemon *daemon)
{
	int r;

	if (!daemon->journal)
		return;
	r = journal_check(daemon->journal);
	if (r < 0)
		doors_close_for(daemon, HEALTH_DOOR_JOURNAL, JOURNAL_SOCKET, strerror(-r));
	else
		doors_opened(daemon, HEALTH_DOOR_JOURNAL, JOURNAL_SOCKET);
}

/* Meanwhile it is standard output, or the file from before a rotation. */
static void doors_try_log(struct daemon *daemon)
{
	const char *path = daemon->config->log;
	int r;

	if (!path)
		return;
	r = log_writer_check(daemon->log_writer);
	if (r < 0)
		doors_close_for(daemon, HEALTH_DOOR_LOG, path, user_file_error(r));
	else
		doors_opened(daemon, HEALTH_DOOR_LOG, path);
}

static void doors_try(struct daemon *daemon)
{
	doors_try_log(daemon);
	doors_try_native(daemon);
	daemon_legacy_show(daemon);
	doors_try_http(daemon);
	doors_try_journal(daemon);
}

static uint32_t doors_open_set(const struct daemon *daemon)
{
	uint32_t set = 0;

	for (size_t i = 0; i < HEALTH_DOORS; i++)
		set |= (uint32_t)daemon->doors[i].shown.is_open << i;
	return set;
}

static void doors_fire(struct loop_timer *timer)
{
	struct daemon *daemon = container_of(timer, struct daemon, doors_timer);
	uint32_t before = doors_open_set(daemon);

	doors_try(daemon);
	daemon->doors_delay_ns = doors_open_set(daemon) != before
					 ? DOORS_RETRY_NS
					 : bits_min(2 * daemon->doors_delay_ns, DOORS_RETRY_MAX_NS);
	/* Without memory for a timer nothing is tried again, and status says since when. */
	(void)loop_set(daemon->loop, timer, loop_now(daemon->loop) + daemon->doors_delay_ns);
}

static bool doors_is_served(const struct daemon *daemon)
{
	return daemon->doors[HEALTH_DOOR_NATIVE].shown.is_open ||
	       daemon->doors[HEALTH_DOOR_LEGACY].shown.is_open ||
	       daemon->doors[HEALTH_DOOR_HTTP].shown.is_open || daemon->config->otlp;
}

int daemon_doors_open(struct daemon *daemon)
{
	doors_try(daemon);
	if (!doors_is_served(daemon)) {
		for (size_t i = 0; i < HEALTH_DOORS; i++) {
			const struct health_door *door = &daemon->doors[i].shown;

			if (health_is_closed(door))
				fprintf(stderr, "ttmemd: %s: %s: %s\n", doors_words[i].missing,
					door->where, door->problem);
		}
		fputs("ttmemd: nothing can be served\n", stderr);
		return 1;
	}
	daemon->doors_speak = true;
	for (size_t i = 0; i < HEALTH_DOORS; i++) {
		/* Of what is in use, when it is known by whom. */
		if (health_is_closed(&daemon->doors[i].shown) && !daemon->doors[i].is_looked_for)
			doors_say(daemon, (enum health_door_id)i);
	}
	daemon->doors_timer.fire = doors_fire;
	daemon->doors_delay_ns = DOORS_RETRY_NS;
	return loop_set(daemon->loop, &daemon->doors_timer,
			loop_now(daemon->loop) + DOORS_RETRY_NS) < 0;
}

uint32_t daemon_doors_closed(const struct daemon *daemon)
{
	uint32_t count = 0;

	for (size_t i = 0; i < HEALTH_DOORS; i++)
		count += health_is_closed(&daemon->doors[i].shown);
	return count;
}
