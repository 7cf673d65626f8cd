/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Which process sent a message on a connection. Usually it is the socket's peer, whatever pid it
 * claims: inside a container that differs from ours. A child that uses an inherited connection is a
 * process of its own if the kernel confirms it; otherwise its messages count for the peer, and the
 * case is counted.
 */

#include <stdbool.h>
#include <stdint.h>

struct legacy_client;
struct legacy_connection;

/* Reads the peer's facts as early as possible, while it is most likely still there. */
void legacy_sender_init(struct legacy_connection *connection);

/* The process that calls itself @pid; as legacy_client_get(). */
int legacy_sender_find(struct legacy_connection *connection, int32_t pid,
		       struct legacy_client **ret_client);

/* Whether messages of the client may be on the connection. */
bool legacy_sender_is_on(const struct legacy_connection *connection,
			 const struct legacy_client *client);

/* The client is about to be freed. */
void legacy_sender_forget(struct legacy_connection *connection, const struct legacy_client *client);
