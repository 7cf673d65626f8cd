/* SPDX-License-Identifier: Apache-2.0 */

/* Implements the access rule with the credentials that the kernel recorded for a socket. */

#include "daemon/registry/access.h"

#include <errno.h>
#include <grp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"

#define ACCESS_GROUPS_MAX 65536u /* NGROUPS_MAX of Linux */
#define ACCESS_ENTRY_MAX (UINT32_C(4) << 20)

#ifndef SO_PEERPIDFD /* Linux 6.5 */
#define SO_PEERPIDFD 77
#endif

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

int access_init(struct access *ret_access, const char *group, const struct namespaces *namespaces)
{
	struct access access = {.namespaces = namespaces};
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

/*
 * A pidfd of the process that connected; -1 if there is none. @ret_is_certain: the kernel kept it,
 * else the process is whoever has that pid now.
 */
static int access_open_peer(int fd, pid_t pid, bool *ret_is_certain)
{
	socklen_t length = sizeof(int);
	int pid_fd = -1;

	*ret_is_certain = true;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &pid_fd, &length) == 0)
		return pid_fd;
	*ret_is_certain = false;
	/* Any other failure means that the process has ended. */
	if (errno != ENOPROTOOPT || pid <= 0)
		return -1;
	return (int)syscall(SYS_pidfd_open, pid, 0);
}

/* While this holds, the process's pid is not given to another one. */
static bool access_is_alive(int pid_fd)
{
	struct pollfd end = {.fd = pid_fd, .events = POLLIN};

	return poll(&end, 1, 0) == 0;
}

/* Whether the process with that pid runs as the user who connected. */
static bool access_is_user(const struct namespaces *namespaces, const struct ucred *credentials)
{
	struct proc_facts facts;

	return proc_read(&namespaces->proc, (uint32_t)credentials->pid, &facts) == 0 &&
	       facts.real_uid == credentials->uid && facts.saved_uid == credentials->uid;
}

/* Where the peer is. @ret_is_above: its pid namespace is one above ours. */
static void access_locate(const struct namespaces *namespaces, int fd,
			  const struct ucred *credentials, struct access_peer *peer,
			  bool *ret_is_above)
{
	CLEANUP_CLOSE int pid_fd = -1;
	bool is_certain;

	pid_fd = access_open_peer(fd, credentials->pid, &is_certain);
	if (pid_fd < 0)
		return;
	if (credentials->pid > 0) {
		namespaces_read(namespaces, peer->pid, peer->namespaces);
		peer->is_root = namespaces_has_our_users(peer->namespaces)
					? peer->uid == 0
					: namespaces_is_root(namespaces, peer->pid, peer->uid);
	} else {
		namespaces_read_pidfd(namespaces, pid_fd, peer->namespaces, ret_is_above);
	}
	/* What was read is the peer's only if it is still there. */
	if ((!is_certain && !access_is_user(namespaces, credentials)) || !access_is_alive(pid_fd)) {
		memcpy(peer->namespaces, NAMESPACES_UNKNOWN, sizeof(NAMESPACES_UNKNOWN));
		*ret_is_above = false;
	}
}

/* Whether it is where root is root and the group is the group. */
static bool access_is_at_home(const struct access_peer *peer, bool is_above)
{
	return namespaces_has_our_users(peer->namespaces) &&
	       (namespaces_has_our_pids(peer->namespaces) || is_above);
}

int access_peer_init(const struct access *access, int fd, struct access_peer *ret_peer)
{
	CLEANUP_FREE gid_t *groups = NULL;
	struct access_peer peer = {.namespaces = NAMESPACES_UNKNOWN};
	const struct namespaces *namespaces = access->namespaces;
	struct ucred credentials;
	socklen_t length = sizeof(credentials);
	bool is_above = false;
	size_t count = 0;
	int r;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &length) < 0)
		return -errno;
	peer.pid = (uint32_t)credentials.pid;
	peer.uid = credentials.uid;
	if (namespaces)
		access_locate(namespaces, fd, &credentials, &peer, &is_above);
	peer.is_stranger =
		namespaces && namespaces->has_overflow && peer.uid == namespaces->overflow;
	if (access_is_at_home(&peer, is_above)) {
		/* Our own user has our memory and our files. */
		peer.sees_all = peer.uid == 0 || peer.uid == geteuid();
		if (!peer.sees_all && access->has_group) {
			r = access_read_groups(fd, &groups, &count);
			if (r < 0)
				return r;
			peer.sees_all = access_is_member(access, credentials.gid, groups, count);
		}
	}
	*ret_peer = peer;
	return 0;
}

bool access_may_see(const struct access_peer *peer, uint32_t maker, const char *namespaces)
{
	if (peer->sees_all)
		return true;
	if (peer->is_stranger)
		return false;
	if (peer->is_root)
		return namespaces_is_within(peer->namespaces, namespaces);
	return peer->uid == maker && namespaces_is_same(peer->namespaces, namespaces);
}
