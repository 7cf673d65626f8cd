/* SPDX-License-Identifier: Apache-2.0 */

/*
 * From the socket to messages, and from messages to events and questions. As long as the dialect is not
 * known, bytes are only looked at; afterwards they are taken out, whole messages only, so that the rest
 * of one is where the next daemon finds it. How much there is costs nothing to ask for, compared with
 * looking at all of it first: that would be 40 % more for each message.
 */

#include <errno.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/bits.h"
#include "legacy/server/legacy-log.h"
#include "legacy/server/legacy-private.h"
#include "legacy/server/legacy-sender.h"

#define READING_SMALL 2048u                  /* per read from a client that asks questions */
#define READING_AGAIN_NS UINT64_C(100000000) /* between two tries to get descriptors */

#define READING_BUSY_NS UINT64_C(300000) /* two reads within this time: busy */
#define READING_BUSY_BYTES 1024          /* this many bytes in one read: busy */
#define READING_REST_NS UINT64_C(100000)

static int reading_end(struct legacy_connection *connection)
{
	uint8_t rest[LEGACY_STREAM_ROOM];

	/* Bytes that nobody has read would reset the connection, and answers with it. */
	(void)recv(connection->source.fd, rest, sizeof(rest), MSG_DONTWAIT);
	legacy_connection_free(connection);
	return LEGACY_IS_OVER;
}

static int reading_garbage(struct legacy_connection *connection)
{
	connection->server->counts.ended_garbage++;
	return reading_end(connection);
}

/* Leaves a message where it is until there are descriptors for a book again: it must not be lost. */
static int reading_hold(struct legacy_connection *connection)
{
	struct loop *loop = connection->server->config.loop;

	connection->is_resting = false;
	connection->is_held = true;
	return loop_set(loop, &connection->timer, loop_now(loop) + READING_AGAIN_NS);
}

static bool reading_may_try_again(int r)
{
	return r == -EMFILE || r == -ENFILE || r == -ENOMEM;
}

/* 0: go on with the next message. */
static int reading_event(struct legacy_connection *connection, const struct legacy_message *message)
{
	struct legacy_server *server = connection->server;
	struct legacy_client *client = connection->last.client;
	int r;

	if (unlikely(!legacy_event_check(server, message)))
		return 0;
	if (unlikely(!client || connection->last.pid != message->pid)) {
		r = legacy_sender_find(connection, message->pid, &client);
		if (reading_may_try_again(r) && reading_hold(connection) == 0)
			return LEGACY_WAITS;
		if (r < 0) {
			++*(r == -ESRCH ? &server->counts.refused_unseen
					: &server->counts.refused_room);
			return 0;
		}
	}
	server->ledger->applying = 1; /* until its place in the journal is behind it */
	LEGACY_LEDGER_ORDER();
	legacy_event_apply(client, message);
	return 0;
}

static int reading_message(struct legacy_connection *connection,
			   const struct legacy_message *message)
{
	struct legacy_server *server = connection->server;

	if (likely(!connection->is_held)) {
		server->counts.messages++;
		if (unlikely(server->config.trace_wire))
			legacy_log_wire(server->config.log_writer, connection->pid, message);
	}
	connection->is_held = false;
	if (likely(legacy_event_is(message)))
		return reading_event(connection, message);
	if (server->is_stopped)
		return LEGACY_WAITS; /* for the next daemon */
	connection->asks = true;
	/* While the question is pending, neither silence nor rest is timed. */
	loop_cancel(server->config.loop, &connection->timer);
	connection->is_resting = false;
	legacy_question_put(server, connection, message);
	return connection->question ? LEGACY_WAITS : 0;
}

/* Handles the messages in the stream; @position says how far that has got. */
static int reading_take(struct legacy_connection *connection, uint32_t *position)
{
	struct legacy_server *server = connection->server;
	uint32_t size = (uint32_t)legacy_size(connection->stream.dialect);
	struct legacy_message message;
	uint64_t never;
	int r;

	for (;;) {
		r = legacy_stream_next(&connection->stream, loop_now(server->config.loop),
				       (int32_t)connection->pid, &message, &never);
		if (r != 0)
			return r == -EAGAIN ? LEGACY_READS : reading_garbage(connection);
		r = reading_message(connection, &message);
		LEGACY_LEDGER_ORDER();
		if (likely(r == 0))
			*position += size;
		LEGACY_LEDGER_ORDER();
		server->ledger->applying = 0;
		if (r != 0)
			return r;
	}
}

/* Handles whole messages from @position on. */
static int reading_work(struct legacy_connection *connection, const uint8_t *bytes,
			uint32_t *position, uint32_t length)
{
	int state = LEGACY_READS;
	size_t fed = *position;

	while (state == LEGACY_READS && fed < length) {
		fed += legacy_stream_feed(&connection->stream, bytes + fed, length - fed);
		state = reading_take(connection, position);
	}
	if (state != LEGACY_IS_OVER)
		legacy_stream_restart(&connection->stream, connection->stream.dialect);
	return state;
}

/*
 * Stops watching a busy connection for a moment. A client that asks waits for its answer, so it is
 * always read at once.
 */
static void reading_rest(struct legacy_connection *connection, size_t length)
{
	struct loop *loop = connection->server->config.loop;
	uint64_t now = loop_now(loop);
	bool is_busy = length >= READING_BUSY_BYTES || now - connection->read_ns < READING_BUSY_NS;

	connection->read_ns = now;
	if (is_busy && !connection->asks)
		/* If the timer cannot be set, the connection stays watched. */
		connection->is_resting =
			loop_set(loop, &connection->timer, now + READING_REST_NS) == 0;
}

/* Fills the journal with bytes that are there. */
static bool reading_receive(struct legacy_connection *connection, uint32_t wanted)
{
	struct legacy_ledger *ledger = connection->server->ledger;
	size_t got = 0;

	/* No message begins with 0: what the next daemon finds there tells whether recv() was. */
	ledger->journal[0] = 0;
	ledger->wanted = wanted;
	ledger->length = ledger->position = 0;
	LEGACY_LEDGER_ORDER();
	ledger->owner = 1 + (uint32_t)(connection->slot - ledger->slots);
	LEGACY_LEDGER_ORDER();
	while (got < wanted) {
		ssize_t n = recv(connection->source.fd, ledger->journal + got, wanted - got,
				 MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		got += (size_t)n; /* less only if descriptors came with it */
	}
	ledger->length = wanted;
	LEGACY_LEDGER_ORDER();
	return true;
}

/* Takes whole messages, @wanted bytes that are there, and handles them. */
static int reading_messages(struct legacy_connection *connection, uint32_t wanted)
{
	struct legacy_server *server = connection->server;
	struct legacy_ledger *ledger = server->ledger;
	int state;

	if (!reading_receive(connection, wanted)) {
		ledger->owner = 0;
		return reading_garbage(connection);
	}
	state = reading_work(connection, ledger->journal, &ledger->position, wanted);
	if (state == LEGACY_WAITS &&
	    legacy_ledger_spill(ledger, server->ledger_fd, connection->slot,
				ledger->journal + ledger->position, wanted - ledger->position) < 0)
		state = reading_end(connection);
	ledger->owner = 0;
	if (state == LEGACY_READS)
		reading_rest(connection, wanted);
	return state;
}

static struct legacy_spoken *reading_spoken(const struct legacy_connection *connection)
{
	return &connection->server->spoken[connection->pid % LEGACY_SPOKEN];
}

void legacy_reading_begin(struct legacy_connection *connection)
{
	const struct legacy_spoken *spoken = reading_spoken(connection);

	legacy_stream_init(&connection->stream);
	if (spoken->process.start_ticks != 0 &&
	    process_id_equal(spoken->process, connection->facts.id))
		connection->stream.expected = (enum legacy_dialect)spoken->dialect;
}

/* Finds out the dialect from what was fed. */
static int reading_decide(struct legacy_connection *connection)
{
	struct legacy_server *server = connection->server;
	struct legacy_stream *stream = &connection->stream;
	struct legacy_message message;
	uint64_t wait_until = LEGACY_STREAM_NEVER;
	int r = legacy_stream_next(stream, loop_now(server->config.loop), (int32_t)connection->pid,
				   &message, &wait_until);

	if (r == LEGACY_GARBAGE)
		return reading_garbage(connection);
	if (r > 0) {
		server->counts.ended_truncated += r == LEGACY_TRUNCATED;
		return reading_end(connection);
	}
	if (wait_until != LEGACY_STREAM_NEVER &&
	    loop_set(server->config.loop, &connection->timer, wait_until) < 0)
		return reading_end(connection);
	if (stream->dialect == LEGACY_UNDECIDED)
		return LEGACY_READS;
	/* All of it is still in the socket. */
	loop_cancel(server->config.loop, &connection->timer);
	legacy_stream_restart(stream, stream->dialect);
	connection->slot->dialect = (uint32_t)stream->dialect;
	*reading_spoken(connection) = (struct legacy_spoken){
		.process = connection->facts.id,
		.dialect = (uint32_t)stream->dialect,
	};
	return LEGACY_READS;
}

/* The client has hung up, and left @length bytes that are not a message of a known dialect. */
static int reading_hung_up(struct legacy_connection *connection, size_t length)
{
	if (connection->stream.dialect == LEGACY_UNDECIDED) {
		legacy_stream_end(&connection->stream);
		return reading_decide(connection);
	}
	connection->server->counts.ended_truncated += length > 0;
	return reading_end(connection);
}

/*
 * There are no more than @known bytes, which are not a message. More may have come since. Descriptors
 * or urgent data inside a message would hide what is behind them: no old client sends such.
 */
static int reading_stall(struct legacy_connection *connection, size_t known, bool *ret_more)
{
	enum legacy_dialect dialect = connection->stream.dialect;
	struct pollfd wait = {.fd = connection->source.fd, .events = POLLRDHUP};
	bool has_hung_up = poll(&wait, 1, 0) > 0;
	uint8_t bytes[LEGACY_STREAM_ROOM];
	int there = 0;
	ssize_t n;

	(void)ioctl(connection->source.fd, FIONREAD, &there); /* cannot fail for a socket */
	n = recv(connection->source.fd, bytes, sizeof(bytes), MSG_PEEK | MSG_DONTWAIT);
	*ret_more = n > (ssize_t)known || (n < 0 && errno == EINTR);
	if (*ret_more)
		return LEGACY_READS;
	if (n > 0 && (n < there || (dialect != LEGACY_UNDECIDED &&
				    !legacy_check_beginning(dialect, bytes, (size_t)n))))
		return reading_garbage(connection);
	if (has_hung_up || n == 0)
		return reading_hung_up(connection, known);
	if (n < 0)
		return LEGACY_READS;
	connection->is_partial = true;
	return LEGACY_READS;
}

/* Looks at the first bytes of a connection. */
static int reading_look(struct legacy_connection *connection, bool *ret_more)
{
	size_t known = legacy_stream_left(&connection->stream);
	uint8_t bytes[LEGACY_STREAM_ROOM];
	ssize_t n = recv(connection->source.fd, bytes, sizeof(bytes), MSG_PEEK | MSG_DONTWAIT);

	*ret_more = n > (ssize_t)known;
	if (!*ret_more)
		return reading_stall(connection, known, ret_more);
	(void)legacy_stream_feed(&connection->stream, bytes + known, (size_t)n - known); /* fits */
	return reading_decide(connection);
}

int legacy_reading_read(struct legacy_connection *connection, bool *ret_more)
{
	enum legacy_dialect *dialect = &connection->stream.dialect;
	uint32_t size, most = connection->asks ? READING_SMALL : LEGACY_READ_SIZE;
	int there = 0, state;

	connection->is_partial = false;
	if (*dialect == LEGACY_UNDECIDED) {
		state = reading_look(connection, ret_more);
		if (state != LEGACY_READS || *dialect == LEGACY_UNDECIDED)
			return state;
	}
	size = (uint32_t)legacy_size(*dialect);
	(void)ioctl(connection->source.fd, FIONREAD, &there); /* cannot fail for a socket */
	if (there < (int)size)
		return reading_stall(connection, (size_t)there, ret_more);
	*ret_more = true;
	return reading_messages(connection,
				(uint32_t)bits_min((uint32_t)there, most) / size * size);
}

int legacy_reading_go_on(struct legacy_connection *connection)
{
	struct legacy_server *server = connection->server;
	struct legacy_ledger *ledger = server->ledger;
	struct legacy_slot *slot = connection->slot;
	bool more;
	int state;

	if (connection->stream.dialect == LEGACY_UNDECIDED) {
		state = reading_decide(connection);
		return state != LEGACY_READS || connection->stream.dialect == LEGACY_UNDECIDED
			       ? state
			       : legacy_reading_read(connection, &more);
	}
	if (slot->spill_end == 0)
		return LEGACY_READS;
	ledger->wanted = ledger->length = ledger->position = 0;
	LEGACY_LEDGER_ORDER();
	ledger->owner = 1 + (uint32_t)(slot - ledger->slots);
	state = reading_work(connection, legacy_ledger_spilled(ledger, slot), &slot->spill_begin,
			     slot->spill_end);
	ledger->owner = 0;
	if (state == LEGACY_READS)
		legacy_ledger_unspill(ledger, server->ledger_fd, slot, false);
	return state;
}

void legacy_reading_answered(struct legacy_connection *connection)
{
	struct legacy_slot *slot = connection->slot;

	slot->answering = LEGACY_ANSWERING_NOW;
	LEGACY_LEDGER_ORDER();
	slot->spill_begin += (uint32_t)legacy_size(connection->stream.dialect);
}
