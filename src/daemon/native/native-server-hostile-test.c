/* SPDX-License-Identifier: Apache-2.0 */

/* Misbehaving clients of the native server: they harm only themselves. */

#include "daemon/native/testing/native-server-testing.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/testing/unit.h"
#include "base/threads/loop.h"
#include "base/threads/worker.h"
#include "wire/offer.h"

UNIT(garbage_closes_the_connection)
{
	struct native_testing world;
	struct native_request request;
	struct offer offer = {.magic = OFFER_MAGIC, .version = 1, .size = sizeof(offer)};
	char large[NATIVE_REQUEST_MAX + 1] = {0};
	size_t lengths[] = {1, 4, 100, sizeof(large)}, length;
	int fd, good;
	char *text;

	native_testing_open(&world);
	good = native_testing_connect(&world);
	for (size_t i = 0; i < 4; i++) {
		fd = native_testing_connect(&world);
		assert(send(fd, large, lengths[i], 0) == (ssize_t)lengths[i]);
		assert(native_testing_is_closed(&world, fd));
		assert(native_testing_counts(&world).garbage == i + 1);
		close(fd);
	}
	/* Almost valid. */
	native_request_init(&request, NATIVE_LIST);
	request.reserved[0] = 1;
	fd = native_testing_connect(&world);
	assert(send(fd, &request, sizeof(request), 0) == sizeof(request));
	assert(native_testing_is_closed(&world, fd) && native_testing_counts(&world).garbage == 5);
	close(fd);
	fd = native_testing_connect(&world);
	assert(send(fd, "GET /api/v1/dump", 16, 0) == 16);
	assert(native_testing_is_closed(&world, fd) && native_testing_counts(&world).garbage == 6);
	close(fd);
	/* An offer without a book. */
	fd = native_testing_connect(&world);
	assert(send(fd, &offer, sizeof(offer), 0) == sizeof(offer));
	assert(native_testing_is_closed(&world, fd) && native_testing_counts(&world).garbage == 7);
	close(fd);
	/* A later version gets an error and may try again. */
	native_request_init(&request, NATIVE_LIST);
	request.version = 2;
	assert(send(good, &request, sizeof(request), 0) == sizeof(request));
	assert(native_testing_receive_text(&world, good, &text, &length) == -EPROTONOSUPPORT);
	free(text);
	native_testing_get(good, "/api/v1/dump");
	assert(native_testing_receive_http(&world, good, &text, &length) == 200);
	free(text);
	close(good);
	assert(world.offers == 0);
	native_testing_close(&world);
}

UNIT(connections_of_one_user_are_limited)
{
	struct native_testing world;
	int fds[NATIVE_USER_CONNECTIONS_MAX + 1];
	size_t length;
	char *text;

	native_testing_open(&world);
	for (uint32_t i = 0; i < NATIVE_USER_CONNECTIONS_MAX; i++)
		fds[i] = native_testing_connect(&world);
	while (native_testing_counts(&world).connections < NATIVE_USER_CONNECTIONS_MAX)
		assert(loop_turn(world.loop, 10) == 0);
	fds[NATIVE_USER_CONNECTIONS_MAX] = native_testing_connect(&world);
	assert(native_testing_is_closed(&world, fds[NATIVE_USER_CONNECTIONS_MAX]));
	assert(quota_counted(QUOTA_NATIVE_CONNECTIONS) == 1);
	/* Existing connections are served, and closing one makes room. */
	native_testing_get(fds[0], "/api/v1/dump");
	assert(native_testing_receive_http(&world, fds[0], &text, &length) == 200);
	free(text);
	close(fds[1]);
	while (native_testing_counts(&world).connections == NATIVE_USER_CONNECTIONS_MAX)
		assert(loop_turn(world.loop, 10) == 0);
	fds[1] = native_testing_connect(&world);
	native_testing_get(fds[1], "/api/v1/dump");
	assert(native_testing_receive_http(&world, fds[1], &text, &length) == 200);
	free(text);
	for (uint32_t i = 0; i <= NATIVE_USER_CONNECTIONS_MAX; i++)
		close(fds[i]);
	native_testing_close(&world);
}

UNIT(many_users_cannot_take_all_connections)
{
	enum {
		USERS = NATIVE_CONNECTIONS_MAX / NATIVE_USER_CONNECTIONS_MAX
	};
	static int fds[NATIVE_CONNECTIONS_MAX];
	struct rlimit limit = {.rlim_cur = 4096, .rlim_max = 4096};
	struct native_testing world;
	size_t length;
	char *text;
	int fd;

	if (geteuid() != 0 || setrlimit(RLIMIT_NOFILE, &limit) < 0)
		unit_skip("only root can become others, and have so many files");
	native_testing_open(&world);
	assert(chmod(unit_dir(), 0755) == 0 && chmod(world.path, 0666) == 0);
	for (uid_t i = 0; i < NATIVE_CONNECTIONS_MAX; i++) {
		assert(seteuid(20000 + i % USERS) == 0);
		fds[i] = native_testing_connect(&world);
		assert(seteuid(0) == 0);
		while (native_testing_counts(&world).connections < i + 1)
			assert(loop_turn(world.loop, 10) == 0);
	}
	for (uint64_t i = 1; i <= 3; i++) {
		fd = native_testing_connect(&world);
		native_testing_get(fd, "/api/v1/dump");
		assert(native_testing_receive_http(&world, fd, &text, &length) == 200);
		free(text);
		close(fd);
		while (native_testing_counts(&world).connections == NATIVE_CONNECTIONS_MAX)
			assert(loop_turn(world.loop, 10) == 0);
		assert(quota_counted(QUOTA_NATIVE_CONNECTIONS) == 1);
	}
	assert(native_testing_is_closed(&world, fds[0])); /* the oldest */
	for (uint32_t i = 0; i < NATIVE_CONNECTIONS_MAX; i++)
		close(fds[i]);
	native_testing_close(&world);
}

UNIT(clients_may_hang_up_at_any_moment)
{
	struct native_testing world;
	int fd;

	native_testing_open(&world);
	world.dump_size = 1 << 20;
	native_testing_add(&world, 100, getuid(), 1);
	for (int i = 0; i < 30; i++) {
		fd = native_testing_connect(&world);
		if (i % 2)
			native_testing_get(fd, "/api/v1/dump");
		else
			native_testing_ask(fd, NATIVE_LIST, NATIVE_WANT_BOOKS);
		if (i % 3 == 0)
			shutdown(fd, SHUT_WR);
		for (int k = 0; k < i % 5; k++)
			assert(loop_turn(world.loop, 1) == 0);
		close(fd);
	}
	while (native_testing_counts(&world).connections > 0)
		assert(loop_turn(world.loop, 10) == 0);
	native_testing_close(&world);
}

/* One question keeps the worker busy, and others wait behind it. */
static void ask_behind_one(struct native_testing *world, int *ret_fds, unsigned int count)
{
	world->dump_waits = true;
	for (unsigned int i = 0; i < count; i++) {
		ret_fds[i] = native_testing_connect(world);
		native_testing_get(ret_fds[i], "/api/v1/dump");
		while (native_testing_counts(world).requests <= i)
			assert(loop_turn(world->loop, 10) == 0);
	}
	while (__atomic_load_n(&world->dumps, __ATOMIC_RELAXED) == 0)
		assert(loop_turn(world->loop, 10) == 0);
}

UNIT(questions_of_clients_that_hung_up_are_not_answered)
{
	struct native_testing world;
	size_t length;
	char *text;
	int fds[5];

	native_testing_open(&world);
	ask_behind_one(&world, fds, 5);
	for (int i = 1; i < 5; i++) {
		close(fds[i]);
		assert(loop_turn(world.loop, 10) == 0); /* is told of it */
	}
	for (int i = 0; i < 5; i++)
		assert(sem_post(&world.dump_goes_on) == 0);
	assert(native_testing_receive_http(&world, fds[0], &text, &length) == 200);
	free(text);
	while (native_testing_counts(&world).connections > 1)
		assert(loop_turn(world.loop, 10) == 0);
	assert(__atomic_load_n(&world.dumps, __ATOMIC_RELAXED) == 1);
	close(fds[0]);
	native_testing_close(&world);
}

UNIT(questions_that_wait_at_the_end_are_not_answered)
{
	struct native_testing world;
	int fds[5];

	native_testing_open(&world);
	ask_behind_one(&world, fds, 5);
	native_stop(world.native);
	for (int i = 0; i < 5; i++)
		assert(sem_post(&world.dump_goes_on) == 0);
	world.work = worker_free(world.work);
	assert(world.dumps == 1 && native_testing_counts(&world).connections == 0);
	for (int i = 0; i < 5; i++) {
		assert(native_testing_is_closed(&world, fds[i]));
		close(fds[i]);
	}
	native_testing_close(&world);
}

UNIT(many_questions_of_one_user_do_not_keep_others_waiting)
{
	static const uint32_t order[] = {0, 0, 20000, 0, 0, 0};
	struct native_testing world;
	int fds[6];

	if (geteuid() != 0)
		unit_skip("only root can become another user");
	native_testing_open(&world);
	assert(chmod(unit_dir(), 0755) == 0 && chmod(world.path, 0666) == 0);
	ask_behind_one(&world, fds, 5);
	assert(seteuid(20000) == 0);
	fds[5] = native_testing_connect(&world);
	assert(seteuid(0) == 0);
	native_testing_get(fds[5], "/api/v1/dump");
	while (native_testing_counts(&world).requests < 6)
		assert(loop_turn(world.loop, 10) == 0);
	for (int i = 0; i < 6; i++)
		assert(sem_post(&world.dump_goes_on) == 0);
	for (int i = 0; i < 6; i++) {
		size_t length;
		char *text;

		assert(native_testing_receive_http(&world, fds[i], &text, &length) == 200);
		free(text);
		close(fds[i]);
	}
	assert(memcmp(world.dump_users, order, sizeof(order)) == 0);
	native_testing_close(&world);
}

UNIT(a_half_closed_connection_is_answered)
{
	struct native_testing world;
	size_t length;
	char *text;
	int fd;

	native_testing_open(&world);
	world.dump_size = 1 << 20;
	fd = native_testing_connect(&world);
	native_testing_get(fd, "/api/v1/dump");
	shutdown(fd, SHUT_WR);
	assert(native_testing_receive_http(&world, fd, &text, &length) == 200 &&
	       length == world.dump_size);
	free(text);
	assert(native_testing_is_closed(&world, fd));
	close(fd);
	native_testing_close(&world);
}

/* Clients that never read do not delay the others. */
UNIT(clients_that_do_not_read_do_not_block_others)
{
	struct native_testing world;
	int stuck[8], fd;
	size_t length;
	char *text;

	native_testing_open(&world);
	world.dump_size = 4 << 20;
	for (size_t i = 0; i < 8; i++) {
		stuck[i] = native_testing_connect(&world);
		native_testing_get(stuck[i], "/api/v1/dump");
	}
	while (__atomic_load_n(&world.dumps, __ATOMIC_RELAXED) < 8)
		assert(loop_turn(world.loop, 10) == 0);
	fd = native_testing_connect(&world);
	native_testing_get(fd, "/api/v1/dump");
	assert(native_testing_receive_http(&world, fd, &text, &length) == 200 &&
	       length == world.dump_size);
	free(text);
	/* And are closed in the end. */
	while (quota_counted(QUOTA_NATIVE_SLOW) < 8)
		assert(loop_turn(world.loop, 100) == 0);
	assert(native_testing_counts(&world).connections == 1 &&
	       quota_counted(QUOTA_NATIVE_SLOW) == 8);
	close(fd);
	for (size_t i = 0; i < 8; i++)
		close(stuck[i]);
	native_testing_close(&world);
}

UNIT(connections_wait_when_descriptors_run_out)
{
	struct native_testing world;
	struct rlimit limit, none;
	size_t length;
	char *text;
	int fd;

	native_testing_open(&world);
	fd = native_testing_connect(&world);
	native_testing_get(fd, "/api/v1/dump");
	assert(getrlimit(RLIMIT_NOFILE, &limit) == 0);
	none = limit;
	none.rlim_cur = (rlim_t)fd + 1;
	assert(setrlimit(RLIMIT_NOFILE, &none) == 0);
	for (int i = 0; i < 3; i++)
		assert(loop_turn(world.loop, 10) == 0);
	assert(native_testing_counts(&world).connections == 0);
	assert(setrlimit(RLIMIT_NOFILE, &limit) == 0);
	assert(native_testing_receive_http(&world, fd, &text, &length) == 200);
	free(text);
	close(fd);
	native_testing_close(&world);
}
