/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The stream of changes (server-sent events). One snapshot serves all subscribers, and none is taken
 * while there are none. Each subscriber has a short queue: of totals only the newest waits, incidents
 * wait in order, and who lets too many of them wait is dropped. When all places are taken, who has
 * shown the token takes that of somebody who has not.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STREAM_SUBSCRIBERS_MAX 64u
#define STREAM_QUEUE_MAX 256u
#define STREAM_PAUSE_NS UINT64_C(100000000) /* between two looks at least */
#define STREAM_PAUSE_MAX_NS UINT64_C(2000000000)
/*
 * On a large machine with many listeners the stream is to cost the daemon no more than a few hundredths of
 * a core: so it pauses for so many times what a look takes, and for as long as its text would take at
 * this rate.
 */
#define STREAM_PAUSE_FACTOR 40u
#define STREAM_BYTES_PER_S (UINT64_C(16) << 20) /* to all of them together */
#define STREAM_ALIVE_MS 15000u
#define STREAM_RETRY "30" /* seconds: who finds all places taken asks for totals for so long */

struct MHD_Connection;
struct MHD_Response;
struct body_purse;
struct connection_limits_visit;
struct snapshot;
struct stream;
struct web_incident;

/* @alive_ms: no subscriber hears nothing for longer; 0 = STREAM_ALIVE_MS. */
int stream_new(struct stream **ret_stream, struct body_purse *purse, uint32_t alive_ms);
struct stream *stream_free(struct stream *stream);

/* Two things: details may be open to everybody, and still only the token gives a right to a place. */
struct stream_rights {
	bool details; /* is told all of an incident */
	bool known;   /* has shown the token */
};

/*
 * A new subscriber and the response that feeds it. 0; -EBUSY if there are too many, and among them
 * nobody who has to make room; or a negative errno. From the thread that serves the sockets.
 */
int stream_subscribe(struct stream *stream, struct MHD_Connection *connection,
		     struct connection_limits_visit *visit, const struct stream_rights *rights,
		     struct MHD_Response **ret_response);

/* When something has to be done next: UINT64_MAX = nobody listens. */
uint64_t stream_due(struct stream *stream);

/* Whether a snapshot is wanted now. Also sends what keeps connections alive. */
bool stream_wants(struct stream *stream, uint64_t now_ns);

/* Whether it would take totals that are there anyway: its own look is not far off. */
bool stream_takes(struct stream *stream, uint64_t now_ns);

/* Tells all of them, if anything has changed. @took_ns: what the snapshot cost. */
void stream_tell_totals(struct stream *stream, const struct snapshot *snapshot, uint64_t took_ns);

/* From any thread. */
void stream_tell_incident(struct stream *stream, const struct web_incident *incident);

/* Ends all subscriptions, and lets no more in. */
void stream_close(struct stream *stream);

struct stream_counts {
	uint64_t subscribers;
	uint64_t dropped;
};

void stream_counts(struct stream *stream, struct stream_counts *ret_counts);
