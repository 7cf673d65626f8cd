/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Who may see what; the rule is here and nowhere else. Totals are everybody's. The details of a process
 * (its buffers, names and stacks) are for root, for the user who made its book (what the process became
 * by setuid later changes nothing), and for members of one group, "ttmem" unless the configuration says
 * otherwise. Who asks is what the kernel says of the connection's other end at the time it connected.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct access {
	bool has_group;
	gid_t group;
};

enum access_outcome {
	ACCESS_NO_GROUP = 1, /* there is no such group: then nobody is in it */
};

struct access_peer {
	uint32_t pid;
	uint32_t uid;
	bool sees_all;
};

/*
 * @group: a name, or a number; NULL = none. Asks the system's list of groups, so once at the start. 0,
 * ACCESS_NO_GROUP (and @ret_access is of use all the same), or a negative errno.
 */
int access_init(struct access *ret_access, const char *group);

/* The other end of a connected socket. 0 or a negative errno. */
int access_peer_init(const struct access *access, int fd, struct access_peer *ret_peer);

/* Whether @peer may see the details of what @maker made. */
bool access_may_see(const struct access_peer *peer, uint32_t maker);

/* The rule for members alone: also of who is known otherwise than by a socket. */
bool access_is_member(const struct access *access, gid_t group, const gid_t *groups, size_t count);
