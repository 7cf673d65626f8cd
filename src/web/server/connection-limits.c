/* SPDX-License-Identifier: Apache-2.0 */

/* A list of visits, and a worker that checks it four times a second while there are any. */

#include "web/server/connection-limits.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/threads/worker.h"

#define CONNECTION_LIMITS_LOOK_NS UINT64_C(250000000)

struct connection_limits_visit {
	struct connection_limits *connection_limits;
	struct connection_limits_visit *next, **link;
	int fd;
	enum connection_limits_state state;
	uint64_t since_ns; /* of the awake clock */
	bool out;          /* already shut down */
};

struct connection_limits {
	pthread_mutex_t lock;
	struct worker *worker;
	uint64_t answer_ns;
	struct clock_awake clock; /* as of the last look */
	struct connection_limits_visit *visits;
	size_t count;
	uint64_t thrown_out;
};

/* How long a visit may stay in its state; CLOCK_NEVER = no limit. */
static uint64_t connection_limits_patience(const struct connection_limits *connection_limits,
					   enum connection_limits_state state, bool crowded)
{
	switch (state) {
	case CONNECTION_LIMITS_ASKING:
		return (crowded ? CONNECTION_LIMITS_REQUEST_CROWD_S : CONNECTION_LIMITS_REQUEST_S) *
		       NS_PER_S;
	case CONNECTION_LIMITS_READING:
		return crowded ? CONNECTION_LIMITS_ANSWER_CROWD_S * NS_PER_S
			       : connection_limits->answer_ns;
	case CONNECTION_LIMITS_WAITING:
	case CONNECTION_LIMITS_LISTENING:
		break;
	}
	return CLOCK_NEVER;
}

/* With the lock held. The fd stays open as long as the visit is in the list. */
static void connection_limits_shut(struct connection_limits_visit *visit)
{
	if (visit->out)
		return;
	visit->out = true;
	(void)shutdown(visit->fd, SHUT_RDWR); /* fails if the peer was faster */
}

static bool connection_limits_is_closed(const struct connection_limits_visit *visit)
{
	struct pollfd look = {.fd = visit->fd, .events = POLLRDHUP};

	return poll(&look, 1, 0) > 0 && (look.revents & (POLLRDHUP | POLLHUP | POLLERR));
}

/* Only after a while: a new connection may have a request that has not been read yet. */
static bool connection_limits_left_silently(const struct connection_limits_visit *visit,
					    uint64_t now_ns)
{
	return visit->state == CONNECTION_LIMITS_ASKING &&
	       now_ns - visit->since_ns >= CONNECTION_LIMITS_REQUEST_CROWD_S * NS_PER_S &&
	       connection_limits_is_closed(visit);
}

/* What it has sent is still to be read: it waits for us. */
static bool connection_limits_is_unread(const struct connection_limits_visit *visit)
{
	int unread = 0;

	return visit->state == CONNECTION_LIMITS_ASKING &&
	       ioctl(visit->fd, FIONREAD, &unread) == 0 && unread > 0;
}

/*
 * Clients are judged by a clock that stands still when we do: while the machine is stopped, or too busy
 * even for this thread, nobody can be blamed for sending nothing.
 */
static uint64_t connection_limits_look(void *context, uint64_t wake_ns)
{
	struct connection_limits *connection_limits = context;
	bool crowded, empty;
	uint64_t now_ns;

	pthread_mutex_lock(&connection_limits->lock);
	now_ns =
		clock_awake_pass(&connection_limits->clock, wake_ns, 2 * CONNECTION_LIMITS_LOOK_NS);
	crowded = connection_limits->count >= CONNECTION_LIMITS_CROWD;
	for (struct connection_limits_visit *visit = connection_limits->visits; visit;
	     visit = visit->next) {
		uint64_t patience =
			connection_limits_patience(connection_limits, visit->state, crowded);

		if (visit->out || now_ns < visit->since_ns || connection_limits_is_unread(visit))
			continue;
		if (now_ns - visit->since_ns >= patience) {
			connection_limits_shut(visit);
			connection_limits->thrown_out++;
		} else if (connection_limits_left_silently(visit, now_ns)) {
			connection_limits_shut(visit);
		}
	}
	empty = !connection_limits->visits;
	pthread_mutex_unlock(&connection_limits->lock);
	return empty ? CLOCK_NEVER : wake_ns + CONNECTION_LIMITS_LOOK_NS;
}

/* With the lock held. The last look may be that long ago. */
static uint64_t connection_limits_now(const struct connection_limits *connection_limits)
{
	return connection_limits->clock.ns + CONNECTION_LIMITS_LOOK_NS;
}

int connection_limits_new(struct connection_limits **ret_limits, uint32_t answer_ms)
{
	CLEANUP_FREE struct connection_limits *connection_limits =
		calloc(1, sizeof(*connection_limits));
	struct worker_config config = {
		.name = "web limits", .tick = connection_limits_look, .context = connection_limits};
	int r;

	if (!connection_limits)
		return -ENOMEM;
	pthread_mutex_init(&connection_limits->lock, NULL);
	connection_limits->answer_ns =
		answer_ms ? answer_ms * NS_PER_MS : CONNECTION_LIMITS_ANSWER_S * NS_PER_S;
	r = worker_new(&connection_limits->worker, &config);
	if (r < 0)
		return r;
	*ret_limits = cleanup_steal(connection_limits);
	return 0;
}

struct connection_limits *connection_limits_free(struct connection_limits *connection_limits)
{
	if (!connection_limits)
		return NULL;
	worker_free(connection_limits->worker);
	pthread_mutex_destroy(&connection_limits->lock);
	free(connection_limits);
	return NULL;
}

struct connection_limits_visit *connection_limits_enter(struct connection_limits *connection_limits,
							int fd)
{
	struct connection_limits_visit *visit = calloc(1, sizeof(*visit));
	bool first;

	if (!visit)
		return NULL;
	visit->connection_limits = connection_limits;
	visit->fd = fd;
	pthread_mutex_lock(&connection_limits->lock);
	visit->since_ns = connection_limits_now(connection_limits);
	first = !connection_limits->visits;
	visit->next = connection_limits->visits;
	visit->link = &connection_limits->visits;
	if (visit->next)
		visit->next->link = &visit->next;
	connection_limits->visits = visit;
	connection_limits->count++;
	pthread_mutex_unlock(&connection_limits->lock);
	if (first)
		worker_poke(connection_limits->worker);
	return visit;
}

void connection_limits_leave(struct connection_limits_visit *visit)
{
	struct connection_limits *connection_limits;

	if (!visit)
		return;
	connection_limits = visit->connection_limits;
	pthread_mutex_lock(&connection_limits->lock);
	*visit->link = visit->next;
	if (visit->next)
		visit->next->link = visit->link;
	connection_limits->count--;
	pthread_mutex_unlock(&connection_limits->lock);
	free(visit);
}

void connection_limits_set(struct connection_limits_visit *visit,
			   enum connection_limits_state state)
{
	if (!visit)
		return;
	pthread_mutex_lock(&visit->connection_limits->lock);
	visit->state = state;
	visit->since_ns = connection_limits_now(visit->connection_limits);
	pthread_mutex_unlock(&visit->connection_limits->lock);
}

void connection_limits_throw_out(struct connection_limits_visit *visit)
{
	if (!visit)
		return;
	pthread_mutex_lock(&visit->connection_limits->lock);
	connection_limits_shut(visit);
	visit->connection_limits->thrown_out++;
	pthread_mutex_unlock(&visit->connection_limits->lock);
}

bool connection_limits_has_left(struct connection_limits_visit *visit)
{
	bool left;

	if (!visit)
		return false;
	pthread_mutex_lock(&visit->connection_limits->lock);
	left = connection_limits_is_closed(visit);
	pthread_mutex_unlock(&visit->connection_limits->lock);
	return left;
}

uint64_t connection_limits_thrown_out(struct connection_limits *connection_limits)
{
	uint64_t count;

	pthread_mutex_lock(&connection_limits->lock);
	count = connection_limits->thrown_out;
	pthread_mutex_unlock(&connection_limits->lock);
	return count;
}
