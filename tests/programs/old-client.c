/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A client of the old protocol in a tight loop: how fast is it served, and how long does it stall? One
 * send() for each message, as the original did, with the buffer that it asked for. At the end a question
 * makes sure that everything was taken.
 *
 *	old-client SOCKET SIZE COUNT		SIZE is 72, 112, 128, 144 or 648
 *	old-client --server KIND SIZE COUNT	against a server of its own:
 *		plain	one recv() and a table under a mutex: kinder than any original
 *		peek	as the newest original: looks at a whole message before it takes it
 *		print	as the first original: a line for each event
 *
 * Prints one line of JSON.
 */

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/hash.h"
#include "wire/legacy-encode.h"

#define OLD_BUFFER (1 << 20)
#define OLD_LIVE 1000u /* buffers at any time */
#define OLD_CHAINS 65536u

enum old_kind {
	OLD_PLAIN,
	OLD_PEEK,
	OLD_PRINT,
};

struct old_buffer {
	struct old_buffer *next;
	uint64_t id, size;
};

struct old_server {
	pthread_mutex_t lock;
	struct old_buffer *chains[OLD_CHAINS];
	uint64_t bytes;
	enum old_kind kind;
	size_t size;
	int fd;
	FILE *log;
};

static uint64_t old_now(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now); /* cannot fail */
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void old_apply(struct old_server *server, const struct legacy_head *head)
{
	struct old_buffer **link = &server->chains[hash_u64(head->id) % OLD_CHAINS];
	struct old_buffer *buffer;

	while (*link && (*link)->id != head->id)
		link = &(*link)->next;
	buffer = *link;
	if (head->type == LEGACY_FREE && buffer) {
		server->bytes -= buffer->size;
		*link = buffer->next;
		free(buffer);
	} else if (head->type == LEGACY_ALLOC && !buffer) {
		buffer = *link = calloc(1, sizeof(*buffer));
		if (!buffer)
			return;
		buffer->id = head->id;
		buffer->size = head->size;
		server->bytes += head->size;
	}
	if (server->kind == OLD_PRINT) {
		fprintf(server->log,
			"%s [PID %" PRId32 "] buffer %" PRIu64 " on device %" PRId32 " (%" PRIu64
			" bytes)\n",
			head->type == LEGACY_FREE ? "-" : "+", head->pid, head->id, head->device,
			head->size);
		(void)fflush(server->log); /* to /dev/null; as std::endl did */
	}
}

static void *old_serve(void *argument)
{
	struct old_server *server = argument;
	uint8_t bytes[LEGACY_SIZE_MAX];
	struct legacy_head head;

	for (;;) {
		if (server->kind == OLD_PEEK &&
		    recv(server->fd, bytes, server->size, MSG_PEEK) <= 0)
			return NULL;
		if (recv(server->fd, bytes, server->size, MSG_WAITALL) != (ssize_t)server->size)
			return NULL;
		memcpy(&head, bytes, sizeof(head));
		if (head.type == LEGACY_QUERY) {
			(void)!send(server->fd, bytes, server->size, MSG_NOSIGNAL);
			continue;
		}
		(void)pthread_mutex_lock(&server->lock); /* cannot fail: a plain mutex */
		old_apply(server, &head);
		(void)pthread_mutex_unlock(&server->lock);
	}
}

/* The server process; does not return. */
static void old_main_server(int fd, enum old_kind kind, size_t size)
{
	static struct old_server server = {.lock = PTHREAD_MUTEX_INITIALIZER};
	pthread_t thread;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* fails only for a bad signal */
	server.fd = fd;
	server.kind = kind;
	server.size = size;
	server.log = fopen("/dev/null", "we");
	if (server.log && pthread_create(&thread, NULL, old_serve, &server) == 0)
		(void)pthread_join(thread, NULL);
	_exit(0);
}

static int old_start_server(const char *name, size_t size, pid_t *ret_pid)
{
	enum old_kind kind = OLD_PLAIN;
	int fds[2];

	if (strcmp(name, "peek") == 0)
		kind = OLD_PEEK;
	else if (strcmp(name, "print") == 0)
		kind = OLD_PRINT;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
		return -errno;
	*ret_pid = fork();
	if (*ret_pid == 0) {
		(void)close(fds[0]);
		old_main_server(fds[1], kind, size);
	}
	(void)close(fds[1]);
	return fds[0];
}

static int old_connect(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	if (fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0) {
		(void)close(fd);
		return -1;
	}
	return fd;
}

static enum legacy_dialect old_dialect(size_t size)
{
	for (int dialect = LEGACY_W72; dialect <= LEGACY_W648; dialect++) {
		if (legacy_size((enum legacy_dialect)dialect) == size)
			return (enum legacy_dialect)dialect;
	}
	return LEGACY_UNDECIDED;
}

struct old_run {
	int fd;
	size_t size;
	uint8_t alloc[LEGACY_SIZE_MAX], free[LEGACY_SIZE_MAX], query[LEGACY_SIZE_MAX];
	uint64_t took_ns, stall_ns;
};

static bool old_prepare(struct old_run *run)
{
	struct legacy_message message = {.type = LEGACY_ALLOC,
					 .pid = getpid(),
					 .buffer_type = 1,
					 .size = 4096,
					 .timestamp = 1700000000,
					 .name = "",
					 .stack = ""};
	struct legacy_message query = {.type = LEGACY_QUERY, .name = "", .stack = ""};
	enum legacy_dialect dialect = old_dialect(run->size);
	size_t length;

	if (legacy_encode_request(dialect, &message, run->alloc, &length) < 0)
		return false;
	message.type = LEGACY_FREE;
	message.size = message.timestamp = 0;
	return legacy_encode_request(dialect, &message, run->free, &length) == 0 &&
	       legacy_encode_request(dialect, &query, run->query, &length) == 0;
}

static bool old_storm(struct old_run *run, uint64_t count)
{
	uint64_t start = old_now(), before = start, now;

	for (uint64_t i = 0; i < count; i++) {
		uint64_t number = i / 2 % (2 * OLD_LIVE);
		uint8_t *bytes = i % 2 ? run->free : run->alloc;
		uint64_t id = i % 2 ? (number + OLD_LIVE) % (2 * OLD_LIVE) : number;

		id = (id + 1) << 12;
		memcpy(bytes + offsetof(struct legacy_head, id), &id, sizeof(id));
		if (send(run->fd, bytes, run->size, MSG_NOSIGNAL) != (ssize_t)run->size)
			return false;
		now = old_now();
		if (now - before > run->stall_ns)
			run->stall_ns = now - before;
		before = now;
	}
	if (send(run->fd, run->query, run->size, MSG_NOSIGNAL) != (ssize_t)run->size ||
	    recv(run->fd, run->query, run->size, MSG_WAITALL) != (ssize_t)run->size)
		return false;
	run->took_ns = old_now() - start;
	return true;
}

int main(int argc, char **argv)
{
	bool own = argc == 5 && strcmp(argv[1], "--server") == 0;
	int room = OLD_BUFFER;
	struct old_run run = {.fd = -1};
	struct rusage usage;
	uint64_t count;
	pid_t pid = 0;

	if (!own && argc != 4) {
		fputs("usage: old-client SOCKET SIZE COUNT | --server KIND SIZE COUNT\n", stderr);
		return 2;
	}
	run.size = (size_t)strtoul(argv[own ? 3 : 2], NULL, 10);
	count = strtoull(argv[own ? 4 : 3], NULL, 10);
	if (!old_prepare(&run) || count == 0) {
		fputs("old-client: no such size or count\n", stderr);
		return 2;
	}
	run.fd = own ? old_start_server(argv[2], run.size, &pid) : old_connect(argv[1]);
	if (run.fd < 0) {
		perror("old-client: connect");
		return 1;
	}
	/* The kernel cuts it at its own maximum. */
	(void)setsockopt(run.fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
	if (!old_storm(&run, count)) {
		perror("old-client");
		return 1;
	}
	(void)close(run.fd);
	if (pid > 0)
		(void)waitpid(pid, NULL, 0);  /* ended by the close */
	(void)getrusage(RUSAGE_SELF, &usage); /* fails only for bad pointers */
	printf("{\"size\":%zu,\"messages\":%" PRIu64 ",\"per_second\":%.0f,\"stall_ms\":%.3f,"
	       "\"client_cpu_ns\":%.0f}\n",
	       run.size, count, (double)count / ((double)run.took_ns / 1e9),
	       (double)run.stall_ns / 1e6,
	       ((double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e9 +
		(double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e3) /
		       (double)count);
	return 0;
}
