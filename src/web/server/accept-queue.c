/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One thread accepts and serves; others only report what has been closed. There are a few hundred
 * connections at most that are served, and few that wait: lists are enough.
 */

#include "web/server/accept-queue.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/quota.h"
#include "base/threads/pthreads.h"
#include "web/server/peer-user.h"

#define ACCEPT_QUEUE_PAUSE_MS 100 /* without descriptors */

struct accept_queue_waiting {
	struct accept_queue_waiting *next;
	int fd;
	uint32_t uid;
	struct sockaddr_storage peer;
	socklen_t length;
};

struct accept_queue_served {
	int fd; /* -1 = free; the library owns it */
	uint32_t uid;
};

struct accept_queue {
	struct accept_queue_config config;
	struct peer_user *peer_user; /* NULL: users cannot be told apart */
	pthread_t thread;
	bool is_started;
	int wake;

	pthread_mutex_t lock; /* protects what follows */
	bool is_stopping;
	struct accept_queue_waiting *first, **last; /* oldest first */
	struct quota waiting, served;
	struct accept_queue_served *places; /* config.served_max */
};

static void accept_queue_wake(struct accept_queue *queue)
{
	(void)eventfd_write(queue->wake, 1); /* fails only if it is awake many times over */
}

/* With the lock held. The entry with that fd, or NULL; -1 finds a free place. */
static struct accept_queue_served *accept_queue_place(struct accept_queue *queue, int fd)
{
	for (uint32_t i = 0; i < queue->config.served_max; i++) {
		if (queue->places[i].fd == fd)
			return &queue->places[i];
	}
	return NULL;
}

static void accept_queue_release(struct accept_queue *queue, int fd)
{
	struct accept_queue_served *place = accept_queue_place(queue, fd);

	if (!place)
		return;
	quota_give(&queue->served, place->uid, 1);
	place->fd = -1;
}

void accept_queue_left(struct accept_queue *queue, int fd)
{
	pthread_mutex_lock(&queue->lock);
	accept_queue_release(queue, fd);
	pthread_mutex_unlock(&queue->lock);
	accept_queue_wake(queue);
}

/* With the lock held. Takes @one or leaves it to the caller. */
static bool accept_queue_add(struct accept_queue *queue, struct accept_queue_waiting *one)
{
	/* The library may have closed one without a word; its number then came back. */
	accept_queue_release(queue, one->fd);
	if (!quota_take(&queue->waiting, one->uid, 1))
		return false;
	*queue->last = one;
	queue->last = &one->next;
	return true;
}

/* With the lock held. The next one that may be served; NULL = none. */
static struct accept_queue_waiting *accept_queue_next(struct accept_queue *queue)
{
	struct accept_queue_served *place = accept_queue_place(queue, -1);
	struct accept_queue_waiting **next = NULL, *one;
	uint64_t distance = UINT64_MAX;

	for (struct accept_queue_waiting **at = &queue->first; place && *at; at = &(*at)->next) {
		uint64_t from_turn = quota_turn(&queue->served, (*at)->uid);

		if ((next && from_turn >= distance) || quota_room(&queue->served, (*at)->uid) == 0)
			continue;
		next = at;
		distance = from_turn;
	}
	if (!next || quota_add(&queue->served, (*next)->uid, 1) < 0)
		return NULL;
	one = *next;
	*next = one->next;
	if (!one->next)
		queue->last = next;
	quota_give(&queue->waiting, one->uid, 1);
	quota_had_turn(&queue->served, one->uid);
	*place = (struct accept_queue_served){.fd = one->fd, .uid = one->uid};
	return one;
}

static void accept_queue_serve(struct accept_queue *queue)
{
	for (;;) {
		struct accept_queue_waiting *one;
		int fd;

		pthread_mutex_lock(&queue->lock);
		one = queue->is_stopping ? NULL : accept_queue_next(queue);
		pthread_mutex_unlock(&queue->lock);
		if (!one)
			return;
		fd = one->fd;
		if (queue->config.serve_consume(queue->config.context, fd,
						(struct sockaddr *)&one->peer, one->length) < 0) {
			pthread_mutex_lock(&queue->lock);
			accept_queue_release(queue, fd);
			pthread_mutex_unlock(&queue->lock);
		}
		free(one);
	}
}

/* False: none can be accepted for the moment. */
static bool accept_queue_accept(struct accept_queue *queue)
{
	struct accept_queue_waiting *one = calloc(1, sizeof(*one));
	bool is_taken;

	if (!one)
		return false;
	one->length = sizeof(one->peer);
	one->fd = accept4(queue->config.listening, (struct sockaddr *)&one->peer, &one->length,
			  SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (one->fd < 0) {
		free(one);
		return errno == EAGAIN || errno == EINTR || errno == ECONNABORTED;
	}
	one->uid = peer_user_find(queue->peer_user, one->fd);
	pthread_mutex_lock(&queue->lock);
	is_taken = accept_queue_add(queue, one);
	pthread_mutex_unlock(&queue->lock);
	if (!is_taken) {
		(void)close(one->fd); /* nothing was written to it */
		free(one);
	}
	return true;
}

static void *accept_queue_thread(void *context)
{
	struct accept_queue *queue = context;
	struct pollfd waits[] = {{.fd = queue->wake, .events = POLLIN},
				 {.fd = queue->config.listening, .events = POLLIN}};
	bool is_paused = false, is_stopping = false;

	while (!is_stopping) {
		eventfd_t ignored;

		/* Without descriptors, asking at once would find the same. */
		if (poll(waits, is_paused ? 1 : 2, is_paused ? ACCEPT_QUEUE_PAUSE_MS : -1) < 0 &&
		    errno != EINTR)
			break;
		if (waits[0].revents)
			(void)eventfd_read(queue->wake, &ignored); /* only to be quiet again */
		is_paused = !is_paused && waits[1].revents && !accept_queue_accept(queue);
		accept_queue_serve(queue);
		pthread_mutex_lock(&queue->lock);
		is_stopping = queue->is_stopping;
		pthread_mutex_unlock(&queue->lock);
	}
	return NULL;
}

/* Most descriptors are for those who are served, and for what it takes to answer them. */
static uint64_t accept_queue_waiting_max(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) < 0)
		return ACCEPT_QUEUE_WAITING_MAX;
	return bits_min(ACCEPT_QUEUE_WAITING_MAX, files.rlim_cur / 4);
}

int accept_queue_new(struct accept_queue **ret_queue, const struct accept_queue_config *config)
{
	struct accept_queue *queue = calloc(1, sizeof(*queue));
	int flags = fcntl(config->listening, F_GETFL), r;

	if (!queue) {
		(void)close(config->listening); /* nothing was written to it */
		return -ENOMEM;
	}
	queue->config = *config;
	queue->last = &queue->first;
	queue->waiting =
		(struct quota){.id = QUOTA_HTTP_CONNECTIONS, .total = accept_queue_waiting_max()};
	queue->served = (struct quota){.total = config->served_max};
	queue->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	r = queue->wake < 0 ? -errno : 0;
	(void)pthread_mutex_init(&queue->lock, NULL); /* cannot fail on Linux */
	queue->peer_user = peer_user_new();
	queue->places = calloc(config->served_max, sizeof(*queue->places));
	for (uint32_t i = 0; queue->places && i < config->served_max; i++)
		queue->places[i].fd = -1;
	if (r == 0 && !queue->places)
		r = -ENOMEM;
	if (r == 0 && (flags < 0 || fcntl(config->listening, F_SETFL, flags | O_NONBLOCK) < 0))
		r = -errno;
	if (r < 0) {
		accept_queue_free(queue);
		return r;
	}
	*ret_queue = queue;
	return 0;
}

int accept_queue_start(struct accept_queue *queue)
{
	int r = pthreads_start(&queue->thread, "web accept", accept_queue_thread, queue);

	queue->is_started = r == 0;
	return r;
}

void accept_queue_stop(struct accept_queue *queue)
{
	if (!queue || !queue->is_started)
		return;
	pthread_mutex_lock(&queue->lock);
	queue->is_stopping = true;
	pthread_mutex_unlock(&queue->lock);
	accept_queue_wake(queue);
	(void)pthread_join(queue->thread, NULL); /* ours, and not joined yet */
	queue->is_started = false;
}

struct accept_queue *accept_queue_free(struct accept_queue *queue)
{
	if (!queue)
		return NULL;
	accept_queue_stop(queue);
	while (queue->first) {
		struct accept_queue_waiting *one = queue->first;

		queue->first = one->next;
		(void)close(one->fd); /* nothing was written to it */
		free(one);
	}
	quota_deinit(&queue->waiting);
	quota_deinit(&queue->served);
	(void)close(queue->config.listening); /* likewise */
	if (queue->wake >= 0)
		(void)close(queue->wake); /* nobody needs to wake up */
	peer_user_free(queue->peer_user);
	pthread_mutex_destroy(&queue->lock);
	free(queue->places);
	free(queue);
	return NULL;
}

uint32_t accept_queue_user(struct accept_queue *queue, int fd)
{
	struct accept_queue_served *place;
	uint32_t uid;

	pthread_mutex_lock(&queue->lock);
	place = accept_queue_place(queue, fd);
	uid = place && fd >= 0 ? place->uid : PEER_USER_UNKNOWN;
	pthread_mutex_unlock(&queue->lock);
	return uid;
}
