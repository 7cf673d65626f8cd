/* SPDX-License-Identifier: Apache-2.0 */

/* Starts, queries and stops the self-test's own ttmemd. */

#include "cli/selftest/selftest-daemon.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/process/child.h"
#include "cli/common/daemon-program.h"
#include "cli/common/legacy-parts.h"
#include "cli/selftest/selftest.h"

#define SELFTEST_FOLDER "/tmp/ttmem-selftest-"
#define SELFTEST_START_MS 20000
#define SELFTEST_START_NS (20 * NS_PER_S)
#define SELFTEST_TEXT_MAX (UINT32_C(16) << 20)

/* Makes this process visible to the daemon and the commands. */
static void selftest_show(void)
{
	const char *root = getenv("TTMEM_PROC_ROOT");
	char place[SELFTEST_PATH + 32], target[32];

	if (!root || strncmp(root, SELFTEST_FOLDER, sizeof(SELFTEST_FOLDER) - 1) != 0)
		return;
	snprintf(place, sizeof(place), "%s/%d", root, (int)getpid());
	snprintf(target, sizeof(target), "/proc/%d", (int)getpid());
	if (symlink(target, place) < 0)
		_exit(1); /* nothing could see it */
}

pid_t selftest_spawn(const char *const *argv)
{
	pid_t parent = getpid(), pid = fork();

	if (pid != 0)
		return pid < 0 ? -errno : pid;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* no orphan, whatever happens to the parent */
	if (getppid() != parent)
		_exit(1);
	selftest_show();
	(void)signal(SIGPIPE, SIG_DFL);
	(void)execvp(argv[0], (char *const *)(uintptr_t)argv); /* exec does not modify them */
	_exit(127);
}

void selftest_end(pid_t pid)
{
	if (pid <= 0)
		return;
	(void)kill(pid, SIGKILL); /* it may have exited */
	(void)child_reap(pid);    /* its status does not matter */
}

/* The log goes to a file, so that its lines can be checked. */
static pid_t selftest_run_daemon(const struct selftest_daemon *daemon, const char *program,
				 int ready)
{
	char state[SELFTEST_PATH + 16], number[16];
	const char *const lines = legacy_parts_allocate ? "--log-events" : NULL;
	const char *const words[] = {program,        "--socket", daemon->socket, "--legacy-socket",
				     daemon->legacy, "--http",   "127.0.0.1:0",  "--http-details",
				     "--state",      state,      "--ready-fd",   number,
				     lines,          NULL};
	CLEANUP_CLOSE int log = open(daemon->log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	int out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	int error = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	pid_t pid;

	snprintf(state, sizeof(state), "%s/state", daemon->folder);
	snprintf(number, sizeof(number), "%d", ready);
	(void)fflush(stdout); /* else the child would write it again */
	if (log < 0 || out < 0 || error < 0)
		return -EMFILE;
	(void)dup2(log, STDOUT_FILENO); /* fails only for a bad descriptor, as below */
	(void)dup2(log, STDERR_FILENO);
	pid = selftest_spawn(words);
	(void)dup2(out, STDOUT_FILENO);
	(void)dup2(error, STDERR_FILENO);
	close(out);
	close(error);
	return pid;
}

static uint16_t selftest_port(const struct selftest_daemon *daemon)
{
	json_t *status;
	const char *address;
	unsigned int port = 0;

	(void)setenv("TTMEM_SOCKET", daemon->socket, 1); /* fails only if out of memory */
	status = selftest_ask("status --json");
	address = json_string_value(json_object_get(status, "http"));
	if (!address || sscanf(address, "127.0.0.1:%u", &port) != 1 || port > UINT16_MAX)
		port = 0;
	json_decref(status);
	return (uint16_t)port;
}

const char *selftest_daemon_start(struct selftest_daemon *daemon)
{
	CLEANUP_CLOSE int reading = -1;
	CLEANUP_CLOSE int writing = -1;
	struct pollfd wait = {.events = POLLIN};
	char program[DAEMON_PROGRAM_SIZE], root[SELFTEST_PATH + 16], byte;
	int ends[2];

	*daemon = (struct selftest_daemon){.pid = 0};
	if (!daemon_program_find(program))
		return "there is no ttmemd beside this program";
	snprintf(daemon->folder, sizeof(daemon->folder), SELFTEST_FOLDER "XXXXXX");
	if (!mkdtemp(daemon->folder)) {
		daemon->folder[0] = '\0';
		return "no folder can be made in /tmp";
	}
	snprintf(daemon->socket, sizeof(daemon->socket), "%s/socket", daemon->folder);
	if (legacy_parts_allocate)
		snprintf(daemon->legacy, sizeof(daemon->legacy), "%s/old", daemon->folder);
	else
		snprintf(daemon->legacy, sizeof(daemon->legacy), "none");
	snprintf(daemon->log, sizeof(daemon->log), "%s/log", daemon->folder);
	snprintf(root, sizeof(root), "%s/proc", daemon->folder);
	/* Only processes started by the test are visible, whatever else runs here. */
	if (mkdir(root, 0700) < 0 || setenv("TTMEM_PROC_ROOT", root, 1) < 0 ||
	    pipe2(ends, O_CLOEXEC) < 0)
		return "no folder or pipe can be made";
	reading = ends[0];
	writing = ends[1];
	(void)fcntl(writing, F_SETFD, 0); /* inherited by the daemon; cannot fail */
	daemon->pid = selftest_run_daemon(daemon, program, writing);
	if (daemon->pid < 0) {
		daemon->pid = 0;
		return "ttmemd cannot be started";
	}
	close(cleanup_steal_fd(&writing));
	wait.fd = reading;
	if (poll(&wait, 1, SELFTEST_START_MS) <= 0 || read(reading, &byte, 1) != 1)
		return "ttmemd does not come up";
	daemon->port = selftest_port(daemon);
	return daemon->port ? NULL : "ttmemd does not serve HTTP";
}

static int selftest_remove(const char *path, const struct stat *st, int kind, struct FTW *place)
{
	(void)st;
	(void)kind;
	(void)place;
	return remove(path);
}

void selftest_daemon_stop(struct selftest_daemon *daemon)
{
	uint64_t deadline = clock_ns(CLOCK_MONOTONIC) + SELFTEST_START_NS;

	if (daemon->pid) {
		(void)kill(daemon->pid, SIGTERM); /* its keeper exits with it */
		while (waitpid(daemon->pid, NULL, WNOHANG) == 0 &&
		       clock_ns(CLOCK_MONOTONIC) < deadline)
			(void)poll(NULL, 0, 10); /* only waits */
		selftest_end(daemon->pid);
	}
	daemon->pid = 0;
	if (daemon->folder[0])
		(void)nftw(daemon->folder, selftest_remove, 8, FTW_DEPTH | FTW_PHYS);
	daemon->folder[0] = '\0';
}

/* Everything that can be read from @fd. */
static char *selftest_read_all(int fd)
{
	char *text = NULL;
	size_t length = 0, size;
	FILE *memory = open_memstream(&text, &size);
	char part[4096];
	ssize_t n;

	if (!memory)
		return NULL;
	while (length < SELFTEST_TEXT_MAX && (n = read(fd, part, sizeof(part))) > 0) {
		(void)fwrite(part, 1, (size_t)n, memory); /* fclose() reports errors */
		length += (size_t)n;
	}
	if (fclose(memory) != 0) {
		free(text);
		return NULL;
	}
	return text;
}

char *selftest_daemon_log(const struct selftest_daemon *daemon)
{
	CLEANUP_CLOSE int fd = open(daemon->log, O_RDONLY | O_CLOEXEC);

	return fd < 0 ? NULL : selftest_read_all(fd);
}

char *selftest_daemon_get(const struct selftest_daemon *daemon, const char *path)
{
	CLEANUP_CLOSE int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_port = htons(daemon->port),
				      .sin_addr = {htonl(INADDR_LOOPBACK)}};
	CLEANUP_FREE char *answer = NULL;
	char request[256];
	const char *body;
	int length = snprintf(request, sizeof(request),
			      "GET %s HTTP/1.0\r\nHost: 127.0.0.1:%u\r\nConnection: close\r\n\r\n",
			      path, daemon->port);

	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
	    send(fd, request, (size_t)length, MSG_NOSIGNAL) != length)
		return NULL;
	answer = selftest_read_all(fd);
	body = answer ? strstr(answer, "\r\n\r\n") : NULL;
	return body ? strdup(body + 4) : NULL;
}
