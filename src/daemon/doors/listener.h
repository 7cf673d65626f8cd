/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Which process listens where we want to, for a message. A connection would tell the same, but the
 * socket of another user may be closed to us.
 */

#include <stdint.h>

struct address;
struct proc;

struct listener {
	uint32_t pid; /* 0 = not known: it is in another namespace, or we may not look */
	uint32_t uid; /* of the socket's creator; for a path not set */
};

/*
 * Both look until @deadline (CLOCK_MONOTONIC): anybody may have very many descriptors. 0, or -ENOENT
 * if nobody listens there.
 */
int listener_find_tcp(const struct proc *proc, const struct address *address, uint64_t deadline,
		      struct listener *ret_listener);
int listener_find_unix(const struct proc *proc, const char *path, uint64_t deadline,
		       struct listener *ret_listener);
