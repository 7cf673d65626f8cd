/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Clients of the old allocation server are served by a program of its own, ttmem-legacy, which connects to our
 * native socket like any other process. Under systemd it has a unit; here it is started for a ttmemd that was
 * started by hand, and started again if it ends. It gets what we were told about old clients, and our standard
 * streams, because it prints the old server's lines. If we are killed it goes on, and the next ttmemd finds it.
 */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/clock.h"
#include "daemon/daemon.h"
#include "daemon/link/links.h"
#include "daemon/notify/log-writer.h"

#define LEGACY_AGAIN_NS UINT64_C(100000000) /* after it has ended; doubled up to the next */
#define LEGACY_AGAIN_MAX_NS (60 * NS_PER_S)
#define LEGACY_CALM_NS (60 * NS_PER_S) /* one that ran for so long is started again at once */
#define LEGACY_STOP_MS 5000            /* for it to end when we do */
#define LEGACY_ARGUMENTS 32u
#define LEGACY_SERVED_ALREADY 3 /* exit code: by one that a ttmemd before us has started */

static const char *legacy_yes(bool value)
{
	return value ? "yes" : "no";
}

/* Beside our own program; in the build folder it has a folder of its own. */
static int legacy_find(char path[PATH_MAX])
{
	static const char *const places[] = {"ttmem-legacy", "../legacy/program/ttmem-legacy"};
	char own[PATH_MAX / 2];
	ssize_t n = readlink("/proc/self/exe", own, sizeof(own) - 1);
	char *slash;

	if (n < 0)
		return -errno;
	own[n] = '\0';
	slash = strrchr(own, '/');
	if (!slash)
		return -ENOENT;
	*slash = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		(void)snprintf(path, PATH_MAX, "%s/%s", own,
			       places[i]); /* half of the room is left */
		if (access(path, X_OK) == 0)
			return 0;
	}
	return -ENOENT;
}

static int legacy_start(struct daemon *daemon)
{
	const struct config *config = daemon->config;
	char path[PATH_MAX], memory[32], started[40];
	int listening = daemon->handed.legacy; /* systemd's, with unit files of one's own */
	const char *arguments[LEGACY_ARGUMENTS] = {
		"ttmem-legacy",    started,
		"--config",        "none",
		"--socket",        config->socket,
		"--legacy-socket", config->legacy_socket,
		"--legacy-memory", memory,
		"--ids",           config->decimal_ids ? "decimal" : "hex",
	};
	const struct child_setup setup = {
		.program = path,
		.arguments = arguments,
		.input = -1,
		.extra = -1,
		.output = -1,
		.is_foreground = true,
	};
	char words[4][32];
	size_t n = 12;
	int r = legacy_find(path);

	if (r < 0)
		return r;
	/* We say what it cannot serve. */
	(void)snprintf(started, sizeof(started), "--started-by-ttmemd=%d", listening);
	(void)snprintf(memory, sizeof(memory), "%" PRIu64, config->legacy_memory);
	(void)snprintf(words[0], sizeof(words[0]), "--log-events=%s",
		       legacy_yes(config->log_events));
	(void)snprintf(words[1], sizeof(words[1]), "--log-history=%s",
		       legacy_yes(config->log_history));
	(void)snprintf(words[2], sizeof(words[2]), "--quiet=%s", legacy_yes(config->quiet));
	(void)snprintf(words[3], sizeof(words[3]), "--trace-wire=%s",
		       legacy_yes(config->trace_wire));
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		arguments[n++] = words[i];
	if (config->log) {
		arguments[n++] = "--log";
		arguments[n++] = config->log;
	}
	if (config->group) {
		arguments[n++] = "--group";
		arguments[n++] = config->group;
	}
	if (config->skip_frames) {
		arguments[n++] = "--skip-frames";
		arguments[n++] = config->skip_frames;
	}
	daemon->legacy.started_ns = loop_now(daemon->loop);
	if (listening >= 0)
		(void)fcntl(listening, F_SETFD, 0); /* it inherits this one */
	r = child_start(&daemon->legacy.child, daemon->loop, &setup);
	if (listening >= 0)
		(void)fcntl(listening, F_SETFD, FD_CLOEXEC); /* no other does */
	return r;
}

static void legacy_try(struct daemon *daemon)
{
	struct daemon_legacy *legacy = &daemon->legacy;
	struct loop *loop = daemon->loop;

	legacy->problem = legacy_start(daemon);
	if (legacy->problem == 0)
		return;
	legacy->delay_ns =
		bits_min(bits_max(2 * legacy->delay_ns, LEGACY_AGAIN_NS), LEGACY_AGAIN_MAX_NS);
	/* Without memory for a timer it is not tried again; the door says what is missing. */
	(void)loop_set(loop, &legacy->again, loop_now(loop) + legacy->delay_ns);
}

static void legacy_again(struct loop_timer *timer)
{
	legacy_try(container_of(timer, struct daemon, legacy.again));
}

static void legacy_ended(struct child *child, int status)
{
	struct daemon *daemon = container_of(child, struct daemon, legacy.child);
	struct daemon_legacy *legacy = &daemon->legacy;
	struct loop *loop = daemon->loop;

	if (WIFEXITED(status) && WEXITSTATUS(status) == LEGACY_SERVED_ALREADY)
		return; /* until that one is gone */
	log_writer_print(
		daemon->log_writer,
		"ttmemd: ttmem-legacy has ended (%s %d): connections of old clients are lost; "
		"starting it again\n",
		WIFSIGNALED(status) ? "signal" : "exit",
		WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
	if (loop_now(loop) - legacy->started_ns > LEGACY_CALM_NS)
		legacy->delay_ns = 0;
	legacy->problem = -ECHILD;
	legacy->delay_ns =
		bits_min(bits_max(2 * legacy->delay_ns, LEGACY_AGAIN_NS), LEGACY_AGAIN_MAX_NS);
	(void)loop_set(loop, &legacy->again, loop_now(loop) + legacy->delay_ns); /* as above */
}

void daemon_legacy_gone(struct daemon *daemon)
{
	struct daemon_legacy *legacy = &daemon->legacy;
	struct loop *loop = daemon->loop;

	if (daemon_legacy_is_wanted(daemon) && !legacy->is_closed && legacy->child.pid <= 0 &&
	    legacy->again.place == 0)
		(void)loop_set(loop, &legacy->again, loop_now(loop)); /* as above */
}

bool daemon_legacy_is_wanted(const struct daemon *daemon)
{
	const struct config *config = daemon->config;

	/* Under systemd it has a unit, which prints the lines. */
	return strcmp(config->legacy_socket, CONFIG_NONE) != 0 ||
	       ((config->log_events || config->log_history) && !config->quiet &&
		!daemon->systemd.is_there);
}

bool daemon_legacy_is_awaited(const struct daemon *daemon)
{
	return daemon_legacy_is_wanted(daemon) && daemon->legacy.problem == 0 &&
	       daemon->link_state.head.size == 0;
}

void daemon_legacy_show(struct daemon *daemon)
{
	if (daemon_legacy_is_wanted(daemon) && daemon->legacy.problem < 0 &&
	    daemon->link_state.head.size == 0)
		daemon_doors_legacy(daemon, daemon->config->legacy_socket, daemon->legacy.problem,
				    NULL);
}

void daemon_legacy_open(struct daemon *daemon)
{
	daemon->legacy.child = CHILD_NULL;
	daemon->legacy.child.ended = legacy_ended;
	daemon->legacy.again.fire = legacy_again;
	if (daemon_legacy_is_wanted(daemon))
		legacy_try(daemon);
}

int daemon_legacy_become(char **argv)
{
	char path[PATH_MAX];
	int r = legacy_find(path);

	if (r == 0) {
		(void)execv(path, argv);
		r = -errno;
	}
	return daemon_fail("cannot start", "ttmem-legacy", r);
}

void daemon_legacy_signal(const struct daemon *daemon, int number)
{
	if (daemon->legacy.child.pid > 0)
		(void)kill(daemon->legacy.child.pid, number); /* our child, not reaped yet */
}

/* One that a ttmemd before us has started, and that was killed. */
static void legacy_stop_other(struct daemon *daemon)
{
	uint64_t until = clock_ns(CLOCK_MONOTONIC) + LEGACY_STOP_MS * NS_PER_MS;
	int r = 0;

	if (!daemon->links || !daemon_legacy_is_wanted(daemon))
		return;
	daemon->legacy.is_closed = true;
	links_stop(daemon->links);
	while (r == 0 && links_state(daemon->links) && clock_ns(CLOCK_MONOTONIC) < until)
		r = loop_turn(daemon->loop, 100);
}

void daemon_legacy_close(struct daemon *daemon)
{
	struct child *child = &daemon->legacy.child;

	if (!daemon->loop)
		return;
	loop_cancel(daemon->loop, &daemon->legacy.again);
	if (child->pid <= 0) {
		legacy_stop_other(daemon);
		return;
	}
	(void)kill(child->pid, SIGTERM); /* our child, not reaped yet */
	if (!child_wait(child, LEGACY_STOP_MS)) {
		(void)kill(child->pid, SIGKILL); /* likewise */
		(void)child_wait(child, -1);
	}
}
