/* SPDX-License-Identifier: Apache-2.0 */

/* The kernel knows whose the other end of a connection is. */

#include "web/server/peer-user.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/testing/unit.h"

#define OTHER 64901u

static struct sockaddr_storage address;
static socklen_t length;

/* Listens at the loopback address of a family. */
static int listen_at(int family)
{
	struct sockaddr_in four = {.sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (family == AF_INET)
		memcpy(&address, &four, sizeof(four));
	else
		memcpy(&address, &six, sizeof(six));
	length = family == AF_INET ? sizeof(four) : sizeof(six);
	if (fd < 0 || bind(fd, (struct sockaddr *)&address, length) < 0)
		unit_skip("no loopback address of that family");
	assert(listen(fd, 8) == 0);
	length = sizeof(address);
	assert(getsockname(fd, (struct sockaddr *)&address, &length) == 0);
	return fd;
}

/* Whom the kernel names for a connection of @uid; it is open until it is known. */
static uint32_t found_for(int family, uint32_t uid)
{
	struct peer_user *peer_user = peer_user_new();
	int listening = listen_at(family), hold[2], status, fd;
	uint32_t found;
	pid_t child;

	assert(peer_user && pipe(hold) == 0); /* NOLINT(android-cloexec-pipe): for the child */
	child = fork();
	assert(child >= 0);
	if (child == 0) {
		int client = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
		char byte;

		close(hold[1]);
		if ((uid != geteuid() && setuid(uid) < 0) || client < 0)
			_exit(1);
		close(client);
		client = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0); /* the user's own */
		_exit(connect(client, (struct sockaddr *)&address, length) < 0 ||
		      read(hold[0], &byte, 1) != 0);
	}
	close(hold[0]);
	fd = accept4(listening, NULL, NULL, SOCK_CLOEXEC);
	assert(fd >= 0);
	found = peer_user_find(peer_user, fd);
	close(hold[1]);
	assert(waitpid(child, &status, 0) == child && status == 0);
	close(fd);
	close(listening);
	peer_user_free(peer_user);
	return found;
}

UNIT(the_user_of_a_local_connection_is_found)
{
	assert(found_for(AF_INET, geteuid()) == geteuid());
}

UNIT(another_user_is_told_apart)
{
	if (geteuid() != 0)
		unit_skip("needs root");
	assert(found_for(AF_INET, OTHER) == OTHER);
}

UNIT(connections_of_ipv6_have_users_too)
{
	assert(found_for(AF_INET6, geteuid()) == geteuid());
}

/*
 * Whom the kernel names for a connection of another user that has ended, or of which nothing more
 * comes, before it is accepted. @closes: close(); else shutdown(), and the socket stays open.
 */
static uint32_t found_after_the_end(bool closes)
{
	struct peer_user *peer_user = peer_user_new();
	int listening = listen_at(AF_INET), told[2], hold[2], status, fd;
	uint32_t found;
	pid_t child;
	char byte;

	assert(peer_user && pipe(hold) == 0); /* NOLINT(android-cloexec-pipe): for the child */
	assert(pipe(told) == 0);              /* NOLINT(android-cloexec-pipe): for the child */
	child = fork();
	assert(child >= 0);
	if (child == 0) {
		int client;

		close(hold[1]);
		if (setuid(OTHER) < 0)
			_exit(1);
		client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (client < 0 || connect(client, (struct sockaddr *)&address, length) < 0)
			_exit(2);
		if ((closes ? close(client) : shutdown(client, SHUT_WR)) < 0)
			_exit(3);
		_exit(write(told[1], "x", 1) != 1 || read(hold[0], &byte, 1) != 0);
	}
	close(hold[0]);
	assert(read(told[0], &byte, 1) == 1);
	fd = accept4(listening, NULL, NULL, SOCK_CLOEXEC);
	assert(fd >= 0);
	found = peer_user_find(peer_user, fd);
	close(hold[1]);
	assert(waitpid(child, &status, 0) == child && status == 0);
	close(told[0]);
	close(told[1]);
	close(fd);
	close(listening);
	peer_user_free(peer_user);
	return found;
}

UNIT(who_has_closed_before_it_is_accepted_is_not_root)
{
	if (geteuid() != 0)
		unit_skip("needs root");
	assert(found_after_the_end(true) == PEER_USER_UNKNOWN);
}

UNIT(who_sends_nothing_more_has_no_user)
{
	if (geteuid() != 0)
		unit_skip("needs root");
	assert(found_after_the_end(false) == PEER_USER_UNKNOWN);
}

/* The other end is established, but no process holds it: the kernel names user 0 for it, too. */
UNIT(who_has_not_accepted_yet_has_no_user)
{
	struct peer_user *peer_user = peer_user_new();
	int listening = listen_at(AF_INET), client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert(peer_user && client >= 0);
	assert(connect(client, (struct sockaddr *)&address, length) == 0);
	assert(peer_user_find(peer_user, client) == PEER_USER_UNKNOWN);
	close(client);
	close(listening);
	peer_user_free(peer_user);
}

UNIT(what_is_no_connection_has_no_user)
{
	struct peer_user *peer_user = peer_user_new();
	int ends[2];

	assert(peer_user && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
	assert(peer_user_find(peer_user, ends[0]) == PEER_USER_UNKNOWN);
	assert(peer_user_find(NULL, ends[0]) == PEER_USER_UNKNOWN);
	close(ends[0]);
	close(ends[1]);
	peer_user_free(peer_user);
}
