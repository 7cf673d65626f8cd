/* SPDX-License-Identifier: Apache-2.0 */

/* A list of visits, and a worker that looks at it four times a second while there are any. */

#include "web/server/connection-limits.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/worker.h"

#define DOOR_LOOK_NS UINT64_C(250000000)

struct door_visit {
	struct door *door;
	struct door_visit *next, **link;
	int fd;
	enum door_state state;
	uint64_t since_ns;
	bool out; /* thrown out already */
};

struct door {
	pthread_mutex_t lock;
	struct worker *worker;
	uint64_t answer_ns;
	struct door_visit *visits;
	size_t count;
	uint64_t thrown_out;
};

/* How long a visit may be in its state; CLOCK_NEVER = as long as it likes. */
static uint64_t door_patience(const struct door *door, enum door_state state, bool crowded)
{
	switch (state) {
	case DOOR_ASKING:
		return (crowded ? DOOR_REQUEST_CROWD_S : DOOR_REQUEST_S) * NS_PER_S;
	case DOOR_READING:
		return crowded ? DOOR_ANSWER_CROWD_S * NS_PER_S : door->answer_ns;
	case DOOR_WAITING:
	case DOOR_LISTENING:
		break;
	}
	return CLOCK_NEVER;
}

/* With the lock held. The fd is open as long as the visit is in the list. */
static void door_shut(struct door_visit *visit)
{
	if (visit->out)
		return;
	visit->out = true;
	(void)shutdown(visit->fd, SHUT_RDWR); /* fails if the peer was quicker */
}

static bool door_is_closed(const struct door_visit *visit)
{
	struct pollfd look = {.fd = visit->fd, .events = POLLRDHUP};

	return poll(&look, 1, 0) > 0 && (look.revents & (POLLRDHUP | POLLHUP | POLLERR));
}

/* A moment ago it may have sent a request that has not been read yet. */
static bool door_left_silently(const struct door_visit *visit, uint64_t now_ns)
{
	return visit->state == DOOR_ASKING &&
	       now_ns - visit->since_ns >= DOOR_REQUEST_CROWD_S * NS_PER_S && door_is_closed(visit);
}

static uint64_t door_look(void *context, uint64_t now_ns)
{
	struct door *door = context;
	bool crowded, empty;

	pthread_mutex_lock(&door->lock);
	crowded = door->count >= DOOR_CROWD;
	for (struct door_visit *visit = door->visits; visit; visit = visit->next) {
		uint64_t patience = door_patience(door, visit->state, crowded);

		if (visit->out || now_ns < visit->since_ns)
			continue;
		if (now_ns - visit->since_ns >= patience) {
			door_shut(visit);
			door->thrown_out++;
		} else if (door_left_silently(visit, now_ns)) {
			door_shut(visit);
		}
	}
	empty = !door->visits;
	pthread_mutex_unlock(&door->lock);
	return empty ? CLOCK_NEVER : now_ns + DOOR_LOOK_NS;
}

int door_new(struct door **ret_door, uint32_t answer_ms)
{
	CLEANUP_FREE struct door *door = calloc(1, sizeof(*door));
	struct worker_config config = {.name = "web door", .tick = door_look, .context = door};
	int r;

	if (!door)
		return -ENOMEM;
	pthread_mutex_init(&door->lock, NULL);
	door->answer_ns = answer_ms ? answer_ms * NS_PER_MS : DOOR_ANSWER_S * NS_PER_S;
	r = worker_new(&door->worker, &config);
	if (r < 0)
		return r;
	*ret_door = cleanup_steal(door);
	return 0;
}

struct door *door_free(struct door *door)
{
	if (!door)
		return NULL;
	worker_free(door->worker);
	pthread_mutex_destroy(&door->lock);
	free(door);
	return NULL;
}

struct door_visit *door_enter(struct door *door, int fd)
{
	struct door_visit *visit = calloc(1, sizeof(*visit));
	bool first;

	if (!visit)
		return NULL;
	visit->door = door;
	visit->fd = fd;
	visit->since_ns = clock_ns(CLOCK_MONOTONIC);
	pthread_mutex_lock(&door->lock);
	first = !door->visits;
	visit->next = door->visits;
	visit->link = &door->visits;
	if (visit->next)
		visit->next->link = &visit->next;
	door->visits = visit;
	door->count++;
	pthread_mutex_unlock(&door->lock);
	if (first)
		worker_poke(door->worker);
	return visit;
}

void door_leave(struct door_visit *visit)
{
	struct door *door;

	if (!visit)
		return;
	door = visit->door;
	pthread_mutex_lock(&door->lock);
	*visit->link = visit->next;
	if (visit->next)
		visit->next->link = visit->link;
	door->count--;
	pthread_mutex_unlock(&door->lock);
	free(visit);
}

void door_set(struct door_visit *visit, enum door_state state)
{
	if (!visit)
		return;
	pthread_mutex_lock(&visit->door->lock);
	visit->state = state;
	visit->since_ns = clock_ns(CLOCK_MONOTONIC);
	pthread_mutex_unlock(&visit->door->lock);
}

void door_throw_out(struct door_visit *visit)
{
	if (!visit)
		return;
	pthread_mutex_lock(&visit->door->lock);
	door_shut(visit);
	visit->door->thrown_out++;
	pthread_mutex_unlock(&visit->door->lock);
}

bool door_has_left(struct door_visit *visit)
{
	bool left;

	if (!visit)
		return false;
	pthread_mutex_lock(&visit->door->lock);
	left = door_is_closed(visit);
	pthread_mutex_unlock(&visit->door->lock);
	return left;
}

uint64_t door_thrown_out(struct door *door)
{
	uint64_t count;

	pthread_mutex_lock(&door->lock);
	count = door->thrown_out;
	pthread_mutex_unlock(&door->lock);
	return count;
}
