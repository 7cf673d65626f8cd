/* SPDX-License-Identifier: Apache-2.0 */

/* Starts the process, sends requests, and kills it if it does not answer. */

#include "symbol/symbolizer-worker.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "symbol/symbolizer-process.h"

#define WORKER_MS UINT64_C(1000000)
#define WORKER_REAP_MS 1000 /* a killed process exits at once, unless the machine is stuck */

void symbolizer_worker_init(struct symbolizer_worker *worker,
			    const struct symbolizer_config *config)
{
	*worker = (struct symbolizer_worker){
		.config = config,
		.child = CHILD_NULL,
		.socket = -1,
	};
}

void symbolizer_worker_end(struct symbolizer_worker *worker)
{
	if (worker->socket >= 0)
		(void)close(worker->socket); /* unread data does not matter */
	worker->socket = -1;
	memset(worker->files, 0, sizeof(worker->files));
	worker->next_file = 0;
	if (worker->child.pid == 0)
		return;
	child_kill(&worker->child); /* it has no state worth keeping */
	if (!child_wait(&worker->child, WORKER_REAP_MS))
		child_forget(&worker->child);
}

static int worker_spawn(struct symbolizer_worker *worker)
{
	char number[16];
	const char *const arguments[] = {SYMBOLIZER_PROCESS_NAME, SYMBOLIZER_PROCESS_ARGUMENT,
					 number, NULL};
	/* The command links the library for applications, which must stay inactive here. */
	const char *const environment[] = {"TTMEM=0", NULL};
	struct child_setup setup = {
		.program = worker->config->program ? worker->config->program : "/proc/self/exe",
		.arguments = arguments,
		.environment = environment,
		.folder = "/",
		.input = -1,
	};
	CLEANUP_CLOSE int theirs = -1;
	int pair[2];
	int r;

	(void)snprintf(number, sizeof(number), "%d", CHILD_FD);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	worker->socket = pair[0];
	theirs = pair[1];
	setup.extra = theirs;
	r = child_start(&worker->child, NULL, &setup);
	if (r < 0)
		symbolizer_worker_end(worker);
	return r;
}

/* Waits for the answer until @deadline. */
static int worker_receive(struct symbolizer_worker *worker, uint64_t deadline,
			  struct symbolizer_wire_answer *ret_answer)
{
	struct pollfd fds[] = {
		{.fd = worker->socket, .events = POLLIN},
		{.fd = worker->config->stop_fd, .events = POLLIN},
	};

	for (;;) {
		uint64_t now = clock_ns(CLOCK_MONOTONIC);
		int r;

		if (now >= deadline)
			return -ETIMEDOUT;
		r = poll(fds, 2, (int)((deadline - now) / WORKER_MS) + 1);
		if (r < 0 && errno != EINTR)
			return -errno;
		if (r > 0 && fds[1].revents)
			return -ECANCELED;
		if (r > 0) {
			r = symbolizer_wire_receive(worker->socket, worker->serial, ret_answer);
			if (r != -EAGAIN)
				return r;
		}
	}
}

/* One request to the running process, which is ended on any error. */
static int worker_ask(struct symbolizer_worker *worker, struct symbolizer_wire_request *request,
		      const int files[SYMBOLIZER_WIRE_FILES],
		      struct symbolizer_wire_answer *ret_answer)
{
	uint32_t timeout =
		worker->config->timeout_ms ? worker->config->timeout_ms : SYMBOLIZER_TIMEOUT_MS;
	uint64_t deadline = clock_ns(CLOCK_MONOTONIC) + timeout * WORKER_MS;
	int r;

	request->magic = SYMBOLIZER_WIRE_MAGIC;
	request->version = SYMBOLIZER_WIRE_VERSION;
	request->size = symbolizer_wire_request_size(request);
	request->serial = ++worker->serial;
	r = symbolizer_wire_ask(worker->socket, request, files);
	if (r == 0)
		r = worker_receive(worker, deadline, ret_answer);
	if (r == 0 && ret_answer->kind != request->kind)
		r = -EBADMSG;
	if (r < 0) {
		if (r != -ECANCELED)
			__atomic_add_fetch(&worker->lost, 1, __ATOMIC_RELAXED);
		symbolizer_worker_end(worker);
	}
	return r;
}

/* A process that can do more than it should is given no files. */
static int worker_check(struct symbolizer_worker *worker)
{
	static const int none[SYMBOLIZER_WIRE_FILES] = {-1, -1};
	struct symbolizer_wire_request request = {.kind = SYMBOLIZER_WIRE_PROBE};
	struct symbolizer_wire_answer answer = {.count = 0};
	int r = worker_ask(worker, &request, none, &answer);

	if (r < 0 || answer.allowed == 0)
		return r;
	symbolizer_worker_end(worker);
	return -EPERM;
}

static int worker_start(struct symbolizer_worker *worker, uint32_t user)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);
	uint64_t *oldest = &worker->starts[__atomic_load_n(&worker->started, __ATOMIC_RELAXED) %
					   SYMBOLIZER_STARTS_MAX];
	int r;

	if (*oldest && now - *oldest < SYMBOLIZER_STARTS_S * NS_PER_S)
		return -EBUSY;
	*oldest = now;
	__atomic_add_fetch(&worker->started, 1, __ATOMIC_RELAXED);
	r = worker_spawn(worker);
	if (r == 0)
		r = worker_check(worker);
	worker->user = user;
	worker->served = 0;
	/* The error is not the file's fault. */
	return r == -ECANCELED || r == 0 ? r : -EBUSY;
}

int symbolizer_worker_ask(struct symbolizer_worker *worker, uint32_t user,
			  struct symbolizer_wire_request *request,
			  const int files[SYMBOLIZER_WIRE_FILES],
			  struct symbolizer_wire_answer *ret_answer)
{
	uint32_t most =
		worker->config->served_max ? worker->config->served_max : SYMBOLIZER_SERVED_MAX;
	int r;

	if (worker->socket >= 0 && (worker->user != user || worker->served >= most))
		symbolizer_worker_end(worker);
	if (worker->socket < 0) {
		r = worker_start(worker, user);
		if (r < 0)
			return r;
	}
	worker->served++;
	return worker_ask(worker, request, files, ret_answer);
}
