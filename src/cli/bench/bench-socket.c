/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The baseline: what an event cost in the design that this one replaces: a mutex, one blocking
 * send() of a 72-byte message over a stream socket, and at the other end a process with a thread
 * per connection, which keeps the live buffers in a chained hash table under a mutex of its own.
 *
 * It does less than the original, which also read its pid and the time for each message and logged
 * each event at the other end; and it does not lose the framing after a partial read.
 */

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/process/child.h"
#include "cli/bench/bench-load.h"
#include "cli/bench/bench-measure.h"

#define BENCH_SOCKET_LIVE 1000u
#define BENCH_SOCKET_EVENTS 6000u
#define BENCH_SOCKET_BUFFER (1 << 20) /* as in the original */
#define BENCH_SOCKET_CHAINS 65536u

enum bench_socket_kind {
	BENCH_SOCKET_ALLOC = 1,
	BENCH_SOCKET_FREE = 2,
};

struct bench_socket_message {
	uint8_t kind;
	uint8_t reserved0[3];
	int32_t device;
	uint64_t size;
	uint8_t type;
	uint8_t reserved1[3];
	int32_t pid;
	uint64_t address;
	uint64_t time;
	uint64_t answer[4];
};

_Static_assert(sizeof(struct bench_socket_message) == 72, "as the old protocol has it");

/* The server's table. */
struct bench_socket_buffer {
	struct bench_socket_buffer *next;
	struct bench_socket_message message;
};

struct bench_socket_server {
	pthread_mutex_t lock;
	struct bench_socket_buffer *chains[BENCH_SOCKET_CHAINS];
	uint64_t bytes;
	int fd;
};

static pid_t bench_socket_child;
static int bench_socket_fd = -1;
static pthread_mutex_t bench_socket_lock = PTHREAD_MUTEX_INITIALIZER;
static struct bench_row *bench_socket_row;

static void bench_socket_apply(struct bench_socket_server *server,
			       const struct bench_socket_message *message)
{
	struct bench_socket_buffer **link =
		&server->chains[hash_u64(message->address) % BENCH_SOCKET_CHAINS];
	struct bench_socket_buffer *buffer;

	while (*link && (*link)->message.address != message->address)
		link = &(*link)->next;
	buffer = *link;
	if (message->kind == BENCH_SOCKET_FREE) {
		if (!buffer)
			return;
		server->bytes -= buffer->message.size;
		*link = buffer->next;
		free(buffer);
		return;
	}
	if (!buffer)
		buffer = *link = calloc(1, sizeof(*buffer));
	if (!buffer)
		return;
	buffer->message = *message;
	server->bytes += message->size;
}

static void *bench_socket_serve(void *argument)
{
	struct bench_socket_server *server = argument;
	struct bench_socket_message message;

	while (recv(server->fd, &message, sizeof(message), MSG_WAITALL) == sizeof(message)) {
		(void)pthread_mutex_lock(&server->lock); /* cannot fail: a plain mutex */
		bench_socket_apply(server, &message);
		(void)pthread_mutex_unlock(&server->lock);
	}
	return NULL;
}

/* The server process; does not return. Exits when the benchmark does, however that exits. */
static void bench_socket_main(int fd)
{
	static struct bench_socket_server server = {.lock = PTHREAD_MUTEX_INITIALIZER};
	pthread_t thread;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* fails only for a bad signal */
	server.fd = fd;
	if (pthread_create(&thread, NULL, bench_socket_serve, &server) == 0)
		(void)pthread_join(thread, NULL);
	_exit(0);
}

static void bench_socket_open(struct bench *bench)
{
	int buffer = BENCH_SOCKET_BUFFER;
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0) {
		bench_note(bench, "socket_baseline is missing: no socket");
		return;
	}
	bench_socket_child = fork();
	if (bench_socket_child == 0) {
		close(fds[0]);
		bench_socket_main(fds[1]);
	}
	close(fds[1]);
	bench_socket_fd = fds[0];
	if (bench_socket_child < 0) {
		bench_note(bench, "socket_baseline is missing: no process");
		return;
	}
	/* On failure the send blocks earlier, which is also fair. */
	(void)setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &buffer, sizeof(buffer));
	bench_socket_row = bench_row_add(bench, "socket_baseline", BENCH_SOCKET_LIVE);
}

static bool bench_socket_send(uint32_t i)
{
	/* The last BENCH_SOCKET_LIVE addresses of twice as many are live. */
	uint32_t number = i / 2 % (2 * BENCH_SOCKET_LIVE);
	bool is_free = i % 2;
	struct bench_socket_message message = {
		.kind = is_free ? BENCH_SOCKET_FREE : BENCH_SOCKET_ALLOC,
		.size = bench_load_size(number),
		.type = (uint8_t)bench_load_type(number),
		.address = bench_load_address(
			is_free ? (number + BENCH_SOCKET_LIVE) % (2 * BENCH_SOCKET_LIVE) : number),
	};
	ssize_t sent;

	(void)pthread_mutex_lock(&bench_socket_lock); /* cannot fail: a plain mutex */
	sent = send(bench_socket_fd, &message, sizeof(message), MSG_NOSIGNAL);
	(void)pthread_mutex_unlock(&bench_socket_lock);
	return sent == sizeof(message);
}

static void bench_socket_round(struct bench *bench)
{
	static uint32_t next;
	unsigned int count = bench->is_quick ? BENCH_SOCKET_EVENTS / 4 : BENCH_SOCKET_EVENTS;
	bool works = true;
	uint64_t from;

	if (!bench_socket_row)
		return;
	for (unsigned int i = 0; i < count / 4; i++)
		works = bench_socket_send(next++) && works;
	from = bench_measure_ns();
	for (unsigned int i = 0; i < count; i++)
		works = bench_socket_send(next++) && works;
	bench_measure_add(&bench_socket_row->means, (double)(bench_measure_ns() - from) / count);
	for (unsigned int i = 0; i < count; i++) {
		uint64_t start = bench_measure_ticks();

		works = bench_socket_send(next++) && works;
		if (i % BENCH_SAMPLE_EVERY == 0)
			bench_measure_add(&bench_socket_row->samples,
					  bench_measure_span(bench, start, bench_measure_ticks()));
	}
	if (!works) {
		bench_note(bench, "socket_baseline is wrong: its server has gone");
		bench_socket_row = NULL;
	}
}

static void bench_socket_close(void)
{
	if (bench_socket_fd >= 0)
		close(bench_socket_fd);
	if (bench_socket_child > 0)
		(void)child_reap(bench_socket_child); /* the close ends it */
}

const struct bench_part bench_socket = {
	.open = bench_socket_open,
	.round = bench_socket_round,
	.close = bench_socket_close,
};
