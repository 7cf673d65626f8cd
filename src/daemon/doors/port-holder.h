/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Which process listens at the TCP address that we want, for a message. */

#include <stdint.h>

struct address;
struct proc;

struct port_holder {
	uint32_t pid; /* 0 = not known: it is in another namespace, or we may not look */
	uint32_t uid; /* of the socket's creator */
};

/*
 * Looks until @deadline (CLOCK_MONOTONIC): anybody may have very many descriptors. 0, or -ENOENT if
 * nobody listens there.
 */
int port_holder_find(const struct proc *proc, const struct address *address, uint64_t deadline,
		     struct port_holder *ret_holder);
