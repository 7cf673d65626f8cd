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
 * A client in a tight loop would wake us for every message, which costs both sides more than the
 * message itself. So a busy connection is not watched for a moment, and what has arrived by then is
 * read in one go. The moment is too short for the socket's buffer to fill.
 */

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "legacy/server/legacy-log.h"
#include "legacy/server/legacy-private.h"
#include "legacy/server/legacy-sender.h"

#define CONNECTION_PATIENCE_MS 10000u /* for a client to read its answer */

void legacy_connection_free(struct legacy_connection *connection)
{
	struct legacy_server *server = connection->server;

	loop_cancel(server->config.loop, &connection->timer);
	loop_remove(server->config.loop, &connection->source);
	legacy_handover_remove(connection);
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
	quota_give(&server->user_connections, connection->uid, 1);
	free(connection->family);
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
	return LEGACY_IS_OVER;
}

/* After each step, waits for the events that the state needs. */
static int connection_settle(struct legacy_connection *connection, int state)
{
	uint32_t events = 0;

	if (state == LEGACY_IS_OVER)
		return state;
	if (connection->out)
		events = EPOLLOUT;
	else if (state == LEGACY_READS && !connection->is_resting)
		/* A part of a message keeps the socket readable: report only what is new. */
		events = connection->is_partial ? EPOLLIN | EPOLLET : EPOLLIN;
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
		if (n < 0 && errno == EAGAIN) {
			connection->slot->answering = LEGACY_ANSWERING_PART;
			return LEGACY_WAITS;
		}
		if (n < 0)
			break;
		connection->out_begin += (size_t)n;
	}
	loop_cancel(server->config.loop, &connection->timer);
	free(cleanup_steal(connection->out));
	connection->slot->answering = LEGACY_ANSWERING_NOT;
	if (connection->ends_after)
		return connection_end(connection);
	return legacy_reading_go_on(connection);
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
		(void)connection_settle(connection, legacy_reading_read(connection, &more));
	legacy_log_flush(server->log);
}

static void connection_fire(struct loop_timer *timer)
{
	struct legacy_connection *connection = container_of(timer, struct legacy_connection, timer);
	struct legacy_server *server = connection->server;
	int state = LEGACY_READS;
	bool more = true;

	if (connection->out) {
		quota_count(QUOTA_LEGACY_SLOW, 1);
		(void)connection_end(connection); /* its result is known */
		return;
	}
	if (connection->is_held) {
		state = legacy_reading_go_on(connection);
	} else if (connection->is_resting) {
		connection->is_resting = false;
		state = legacy_reading_read(connection, &more);
	} else {
		/* The client is silent only if there is nothing left to read. */
		while (state == LEGACY_READS && more &&
		       connection->stream.dialect == LEGACY_UNDECIDED)
			state = legacy_reading_read(connection, &more);
		if (state == LEGACY_READS && connection->stream.dialect == LEGACY_UNDECIDED)
			state = legacy_reading_go_on(connection);
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
	/* Not earlier: until now the next daemon would answer it. */
	legacy_reading_answered(connection);
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
	if (connection->question || connection->is_held)
		return false;
	if (connection->out) {
		/*
		 * Another process may go on with the connection, but the question was not its own.
		 */
		connection->out_begin = connection->out_end;
		state = connection_settle(connection, connection_send(connection));
	} else {
		state = connection_settle(connection, legacy_reading_read(connection, &more));
	}
	if (state == LEGACY_IS_OVER)
		return true;
	return state == LEGACY_READS && !more &&
	       (connection->is_resting || connection->timer.place == 0);
}

void legacy_connection_forget(struct legacy_connection *connection,
			      const struct legacy_client *client)
{
	legacy_sender_forget(connection, client);
}

/* Goes on where the earlier daemon was. */
static bool connection_continue(struct legacy_connection *connection)
{
	struct loop *loop = connection->server->config.loop;
	uint32_t dialect = connection->slot->dialect;

	if (dialect > LEGACY_UNDECIDED && dialect < LEGACY_DIALECTS)
		legacy_stream_restart(&connection->stream, (enum legacy_dialect)dialect);
	if (connection->slot->spill_end == 0)
		return connection_watch(connection, EPOLLIN);
	connection->is_held = true;
	return loop_set(loop, &connection->timer, loop_now(loop)) == 0;
}

int legacy_connection_new_consume(struct legacy_server *server, int fd, struct legacy_slot *slot)
{
	CLEANUP_CLOSE int owned = fd;
	struct legacy_connection *connection;
	struct ucred peer;
	socklen_t length = sizeof(peer);

	if (getsockopt(owned, SOL_SOCKET, SO_PEERCRED, &peer, &length) < 0)
		return -errno;
	if (!quota_take(&server->user_connections, peer.uid, 1))
		return -EDQUOT;
	connection = calloc(1, sizeof(*connection));
	if (connection)
		connection->slot = slot ? slot : legacy_handover_slot(server, owned);
	if (!connection || !connection->slot) {
		int r = connection ? -ENOSPC : -ENOMEM;

		quota_give(&server->user_connections, peer.uid, 1);
		free(connection);
		return r;
	}
	connection->server = server;
	connection->pid = (uint32_t)peer.pid;
	connection->uid = peer.uid;
	connection->source =
		(struct loop_source){.fd = cleanup_steal_fd(&owned), .ready = connection_ready};
	connection->timer.fire = connection_fire;
	connection->after = server->connections;
	if (connection->after)
		connection->after->before = connection;
	server->connections = connection;
	server->counts.connections++;
	server->counts.accepted++;
	/* At once: until somebody else holds it, too, it ends with us. */
	if (!slot)
		legacy_handover_add(connection);
	/* Soon, while the process that connected is most likely still there. */
	if (!server->config.access ||
	    access_peer_init(server->config.access, connection->source.fd, &connection->who) < 0)
		connection->who = (struct access_peer){.is_stranger = true};
	legacy_sender_init(connection);
	legacy_reading_begin(connection);
	if (!connection_continue(connection)) {
		legacy_connection_free(connection);
		return -ENOMEM;
	}
	return 0;
}
