/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Connections of the native socket, in the loop's thread. A connection is in one of four states: it
 * waits for a question, its question waits for others of its user, a worker prepares the answer, or the
 * answer is being sent. A timer ends each state in which the client can take too long. A peer that hangs
 * up while the worker is busy leaves the connection to it; it is freed when the worker is done.
 */

#include "daemon/native/native-server.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/threads/loop.h"
#include "base/threads/worker.h"
#include "daemon/native/native-answer.h"
#include "daemon/native/native-query.h"
#include "source/books/accept.h"
#include "wire/link.h"

/*
 * The worker answers one question after the other, and some take long. So its queue has only a few of each
 * user, and a user with many questions keeps others waiting no longer than one with few: the question that
 * it answers, and the next, so that it need not wait for the loop.
 */
#define NATIVE_USER_QUESTIONS_MAX 2u

#define NATIVE_ACCEPTS 16u                  /* of one turn; an offered book takes up to 100 us */
#define NATIVE_PACKETS 16u                  /* sent in one turn */
#define NATIVE_PAUSE_NS UINT64_C(100000000) /* before accepting again without descriptors */

struct native_connection {
	struct native *native;
	struct native_connection *next, **place;
	struct native_connection *next_waiting;
	struct accept_peer *peer;
	uint32_t user;
	struct access_peer who;
	struct loop_source source;
	struct loop_timer timer;
	struct worker_job job;
	bool is_waiting; /* its question, for others of its user */
	bool is_at_work; /* the worker has question and answer */
	bool is_dropped; /* while at work; atomic */
	struct native_question question;
	struct native_answer answer;
	struct native_packet *packet; /* being sent */
	uint64_t answer_until;
};

struct native {
	struct native_config config;
	struct native_query *query;
	struct loop_source listening;
	struct loop_timer pause;
	struct native_connection *connections;
	struct native_connection *waiting; /* the oldest first */
	struct quota user_connections;
	struct quota at_work; /* questions in the worker's queue */
	struct native_room room;
	bool is_stopped;              /* atomic */
	struct native_counts counts;  /* atomic each */
	struct accept_request packet; /* room for one */
};

static void native_count(uint64_t *counter)
{
	__atomic_add_fetch(counter, 1, __ATOMIC_RELAXED);
}

/* Its question waits no longer; nothing if it does not. */
static void native_connection_leave(struct native_connection *connection)
{
	struct native_connection **place = &connection->native->waiting;

	if (!connection->is_waiting)
		return;
	while (*place != connection)
		place = &(*place)->next_waiting;
	*place = connection->next_waiting;
	connection->is_waiting = false;
}

/* Frees everything but what the worker still uses. */
static void native_connection_drop(struct native_connection *connection)
{
	struct native *native = connection->native;

	loop_cancel(native->config.loop, &connection->timer);
	if (connection->peer) {
		loop_remove(native->config.loop, &connection->source);
		connection->peer = accept_peer_free(connection->peer);
	}
	if (connection->is_at_work) {
		__atomic_store_n(&connection->is_dropped, true, __ATOMIC_RELAXED);
		return;
	}
	native_connection_leave(connection);
	native_packet_free(connection->packet);
	native_answer_deinit(&connection->answer);
	*connection->place = connection->next;
	if (connection->next)
		connection->next->place = connection->place;
	quota_give(&native->user_connections, connection->user, 1);
	__atomic_sub_fetch(&native->counts.connections, 1, __ATOMIC_RELAXED);
	free(connection);
}

static void native_connection_late(struct loop_timer *timer)
{
	struct native_connection *connection = container_of(timer, struct native_connection, timer);

	quota_count(QUOTA_NATIVE_SLOW, 1);
	native_connection_drop(connection);
}

/* What to wait for from now on, and how long. False: the connection is gone. */
static bool native_connection_await(struct native_connection *connection, uint32_t events,
				    uint64_t ns)
{
	struct loop *loop = connection->native->config.loop;
	int r = loop_change(loop, &connection->source, events);

	if (r == 0 && ns)
		r = loop_set(loop, &connection->timer, loop_now(loop) + ns);
	else
		loop_cancel(loop, &connection->timer);
	if (r < 0)
		native_connection_drop(connection);
	return r == 0;
}

/* Sends what the socket takes. */
static void native_connection_send(struct native_connection *connection)
{
	uint64_t now = loop_now(connection->native->config.loop);

	for (unsigned int i = 0; i < NATIVE_PACKETS; i++) {
		int r;

		if (!connection->packet)
			connection->packet = native_answer_take(&connection->answer);
		if (!connection->packet) {
			native_answer_deinit(&connection->answer);
			native_connection_await(connection, EPOLLIN, NATIVE_IDLE_NS);
			return;
		}
		r = native_packet_send(connection->peer->fd, connection->packet);
		if (r == -EAGAIN || r == -ENOBUFS || r == -EINTR)
			break;
		if (r < 0) {
			native_connection_drop(connection);
			return;
		}
		connection->packet = native_packet_free(connection->packet);
		(void)loop_set(connection->native->config.loop, &connection->timer,
			       bits_min(now + NATIVE_STUCK_NS, connection->answer_until));
	}
}

/* Whether nobody waits for the answer any more. From any thread. */
static bool native_connection_is_over(const struct native_connection *connection)
{
	return __atomic_load_n(&connection->is_dropped, __ATOMIC_RELAXED) ||
	       __atomic_load_n(&connection->native->is_stopped, __ATOMIC_RELAXED);
}

static void native_run(struct worker_job *job)
{
	struct native_connection *connection = container_of(job, struct native_connection, job);

	if (native_connection_is_over(connection))
		return;
	native_query_answer(connection->native->query, &connection->question, &connection->answer);
}

static void native_connection_answer(struct native_connection *connection)
{
	if (native_connection_is_over(connection)) {
		native_connection_drop(connection);
		return;
	}
	connection->answer_until = loop_now(connection->native->config.loop) + NATIVE_ANSWER_NS;
	if (native_connection_await(connection, EPOLLOUT, NATIVE_STUCK_NS))
		native_connection_send(connection);
}

static void native_serve_waiting(struct native *native);

static void native_done(struct worker_job *job)
{
	struct native_connection *connection = container_of(job, struct native_connection, job);

	connection->is_at_work = false;
	quota_give(&connection->native->at_work, connection->user, 1);
	native_serve_waiting(connection->native);
	native_connection_answer(connection);
}

/* The oldest question that may go into the worker's queue; NULL: none may. */
static struct native_connection *native_next_waiting(const struct native *native)
{
	struct native_connection *connection = native->waiting;

	while (connection && quota_room(&native->at_work, connection->user) == 0)
		connection = connection->next_waiting;
	return connection;
}

static void native_serve_waiting(struct native *native)
{
	struct native_connection *connection;

	while ((connection = native_next_waiting(native))) {
		native_connection_leave(connection);
		connection->is_at_work = quota_take(&native->at_work, connection->user, 1);
		connection->job = (struct worker_job){.run = native_run, .done = native_done};
		if (connection->is_at_work && worker_put(native->config.work, &connection->job))
			continue;
		/* The worker has stopped, or there is no memory. */
		if (connection->is_at_work)
			quota_give(&native->at_work, connection->user, 1);
		connection->is_at_work = false;
		native_connection_drop(connection);
	}
}

/* Its question waits behind the others. */
static void native_connection_wait(struct native_connection *connection)
{
	struct native_connection **place = &connection->native->waiting;

	while (*place)
		place = &(*place)->next_waiting;
	connection->next_waiting = NULL;
	connection->is_waiting = true;
	*place = connection;
}

/* A question has come. */
static void native_connection_ask(struct native_connection *connection)
{
	struct native *native = connection->native;
	struct native_question *question = &connection->question;
	const struct accept_request *packet = &native->packet;
	int r;

	question->is_http = http_request_begins(packet->bytes, packet->length);
	r = question->is_http
		    ? http_request_decode(packet->bytes, packet->length, question->target)
		    : native_request_decode(packet->bytes, packet->length, &question->request);
	if (r == -EBADMSG) {
		native_count(&native->counts.garbage);
		native_connection_drop(connection);
		return;
	}
	native_count(&native->counts.requests);
	native_answer_init(&connection->answer,
			   r < 0 || question->is_http ? 0 : question->request.kind, &native->room,
			   connection->user);
	if (r < 0) {
		native_answer_end(&connection->answer, r);
		native_connection_answer(connection);
		return;
	}
	question->asker = connection->who;
	question->came_ns = clock_ns(CLOCK_MONOTONIC);
	if (!native_connection_await(connection, 0, 0))
		return;
	native_connection_wait(connection);
	native_serve_waiting(native);
}

/* What is no question: @received is what accept_receive_any() said. Takes the peer. */
static void native_take(struct native *native, struct accept_peer *peer, int received)
{
	const struct native_hooks *hooks = &native->config.hooks;
	struct link_hello hello;

	if (received == 0) {
		native_count(&native->counts.offers);
		if (hooks->offer_consume(hooks->context, peer) < 0)
			native_count(&native->counts.offers_refused);
	} else if (received == ACCEPT_LINK && hooks->link_consume) {
		memcpy(&hello, native->packet.bytes, sizeof(hello));
		hooks->link_consume(hooks->context, peer, hello.want);
	} else {
		if (received > 0 && received != ACCEPT_CLOSED)
			native_count(&native->counts.garbage);
		accept_peer_free(peer);
	}
}

/* A connection that waited says something, or nothing any more. */
static void native_connection_receive(struct native_connection *connection)
{
	struct native *native = connection->native;
	struct accept_peer *peer = connection->peer;
	int r = accept_receive_any(peer, native->config.proc, &native->packet);

	if (r == -EAGAIN)
		return;
	if (r == ACCEPT_REQUEST) {
		native_connection_ask(connection);
		return;
	}
	loop_remove(native->config.loop, &connection->source);
	connection->peer = NULL;
	native_take(native, peer, r);
	native_connection_drop(connection);
}

static void native_connection_ready(struct loop_source *source, uint32_t events)
{
	struct native_connection *connection =
		container_of(source, struct native_connection, source);
	/*
	 * While the worker prepares the answer it owns it; until it has prepared it, only a hang-up is
	 * reported to us.
	 */
	bool sends = !connection->is_at_work && (connection->answer.first || connection->packet);

	if (connection->is_waiting || connection->is_at_work ||
	    (sends && events & (EPOLLHUP | EPOLLERR)))
		native_connection_drop(connection);
	else if (sends)
		native_connection_send(connection);
	else
		native_connection_receive(connection);
}

/*
 * Makes room when there are too many: closes the oldest idle connection of the user who has
 * most. Otherwise a few users together could keep everybody out.
 */
static bool native_make_room(struct native *native)
{
	struct native_connection *victim = NULL;
	uint64_t most = 0;

	for (struct native_connection *c = native->connections; c; c = c->next) {
		bool idle = c->peer && !c->is_waiting && !c->is_at_work && !c->answer.first &&
			    !c->packet;

		/* The list begins with the youngest. */
		if (idle && quota_used(&native->user_connections, c->user) >= most) {
			victim = c;
			most = quota_used(&native->user_connections, c->user);
		}
	}
	if (!victim)
		return false;
	quota_count(QUOTA_NATIVE_CONNECTIONS, 1);
	native_connection_drop(victim);
	return true;
}

/* Whether one more is allowed, and who it is. */
static int native_connection_admit(struct native *native, struct native_connection *connection)
{
	const struct quota *all = &native->user_connections;

	/* This one counts already, so that its user is no better off than others while room is made. */
	if (quota_used(all, connection->user) > all->each ||
	    (all->used > all->total && !native_make_room(native)))
		return -EUSERS;
	return access_peer_init(native->config.access, connection->source.fd, &connection->who);
}

/* Makes a connection of a peer; takes over its descriptor in any case. */
static int native_connection_new_consume(struct native *native, struct accept_peer *peer,
					 struct native_connection **ret_connection)
{
	CLEANUP(accept_peer_cleanup) struct accept_peer *owned = peer;
	CLEANUP_FREE struct native_connection *connection = calloc(1, sizeof(*connection));
	int r;

	if (!connection)
		return -ENOMEM;
	connection->native = native;
	connection->timer.fire = native_connection_late;
	connection->source = LOOP_SOURCE_NULL;
	connection->source.fd = owned->fd;
	connection->source.ready = native_connection_ready;
	connection->user = owned->uid;
	r = quota_add(&native->user_connections, connection->user, 1);
	if (r < 0)
		return r;
	r = native_connection_admit(native, connection);
	if (r == 0)
		r = loop_add(native->config.loop, &connection->source, EPOLLIN);
	if (r < 0) {
		quota_give(&native->user_connections, connection->user, 1);
		return r;
	}
	connection->peer = cleanup_steal(owned);
	connection->next = native->connections;
	connection->place = &native->connections;
	if (connection->next)
		connection->next->place = &connection->next;
	native->connections = connection;
	native_count(&native->counts.connections);
	*ret_connection = cleanup_steal(connection);
	return 0;
}

/* Most peers send before they are accepted: an offer is then handed on and needs no connection. */
static void native_accept_one(struct native *native, struct accept_peer *peer)
{
	struct native_connection *connection;
	int r = accept_receive_any(peer, native->config.proc, &native->packet);

	if (r != -EAGAIN && r != ACCEPT_REQUEST) {
		native_take(native, peer, r);
		return;
	}
	if (native_connection_new_consume(native, peer, &connection) < 0) {
		quota_count(QUOTA_NATIVE_CONNECTIONS, 1);
		return;
	}
	if (r == ACCEPT_REQUEST)
		native_connection_ask(connection);
	else
		native_connection_await(connection, EPOLLIN, NATIVE_FIRST_NS);
}

static void native_listening_ready(struct loop_source *source, uint32_t events)
{
	struct native *native = container_of(source, struct native, listening);
	struct loop *loop = native->config.loop;

	for (unsigned int i = 0; i < NATIVE_ACCEPTS; i++) {
		struct accept_peer *peer;
		int r = accept_peer_new(source->fd, &peer);

		if (r == 0) {
			native_accept_one(native, peer);
		} else if (r == -EAGAIN) {
			return;
		} else if (r != -ECONNABORTED && r != -EINTR) {
			/* No descriptors or memory. They wait in the queue; asking at once would
			 * keep the loop busy with nothing else. */
			if (loop_set(loop, &native->pause, loop_now(loop) + NATIVE_PAUSE_NS) == 0)
				(void)loop_change(loop, source, 0); /* cannot fail: it is there */
			return;
		}
	}
}

static void native_pause_over(struct loop_timer *timer)
{
	struct native *native = container_of(timer, struct native, pause);

	if (native->listening.added)
		(void)loop_change(native->config.loop, &native->listening, EPOLLIN); /* as above */
}

/* Accepts no more connections. */
static void native_close_socket(struct native *native)
{
	loop_cancel(native->config.loop, &native->pause);
	loop_remove(native->config.loop, &native->listening);
	if (native->listening.fd >= 0)
		(void)close(native->listening.fd); /* nothing was written to it */
	native->listening.fd = -1;
}

int native_listen_consume(struct native *native, int listening)
{
	int r;

	native_close_socket(native);
	native->listening.fd = listening;
	r = loop_add(native->config.loop, &native->listening, EPOLLIN);
	if (r < 0)
		native_close_socket(native);
	return r;
}

int native_new(struct native **ret_native, const struct native_config *config)
{
	CLEANUP_FREE struct native *native = calloc(1, sizeof(*native));

	if (!native)
		return -ENOMEM;
	native->config = *config;
	native->listening = LOOP_SOURCE_NULL;
	native->listening.ready = native_listening_ready;
	native->pause.fire = native_pause_over;
	native->user_connections = (struct quota){.total = NATIVE_CONNECTIONS_MAX,
						  .each = NATIVE_USER_CONNECTIONS_MAX};
	native->at_work = (struct quota){.total = UINT64_MAX, .each = NATIVE_USER_QUESTIONS_MAX};
	native->room.bytes = (struct quota){.total = NATIVE_ANSWERS_MAX, .each = NATIVE_ANSWER_MAX};
	native->query = native_query_new(&native->config);
	if (!native->query)
		return -ENOMEM;
	(void)pthread_mutex_init(&native->room.lock, NULL); /* cannot fail on Linux */
	*ret_native = cleanup_steal(native);
	return 0;
}

void native_stop(struct native *native)
{
	if (native)
		__atomic_store_n(&native->is_stopped, true, __ATOMIC_RELAXED);
}

struct native *native_free(struct native *native)
{
	if (!native)
		return NULL;
	while (native->connections)
		native_connection_drop(native->connections);
	native_close_socket(native);
	native_query_free(native->query);
	quota_deinit(&native->user_connections);
	quota_deinit(&native->at_work);
	quota_deinit(&native->room.bytes);
	pthread_mutex_destroy(&native->room.lock);
	free(native);
	return NULL;
}

void native_counts(struct native *native, struct native_counts *ret_counts)
{
	const struct native_counts *counts = &native->counts;

	*ret_counts = (struct native_counts){
		.connections = __atomic_load_n(&counts->connections, __ATOMIC_RELAXED),
		.offers = __atomic_load_n(&counts->offers, __ATOMIC_RELAXED),
		.offers_refused = __atomic_load_n(&counts->offers_refused, __ATOMIC_RELAXED),
		.requests = __atomic_load_n(&counts->requests, __ATOMIC_RELAXED),
		.garbage = __atomic_load_n(&counts->garbage, __ATOMIC_RELAXED),
	};
}
