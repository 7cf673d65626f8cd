/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Who may see what; the rule is implemented only here. Everybody may see totals. The details of a
 * process (its buffers, names and stacks) are visible to root, to the user who created its book (a
 * later setuid of the process changes nothing), and to members of one group, "ttmem" unless
 * configured otherwise. A client is identified by the credentials that the kernel recorded when it
 * connected.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct access {
	bool has_group;
	gid_t group;
};

enum access_outcome {
	ACCESS_NO_GROUP = 1, /* no such group, so it has no members */
};

struct access_peer {
	uint32_t pid;
	uint32_t uid;
	bool sees_all;
};

/*
 * @group: a name or a number; NULL = none. Looks the group up in the system's database, so call it
 * once at the start. 0, ACCESS_NO_GROUP (@ret_access is valid all the same), or a negative errno.
 */
int access_init(struct access *ret_access, const char *group);

/* The peer of a connected socket. 0 or a negative errno. */
int access_peer_init(const struct access *access, int fd, struct access_peer *ret_peer);

/* Whether @peer may see the details of a book that @maker created. */
bool access_may_see(const struct access_peer *peer, uint32_t maker);

/* The group rule alone, for clients that are not identified by a socket. */
bool access_is_member(const struct access *access, gid_t group, const gid_t *groups, size_t count);
