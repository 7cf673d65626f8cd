/* SPDX-License-Identifier: Apache-2.0 */

/* The conversation with ttmemd: finding it, asking, and not waiting for ever. */

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
#include "base/fd-pass.h"
#include "source/daemon-client/daemon-client-private.h"

#define REMOTE_USUAL "/run/ttmem/ttmemd.sock"
#define REMOTE_RETRY_MS 5 /* when the daemon's queue is full */
#define REMOTE_NS_PER_MS 1000000u
#define REMOTE_USER "ttmem"

int remote_new(struct remote **ret_remote)
{
	CLEANUP_FREE struct remote *remote = calloc(1, sizeof(*remote));

	if (!remote)
		return -ENOMEM;
	remote->fd = -1;
	remote->packet = malloc(NATIVE_PACKET_MAX);
	if (!remote->packet)
		return -ENOMEM;
	*ret_remote = cleanup_steal(remote);
	return 0;
}

static void remote_hang_up(struct remote *remote)
{
	if (remote->fd >= 0)
		(void)close(cleanup_steal_fd(&remote->fd)); /* nothing is lost by it */
}

struct remote *remote_free(struct remote *remote)
{
	if (!remote)
		return NULL;
	remote_hang_up(remote);
	free(remote->packet);
	free(remote->others);
	free(remote->parts);
	free(remote);
	return NULL;
}

const char *remote_path(const struct remote *remote)
{
	return remote->path;
}

int remote_outcome(const struct remote *remote)
{
	return remote->outcome;
}

const char *remote_reason(const struct remote *remote)
{
	return remote->reason;
}

int remote_settle(struct remote *remote, int outcome)
{
	remote->outcome = outcome;
	if (outcome == REMOTE_NONE)
		(void)snprintf(remote->reason, sizeof(remote->reason), "no ttmemd runs here");
	if (outcome == REMOTE_SILENT)
		(void)snprintf(remote->reason, sizeof(remote->reason), "ttmemd does not answer");
	if (outcome == REMOTE_STRANGER)
		(void)snprintf(remote->reason, sizeof(remote->reason),
			       "the ttmemd at %s is run by user %" PRIu32
			       " and not believed (TTMEM_SOCKET would make it so)",
			       remote->path, remote->stranger);
	if (outcome == REMOTE_OLDER)
		(void)snprintf(remote->reason, sizeof(remote->reason),
			       "the ttmemd at %s is older than this ttmem and cannot answer this; "
			       "restart it after the upgrade, or upgrade it",
			       remote->path);
	if (outcome == REMOTE_GARBAGE)
		(void)snprintf(
			remote->reason, sizeof(remote->reason),
			"what ttmemd answers cannot be understood; is it of another version?");
	if (outcome != 0)
		remote_hang_up(remote);
	if (outcome == REMOTE_SILENT)
		remote->quiet_until = clock_ns(CLOCK_MONOTONIC) + REMOTE_PAUSE_NS;
	return outcome;
}

/* Waits for @events until @deadline. 0, or REMOTE_SILENT. */
static int remote_wait(const struct remote *remote, short events, uint64_t deadline)
{
	struct pollfd wait = {.fd = remote->fd, .events = events};

	for (;;) {
		uint64_t now = clock_ns(CLOCK_MONOTONIC);
		int n;

		if (now >= deadline)
			return REMOTE_SILENT;
		n = poll(&wait, 1, (int)((deadline - now) / REMOTE_NS_PER_MS) + 1);
		if (n > 0)
			return 0;
	}
}

/* Whether the server is one to believe. */
static int remote_check_server(struct remote *remote)
{
	struct ucred credentials;
	socklen_t length = sizeof(credentials);
	struct passwd entry, *found = NULL;
	char texts[4096];

	if (getsockopt(remote->fd, SOL_SOCKET, SO_PEERCRED, &credentials, &length) < 0)
		return -errno;
	if (credentials.uid == 0 || credentials.uid == geteuid())
		return 0;
	if (getpwnam_r(REMOTE_USER, &entry, texts, sizeof(texts), &found) == 0 && found &&
	    entry.pw_uid == credentials.uid)
		return 0;
	remote->stranger = credentials.uid;
	return REMOTE_STRANGER;
}

/* One place. 0, an outcome, or a negative errno. */
static int remote_connect_to(struct remote *remote, const char *path, uint64_t deadline)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	size_t length = strlen(path);
	int fd;

	if (length >= sizeof(address.sun_path))
		return REMOTE_NONE;
	memcpy(address.sun_path, path, length + 1);
	memcpy(remote->path, path, length + 1);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	remote->fd = fd;
	while (connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0) {
		if (errno != EAGAIN && errno != EINTR) {
			remote_hang_up(remote);
			return REMOTE_NONE;
		}
		/* Its queue is full: it is slow, or stands still. */
		if (clock_ns(CLOCK_MONOTONIC) >= deadline)
			return REMOTE_SILENT;
		(void)poll(NULL, 0, REMOTE_RETRY_MS); /* merely waits */
	}
	return 0;
}

/* The first of the usual places where somebody is to be believed, or the one that was chosen. */
static int remote_connect(struct remote *remote, uint64_t deadline)
{
	const char *chosen = secure_getenv("TTMEM_SOCKET");
	const char *runtime = secure_getenv("XDG_RUNTIME_DIR");
	char path[sizeof(remote->path)];
	int length, r;

	if (chosen && *chosen) {
		if (strcmp(chosen, "none") == 0)
			return REMOTE_NONE;
		return remote_connect_to(remote, chosen, deadline);
	}
	r = remote_connect_to(remote, REMOTE_USUAL, deadline);
	if (r == 0)
		r = remote_check_server(remote);
	if (r != REMOTE_NONE || !runtime)
		return r;
	length = snprintf(path, sizeof(path), "%s/ttmem/ttmemd.sock", runtime);
	if (length < 0 || (size_t)length >= sizeof(path))
		return r;
	r = remote_connect_to(remote, path, deadline);
	return r == 0 ? remote_check_server(remote) : r;
}

/* Sends the question. -EPIPE: the connection was closed meanwhile. */
static int remote_send(struct remote *remote, const struct remote_question *question,
		       uint64_t deadline)
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
		r = remote_wait(remote, POLLOUT, deadline);
		if (r != 0)
			return r;
	}
}

/* The next packet. 0 and @ret_length (0 = hung up) and @ret_fd, the caller's; or an outcome. */
static int remote_receive(struct remote *remote, uint64_t deadline, size_t *ret_length, int *ret_fd)
{
	int r = remote_wait(remote, POLLIN, deadline);

	while (r == 0) {
		CLEANUP_FD_PASS struct fd_pass fds = FD_PASS_WANT(1);
		ssize_t n = fd_pass_receive(remote->fd, remote->packet, NATIVE_PACKET_MAX, &fds,
					    MSG_DONTWAIT);

		if (n != -EAGAIN) {
			/* A descriptor that we had no room for is missing, no more. */
			*ret_fd = cleanup_steal_fd(&fds.fds[0]);
			*ret_length = n > 0 ? (size_t)n : 0;
			return 0;
		}
		r = remote_wait(remote, POLLIN, deadline);
	}
	return r;
}

/* The packets of an answer, up to its end. -EPIPE: hung up before the first. */
static int remote_answer(struct remote *remote, const struct remote_question *question)
{
	uint64_t until = clock_ns(CLOCK_MONOTONIC) + REMOTE_ANSWER_NS;
	bool is_first = true;

	for (;;) {
		CLEANUP_CLOSE int fd = -1;
		uint64_t patience = clock_ns(CLOCK_MONOTONIC) + question->patience_ns;
		size_t length;
		int r = remote_receive(remote, bits_min(patience, until), &length, &fd);

		if (r != 0)
			return r;
		if (length == 0)
			return is_first ? -EPIPE : REMOTE_GARBAGE;
		if (length > NATIVE_PACKET_MAX)
			return REMOTE_GARBAGE;
		is_first = false;
		r = question->take(question->context, remote->packet, length,
				   cleanup_steal_fd(&fd));
		if (r != 0)
			return r == REMOTE_END ? 0 : r;
	}
}

int remote_converse(struct remote *remote, const struct remote_question *question)
{
	uint64_t deadline = clock_ns(CLOCK_MONOTONIC) + REMOTE_PATIENCE_NS;
	bool is_new = remote->fd < 0;
	int r = 0;

	if (clock_ns(CLOCK_MONOTONIC) < remote->quiet_until)
		return REMOTE_SILENT;
	for (;;) {
		if (remote->fd < 0)
			r = remote_connect(remote, deadline);
		if (r == 0)
			r = remote_send(remote, question, deadline);
		if (r == 0)
			r = remote_answer(remote, question);
		/* One that was left alone for long is closed by the daemon: once more. */
		if (r != -EPIPE || is_new)
			break;
		remote_hang_up(remote);
		is_new = true;
		r = 0;
	}
	if (r == -EPIPE) {
		(void)snprintf(remote->reason, sizeof(remote->reason),
			       "ttmemd hung up; perhaps you have too many connections to it");
		(void)remote_settle(remote, REMOTE_REFUSED);
		return r;
	}
	if (r == REMOTE_REFUSED) {
		remote->outcome = r; /* and may be asked something else */
		return r;
	}
	return remote_settle(remote, r);
}

/* A native question, and who takes the payloads of its answer. */
struct remote_talk {
	struct remote *remote;
	uint32_t kind;
	remote_packet_fn *fn;
	void *context;
};

static int remote_take_native(void *context, const void *bytes, size_t length, int fd)
{
	CLEANUP_CLOSE int owned = fd;
	const struct remote_talk *talk = context;
	struct remote *remote = talk->remote;
	struct native_reply reply;
	const void *payload;

	if (native_reply_decode(bytes, length, &reply, &payload) < 0 ||
	    (reply.kind != talk->kind && reply.kind != 0))
		return REMOTE_GARBAGE;
	if (reply.status < 0) {
		(void)snprintf(remote->reason, sizeof(remote->reason), "ttmemd: %.*s",
			       (int)bits_min(reply.length, 1024u), (const char *)payload);
		return REMOTE_REFUSED;
	}
	if (reply.flags & NATIVE_END)
		return REMOTE_END;
	return talk->fn(talk->context, payload, reply.length, cleanup_steal_fd(&owned));
}

int remote_talk(struct remote *remote, const struct native_request *request, remote_packet_fn *fn,
		void *context)
{
	struct remote_talk talk = {remote, request->kind, fn, context};
	const struct remote_question question = {
		.bytes = request,
		.length = sizeof(*request),
		.patience_ns = REMOTE_PATIENCE_NS,
		.take = remote_take_native,
		.context = &talk,
	};
	int r = remote_converse(remote, &question);

	return r == -EPIPE ? REMOTE_REFUSED : r;
}
