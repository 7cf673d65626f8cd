/* SPDX-License-Identifier: Apache-2.0 */

/* The access rule with real users: children drop their privileges and connect. */

#include "daemon/registry/access.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/testing/unit.h"

#ifndef SO_PEERPIDFD /* Linux 6.5 */
#define SO_PEERPIDFD 77
#endif

#define GROUP 54321
#define USER 12345

struct who {
	uid_t uid;
	gid_t gid;
	gid_t groups[200];
	size_t count;
	int namespaces; /* CLONE_NEW...: it is in new ones of these */
	bool is_gone;   /* it has ended, and another process has the connection */
};

/* What asking for the pidfd of a peer fails with; 0: the kernel decides. */
static int pid_fd_error;

int getsockopt(int fd, int level, int optname, void *optval, socklen_t *optlen)
{
	if (pid_fd_error && level == SOL_SOCKET && optname == SO_PEERPIDFD) {
		errno = pid_fd_error;
		return -1;
	}
	return (int)syscall(SYS_getsockopt, fd, level, optname, optval, optlen);
}

/* Our own namespaces, for one test. */
static struct namespaces ours;

static const struct namespaces *here(void)
{
	assert(namespaces_init(&ours) == 0);
	return &ours;
}

static struct sockaddr_un address(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	snprintf(address.sun_path, sizeof(address.sun_path), "%s/s", unit_dir());
	return address;
}

static void become(const struct who *who)
{
	assert(setgroups(who->count, who->groups) == 0);
	assert(setresgid(who->gid, who->gid, who->gid) == 0);
	assert(setresuid(who->uid, who->uid, who->uid) == 0);
}

/* Becomes @who; in a new pid namespace that is a child, for whom this process waits. */
static void enter(const struct who *who)
{
	pid_t child = 0;
	int status;

	if (who->namespaces && unshare(who->namespaces) < 0)
		_exit(3);
	if (who->namespaces & CLONE_NEWPID)
		child = fork();
	if (child > 0)
		_exit(waitpid(child, &status, 0) == child && status == 0 ? 0 : 4);
	if (!(who->namespaces & CLONE_NEWUSER))
		become(who);
}

/* What the daemon learns of a child that has become @who and connected. */
static struct access_peer meet(const struct access *access, const struct who *who)
{
	struct sockaddr_un at = address();
	int listening = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), fd;
	struct access_peer peer;
	pid_t child;
	int status;
	char end;

	assert(listening >= 0 && bind(listening, (struct sockaddr *)&at, sizeof(at)) == 0);
	assert(listen(listening, 1) == 0);
	assert(chmod(at.sun_path, 0666) == 0 && chmod(unit_dir(), 0755) == 0);
	child = fork();
	assert(child >= 0);
	if (child == 0) {
		(void)close(listening);
		fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
		enter(who);
		if (connect(fd, (struct sockaddr *)&at, sizeof(at)) < 0)
			_exit(1);
		if (who->is_gone && fork() > 0)
			_exit(0);
		_exit(read(fd, &end, 1) == 0 ? 0 : 2);
	}
	fd = accept4(listening, NULL, NULL, SOCK_CLOEXEC);
	assert(fd >= 0);
	if (who->is_gone)
		assert(waitpid(child, &status, 0) == child);
	assert(access_peer_init(access, fd, &peer) == 0);
	assert(who->namespaces & CLONE_NEWPID || peer.pid == (uint32_t)child);
	close(fd);
	close(listening);
	unlink(at.sun_path);
	if (!who->is_gone)
		assert(waitpid(child, &status, 0) == child);
	assert(WIFEXITED(status) && !WEXITSTATUS(status));
	return peer;
}

static void need_root(void)
{
	if (geteuid() != 0)
		unit_skip("only root can become somebody else");
}

UNIT(an_ordinary_user_sees_what_that_user_made)
{
	struct access access = {.has_group = true, .group = GROUP, .namespaces = here()};
	struct who who = {.uid = USER, .gid = USER, .groups = {7, GROUP + 1}, .count = 2};
	struct access_peer peer;

	need_root();
	peer = meet(&access, &who);
	assert(peer.uid == USER && !peer.sees_all);
	assert(access_may_see(&peer, USER, ""));
	assert(!access_may_see(&peer, 0, "") && !access_may_see(&peer, USER + 1, ""));
	namespaces_deinit(&ours);
}

UNIT(members_see_all)
{
	struct access access = {.has_group = true, .group = GROUP, .namespaces = here()};
	struct who further = {.uid = USER, .gid = USER, .groups = {7, GROUP}, .count = 2};
	struct who first = {.uid = USER, .gid = GROUP};
	struct who many = {.uid = USER, .gid = USER, .count = 200};
	struct access_peer peer;

	need_root();
	peer = meet(&access, &further);
	assert(access_may_see(&peer, 0, "") && access_may_see(&peer, 1000, ""));
	peer = meet(&access, &first);
	assert(access_may_see(&peer, 0, ""));
	/* More than the first buffer holds. */
	for (gid_t i = 0; i < 200; i++)
		many.groups[i] = 1000 + i;
	peer = meet(&access, &many);
	assert(!access_may_see(&peer, 0, ""));
	many.groups[199] = GROUP;
	peer = meet(&access, &many);
	assert(access_may_see(&peer, 0, ""));
	namespaces_deinit(&ours);
}

UNIT(the_user_that_the_daemon_runs_as_sees_all)
{
	struct access access = {.has_group = false};
	struct access_peer peer;
	int pair[2];

	need_root();
	assert(setresgid(USER, USER, USER) == 0 && setresuid(USER, USER, USER) == 0);
	assert(prctl(PR_SET_DUMPABLE, 1) == 0); /* or our own files in /proc are root's */
	access.namespaces = here();
	assert(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
	assert(access_peer_init(&access, pair[0], &peer) == 0);
	assert(peer.uid == USER && peer.sees_all && access_may_see(&peer, 0, "?"));
	(void)close(pair[0]);
	(void)close(pair[1]);
	namespaces_deinit(&ours);
}

UNIT(without_a_group_only_root_sees_all)
{
	struct access access = {.has_group = false, .group = 0, .namespaces = here()};
	struct who user = {.uid = USER, .gid = 0}, root = {.uid = 0, .gid = 7};
	struct access_peer peer;

	need_root();
	peer = meet(&access, &user);
	assert(!access_may_see(&peer, 0, ""));
	peer = meet(&access, &root);
	assert(access_may_see(&peer, 0, "") && access_may_see(&peer, USER, ""));
	namespaces_deinit(&ours);
}

UNIT(groups_by_name_and_by_number)
{
	struct access access;

	assert(access_init(&access, "54321", NULL) == 0 && access.has_group &&
	       access.group == 54321);
	assert(access_init(&access, "root", NULL) == 0 && access.has_group && access.group == 0);
	assert(access_init(&access, "no such group", NULL) == ACCESS_NO_GROUP && !access.has_group);
	assert(access_init(&access, NULL, NULL) == 0 && !access.has_group);
	access.group = 5;
	assert(access_init(&access, "4294967295", NULL) == -ERANGE && access.group == 5);
}

UNIT(not_a_socket)
{
	struct access access = {.has_group = false};
	struct access_peer peer;

	assert(access_peer_init(&access, 0, &peer) == -ENOTSOCK);
}

UNIT(root_of_a_pid_namespace_sees_what_is_in_it)
{
	struct access access = {.has_group = true, .group = GROUP, .namespaces = here()};
	struct who root = {.uid = 0, .gid = 0, .namespaces = CLONE_NEWPID};
	struct who member = {.uid = USER, .gid = GROUP, .namespaces = CLONE_NEWPID};
	struct access_peer peer;

	need_root();
	peer = meet(&access, &root);
	assert(!peer.sees_all && peer.is_root);
	assert(!access_may_see(&peer, 0, "") && !access_may_see(&peer, 0, "|b/1.5"));
	assert(access_may_see(&peer, 0, peer.namespaces));
	assert(access_may_see(&peer, USER, peer.namespaces));
	/* The group of the same number is another one there. */
	peer = meet(&access, &member);
	assert(!peer.sees_all && !peer.is_root && !access_may_see(&peer, USER, ""));
	assert(access_may_see(&peer, USER, peer.namespaces));
	assert(!access_may_see(&peer, 0, peer.namespaces));
	namespaces_deinit(&ours);
}

UNIT(root_of_a_user_namespace_is_not_root)
{
	struct access access = {.has_group = true, .group = 0, .namespaces = here()};
	struct who root = {.uid = 0, .gid = 0, .namespaces = CLONE_NEWUSER};
	struct access_peer peer;

	need_root();
	peer = meet(&access, &root);
	assert(!peer.sees_all && !access_may_see(&peer, 0, ""));
	assert(!access_may_see(&peer, 0, "|b/1.5"));
	namespaces_deinit(&ours);
}

/* Its pid may be anybody's by now. */
UNIT(a_peer_that_has_ended_sees_nothing)
{
	struct access access = {.has_group = true, .group = GROUP, .namespaces = here()};
	struct who root = {.uid = 0, .gid = 0, .is_gone = true};
	struct who user = {.uid = USER, .gid = USER, .is_gone = true};
	struct access_peer peer;

	need_root();
	peer = meet(&access, &root);
	assert(!peer.sees_all && !access_may_see(&peer, 0, ""));
	peer = meet(&access, &user);
	assert(!peer.sees_all && !access_may_see(&peer, USER, ""));
	namespaces_deinit(&ours);
}

UNIT(a_peer_is_found_by_its_pid_only_before_linux_6_5)
{
	struct access access = {.has_group = false, .namespaces = here()};
	struct who root = {.uid = 0, .gid = 0};
	struct access_peer peer;

	need_root();
	pid_fd_error = ESRCH;
	peer = meet(&access, &root);
	assert(!peer.sees_all);
	pid_fd_error = ENOPROTOOPT;
	peer = meet(&access, &root);
	assert(peer.sees_all);
	root.is_gone = true;
	peer = meet(&access, &root);
	assert(!peer.sees_all && !access_may_see(&peer, 0, ""));
	namespaces_deinit(&ours);
}

/* In a user namespace all users without a number of their own look alike. */
UNIT(users_without_a_number_are_strangers)
{
	struct namespaces inside = *here();
	struct access access = {.namespaces = &inside};
	struct who nobody = {.uid = 65534, .gid = 65534};
	struct access_peer peer;

	need_root();
	inside.overflow = 65534;
	inside.has_overflow = false;
	peer = meet(&access, &nobody);
	assert(access_may_see(&peer, 65534, ""));
	inside.has_overflow = true;
	peer = meet(&access, &nobody);
	assert(!access_may_see(&peer, 65534, ""));
	namespaces_deinit(&ours);
}

UNIT(without_namespaces_nobody_sees_anything)
{
	struct access access = {.has_group = false};
	struct who root = {.uid = 0, .gid = 0};
	struct access_peer peer;

	need_root();
	peer = meet(&access, &root);
	assert(!peer.sees_all && !access_may_see(&peer, 0, ""));
}

/* A process of @uid with a pid that has become free. 0: it cannot be had here. */
static pid_t take_pid(pid_t pid, uid_t uid)
{
	for (unsigned int i = 0; i < 100; i++) {
		FILE *last = fopen("/proc/sys/kernel/ns_last_pid", "we");
		int ready[2];
		pid_t child;
		char byte;

		if (!last)
			return 0;
		fprintf(last, "%d", pid - 1);
		if (fclose(last) != 0)
			return 0;
		assert(pipe2(ready, O_CLOEXEC) == 0);
		child = fork();
		assert(child >= 0);
		if (child == 0) {
			if (setresuid(uid, uid, uid) < 0 || write(ready[1], "", 1) != 1)
				_exit(1);
			for (;;)
				pause();
		}
		assert(read(ready[0], &byte, 1) == 1);
		(void)close(ready[0]);
		(void)close(ready[1]);
		if (child == pid)
			return child;
		assert(kill(child, SIGKILL) == 0 && waitpid(child, NULL, 0) == child);
	}
	return 0;
}

/* What is learnt of root of a container that has connected and ended, if @uid has its pid by then. */
static struct access_peer meet_reused(const struct access *access, uid_t uid)
{
	const struct who root = {.uid = 0, .gid = 0, .namespaces = CLONE_NEWPID};
	struct sockaddr_un at = address();
	int listening = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), fd;
	struct access_peer peer;
	struct ucred credentials;
	socklen_t length = sizeof(credentials);
	pid_t child, other;

	assert(listening >= 0 && bind(listening, (struct sockaddr *)&at, sizeof(at)) == 0);
	assert(listen(listening, 1) == 0);
	child = fork();
	assert(child >= 0);
	if (child == 0) {
		fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
		enter(&root);
		_exit(connect(fd, (struct sockaddr *)&at, sizeof(at)) < 0);
	}
	assert(waitpid(child, NULL, 0) == child);
	fd = accept4(listening, NULL, NULL, SOCK_CLOEXEC);
	assert(fd >= 0 && getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &length) == 0);
	other = take_pid(credentials.pid, uid);
	if (other == 0)
		unit_skip("the pid cannot be had again");
	assert(access_peer_init(access, fd, &peer) == 0);
	assert(kill(other, SIGKILL) == 0 && waitpid(other, NULL, 0) == other);
	(void)close(fd);
	(void)close(listening);
	(void)unlink(at.sun_path);
	return peer;
}

UNIT(a_pid_that_is_another_users_by_now_is_not_the_peer)
{
	struct access access = {.has_group = false, .namespaces = here()};
	struct access_peer peer;

	need_root();
	peer = meet_reused(&access, USER);
	assert(!peer.sees_all && !access_may_see(&peer, 0, ""));
	namespaces_deinit(&ours);
}

/*
 * Before Linux 6.5 nothing tells the two apart: docs/architecture.md has what that takes. If this
 * fails there, the kernel has got better, and the page can too.
 */
UNIT(a_pid_that_is_the_same_users_by_now_is_the_peer_only_before_linux_6_5)
{
	struct access access = {.has_group = false, .namespaces = here()};
	int pair[2], pid_fd = -1;
	socklen_t length = sizeof(pid_fd);
	struct access_peer peer;
	bool is_kept;

	need_root();
	assert(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
	is_kept = getsockopt(pair[0], SOL_SOCKET, SO_PEERPIDFD, &pid_fd, &length) == 0;
	if (is_kept)
		(void)close(pid_fd);
	(void)close(pair[0]);
	(void)close(pair[1]);
	peer = meet_reused(&access, 0);
	assert(peer.sees_all == !is_kept);
	namespaces_deinit(&ours);
}
