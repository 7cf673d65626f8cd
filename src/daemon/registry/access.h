/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Who may see what; the rule is implemented only here, and every way out of the daemon asks it.
 *
 * Everybody may see totals. Who may see the details of a process (its buffers, names and stacks):
 *
 *	- root, and members of one group ("ttmem" unless configured otherwise), if they are in the
 *	  daemon's user namespace, and in its pid namespace or one above it: they see everything
 *	- root of any other namespaces: what is in the same user and pid namespace, or below both
 *	- everybody else: what the same user has created in the same user and pid namespace
 *
 * The user is who created the book (a later setuid of the process changes nothing). The namespaces
 * are those of the process when the daemon first saw it. What the daemon cannot tell, it does not
 * guess: a client or a process whose namespaces are not known has nothing in common with anybody,
 * and neither have users without a number in the daemon's user namespace.
 *
 * A client is identified by the credentials and the process that the kernel recorded when it
 * connected. Its process may have ended since, and its pid may belong to another one by now. Linux
 * 6.5 hands out a pidfd of the process that connected; before that one is opened by number, and
 * only a process of the same user is accepted (docs/architecture.md has what remains).
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "source/proc/namespaces.h"

struct access {
	bool has_group;
	gid_t group;
	const struct namespaces *namespaces; /* borrowed; NULL = nobody's are known */
};

enum access_outcome {
	ACCESS_NO_GROUP = 1, /* no such group, so it has no members */
};

struct access_peer {
	uint32_t pid; /* 0 = in a pid namespace that we do not see */
	uint32_t uid;
	bool sees_all;
	bool is_root;     /* of its user namespace */
	bool is_stranger; /* nothing is its own */
	char namespaces[NAMESPACES_SIZE];
};

/*
 * @group: a name or a number; NULL = none. Looks the group up in the system's database, so call it
 * once at the start. 0, ACCESS_NO_GROUP (@ret_access is valid all the same), or a negative errno.
 */
int access_init(struct access *ret_access, const char *group, const struct namespaces *namespaces);

/* The peer of a connected socket. 0 or a negative errno. */
int access_peer_init(const struct access *access, int fd, struct access_peer *ret_peer);

/*
 * Whether @peer may see the details of a process whose book @maker created and that was in
 * @namespaces (as in source/proc/namespaces.h; NULL = not known).
 */
bool access_may_see(const struct access_peer *peer, uint32_t maker, const char *namespaces);

/* The group rule alone, for clients that are not identified by a socket. */
bool access_is_member(const struct access *access, gid_t group, const gid_t *groups, size_t count);
