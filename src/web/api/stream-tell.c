/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What subscribers are told. First it is decided which messages are needed, then these are made without
 * the lock, then everybody is given theirs: who has come in between may have to wait for the next time.
 */

#include <pthread.h>

#include "base/bits.h"
#include "base/clock.h"
#include "model/snapshot-digest.h"
#include "model/snapshot.h"
#include "web/api/stream-message.h"
#include "web/api/stream-private.h"
#include "web/api/stream.h"
#include "web/server/body.h"
#include "web/server/sessions.h"
#include "web/server/web.h"

/* Which messages are wanted, in which forms: plain, and compressed. */
struct stream_needs {
	bool totals[2];
	bool changes[2];
};

static bool stream_wants_totals(const struct stream_subscriber *subscriber, bool changed)
{
	return subscriber->format.changes ? !subscriber->told && !subscriber->behind
					  : changed || !subscriber->told;
}

static void stream_need_locked(const struct stream *stream, bool changed,
			       struct stream_needs *ret_needs)
{
	struct stream_needs needs = {0};

	for (const struct stream_subscriber *each = stream->subscribers; each; each = each->next) {
		if (stream_wants_totals(each, changed))
			needs.totals[each->format.packed] = true;
		else if (each->format.changes && each->told)
			needs.changes[each->format.packed] = true;
	}
	*ret_needs = needs;
}

/* It cannot be sent all changes any more: then what there was to send is of no use. */
static void stream_fall_behind_locked(struct stream_subscriber *subscriber)
{
	stream_ring_clear(&subscriber->changes);
	subscriber->totals = body_unref(subscriber->totals);
	subscriber->told = false;
	subscriber->behind = !subscriber->suspended;
	subscriber->stream->fresh |= subscriber->suspended;
}

/* Return: how many bytes it is to be sent. */
static size_t stream_give_locked(struct stream_subscriber *subscriber, struct body *totals,
				 struct body *changes, bool changed)
{
	if (stream_wants_totals(subscriber, changed)) {
		if (!totals) {
			subscriber->stream->fresh = true; /* it came in between */
			return 0;
		}
		body_unref(subscriber->totals);
		subscriber->totals = body_ref(totals);
		subscriber->told = true;
		stream_put_locked(subscriber);
		return totals->length;
	}
	if (!subscriber->format.changes || !subscriber->told)
		return 0;
	if (!changes || !stream_ring_put(&subscriber->changes, changes, STREAM_CHANGES_MAX)) {
		stream_fall_behind_locked(subscriber);
		return 0;
	}
	stream_put_locked(subscriber);
	return changes->length;
}

/* How long sending takes at @rate. */
static uint64_t stream_spread(uint64_t bytes, uint64_t rate)
{
	return bits_min(bytes * (NS_PER_S / 1000) / (rate / 1000), STREAM_PAUSE_MAX_NS);
}

/* How long a subscriber may take to read the changes; those who read them uncompressed are near. */
static uint64_t stream_reading(const struct stream_message *changes)
{
	if (changes->packed)
		return stream_spread(changes->packed->length, STREAM_READER_BYTES_PER_S);
	return changes->plain ? stream_spread(changes->plain->length, 8 * STREAM_READER_BYTES_PER_S)
			      : 0;
}

static uint64_t stream_pause(uint64_t cost_ns)
{
	return bits_min(bits_max(STREAM_PAUSE_NS, STREAM_PAUSE_FACTOR * cost_ns),
			STREAM_PAUSE_MAX_NS);
}

static void stream_make(struct stream *stream, const struct snapshot *snapshot,
			const struct stream_needs *needs, struct stream_message *ret_totals,
			struct stream_message *ret_changes)
{
	stream_message_totals(ret_totals, stream->purse, snapshot);
	if (needs->totals[true])
		stream_message_pack(ret_totals);
	if (stream->last && ret_totals->plain && (needs->changes[false] || needs->changes[true]))
		stream_message_changes(ret_changes, stream->last, ret_totals->plain,
				       stream->last_time_ns);
	if (needs->changes[true])
		stream_message_pack(ret_changes);
}

static void stream_send(struct stream *stream, const struct stream_message *totals,
			const struct stream_message *changes, bool changed)
{
	uint64_t now_ns = clock_ns(CLOCK_MONOTONIC), bytes = 0;
	bool anybody = false;

	pthread_mutex_lock(&stream->lock);
	for (struct stream_subscriber *each = stream->subscribers; each; each = each->next) {
		bytes += stream_give_locked(each, stream_message_form(totals, each->format.packed),
					    stream_message_form(changes, each->format.packed),
					    changed);
		anybody |= each->format.changes;
	}
	stream->look_ns =
		bits_max(stream->look_ns, now_ns + stream_spread(bytes, STREAM_BYTES_PER_S));
	stream->look_ns = bits_max(stream->look_ns, now_ns + stream_reading(changes));
	pthread_mutex_unlock(&stream->lock);
	body_unref(stream->last);
	stream->last = anybody ? body_ref(totals->plain) : NULL;
}

void stream_tell_totals(struct stream *stream, const struct snapshot *snapshot, uint64_t took_ns)
{
	uint64_t begin_ns = clock_ns(CLOCK_MONOTONIC), digest = snapshot_digest_totals(snapshot);
	struct stream_message totals = STREAM_MESSAGE_NULL, changes = STREAM_MESSAGE_NULL;
	struct stream_needs needs = {0};
	bool changed, wanted;

	pthread_mutex_lock(&stream->lock);
	changed = digest != stream->digest;
	wanted = changed || stream->fresh;
	stream->fresh = false;
	if (wanted)
		stream_need_locked(stream, changed, &needs);
	pthread_mutex_unlock(&stream->lock);
	if (wanted)
		stream_make(stream, snapshot, &needs, &totals, &changes);
	pthread_mutex_lock(&stream->lock);
	stream->told_ns = clock_ns(CLOCK_MONOTONIC);
	stream->look_ns = stream->told_ns + stream_pause(took_ns + stream->told_ns - begin_ns);
	if (totals.plain)
		stream->digest = digest;
	else
		stream->fresh |= wanted; /* no memory: another time */
	pthread_mutex_unlock(&stream->lock);
	if (totals.plain) {
		stream_send(stream, &totals, &changes, changed);
		stream->last_time_ns = snapshot->time_ns;
	}
	stream_message_deinit(&totals);
	stream_message_deinit(&changes);
}

void stream_tell_stored(struct stream *stream, uint64_t records)
{
	struct stream_message stored = STREAM_MESSAGE_NULL;

	if (records == stream->records)
		return;
	stream->records = records;
	stream_message_stored(&stored, stream->purse, records);
	pthread_mutex_lock(&stream->lock);
	for (struct stream_subscriber *each = stream->subscribers; each; each = each->next) {
		if (each->format.changes)
			stream_queue_locked(each, &stored);
	}
	pthread_mutex_unlock(&stream->lock);
	stream_message_deinit(&stored);
}

/* Whether a subscriber receives the whole incident. */
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
	struct stream_message messages[2] = {STREAM_MESSAGE_NULL, STREAM_MESSAGE_NULL};
	bool anybody;

	pthread_mutex_lock(&stream->lock);
	anybody = stream->subscribers != NULL;
	pthread_mutex_unlock(&stream->lock);
	if (!anybody)
		return;
	for (size_t details = 0; details < 2; details++) {
		stream_message_incident(&messages[details], stream->purse, incident, details);
		/* Not compressed: the daemon's loop is calling. */
		stream_message_frame(&messages[details]);
	}
	pthread_mutex_lock(&stream->lock);
	for (struct stream_subscriber *each = stream->subscribers; each; each = each->next)
		stream_queue_locked(each, &messages[stream_may_see_locked(each, incident)]);
	pthread_mutex_unlock(&stream->lock);
	stream_message_deinit(&messages[0]);
	stream_message_deinit(&messages[1]);
}
