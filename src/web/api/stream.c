/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Subscribers and their queues. A connection with nothing to send is suspended, so that the thread
 * that serves the sockets does not spin; adding to its queue resumes it.
 */

#include "web/api/stream.h"

#include <errno.h>
#include <microhttpd.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "web/api/stream-message.h"
#include "web/api/stream-private.h"
#include "web/server/body.h"
#include "web/server/connection-limits.h"
#include "web/server/pack.h"
#include "web/server/sessions.h"

#define STREAM_BLOCK 16384u

int stream_new(struct stream **ret_stream, struct body_purse *purse,
	       const struct web_provider *provider, uint32_t alive_ms)
{
	struct stream *stream = calloc(1, sizeof(*stream));

	if (!stream)
		return -ENOMEM;
	pthread_mutex_init(&stream->lock, NULL);
	stream->purse = purse;
	stream->provider = provider;
	stream->alive_ns = (uint64_t)(alive_ms ? alive_ms : STREAM_ALIVE_MS) * NS_PER_MS;
	*ret_stream = stream;
	return 0;
}

struct stream *stream_free(struct stream *stream)
{
	if (!stream)
		return NULL;
	body_unref(stream->last);
	pthread_mutex_destroy(&stream->lock);
	free(stream);
	return NULL;
}

bool stream_ring_put(struct stream_ring *ring, struct body *body, size_t max)
{
	if (ring->count >= max)
		return false;
	ring->slots[(ring->first + ring->count++) % STREAM_QUEUE_MAX] = body_ref(body);
	return true;
}

/* NULL: it is empty. */
static struct body *stream_ring_take(struct stream_ring *ring)
{
	struct body *body = ring->slots[ring->first];

	if (ring->count == 0)
		return NULL;
	ring->first = (ring->first + 1) % STREAM_QUEUE_MAX;
	ring->count--;
	return body;
}

void stream_ring_clear(struct stream_ring *ring)
{
	while (ring->count > 0)
		body_unref(stream_ring_take(ring));
}

static void stream_resume_locked(struct stream_subscriber *subscriber)
{
	if (subscriber->suspended) {
		subscriber->suspended = false;
		MHD_resume_connection(subscriber->connection);
	}
}

static void stream_drop_locked(struct stream_subscriber *subscriber)
{
	if (subscriber->dropped)
		return;
	subscriber->dropped = true;
	subscriber->stream->dropped++;
	subscriber->stream->leaving++;
	connection_limits_throw_out(subscriber->visit);
	stream_resume_locked(subscriber);
}

void stream_put_locked(struct stream_subscriber *subscriber)
{
	subscriber->last_ns = clock_ns(CLOCK_MONOTONIC);
	stream_resume_locked(subscriber);
}

void stream_queue_locked(struct stream_subscriber *subscriber, const struct stream_message *message)
{
	struct body *body = stream_message_form(message, subscriber->format.packed);

	if (!body)
		return; /* no memory: it is not sent */
	if (stream_ring_put(&subscriber->queue, body, STREAM_QUEUE_MAX))
		stream_put_locked(subscriber);
	else
		stream_drop_locked(subscriber);
}

/* Picks what to send next: incidents before totals, which only describe the current state. */
static bool stream_next_locked(struct stream_subscriber *subscriber)
{
	if (subscriber->sending && subscriber->sent < subscriber->sending->length)
		return true;
	body_unref(subscriber->sending);
	subscriber->sent = 0;
	subscriber->sending = stream_ring_take(&subscriber->queue);
	if (!subscriber->sending)
		subscriber->sending = cleanup_steal(subscriber->totals);
	if (!subscriber->sending)
		subscriber->sending = stream_ring_take(&subscriber->changes);
	return subscriber->sending != NULL;
}

static void stream_suspend_locked(struct stream_subscriber *subscriber)
{
	if (subscriber->behind) {
		subscriber->behind = false;
		subscriber->stream->fresh = true;
	}
	subscriber->suspended = true;
	MHD_suspend_connection(subscriber->connection);
}

/* The HTTP library wants more data. */
static ssize_t stream_read(void *context, uint64_t position, char *buffer, size_t max)
{
	struct stream_subscriber *subscriber = context;
	struct stream *stream = subscriber->stream;
	ssize_t result = 0;

	(void)position; /* each subscriber keeps its own position */
	pthread_mutex_lock(&stream->lock);
	if (subscriber->dropped || subscriber->left) {
		result = MHD_CONTENT_READER_END_WITH_ERROR;
	} else if (stream_next_locked(subscriber)) {
		size_t length = bits_min(subscriber->sending->length - subscriber->sent, max);

		memcpy(buffer, subscriber->sending->text + subscriber->sent, length);
		subscriber->sent += length;
		result = (ssize_t)length;
	} else if (stream->closed) {
		result = MHD_CONTENT_READER_END_OF_STREAM;
	} else {
		stream_suspend_locked(subscriber);
	}
	pthread_mutex_unlock(&stream->lock);
	return result;
}

/* Its connection has ended. */
static void stream_release(void *context)
{
	struct stream_subscriber *subscriber = context;
	struct stream *stream = subscriber->stream;
	struct stream_subscriber **at = &stream->subscribers;

	pthread_mutex_lock(&stream->lock);
	while (*at && *at != subscriber)
		at = &(*at)->next;
	if (*at) {
		*at = subscriber->next;
		stream->count--;
		stream->leaving -= subscriber->dropped;
	}
	pthread_mutex_unlock(&stream->lock);
	session_unref(subscriber->session);
	body_unref(subscriber->sending);
	body_unref(subscriber->totals);
	stream_ring_clear(&subscriber->queue);
	stream_ring_clear(&subscriber->changes);
	free(subscriber);
}

/* Whose place is given to whom: the token before who is signed in, and those before the others. */
static unsigned int stream_rank(bool known, const struct session *session)
{
	return known ? 2 : session != NULL;
}

/*
 * Of those who are signed in, nobody has more than a few: the user's oldest one makes room. Not a struct
 * quota: the list is searched for that one, and counted on the way.
 */
static void stream_limit_user_locked(struct stream *stream, const struct session *session)
{
	struct stream_subscriber *longest = NULL;
	uint32_t own = 0;

	for (struct stream_subscriber *each = stream->subscribers; each; each = each->next) {
		if (each->known || !each->session || each->dropped ||
		    session_asker(each->session)->user_id != session_asker(session)->user_id)
			continue;
		longest = each; /* the newest are first */
		own++;
	}
	if (own >= STREAM_PER_USER)
		stream_drop_locked(longest);
}

/*
 * Whether there is room for one more subscriber. Any local user may subscribe and could fill all
 * places for good, so a client with the token always gets in: it replaces the oldest subscriber
 * of the lowest rank.
 */
static bool stream_has_room_locked(struct stream *stream, const struct stream_rights *rights)
{
	unsigned int lowest = stream_rank(rights->known, rights->session);
	struct stream_subscriber *longest = NULL;

	if (rights->session && !rights->known)
		stream_limit_user_locked(stream, rights->session);
	if (stream->count - stream->leaving < STREAM_SUBSCRIBERS_MAX)
		return true;
	for (struct stream_subscriber *each = stream->subscribers; each; each = each->next) {
		unsigned int rank = stream_rank(each->known, each->session);

		if (each->dropped || rank > lowest || (rank == lowest && !longest))
			continue;
		longest = each; /* the newest are first */
		lowest = rank;
	}
	if (longest)
		stream_drop_locked(longest);
	return longest != NULL;
}

static struct stream_subscriber *stream_new_subscriber(struct stream *stream,
						       const struct stream_rights *rights,
						       const struct stream_format *format)
{
	struct stream_subscriber *subscriber = calloc(1, sizeof(*subscriber));

	if (!subscriber)
		return NULL;
	*subscriber = (struct stream_subscriber){
		.stream = stream,
		.format = *format,
		.details = rights->details,
		.known = rights->known,
		.last_ns = clock_ns(CLOCK_MONOTONIC),
	};
	if (!format->packed)
		return subscriber;
	subscriber->sending = pack_begin(stream->purse);
	if (!subscriber->sending) {
		free(subscriber);
		return NULL;
	}
	return subscriber;
}

int stream_subscribe(struct stream *stream, const struct stream_peer *peer,
		     const struct stream_rights *rights, const struct stream_format *format,
		     struct MHD_Response **ret_response)
{
	struct stream_subscriber *subscriber = stream_new_subscriber(stream, rights, format);
	struct MHD_Response *response = NULL;
	int r = -ENOMEM;

	if (!subscriber)
		return r;
	subscriber->connection = peer->connection;
	subscriber->visit = peer->visit;
	pthread_mutex_lock(&stream->lock);
	if (stream->closed || !stream_has_room_locked(stream, rights)) {
		r = -EBUSY;
	} else {
		response = MHD_create_response_from_callback(
			MHD_SIZE_UNKNOWN, STREAM_BLOCK, stream_read, subscriber, stream_release);
	}
	if (response) {
		r = 0;
		*ret_response = response;
		subscriber->next = stream->subscribers;
		stream->subscribers = subscriber;
		stream->count++;
		stream->fresh = true;
		stream->look_ns = 0;
		if (rights->session)
			subscriber->session = session_ref(rights->session);
	}
	pthread_mutex_unlock(&stream->lock);
	if (r < 0) {
		body_unref(subscriber->sending);
		free(subscriber);
	}
	return r;
}

uint64_t stream_due(struct stream *stream)
{
	uint64_t due = UINT64_MAX;

	pthread_mutex_lock(&stream->lock);
	if (stream->count > 0 && !stream->closed)
		due = stream->look_ns;
	for (struct stream_subscriber *each = stream->subscribers; each; each = each->next)
		due = bits_min(due, each->suspended ? each->last_ns + stream->alive_ns : due);
	pthread_mutex_unlock(&stream->lock);
	return due;
}

bool stream_wants(struct stream *stream, uint64_t now_ns)
{
	struct stream_message alive = STREAM_MESSAGE_NULL;
	bool wants;

	pthread_mutex_lock(&stream->lock);
	wants = stream->count > 0 && !stream->closed && now_ns >= stream->look_ns;
	for (struct stream_subscriber *each = stream->subscribers; each; each = each->next) {
		if (each->session)
			session_use(each->session, clock_ns(CLOCK_BOOTTIME));
		/* One that has not read everything needs no more. */
		if (!each->suspended)
			continue;
		if (connection_limits_has_left(each->visit)) {
			each->left = true;
			stream_resume_locked(each);
			continue;
		}
		if (now_ns < each->last_ns || now_ns - each->last_ns < stream->alive_ns)
			continue;
		if (!alive.plain)
			stream_message_alive(&alive, stream->purse);
		stream_queue_locked(each, &alive);
	}
	if (stream->count == 0)
		stream->last = body_unref(stream->last); /* nobody can be told changes */
	pthread_mutex_unlock(&stream->lock);
	stream_message_deinit(&alive);
	return wants;
}

bool stream_takes(struct stream *stream, uint64_t now_ns)
{
	uint64_t pause, waited;
	bool takes;

	pthread_mutex_lock(&stream->lock);
	pause = bits_max(stream->look_ns, stream->told_ns) - stream->told_ns;
	waited = now_ns - bits_min(stream->told_ns, now_ns);
	takes = stream->count > 0 && !stream->closed &&
		waited >= bits_max(STREAM_PAUSE_NS, pause / 4 * 3);
	pthread_mutex_unlock(&stream->lock);
	return takes;
}

void stream_close(struct stream *stream)
{
	pthread_mutex_lock(&stream->lock);
	stream->closed = true;
	for (struct stream_subscriber *each = stream->subscribers; each; each = each->next)
		stream_resume_locked(each);
	pthread_mutex_unlock(&stream->lock);
}

void stream_counts(struct stream *stream, struct stream_counts *ret_counts)
{
	pthread_mutex_lock(&stream->lock);
	*ret_counts = (struct stream_counts){stream->count, stream->dropped};
	pthread_mutex_unlock(&stream->lock);
}
