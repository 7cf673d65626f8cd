/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One connection of an old client. It is in one of four states, and watched accordingly:
 *
 *	reading		bytes are read and split into messages, which become events
 *	waiting		for the answer to a question, or for descriptors: not watched at all. So the
 *			answer covers every earlier message of this client and no later one
 *	answering	until the client has read the answer; for ten seconds at most
 *	over		freed
 *
 * Bytes read behind the message that caused the wait are kept in the spill.
 *
 * A client in a tight loop would wake us for every message, which costs both sides more than the
 * message itself. So a busy connection is not watched for a moment, and what has arrived by then is
 * read in one go. The moment is too short for the socket's buffer to fill.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "compat/server/legacy-log.h"
#include "compat/server/legacy-private.h"
#include "compat/server/legacy-sender.h"

#define CONNECTION_SMALL 2048u                  /* per read from a client that asks questions */
#define CONNECTION_PATIENCE_MS 10000u           /* for a client to read its answer */
#define CONNECTION_AGAIN_NS UINT64_C(100000000) /* between two tries to get descriptors */

#define CONNECTION_BUSY_NS UINT64_C(300000) /* two reads within this time: busy */
#define CONNECTION_BUSY_BYTES 1024          /* this many bytes in one read: busy */
#define CONNECTION_REST_NS UINT64_C(100000)

enum connection_state {
	CONNECTION_READS = 0,
	CONNECTION_WAITS = 1,
	CONNECTION_IS_OVER = 2, /* and freed */
};

static int connection_go_on(struct legacy_connection *connection);

void legacy_connection_free(struct legacy_connection *connection)
{
	struct legacy_server *server = connection->server;
	struct legacy_user *user = legacy_server_user(server, connection->uid);

	loop_cancel(server->config.loop, &connection->timer);
	loop_remove(server->config.loop, &connection->source);
	(void)close(connection->source.fd); /* no one to report an error to */
	if (connection->question)
		legacy_question_abandon(connection->question);
	if (connection->before)
		connection->before->after = connection->after;
	else
		server->connections = connection->after;
	if (connection->after)
		connection->after->before = connection->before;
	server->counts.connections--;
	if (user)
		user->connections--;
	free(connection->family);
	free(connection->held);
	free(connection->spill);
	free(connection->out);
	free(connection);
}

/*
 * A source without events leaves the loop: otherwise a hang-up would be reported again and again.
 */
static bool connection_watch(struct legacy_connection *connection, uint32_t events)
{
	struct loop *loop = connection->server->config.loop;
	int r = 0;

	if (connection->watched == events)
		return true;
	if (events == 0)
		loop_remove(loop, &connection->source);
	else if (connection->watched == 0)
		r = loop_add(loop, &connection->source, events);
	else
		r = loop_change(loop, &connection->source, events);
	connection->watched = r < 0 ? connection->watched : events;
	return r == 0;
}

static int connection_end(struct legacy_connection *connection)
{
	legacy_connection_free(connection);
	return CONNECTION_IS_OVER;
}

/* Keeps a message until there are descriptors for a book again: it must not be lost. */
static int connection_hold(struct legacy_connection *connection,
			   const struct legacy_message *message)
{
	size_t size = legacy_size(message->dialect);

	connection->held = malloc(size);
	if (!connection->held)
		return -ENOMEM;
	memcpy(connection->held, message->raw, size);
	connection->is_resting = false;
	connection->held_dialect = message->dialect;
	return loop_set(connection->server->config.loop, &connection->timer,
			loop_now(connection->server->config.loop) + CONNECTION_AGAIN_NS);
}

static bool connection_may_try_again(int r)
{
	return r == -EMFILE || r == -ENFILE || r == -ENOMEM;
}

/* 0: go on with the next message. */
static int connection_event(struct legacy_connection *connection,
			    const struct legacy_message *message)
{
	struct legacy_server *server = connection->server;
	struct legacy_client *client = connection->last.client;
	int r;

	if (unlikely(!legacy_event_check(server, message)))
		return 0;
	if (unlikely(!client || connection->last.pid != message->pid)) {
		r = legacy_sender_find(connection, message->pid, &client);
		if (connection_may_try_again(r) && connection_hold(connection, message) == 0)
			return CONNECTION_WAITS;
		if (r < 0) {
			++*(r == -ESRCH ? &server->counts.refused_unseen
					: &server->counts.refused_room);
			return 0;
		}
	}
	legacy_event_apply(client, message);
	return 0;
}

static int connection_message(struct legacy_connection *connection,
			      const struct legacy_message *message)
{
	struct legacy_server *server = connection->server;

	server->counts.messages++;
	if (unlikely(server->config.trace_wire))
		legacy_log_wire(server->config.log_writer, connection->pid, message);
	if (likely(legacy_event_is(message)))
		return connection_event(connection, message);
	if (server->is_stopped)
		return 0;
	connection->asks = true;
	/* While the question is pending, neither silence nor rest is timed. */
	loop_cancel(server->config.loop, &connection->timer);
	connection->is_resting = false;
	legacy_question_put(server, connection, message);
	return connection->question ? CONNECTION_WAITS : 0;
}

/* Handles every complete message in the stream. CONNECTION_READS: more bytes are needed. */
static int connection_take(struct legacy_connection *connection)
{
	struct legacy_server *server = connection->server;
	struct legacy_message message;
	uint64_t wait_until;
	int r;

	for (;;) {
		r = legacy_stream_next(&connection->stream, loop_now(server->config.loop),
				       (int32_t)connection->pid, &message, &wait_until);
		if (r != 0)
			break;
		r = connection_message(connection, &message);
		if (r != 0)
			return r;
	}
	server->counts.ended_garbage += r == LEGACY_GARBAGE;
	server->counts.ended_truncated += r == LEGACY_TRUNCATED;
	if (r > 0)
		return connection_end(connection);
	if (wait_until != LEGACY_STREAM_NEVER &&
	    loop_set(server->config.loop, &connection->timer, wait_until) < 0)
		return connection_end(connection);
	return CONNECTION_READS;
}

/* Keeps bytes that the stream could not take. */
static int connection_spill(struct legacy_connection *connection, const uint8_t *bytes,
			    size_t length)
{
	if (length == 0 || connection->spill)
		return CONNECTION_WAITS; /* the bytes are already in the spill */
	connection->spill = malloc(length);
	if (!connection->spill)
		return connection_end(connection);
	memcpy(connection->spill, bytes, length);
	connection->spill_begin = 0;
	connection->spill_end = length;
	return CONNECTION_WAITS;
}

/* @ret_taken: how many bytes the stream took. */
static int connection_feed(struct legacy_connection *connection, const uint8_t *bytes,
			   size_t length, size_t *ret_taken)
{
	int state = CONNECTION_READS;
	size_t taken = 0;

	while (state == CONNECTION_READS && taken < length) {
		taken += legacy_stream_feed(&connection->stream, bytes + taken, length - taken);
		state = connection_take(connection);
	}
	*ret_taken = taken;
	return state;
}

/*
 * Stops watching a busy connection for a moment. A client that asks waits for its answer, so it is
 * always read at once.
 */
static void connection_rest(struct legacy_connection *connection, size_t length)
{
	struct loop *loop = connection->server->config.loop;
	uint64_t now = loop_now(loop);
	bool is_busy =
		length >= CONNECTION_BUSY_BYTES || now - connection->read_ns < CONNECTION_BUSY_NS;

	connection->read_ns = now;
	if (is_busy && !connection->asks && connection->stream.dialect != LEGACY_UNDECIDED)
		/* If the timer cannot be set, the connection stays watched. */
		connection->is_resting =
			loop_set(loop, &connection->timer, now + CONNECTION_REST_NS) == 0;
}

/* Reads once. *@ret_more: there may be more to read. */
static int connection_read(struct legacy_connection *connection, bool *ret_more)
{
	struct legacy_server *server = connection->server;
	size_t size = connection->asks ? CONNECTION_SMALL : sizeof(server->buffer);
	ssize_t n = recv(connection->source.fd, server->buffer, size, MSG_DONTWAIT);
	size_t taken;
	int state;

	*ret_more = n > 0;
	if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
		*ret_more = errno == EINTR;
		return CONNECTION_READS;
	}
	if (n <= 0) {
		/* An error counts as end of file: what came before it is valid. */
		connection->has_ended = true;
		legacy_stream_end(&connection->stream);
		return connection_take(connection);
	}
	state = connection_feed(connection, server->buffer, (size_t)n, &taken);
	if (state == CONNECTION_WAITS)
		state = connection_spill(connection, server->buffer + taken, (size_t)n - taken);
	if (state == CONNECTION_READS)
		connection_rest(connection, (size_t)n);
	return state;
}

/* After each step, waits for the events that the state needs. */
static int connection_settle(struct legacy_connection *connection, int state)
{
	uint32_t events = 0;

	if (state == CONNECTION_IS_OVER)
		return state;
	if (connection->out)
		events = EPOLLOUT;
	else if (state == CONNECTION_READS && !connection->has_ended && !connection->is_resting)
		events = EPOLLIN;
	if (!connection_watch(connection, events))
		return connection_end(connection);
	return state;
}

/* Sends as much as the client accepts. If the client is gone, its earlier messages still count. */
static int connection_send(struct legacy_connection *connection)
{
	struct legacy_server *server = connection->server;

	while (connection->out_begin < connection->out_end) {
		ssize_t n = send(connection->source.fd, connection->out + connection->out_begin,
				 connection->out_end - connection->out_begin,
				 MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return CONNECTION_WAITS;
		if (n < 0)
			break;
		connection->out_begin += (size_t)n;
	}
	loop_cancel(server->config.loop, &connection->timer);
	free(cleanup_steal(connection->out));
	if (connection->ends_after)
		return connection_end(connection);
	return connection_go_on(connection);
}

/* Continues after a wait: the held message, the rest of the stream, the spill, end of file. */
static int connection_go_on(struct legacy_connection *connection)
{
	CLEANUP_FREE uint8_t *held = cleanup_steal(connection->held);
	struct legacy_message message;
	int state = CONNECTION_READS;
	size_t taken = 0;

	if (held && legacy_decode(connection->held_dialect, held, &message) == 0)
		state = connection_event(connection, &message);
	if (state == CONNECTION_READS)
		state = connection_take(connection);
	if (state != CONNECTION_READS || !connection->spill)
		return state;
	state = connection_feed(connection, connection->spill + connection->spill_begin,
				connection->spill_end - connection->spill_begin, &taken);
	if (state == CONNECTION_IS_OVER)
		return state;
	connection->spill_begin += taken;
	if (connection->spill_begin == connection->spill_end)
		free(cleanup_steal(connection->spill));
	return state;
}

static void connection_ready(struct loop_source *source, uint32_t events)
{
	struct legacy_connection *connection =
		container_of(source, struct legacy_connection, source);
	struct legacy_server *server = connection->server;
	bool more;

	if (connection->out)
		(void)connection_settle(connection, connection_send(connection));
	else
		(void)connection_settle(connection, connection_read(connection, &more));
	legacy_log_flush(server->log);
}

static void connection_fire(struct loop_timer *timer)
{
	struct legacy_connection *connection = container_of(timer, struct legacy_connection, timer);
	struct legacy_server *server = connection->server;
	int state = CONNECTION_READS;
	bool more = true;

	if (connection->out) {
		server->counts.ended_slow++;
		(void)connection_end(connection); /* its result is known */
		return;
	}
	if (connection->held) {
		state = connection_go_on(connection);
	} else if (connection->is_resting) {
		connection->is_resting = false;
		state = connection_read(connection, &more);
	} else {
		/* The client is silent only if there is nothing left to read. */
		while (state == CONNECTION_READS && more && !connection->has_ended &&
		       connection->stream.dialect == LEGACY_UNDECIDED)
			state = connection_read(connection, &more);
		if (state == CONNECTION_READS)
			state = connection_take(connection);
	}
	(void)connection_settle(connection, state);
	legacy_log_flush(server->log);
}

void legacy_connection_answer(struct legacy_connection *connection, uint8_t *bytes, size_t length,
			      bool is_last)
{
	struct legacy_server *server = connection->server;
	uint64_t patience_ms =
		server->config.patience_ms ? server->config.patience_ms : CONNECTION_PATIENCE_MS;
	int state;

	connection->question = NULL;
	connection->ends_after = is_last;
	connection->out = bytes;
	connection->out_begin = 0;
	connection->out_end = bytes ? length : 0;
	/* If this fails: most answers fit into the socket's buffer and need no timer. */
	if (bytes)
		(void)loop_set(server->config.loop, &connection->timer,
			       loop_now(server->config.loop) + patience_ms * NS_PER_MS);
	state = connection_send(connection);
	(void)connection_settle(connection, state);
	legacy_log_flush(server->log);
}

bool legacy_connection_drain(struct legacy_connection *connection,
			     const struct legacy_client *client)
{
	bool more = true;
	int state;

	if (!legacy_sender_is_on(connection, client))
		return true;
	if (connection->question || connection->held)
		return false;
	if (connection->out) {
		/*
		 * Another process may go on with the connection, but the question was not its own.
		 */
		connection->out_begin = connection->out_end;
		state = connection_settle(connection, connection_send(connection));
	} else {
		state = connection_settle(connection, connection_read(connection, &more));
	}
	if (state == CONNECTION_IS_OVER)
		return true;
	return state == CONNECTION_READS && !more &&
	       (connection->is_resting || connection->timer.place == 0);
}

void legacy_connection_forget(struct legacy_connection *connection,
			      const struct legacy_client *client)
{
	legacy_sender_forget(connection, client);
}

int legacy_connection_new_consume(struct legacy_server *server, int fd)
{
	CLEANUP_CLOSE int owned = fd;
	struct legacy_connection *connection;
	struct legacy_user *user;
	struct ucred peer;
	socklen_t length = sizeof(peer);

	if (getsockopt(owned, SOL_SOCKET, SO_PEERCRED, &peer, &length) < 0)
		return -errno;
	user = legacy_server_user(server, peer.uid);
	if (!user)
		return -ENOMEM;
	if (user->connections >= LEGACY_CONNECTIONS_PER_USER) {
		server->counts.ended_many++;
		return -EDQUOT;
	}
	connection = calloc(1, sizeof(*connection));
	if (!connection)
		return -ENOMEM;
	connection->server = server;
	connection->pid = (uint32_t)peer.pid;
	connection->uid = peer.uid;
	connection->source =
		(struct loop_source){.fd = cleanup_steal_fd(&owned), .ready = connection_ready};
	connection->timer.fire = connection_fire;
	/* Now, while the process that connected is most likely still there. */
	if (!server->config.access ||
	    access_peer_init(server->config.access, connection->source.fd, &connection->who) < 0)
		connection->who = (struct access_peer){.is_stranger = true};
	legacy_stream_init(&connection->stream);
	legacy_sender_init(connection);
	connection->after = server->connections;
	if (connection->after)
		connection->after->before = connection;
	server->connections = connection;
	server->counts.connections++;
	server->counts.accepted++;
	user->connections++;
	if (!connection_watch(connection, EPOLLIN))
		legacy_connection_free(connection);
	return 0;
}
