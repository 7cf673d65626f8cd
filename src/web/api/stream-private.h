/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Subscribers and what is to be sent to them, for stream.c, which sends, and stream-tell.c, which
 * makes messages. Everything is under one lock, which is never held across a blocking call, nor while
 * a message is made. Functions whose names end in "locked" are called with the lock held.
 *
 * A subscriber to changes has been told totals, and has been sent or is to be sent all changes since;
 * or it has not been told. One that reads too slowly for that is behind: what it has not begun to read
 * is dropped, and once it has read the rest, it is told totals again.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "web/api/stream.h"

struct body;
struct session;
struct stream_message;
struct web_provider;

struct stream_ring {
	struct body *slots[STREAM_QUEUE_MAX];
	size_t first, count;
};

struct stream_subscriber {
	struct stream *stream;
	struct stream_subscriber *next;
	struct MHD_Connection *connection;
	struct connection_limits_visit *visit;
	struct stream_format format;
	bool details;            /* gets details */
	bool known;              /* has shown the token */
	struct session *session; /* owned; NULL = is not signed in */
	bool told;               /* has been sent totals */
	bool behind;             /* has not, because it still has to read what was sent before */
	bool suspended;          /* waits for something to send */
	bool dropped;
	bool left;        /* the peer has closed the connection */
	uint64_t last_ns; /* when something was put into its queue */

	struct body *sending; /* @sent bytes of it are sent */
	size_t sent;
	/* What is to be sent, in this order: */
	struct stream_ring queue;
	struct body *totals; /* the newest, not yet started; NULL = none */
	struct stream_ring changes;
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
	bool fresh;       /* some subscriber has to be told totals */
	uint64_t look_ns; /* when to take the next snapshot */
	uint64_t told_ns; /* when totals were last sent */

	/* Private to the thread that takes snapshots: */
	struct body
		*last; /* totals that all who are told can compute; NULL = nobody wants changes */
	uint64_t last_time_ns; /* of that document */
	uint64_t records;
};

/* False: it has @max already. */
bool stream_ring_put(struct stream_ring *ring, struct body *body, size_t max);
void stream_ring_clear(struct stream_ring *ring);

/* Something was added to what is to be sent. */
void stream_put_locked(struct stream_subscriber *subscriber);

/* Queues a message that must not be left out; drops a subscriber that has too many. */
void stream_queue_locked(struct stream_subscriber *subscriber,
			 const struct stream_message *message);
