/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Servers of the old protocol, to compare the daemon with. Each handles a message as the original
 * is known to have done, and does nothing that would slow it down further:
 *
 *	discard		reads as much as it can at once and throws it away: no server is faster
 *	plain		the baseline of "ttmem bench": one recv() for each message, a table under a
 *			mutex. Faster than any original
 *	first		72 bytes: plain, and a line for each event, flushed at once
 *	enhanced	72 bytes: first, and the last fifty events of every buffer ever seen
 *	newest		144 bytes: plain, but peeks at each message before reading it; prints nothing,
 *			as with its option -q
 */

#include <stddef.h>
#include <sys/types.h>

/*
 * Starts a server in a process of its own that ends with the connection.
 *
 * @name: one of the above
 * @size: of a message
 *
 * Return: the client's end of the connection, or a negative errno: -EINVAL if there is no such
 * server.
 */
int old_server_start(const char *name, size_t size, pid_t *ret_pid);
