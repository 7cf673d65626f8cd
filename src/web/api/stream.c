/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Subscribers and their queues. A connection with nothing to send is suspended, so that the thread
 * that serves the sockets does not spin; adding to its queue resumes it. Everything is under one
 * lock, which is never held across a blocking call.
 */

#include "web/api/stream.h"

#include <errno.h>
#include <inttypes.h>
#include <microhttpd.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/emit.h"
#include "model/filter.h"
#include "model/json/document.h"
#include "model/snapshot-digest.h"
#include "web/server/body.h"
#include "web/server/connection-limits.h"
#include "web/server/sessions.h"
#include "web/server/web.h"

#define STREAM_BLOCK 16384u

struct stream_subscriber {
	struct stream *stream;
	struct stream_subscriber *next;
	struct MHD_Connection *connection;
	struct connection_limits_visit *visit;
	bool details;            /* gets details */
	bool known;              /* has shown the token */
	struct session *session; /* owned; NULL = is not signed in */
	bool told;               /* has been sent totals */
	bool suspended;          /* waits for something to send */
	bool dropped;
	bool left;        /* the peer has closed the connection */
	uint64_t last_ns; /* when something was put into its queue */

	struct body *sending; /* @sent bytes of it are sent */
	size_t sent;
	struct body *totals; /* the newest, not yet started; NULL = none */
	struct body *queue[STREAM_QUEUE_MAX];
	size_t first, count;
};

struct stream {
	pthread_mutex_t lock;
	struct body_purse *purse;
	const struct web_provider *provider;
	uint64_t alive_ns;
	struct stream_subscriber *subscribers;
	size_t count;
	size_t leaving; /* dropped subscribers whose connections are still open */
	uint64_t dropped;
	bool closed;

	uint64_t digest;
	bool fresh;       /* some subscriber has not been sent totals yet */
	uint64_t look_ns; /* when to take the next snapshot */
	uint64_t told_ns; /* when totals were last sent */
};

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
	pthread_mutex_destroy(&stream->lock);
	free(stream);
	return NULL;
}

/* Functions whose names end in "locked" are called with the lock held. */

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

static void stream_queue_locked(struct stream_subscriber *subscriber, struct body *body)
{
	if (subscriber->count == STREAM_QUEUE_MAX) {
		stream_drop_locked(subscriber);
		return;
	}
	subscriber->queue[(subscriber->first + subscriber->count++) % STREAM_QUEUE_MAX] =
		body_ref(body);
	subscriber->last_ns = clock_ns(CLOCK_MONOTONIC);
	stream_resume_locked(subscriber);
}

static void stream_totals_locked(struct stream_subscriber *subscriber, struct body *body)
{
	body_unref(subscriber->totals);
	subscriber->totals = body_ref(body);
	subscriber->told = true;
	subscriber->last_ns = clock_ns(CLOCK_MONOTONIC);
	stream_resume_locked(subscriber);
}

/* Picks what to send next: incidents before totals, which only describe the current state. */
static bool stream_next_locked(struct stream_subscriber *subscriber)
{
	if (subscriber->sending && subscriber->sent < subscriber->sending->length)
		return true;
	subscriber->sending = body_unref(subscriber->sending);
	subscriber->sent = 0;
	if (subscriber->count > 0) {
		subscriber->sending = subscriber->queue[subscriber->first];
		subscriber->first = (subscriber->first + 1) % STREAM_QUEUE_MAX;
		subscriber->count--;
	} else {
		subscriber->sending = cleanup_steal(subscriber->totals);
	}
	return subscriber->sending != NULL;
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
		subscriber->suspended = true;
		MHD_suspend_connection(subscriber->connection);
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
	for (; subscriber->count > 0; subscriber->count--) {
		body_unref(subscriber->queue[subscriber->first]);
		subscriber->first = (subscriber->first + 1) % STREAM_QUEUE_MAX;
	}
	free(subscriber);
}

/* Whose place is given to whom: the token before who is signed in, and those before the others. */
static unsigned int stream_rank(bool known, const struct session *session)
{
	return known ? 2 : session != NULL;
}

/* Of those who are signed in, nobody has more than a few: the user's oldest one makes room. */
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

int stream_subscribe(struct stream *stream, struct MHD_Connection *connection,
		     struct connection_limits_visit *visit, const struct stream_rights *rights,
		     struct MHD_Response **ret_response)
{
	CLEANUP_FREE struct stream_subscriber *subscriber = calloc(1, sizeof(*subscriber));
	struct MHD_Response *response;
	int r = 0;

	if (!subscriber)
		return -ENOMEM;
	*subscriber = (struct stream_subscriber){
		.stream = stream,
		.connection = connection,
		.visit = visit,
		.details = rights->details,
		.known = rights->known,
		.last_ns = clock_ns(CLOCK_MONOTONIC),
	};
	pthread_mutex_lock(&stream->lock);
	if (stream->closed || !stream_has_room_locked(stream, rights)) {
		r = -EBUSY;
	} else {
		response = MHD_create_response_from_callback(
			MHD_SIZE_UNKNOWN, STREAM_BLOCK, stream_read, subscriber, stream_release);
		r = response ? 0 : -ENOMEM;
	}
	if (r == 0) {
		*ret_response = response;
		subscriber->next = stream->subscribers;
		stream->subscribers = subscriber;
		stream->count++;
		stream->fresh = true;
		stream->look_ns = 0;
		if (rights->session)
			subscriber->session = session_ref(rights->session);
		subscriber = NULL; /* owned by the response */
	}
	pthread_mutex_unlock(&stream->lock);
	return r;
}

uint64_t stream_due(struct stream *stream)
{
	uint64_t due;

	pthread_mutex_lock(&stream->lock);
	due = stream->count > 0 && !stream->closed ? stream->look_ns : UINT64_MAX;
	pthread_mutex_unlock(&stream->lock);
	return due;
}

/* A piece of text for queues. NULL: no memory; the text is then not sent. */
static struct body *stream_text(struct stream *stream, const char *text)
{
	struct body *body = body_new(stream->purse);

	if (body && body_append(body, text, strlen(text)) == 0)
		return body;
	return body_unref(body);
}

bool stream_wants(struct stream *stream, uint64_t now_ns)
{
	struct body *alive = NULL;
	bool wants;

	pthread_mutex_lock(&stream->lock);
	wants = stream->count > 0 && !stream->closed && now_ns >= stream->look_ns;
	for (struct stream_subscriber *each = stream->subscribers; each; each = each->next) {
		if (each->suspended && connection_limits_has_left(each->visit)) {
			each->left = true;
			stream_resume_locked(each);
			continue;
		}
		if (each->session)
			session_use(each->session, clock_ns(CLOCK_BOOTTIME));
		if (now_ns < each->last_ns || now_ns - each->last_ns < stream->alive_ns)
			continue;
		if (!alive)
			alive = stream_text(stream, ": keep-alive\n\n");
		if (alive)
			stream_queue_locked(each, alive);
	}
	pthread_mutex_unlock(&stream->lock);
	body_unref(alive);
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

/* "event: totals" with the document on one line. */
static struct body *stream_totals(struct stream *stream, const struct snapshot *snapshot)
{
	const struct filter filter = {0};
	struct body *body = body_new(stream->purse);
	FILE *out = body ? body_open(body) : NULL;
	struct emit json = EMIT_INIT(out);

	if (!out)
		return body_unref(body);
	fputs("event: totals\ndata: ", out);
	document_smi(&json, snapshot, &filter); /* ends with a newline */
	fputc('\n', out);
	if (fclose(out) != 0 || body->error < 0)
		return body_unref(body);
	return body;
}

/* How long sending takes at STREAM_BYTES_PER_S. */
static uint64_t stream_spread(const struct body *body, size_t listeners)
{
	uint64_t bytes = body->length * (uint64_t)listeners;

	return bits_min(bytes * (NS_PER_S / 1000) / (STREAM_BYTES_PER_S / 1000),
			STREAM_PAUSE_MAX_NS);
}

void stream_tell_totals(struct stream *stream, const struct snapshot *snapshot, uint64_t took_ns)
{
	uint64_t pause = bits_min(bits_max(STREAM_PAUSE_NS, STREAM_PAUSE_FACTOR * took_ns),
				  STREAM_PAUSE_MAX_NS);
	uint64_t digest = snapshot_digest_totals(snapshot);
	struct body *body = NULL;
	bool changed, fresh;

	pthread_mutex_lock(&stream->lock);
	stream->told_ns = clock_ns(CLOCK_MONOTONIC);
	stream->look_ns = stream->told_ns + pause;
	changed = digest != stream->digest;
	fresh = stream->fresh;
	stream->fresh = false;
	pthread_mutex_unlock(&stream->lock);
	if (!changed && !fresh)
		return;
	body = stream_totals(stream, snapshot);
	if (!body)
		return;
	pthread_mutex_lock(&stream->lock);
	stream->digest = digest;
	stream->look_ns = bits_max(stream->look_ns,
				   clock_ns(CLOCK_MONOTONIC) + stream_spread(body, stream->count));
	for (struct stream_subscriber *each = stream->subscribers; each; each = each->next) {
		if (changed || !each->told)
			stream_totals_locked(each, body);
	}
	pthread_mutex_unlock(&stream->lock);
	body_unref(body);
}

static struct body *stream_incident(struct stream *stream, const struct web_incident *incident,
				    bool details)
{
	struct body *body = body_new(stream->purse);
	FILE *out = body ? body_open(body) : NULL;
	struct emit json = EMIT_INIT(out);

	if (!out)
		return body_unref(body);
	fputs("event: incident\ndata: ", out);
	if (details) {
		/*
		 * Line breaks in JSON are only white space, but in the stream they would end the
		 * line.
		 */
		for (size_t i = 0; i < incident->length; i++) {
			char c = incident->json[i];

			fputc(c == '\n' || c == '\r' ? ' ' : c, out);
		}
		fputc('\n', out);
	} else {
		emit_open_object(&json, NULL);
		emit_string(&json, "kind", incident->kind);
		emit_u64(&json, "pid", incident->pid);
		emit_u64(&json, "device", incident->device);
		emit_close_object(&json);
		emit_end(&json);
	}
	fputc('\n', out);
	if (fclose(out) != 0 || body->error < 0)
		return body_unref(body);
	return body;
}

/* Whether a subscriber receives the whole incident; with the lock held. */
static bool stream_may_see_locked(const struct stream_subscriber *subscriber,
				  const struct web_incident *incident)
{
	const struct web_provider *provider = subscriber->stream->provider;

	if (subscriber->details)
		return true;
	return subscriber->session && provider->may_see &&
	       session_is_valid(subscriber->session, clock_ns(CLOCK_BOOTTIME)) &&
	       provider->may_see(provider->context, session_asker(subscriber->session), incident);
}

void stream_tell_incident(struct stream *stream, const struct web_incident *incident)
{
	struct body *bodies[2] = {NULL, NULL};
	bool anybody;

	pthread_mutex_lock(&stream->lock);
	anybody = stream->subscribers != NULL;
	pthread_mutex_unlock(&stream->lock);
	if (!anybody)
		return;
	bodies[0] = stream_incident(stream, incident, false);
	bodies[1] = stream_incident(stream, incident, true);
	pthread_mutex_lock(&stream->lock);
	for (struct stream_subscriber *each = stream->subscribers; each; each = each->next) {
		struct body *body = bodies[stream_may_see_locked(each, incident)];

		if (body)
			stream_queue_locked(each, body);
	}
	pthread_mutex_unlock(&stream->lock);
	body_unref(bodies[0]);
	body_unref(bodies[1]);
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
