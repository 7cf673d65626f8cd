/* SPDX-License-Identifier: Apache-2.0 */

/* The connection to ttmemd: finding it, sending requests, and never waiting for ever. */

#include "source/daemon-client/daemon-client.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/files/fd-pass.h"
#include "base/files/own-socket.h"
#include "source/daemon-client/daemon-client-private.h"

#define DAEMON_CLIENT_USUAL "/run/ttmem/ttmemd.sock"
#define DAEMON_CLIENT_RETRY_MS 5 /* when the daemon's queue is full */
#define DAEMON_CLIENT_NS_PER_MS 1000000u
#define DAEMON_CLIENT_USER "ttmem"

int daemon_client_new(struct daemon_client **ret_client)
{
	CLEANUP_FREE struct daemon_client *remote = calloc(1, sizeof(*remote));

	if (!remote)
		return -ENOMEM;
	remote->fd = -1;
	remote->packet = malloc(NATIVE_PACKET_MAX);
	if (!remote->packet)
		return -ENOMEM;
	*ret_client = cleanup_steal(remote);
	return 0;
}

static void daemon_client_hang_up(struct daemon_client *remote)
{
	if (remote->fd >= 0)
		(void)close(cleanup_steal_fd(&remote->fd)); /* nothing is lost */
}

struct daemon_client *daemon_client_free(struct daemon_client *remote)
{
	if (!remote)
		return NULL;
	daemon_client_hang_up(remote);
	free(remote->packet);
	free(remote->others);
	free(remote->parts);
	free(remote);
	return NULL;
}

uint32_t daemon_client_server(const struct daemon_client *remote)
{
	return remote->server;
}

const char *daemon_client_path(const struct daemon_client *remote)
{
	return remote->path;
}

int daemon_client_outcome(const struct daemon_client *remote)
{
	return remote->outcome;
}

const char *daemon_client_reason(const struct daemon_client *remote)
{
	return remote->reason;
}

int daemon_client_settle(struct daemon_client *remote, int outcome)
{
	remote->outcome = outcome;
	if (outcome == DAEMON_CLIENT_NONE)
		(void)snprintf(remote->reason, sizeof(remote->reason), "no ttmemd runs here");
	if (outcome == DAEMON_CLIENT_SILENT)
		(void)snprintf(remote->reason, sizeof(remote->reason), "ttmemd does not answer");
	if (outcome == DAEMON_CLIENT_STRANGER)
		(void)snprintf(remote->reason, sizeof(remote->reason),
			       "the ttmemd at %s is run by user %" PRIu32
			       " and not believed (TTMEM_SOCKET would make it so)",
			       remote->path, remote->stranger);
	if (outcome == DAEMON_CLIENT_OLDER)
		(void)snprintf(remote->reason, sizeof(remote->reason),
			       "the ttmemd at %s is older than this ttmem and cannot answer this; "
			       "restart it after the upgrade, or upgrade it",
			       remote->path);
	if (outcome == DAEMON_CLIENT_GARBAGE)
		(void)snprintf(
			remote->reason, sizeof(remote->reason),
			"what ttmemd answers cannot be understood; is it of another version?");
	if (outcome != 0)
		daemon_client_hang_up(remote);
	if (outcome == DAEMON_CLIENT_SILENT)
		remote->quiet_until = clock_ns(CLOCK_MONOTONIC) + DAEMON_CLIENT_PAUSE_NS;
	return outcome;
}

/* Waits for @events until @deadline. Returns 0 or DAEMON_CLIENT_SILENT. */
static int daemon_client_wait(const struct daemon_client *remote, short events, uint64_t deadline)
{
	struct pollfd wait = {.fd = remote->fd, .events = events};

	for (;;) {
		uint64_t now = clock_ns(CLOCK_MONOTONIC);
		int n;

		if (now >= deadline)
			return DAEMON_CLIENT_SILENT;
		n = poll(&wait, 1, (int)((deadline - now) / DAEMON_CLIENT_NS_PER_MS) + 1);
		if (n > 0)
			return 0;
	}
}

/* Whether the server is to be trusted. */
static int daemon_client_check_server(struct daemon_client *remote)
{
	struct ucred credentials;
	socklen_t length = sizeof(credentials);
	struct passwd entry, *found = NULL;
	char texts[4096];

	if (getsockopt(remote->fd, SOL_SOCKET, SO_PEERCRED, &credentials, &length) < 0)
		return -errno;
	if (credentials.uid == 0 || credentials.uid == geteuid())
		return 0;
	if (getpwnam_r(DAEMON_CLIENT_USER, &entry, texts, sizeof(texts), &found) == 0 && found &&
	    entry.pw_uid == credentials.uid)
		return 0;
	remote->stranger = credentials.uid;
	return DAEMON_CLIENT_STRANGER;
}

/* Tries one path. Returns 0, an outcome, or a negative errno. */
static int daemon_client_connect_to(struct daemon_client *remote, const char *path,
				    uint64_t deadline)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	size_t length = strlen(path);
	struct ucred server;
	socklen_t size = sizeof(server);
	int fd;

	if (length >= sizeof(address.sun_path))
		return DAEMON_CLIENT_NONE;
	memcpy(address.sun_path, path, length + 1);
	memcpy(remote->path, path, length + 1);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	remote->fd = fd;
	while (connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0) {
		if (errno != EAGAIN && errno != EINTR) {
			daemon_client_hang_up(remote);
			return DAEMON_CLIENT_NONE;
		}
		/* Its queue is full: it is slow, or it hangs. */
		if (clock_ns(CLOCK_MONOTONIC) >= deadline)
			return DAEMON_CLIENT_SILENT;
		(void)poll(NULL, 0, DAEMON_CLIENT_RETRY_MS); /* only waits */
	}
	remote->server = 0;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &server, &size) == 0)
		remote->server = (uint32_t)server.pid;
	return 0;
}

/* Connects to the first trusted server at the usual paths, or to the one that was chosen. */
static int daemon_client_connect(struct daemon_client *remote, uint64_t deadline)
{
	const char *chosen = secure_getenv("TTMEM_SOCKET");
	char path[sizeof(remote->path)];
	int r;

	if (chosen && *chosen) {
		if (strcmp(chosen, "none") == 0)
			return DAEMON_CLIENT_NONE;
		return daemon_client_connect_to(remote, chosen, deadline);
	}
	r = daemon_client_connect_to(remote, DAEMON_CLIENT_USUAL, deadline);
	if (r == 0)
		r = daemon_client_check_server(remote);
	if (r != DAEMON_CLIENT_NONE || own_socket_find(path, sizeof(path)) < 0)
		return r;
	r = daemon_client_connect_to(remote, path, deadline);
	return r == 0 ? daemon_client_check_server(remote) : r;
}

/* Sends the request. -EPIPE: the connection was closed meanwhile. */
static int daemon_client_send(struct daemon_client *remote,
			      const struct daemon_client_question *question, uint64_t deadline)
{
	for (;;) {
		int r;

		if (send(remote->fd, question->bytes, question->length,
			 MSG_NOSIGNAL | MSG_DONTWAIT) >= 0)
			return 0;
		if (errno == EINTR)
			continue;
		if (errno != EAGAIN)
			return -EPIPE;
		r = daemon_client_wait(remote, POLLOUT, deadline);
		if (r != 0)
			return r;
	}
}

/*
 * Receives the next packet. Returns 0, @ret_length (0 = hung up) and @ret_fd, owned by the caller;
 * or an outcome.
 */
static int daemon_client_receive(struct daemon_client *remote, uint64_t deadline,
				 size_t *ret_length, int *ret_fd)
{
	int r = daemon_client_wait(remote, POLLIN, deadline);

	while (r == 0) {
		CLEANUP_FD_PASS struct fd_pass fds = FD_PASS_WANT(1);
		ssize_t n = fd_pass_receive(remote->fd, remote->packet, NATIVE_PACKET_MAX, &fds,
					    MSG_DONTWAIT);

		if (n != -EAGAIN) {
			/* A descriptor for which we had no room is missing, nothing else. */
			*ret_fd = cleanup_steal_fd(&fds.fds[0]);
			*ret_length = n > 0 ? (size_t)n : 0;
			return 0;
		}
		r = daemon_client_wait(remote, POLLIN, deadline);
	}
	return r;
}

/* Receives the packets of an answer, up to its end. -EPIPE: hung up before the first. */
static int daemon_client_answer(struct daemon_client *remote,
				const struct daemon_client_question *question)
{
	uint64_t until = clock_ns(CLOCK_MONOTONIC) + DAEMON_CLIENT_ANSWER_NS;
	bool is_first = true;

	for (;;) {
		CLEANUP_CLOSE int fd = -1;
		uint64_t patience = clock_ns(CLOCK_MONOTONIC) + question->patience_ns;
		size_t length;
		int r = daemon_client_receive(remote, bits_min(patience, until), &length, &fd);

		if (r != 0)
			return r;
		if (length == 0)
			return is_first ? -EPIPE : DAEMON_CLIENT_GARBAGE;
		if (length > NATIVE_PACKET_MAX)
			return DAEMON_CLIENT_GARBAGE;
		is_first = false;
		r = question->take(question->context, remote->packet, length,
				   cleanup_steal_fd(&fd));
		if (r != 0)
			return r == DAEMON_CLIENT_END ? 0 : r;
	}
}

int daemon_client_converse(struct daemon_client *remote,
			   const struct daemon_client_question *question)
{
	uint64_t deadline = clock_ns(CLOCK_MONOTONIC) + DAEMON_CLIENT_PATIENCE_NS;
	bool is_new = remote->fd < 0;
	int r = 0;

	if (clock_ns(CLOCK_MONOTONIC) < remote->quiet_until)
		return DAEMON_CLIENT_SILENT;
	for (;;) {
		if (remote->fd < 0)
			r = daemon_client_connect(remote, deadline);
		if (r == 0)
			r = daemon_client_send(remote, question, deadline);
		if (r == 0)
			r = daemon_client_answer(remote, question);
		/* The daemon closes connections that were idle for long: try once more. */
		if (r != -EPIPE || is_new)
			break;
		daemon_client_hang_up(remote);
		is_new = true;
		r = 0;
	}
	if (r == -EPIPE) {
		(void)snprintf(remote->reason, sizeof(remote->reason),
			       "ttmemd hung up; perhaps you have too many connections to it");
		(void)daemon_client_settle(remote, DAEMON_CLIENT_REFUSED);
		return r;
	}
	if (r == DAEMON_CLIENT_REFUSED) {
		remote->outcome = r; /* but other requests may succeed */
		return r;
	}
	return daemon_client_settle(remote, r);
}

/* A native request, and the function that takes the payloads of its answer. */
struct daemon_client_talk {
	struct daemon_client *remote;
	uint32_t kind;
	daemon_client_packet_fn *fn;
	void *context;
};

static int daemon_client_take_native(void *context, const void *bytes, size_t length, int fd)
{
	CLEANUP_CLOSE int owned = fd;
	const struct daemon_client_talk *talk = context;
	struct daemon_client *remote = talk->remote;
	struct native_reply reply;
	const void *payload;

	if (native_reply_decode(bytes, length, &reply, &payload) < 0 ||
	    (reply.kind != talk->kind && reply.kind != 0))
		return DAEMON_CLIENT_GARBAGE;
	if (reply.status < 0) {
		(void)snprintf(remote->reason, sizeof(remote->reason), "ttmemd: %.*s",
			       (int)bits_min(reply.length, 1024u), (const char *)payload);
		return DAEMON_CLIENT_REFUSED;
	}
	if (reply.flags & NATIVE_END)
		return DAEMON_CLIENT_END;
	return talk->fn(talk->context, payload, reply.length, cleanup_steal_fd(&owned));
}

int daemon_client_talk(struct daemon_client *remote, const struct native_request *request,
		       daemon_client_packet_fn *fn, void *context)
{
	struct daemon_client_talk talk = {remote, request->kind, fn, context};
	const struct daemon_client_question question = {
		.bytes = request,
		.length = sizeof(*request),
		.patience_ns = DAEMON_CLIENT_PATIENCE_NS,
		.take = daemon_client_take_native,
		.context = &talk,
	};
	int r = daemon_client_converse(remote, &question);

	return r == -EPIPE ? DAEMON_CLIENT_REFUSED : r;
}
