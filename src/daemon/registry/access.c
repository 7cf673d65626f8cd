/* SPDX-License-Identifier: Apache-2.0 */

/* Implements the access rule with the credentials that the kernel recorded for a socket. */

#include "daemon/registry/access.h"

#include <errno.h>
#include <grp.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/text.h"

#define ACCESS_GROUPS_MAX 65536u /* NGROUPS_MAX of Linux */
#define ACCESS_ENTRY_MAX (UINT32_C(4) << 20)

/* Group entries can be long, so the buffer grows until the entry fits. */
static int access_find_group(const char *name, gid_t *ret_group)
{
	struct group entry, *found = NULL;

	for (size_t size = 16384; size <= ACCESS_ENTRY_MAX; size *= 4) {
		CLEANUP_FREE char *texts = malloc(size);
		int error;

		if (!texts)
			return -ENOMEM;
		error = getgrnam_r(name, &entry, texts, size, &found);
		if (error == ERANGE)
			continue;
		/*
		 * Several error numbers mean "not found"; a group that cannot be looked up has no
		 * members.
		 */
		if (error || !found)
			return ACCESS_NO_GROUP;
		*ret_group = entry.gr_gid;
		return 0;
	}
	return ACCESS_NO_GROUP;
}

int access_init(struct access *ret_access, const char *group)
{
	struct access access = {.has_group = false};
	uint64_t number;
	int r = 0;

	if (group && text_parse_u64(group, &number) == 0) {
		if (number >= UINT32_MAX)
			return -ERANGE;
		access.group = (gid_t)number;
		access.has_group = true;
	} else if (group) {
		r = access_find_group(group, &access.group);
		access.has_group = r == 0;
	}
	if (r >= 0)
		*ret_access = access;
	return r;
}

bool access_is_member(const struct access *access, gid_t group, const gid_t *groups, size_t count)
{
	if (!access->has_group)
		return false;
	if (group == access->group)
		return true;
	for (size_t i = 0; i < count; i++) {
		if (groups[i] == access->group)
			return true;
	}
	return false;
}

/* The supplementary groups of the peer. */
static int access_read_groups(int fd, gid_t **ret_groups, size_t *ret_count)
{
	socklen_t length = 64 * sizeof(gid_t);

	for (;;) {
		CLEANUP_FREE gid_t *groups = malloc(length ? length : 1);

		if (!groups)
			return -ENOMEM;
		if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &length) == 0) {
			*ret_groups = cleanup_steal(groups);
			*ret_count = length / sizeof(gid_t);
			return 0;
		}
		/* The kernel has set the length that it needs. */
		if (errno != ERANGE || length > ACCESS_GROUPS_MAX * sizeof(gid_t))
			return -errno;
	}
}

int access_peer_init(const struct access *access, int fd, struct access_peer *ret_peer)
{
	CLEANUP_FREE gid_t *groups = NULL;
	struct ucred credentials;
	socklen_t length = sizeof(credentials);
	size_t count = 0;
	bool sees_all;
	int r;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &length) < 0)
		return -errno;
	sees_all = credentials.uid == 0;
	if (!sees_all && access->has_group) {
		r = access_read_groups(fd, &groups, &count);
		if (r < 0)
			return r;
		sees_all = access_is_member(access, credentials.gid, groups, count);
	}
	*ret_peer = (struct access_peer){
		.pid = (uint32_t)credentials.pid,
		.uid = credentials.uid,
		.sees_all = sees_all,
	};
	return 0;
}

bool access_may_see(const struct access_peer *peer, uint32_t maker)
{
	return peer->sees_all || peer->uid == maker;
}
