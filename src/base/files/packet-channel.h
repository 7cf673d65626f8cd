/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A connection on which both ends send packets with descriptors at any time (SOCK_SEQPACKET), in a loop.
 * What the socket does not take waits here, in order, up to a limit; a peer that reads too slowly for that
 * loses the connection. Lives in the loop's thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/files/fd-pass.h"

#define PACKET_CHANNEL_SIZE 65536u   /* of the largest packet */
#define PACKET_CHANNEL_WAITING 8192u /* packets; each may hold descriptors */

struct loop;
struct packet_channel;

struct packet_channel_config {
	struct loop *loop;
	void *context;
	/* A packet of at most PACKET_CHANNEL_SIZE bytes. Descriptors that it does not steal are closed. */
	void (*received)(void *context, const void *bytes, size_t length, struct fd_pass *fds);
	/* The peer has hung up, or was too slow. Nothing follows; the channel may be freed here. */
	void (*ended)(void *context);
	/* Nothing waits any more, see packet_channel_waits(). It must not free the channel. NULL = not needed. */
	void (*drained)(void *context);
};

/* Takes the connected socket in any case. 0 or a negative errno. */
int packet_channel_new_consume(struct packet_channel **ret_channel, int fd,
			       const struct packet_channel_config *config);
/* If the peer has hung up already, receives what it sent before, and ends. The channel may be freed. */
void packet_channel_look(struct packet_channel *channel);

/* What waits is not sent. */
struct packet_channel *packet_channel_free(struct packet_channel *channel);

/*
 * Sends a packet, now or later; the caller keeps the descriptors. Without room or memory for it the
 * connection ends: ended() is called by the loop, and further packets are dropped.
 */
void packet_channel_send(struct packet_channel *channel, const void *bytes, size_t length,
			 const int *fds, size_t fd_count);

/* Ends the connection as if the peer had hung up: ended() is called by the loop. What waits is dropped. */
void packet_channel_hang_up(struct packet_channel *channel);

/*
 * Whether the socket takes no more for now. Whoever can make packets later sends them one by one until
 * then, and goes on when it has drained.
 */
bool packet_channel_waits(const struct packet_channel *channel);
