/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The stream of changes (server-sent events). One snapshot serves all subscribers, and none is
 * taken while there are none. A message is made once, and compressed once. Each subscriber has a
 * short queue: only the newest totals are kept, incidents are kept in order, and a subscriber with
 * too many queued is dropped. When all places are taken, a client with the token replaces a
 * subscriber without it, and one that is signed in replaces one that is not.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STREAM_SUBSCRIBERS_MAX 64u
#define STREAM_PER_USER 8u /* of those who are signed in; a further one replaces the oldest */
#define STREAM_QUEUE_MAX 256u
#define STREAM_CHANGES_MAX 8u /* unread; one that has more is sent all totals again, later */
#define STREAM_PAUSE_NS UINT64_C(100000000) /* at least, between two snapshots */
#define STREAM_PAUSE_MAX_NS UINT64_C(2000000000)
/*
 * On a large machine with many subscribers the stream must cost the daemon no more than a few
 * percent of a core. So it pauses for this many times the cost of a snapshot, and for as long as
 * sending takes at this rate.
 */
#define STREAM_PAUSE_FACTOR 40u
#define STREAM_BYTES_PER_S (UINT64_C(16) << 20) /* to all subscribers together */
/* To one of them that is sent changes, compressed: a viewer far away is not to cost more. */
#define STREAM_READER_BYTES_PER_S (UINT64_C(32) << 10)
/* Every 2 s, as documented, even if the machine is busy. */
#define STREAM_ALIVE_MS 1500u
#define STREAM_RETRY "30" /* seconds: clients that get no place poll totals for this long */

struct MHD_Connection;
struct MHD_Response;
struct body_purse;
struct connection_limits_visit;
struct snapshot;
struct stream;
struct session;
struct web_incident;
struct web_provider;

/*
 * @provider tells who may see an incident; borrowed. @alive_ms: every subscriber receives something
 * this often; 0 = STREAM_ALIVE_MS.
 */
int stream_new(struct stream **ret_stream, struct body_purse *purse,
	       const struct web_provider *provider, uint32_t alive_ms);
struct stream *stream_free(struct stream *stream);

/*
 * Separate rights: details may be open to everybody, but only the token guarantees a place. Who is
 * signed in comes next: before everybody who is not, each user with a few streams.
 */
struct stream_rights {
	bool details; /* receives whole incidents */
	bool known;   /* has shown the token */
	struct session
		*session; /* is signed in, and receives those that it may see; NULL = is not */
};

/* What it understands. */
struct stream_format {
	bool changes; /* totals only at first, then what has changed; and when lists were stored */
	bool packed;  /* gzip */
};

struct stream_peer {
	struct MHD_Connection *connection;
	struct connection_limits_visit *visit;
};

/*
 * Adds a subscriber and returns the response that feeds it. 0; -EBUSY if there are too many and
 * none of them has to make room; or a negative errno. Called from the thread that serves the
 * sockets.
 */
int stream_subscribe(struct stream *stream, const struct stream_peer *peer,
		     const struct stream_rights *rights, const struct stream_format *format,
		     struct MHD_Response **ret_response);

/* When there is something to do next; UINT64_MAX = no subscribers. */
uint64_t stream_due(struct stream *stream);

/* Whether a snapshot is needed now. Also sends keep-alive messages. */
bool stream_wants(struct stream *stream, uint64_t now_ns);

/* Whether it would use totals taken for somebody else, because its own snapshot is due soon. */
bool stream_takes(struct stream *stream, uint64_t now_ns);

/* Sends totals to all subscribers if anything has changed. @took_ns: the cost of the snapshot. */
void stream_tell_totals(struct stream *stream, const struct snapshot *snapshot, uint64_t took_ns);

/*
 * @records counts up whenever incidents or leak reports were stored; subscribers to changes are told.
 * This and the previous four are called by one thread.
 */
void stream_tell_stored(struct stream *stream, uint64_t records);

/* From any thread. */
void stream_tell_incident(struct stream *stream, const struct web_incident *incident);

/* Ends all subscriptions and accepts no more. */
void stream_close(struct stream *stream);

struct stream_counts {
	uint64_t subscribers;
	uint64_t dropped;
};

void stream_counts(struct stream *stream, struct stream_counts *ret_counts);
