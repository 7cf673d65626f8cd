/* SPDX-License-Identifier: Apache-2.0 */

/* In a crowd, who has not sent a request has to go; who has, and waits for us, has not. */

#include "web/server/connection-limits.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/testing/unit.h"

static struct connection_limits_visit *visit(struct connection_limits *limits, const char *sent,
					     int *ret_client, int *ret_server)
{
	struct connection_limits_visit *visit;
	int ends[2];

	assert(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
	if (sent)
		assert(write(ends[0], sent, 1) == 1);
	visit = connection_limits_enter(limits, ends[1]);
	assert(visit);
	*ret_client = ends[0];
	*ret_server = ends[1];
	return visit;
}

UNIT(a_request_that_we_have_not_read_is_not_late)
{
	struct connection_limits_visit *visits[CONNECTION_LIMITS_CROWD + 1];
	int clients[ARRAY_SIZE(visits)], servers[ARRAY_SIZE(visits)];
	size_t last = ARRAY_SIZE(visits) - 1;
	struct connection_limits *limits;
	char byte;

	assert(connection_limits_new(&limits, 0) == 0);
	for (size_t i = 0; i <= last; i++)
		visits[i] = visit(limits, i < last ? "G" : NULL, &clients[i], &servers[i]);
	/* The last to come has sent nothing. When it is thrown out and may leave, all were looked at. */
	assert(read(clients[last], &byte, 1) == 0);
	connection_limits_leave(visits[last]);
	for (size_t i = 0; i < last; i++) {
		assert(recv(clients[i], &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN);
		connection_limits_leave(visits[i]);
	}
	for (size_t i = 0; i <= last; i++) {
		close(clients[i]);
		close(servers[i]);
	}
	assert(connection_limits_free(limits) == NULL);
}

UNIT(a_late_client_is_thrown_out_behind_one_that_waits_for_us)
{
	struct connection_limits_visit *late, *waiting;
	struct connection_limits *limits;
	int clients[2], servers[2];
	char byte;

	assert(connection_limits_new(&limits, 1) == 0);
	late = visit(limits, NULL, &clients[0], &servers[0]);
	connection_limits_set(late, CONNECTION_LIMITS_READING);
	waiting = visit(limits, "G", &clients[1], &servers[1]); /* the newest is looked at first */
	assert(poll(&(struct pollfd){.fd = clients[0], .events = POLLIN}, 1, 30000) == 1);
	assert(read(clients[0], &byte, 1) == 0);
	assert(recv(clients[1], &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN);
	connection_limits_leave(late);
	connection_limits_leave(waiting);
	for (size_t i = 0; i < ARRAY_SIZE(clients); i++) {
		close(clients[i]);
		close(servers[i]);
	}
	assert(connection_limits_free(limits) == NULL);
}
