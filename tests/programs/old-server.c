/* SPDX-License-Identifier: Apache-2.0 */

/* The old servers. One thread per connection, as they had; one mutex for all. */

#include "old-server.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/hash.h"
#include "legacy/wire/legacy.h"

#define SERVER_CHAINS 65536u
#define SERVER_EVENTS 50u /* remembered per buffer by the enhanced server */
#define SERVER_GULP 65536u

struct server_kind {
	const char *name;
	bool prints;
	bool remembers;
	bool peeks;
	bool discards;
};

static const struct server_kind server_kinds[] = {
	{.name = "discard", .discards = true},
	{.name = "plain"},
	{.name = "first", .prints = true},
	{.name = "enhanced", .prints = true, .remembers = true},
	{.name = "newest", .peeks = true},
};

struct server_event {
	uint8_t type;
	int32_t pid;
	uint64_t size;
	uint32_t references;
	uint64_t time_ns;
};

struct server_buffer {
	struct server_buffer *next;
	uint64_t id, size, birth_ns;
	int32_t device, pid;
	uint32_t references; /* 0: freed, kept only for its history */
	uint8_t type;

	struct server_event *events;
	size_t event_count, event_capacity;
};

struct server {
	pthread_mutex_t lock;
	struct server_buffer *chains[SERVER_CHAINS];
	uint64_t bytes, buffers;
	const struct server_kind *kind;
	size_t size;
	int fd;
	FILE *log;
};

/* Each record had a time of birth. */
static uint64_t server_now(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now); /* cannot fail */
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* A buffer was identified by device and address; its owner did not matter. */
static struct server_buffer **server_find(struct server *server, const struct legacy_head *head)
{
	struct server_buffer **link = &server->chains[hash_u64(head->id) % SERVER_CHAINS];

	while (*link && ((*link)->id != head->id || (*link)->device != head->device))
		link = &(*link)->next;
	return link;
}

static void server_remember(struct server_buffer *buffer, const struct legacy_head *head)
{
	struct server_event *events;

	if (buffer->event_count == SERVER_EVENTS) {
		buffer->event_count--;
		memmove(buffer->events, buffer->events + 1,
			buffer->event_count * sizeof(*buffer->events));
	}
	events = array_grow(buffer->events, &buffer->event_capacity, buffer->event_count + 1,
			    sizeof(*buffer->events));
	if (!events)
		return;
	buffer->events = events;
	events[buffer->event_count++] = (struct server_event){
		.type = head->type,
		.pid = head->pid,
		.size = buffer->size,
		.references = buffer->references,
		.time_ns = server_now(),
	};
}

static void server_alloc(struct server *server, struct server_buffer **link,
			 const struct legacy_head *head)
{
	struct server_buffer *buffer = *link;

	if (!buffer) {
		buffer = *link = calloc(1, sizeof(*buffer));
		if (!buffer)
			return;
	}
	if (buffer->references++ > 0)
		return;
	buffer->id = head->id;
	buffer->device = head->device;
	buffer->size = head->size;
	buffer->type = head->buffer_type;
	buffer->pid = head->pid;
	buffer->birth_ns = server_now();
	server->buffers++;
	server->bytes += head->size;
}

static void server_free(struct server *server, struct server_buffer **link)
{
	struct server_buffer *buffer = *link;

	if (!buffer || buffer->references == 0 || --buffer->references > 0)
		return;
	server->buffers--;
	server->bytes -= buffer->size;
	if (server->kind->remembers)
		return;
	*link = buffer->next;
	free(buffer);
}

/* Each line was flushed, so each event was one write(). */
static void server_print(struct server *server, const struct legacy_head *head)
{
	if (head->type == LEGACY_ALLOC)
		(void)fprintf(server->log,
			      "✓ [PID %" PRId32 "] Allocated %" PRIu64
			      " bytes of %s on device %" PRId32 " (buffer_id=%" PRIu64 ")\n",
			      head->pid, head->size, head->buffer_type ? "L1" : "DRAM",
			      head->device, head->id);
	else
		(void)fprintf(server->log,
			      "✗ [PID %" PRId32 "] Freed buffer %" PRIu64 " on device %" PRId32
			      " (%" PRIu64 " bytes, FINAL)\n",
			      head->pid, head->id, head->device, head->size);
	(void)fflush(server->log); /* to /dev/null, as when the originals were measured */
}

static void server_apply(struct server *server, const struct legacy_head *head)
{
	struct server_buffer **link = server_find(server, head);

	if (head->type == LEGACY_ALLOC)
		server_alloc(server, link, head);
	if (server->kind->remembers && *link)
		server_remember(*link, head);
	if (head->type == LEGACY_FREE)
		server_free(server, link);
	if (server->kind->prints)
		server_print(server, head);
}

static bool server_answer(struct server *server, const uint8_t *bytes)
{
	return send(server->fd, bytes, server->size, MSG_NOSIGNAL) == (ssize_t)server->size;
}

static void *server_take(void *argument)
{
	struct server *server = argument;
	uint8_t bytes[LEGACY_SIZE_MAX];
	struct legacy_head head;

	for (;;) {
		if (server->kind->peeks && recv(server->fd, bytes, server->size, MSG_PEEK) <= 0)
			return NULL;
		/*
		 * The first ones took part of a message for a whole one. That would lose the
		 * framing here.
		 */
		if (recv(server->fd, bytes, server->size, MSG_WAITALL) != (ssize_t)server->size)
			return NULL;
		memcpy(&head, bytes, sizeof(head));
		if (head.type == LEGACY_QUERY) {
			if (!server_answer(server, bytes))
				return NULL;
			continue;
		}
		(void)pthread_mutex_lock(&server->lock); /* cannot fail: a plain mutex */
		server_apply(server, &head);
		(void)pthread_mutex_unlock(&server->lock);
	}
}

/*
 * Reads only the types, to see the question at the end. Sleeps between reads: a sender that has to
 * wake a reader for each message is slower.
 */
static void *server_discard(void *argument)
{
	static const struct timespec rest = {.tv_nsec = 100000};
	static uint8_t bytes[SERVER_GULP + LEGACY_SIZE_MAX];
	struct server *server = argument;
	size_t have = 0, at;

	for (;;) {
		ssize_t n = recv(server->fd, bytes + have, SERVER_GULP, 0);

		if (n <= 0)
			return NULL;
		have += (size_t)n;
		for (at = 0; have - at >= server->size; at += server->size) {
			if (bytes[at] == LEGACY_QUERY && !server_answer(server, bytes + at))
				return NULL;
		}
		have -= at;
		memmove(bytes, bytes + at, have);
		if (n < (ssize_t)SERVER_GULP)
			(void)nanosleep(&rest, NULL); /* a shorter sleep is harmless */
	}
}

/* The server process; does not return. */
static void server_main(int fd, const struct server_kind *kind, size_t size)
{
	static struct server server = {.lock = PTHREAD_MUTEX_INITIALIZER};
	pthread_t thread;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* fails only for a bad signal */
	server.fd = fd;
	server.kind = kind;
	server.size = size;
	server.log = fopen("/dev/null", "we");
	if (server.log &&
	    pthread_create(&thread, NULL, kind->discards ? server_discard : server_take, &server) ==
		    0)
		(void)pthread_join(thread, NULL);
	_exit(0);
}

int old_server_start(const char *name, size_t size, pid_t *ret_pid)
{
	const struct server_kind *kind = NULL;
	int fds[2];
	pid_t pid;

	for (size_t i = 0; i < sizeof(server_kinds) / sizeof(*server_kinds); i++) {
		if (strcmp(server_kinds[i].name, name) == 0)
			kind = &server_kinds[i];
	}
	if (!kind || size > LEGACY_SIZE_MAX)
		return -EINVAL;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
		return -errno;
	pid = fork();
	if (pid == 0) {
		(void)close(fds[0]);
		server_main(fds[1], kind, size);
	}
	(void)close(fds[1]);
	if (pid < 0) {
		(void)close(fds[0]);
		return -EAGAIN;
	}
	*ret_pid = pid;
	return fds[0];
}
