/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Whom a message on a connection is from. Mostly it is the socket's peer, whatever number it gives
 * itself: inside a container that is another one than here. A child that goes on using an inherited
 * connection is a process of its own, if the kernel confirms it; otherwise its messages count for the
 * peer, and are counted.
 */

#include <stdbool.h>
#include <stdint.h>

struct legacy_client;
struct legacy_connection;

/* Looks at the peer while it is most likely still there. */
void legacy_sender_init(struct legacy_connection *connection);

/* The process that calls itself @pid; as legacy_client_get(). */
int legacy_sender_find(struct legacy_connection *connection, int32_t pid,
		       struct legacy_client **ret_client);

/* Whether messages of the client may be on the connection. */
bool legacy_sender_is_on(const struct legacy_connection *connection,
			 const struct legacy_client *client);

/* The client is no more. */
void legacy_sender_forget(struct legacy_connection *connection, const struct legacy_client *client);
