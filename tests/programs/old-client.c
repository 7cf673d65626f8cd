/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A client of the old protocol in a tight loop, to measure how fast it is served and how long it
 * stalls. One send() per message, as in the original, with the buffer size that it asked for.
 * Allocates COUNT / 2 buffers and frees them again. A question at the end makes sure that
 * everything was received.
 *
 *	old-client SOCKET SIZE COUNT		SIZE is 72, 112, 128, 144 or 648
 *	old-client --server KIND SIZE COUNT	against a server of its own: see old-server.h
 *	old-client --gaps SOCKET SIZE COUNT	sends for a tenth of a second, only reads the clock for
 *						another, and so on: gaps of the second kind are caused
 *						by the machine. No rate is printed
 *
 * Prints one line of JSON.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "legacy/wire/legacy-encode.h"
#include "old-server.h"

#define OLD_BUFFER (1 << 20)
#define OLD_SLICE_NS UINT64_C(100000000)
#define OLD_LONG_NS UINT64_C(10000000) /* no stall should be longer */

static uint64_t old_now(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now); /* cannot fail */
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
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

/* Moments without progress. */
struct old_gaps {
	uint64_t longest_ns;
	uint64_t total_ns;
	uint32_t many; /* longer than OLD_LONG_NS */
};

struct old_run {
	int fd;
	size_t size;
	uint64_t count;
	bool pauses;
	uint8_t alloc[LEGACY_SIZE_MAX], free[LEGACY_SIZE_MAX], query[LEGACY_SIZE_MAX];
	uint64_t took_ns;
	struct old_gaps sending, idle;
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

static void old_gap(struct old_gaps *gaps, uint64_t from, uint64_t to)
{
	if (to - from > gaps->longest_ns)
		gaps->longest_ns = to - from;
	gaps->many += to - from > OLD_LONG_NS;
	gaps->total_ns += to - from;
}

/* Measures the gaps of a loop that depends on no other process. Return: when it ended. */
static uint64_t old_idle(struct old_run *run, uint64_t before)
{
	uint64_t end = before + OLD_SLICE_NS, now;

	do {
		now = old_now();
		old_gap(&run->idle, before, now);
		before = now;
	} while (now < end);
	return now;
}

static bool old_storm(struct old_run *run)
{
	uint64_t half = run->count / 2;
	uint64_t start = old_now(), before = start, slice = start, now;

	if (half == 0)
		return false;
	for (uint64_t i = 0; i < run->count; i++) {
		uint8_t *bytes = i < half ? run->alloc : run->free;
		uint64_t id = (i % half + 1) << 12;

		memcpy(bytes + offsetof(struct legacy_head, id), &id, sizeof(id));
		if (send(run->fd, bytes, run->size, MSG_NOSIGNAL) != (ssize_t)run->size)
			return false;
		now = old_now();
		old_gap(&run->sending, before, now);
		before = now;
		if (run->pauses && now - slice >= OLD_SLICE_NS)
			before = slice = old_idle(run, now);
	}
	if (send(run->fd, run->query, run->size, MSG_NOSIGNAL) != (ssize_t)run->size ||
	    recv(run->fd, run->query, run->size, MSG_WAITALL) != (ssize_t)run->size)
		return false;
	run->took_ns = old_now() - start;
	return true;
}

static double old_cpu_ns(int who)
{
	struct rusage usage;

	(void)getrusage(who, &usage); /* fails only for bad pointers */
	return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e9 +
	       (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e3;
}

static void old_print(const struct old_run *run, bool own)
{
	double count = (double)run->count;

	printf("{\"size\":%zu,\"messages\":%" PRIu64 ",\"stall_ms\":%.3f", run->size, run->count,
	       (double)run->sending.longest_ns / 1e6);
	if (run->pauses)
		printf(",\"stalls\":%" PRIu32 ",\"sending_s\":%.3f,\"idle_gap_ms\":%.3f,"
		       "\"idle_gaps\":%" PRIu32 ",\"idle_s\":%.3f}\n",
		       run->sending.many, (double)run->sending.total_ns / 1e9,
		       (double)run->idle.longest_ns / 1e6, run->idle.many,
		       (double)run->idle.total_ns / 1e9);
	else
		printf(",\"per_second\":%.0f,\"client_cpu_ns\":%.0f,\"server_cpu_ns\":%.0f}\n",
		       count / ((double)run->took_ns / 1e9), old_cpu_ns(RUSAGE_SELF) / count,
		       own ? old_cpu_ns(RUSAGE_CHILDREN) / count : 0);
}

int main(int argc, char **argv)
{
	bool own = argc == 5 && strcmp(argv[1], "--server") == 0;
	bool gaps = argc == 5 && strcmp(argv[1], "--gaps") == 0;
	struct old_run run = {.fd = -1, .pauses = gaps};
	int room = OLD_BUFFER;
	pid_t pid = 0;

	if (!own && !gaps && argc != 4) {
		fputs("usage: old-client [--gaps] SOCKET SIZE COUNT | --server KIND SIZE COUNT\n",
		      stderr);
		return 2;
	}
	run.size = (size_t)strtoul(argv[argc - 2], NULL, 10);
	run.count = strtoull(argv[argc - 1], NULL, 10);
	if (!old_prepare(&run) || run.count < 2) {
		fputs("old-client: no such size or count\n", stderr);
		return 2;
	}
	run.fd = own ? old_server_start(argv[2], run.size, &pid) : old_connect(argv[argc - 3]);
	if (run.fd < 0) {
		fputs("old-client: no such server\n", stderr);
		return 1;
	}
	/* The kernel cuts it at its own maximum. */
	(void)setsockopt(run.fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
	if (!old_storm(&run)) {
		perror("old-client");
		return 1;
	}
	(void)close(run.fd);
	if (pid > 0)
		(void)waitpid(pid, NULL, 0); /* the close has ended it */
	old_print(&run, own);
	return 0;
}
