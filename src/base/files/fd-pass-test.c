/* SPDX-License-Identifier: Apache-2.0 */

/* What was sent arrives, unwanted descriptors are closed, and cut messages are reported. */

#include "base/files/fd-pass.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/testing/unit.h"

struct world {
	int pair[2];
	int fds[FD_PASS_MAX];
};

static struct world begin(void)
{
	struct world world;

	assert(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, world.pair) == 0);
	for (size_t i = 0; i < FD_PASS_MAX; i++) {
		world.fds[i] = memfd_create("passed", MFD_CLOEXEC);
		assert(world.fds[i] >= 0);
	}
	return world;
}

/* The test runner reports descriptors that a case leaves open. */
static void end(struct world *world)
{
	for (size_t i = 0; i < FD_PASS_MAX; i++)
		close(world->fds[i]);
	close(world->pair[0]);
	close(world->pair[1]);
}

static void send_fds(const struct world *world, const char *text, size_t count)
{
	assert(fd_pass_send(world->pair[0], text, strlen(text), world->fds, count, 0) == 0);
}

static bool is_same_file(int a, int b)
{
	struct stat first, second;

	assert(fstat(a, &first) == 0 && fstat(b, &second) == 0);
	return first.st_ino == second.st_ino && first.st_dev == second.st_dev;
}

UNIT(bytes_and_descriptors_arrive_in_order)
{
	struct world world = begin();
	CLEANUP_FD_PASS struct fd_pass got = FD_PASS_WANT(FD_PASS_MAX);
	char text[16];

	send_fds(&world, "hello", FD_PASS_MAX);
	assert(fd_pass_receive(world.pair[1], text, sizeof(text), &got, 0) == 5);
	assert(memcmp(text, "hello", 5) == 0 && !got.is_cut);
	for (size_t i = 0; i < FD_PASS_MAX; i++) {
		assert(is_same_file(got.fds[i], world.fds[i]));
		assert(fcntl(got.fds[i], F_GETFD) & FD_CLOEXEC);
	}
	end(&world);
}

UNIT(a_message_without_descriptors)
{
	struct world world = begin();
	struct fd_pass got = FD_PASS_WANT(1);
	char text[16];

	send_fds(&world, "hello", 0);
	assert(fd_pass_receive(world.pair[1], text, sizeof(text), &got, 0) == 5);
	assert(got.fds[0] == -1 && !got.is_cut);
	end(&world);
}

/* With an odd number, the padding of the control data has room for one more. */
UNIT(more_descriptors_than_wanted_are_closed_and_told)
{
	struct world world = begin();
	char text[16];

	for (size_t wanted = 0; wanted < FD_PASS_MAX; wanted++) {
		CLEANUP_FD_PASS struct fd_pass got = FD_PASS_WANT(wanted);

		send_fds(&world, "hello", wanted + 1);
		assert(fd_pass_receive(world.pair[1], text, sizeof(text), &got, 0) == 5);
		assert(got.is_cut);
		for (size_t i = 0; i < FD_PASS_MAX; i++)
			assert((got.fds[i] >= 0) == (i < wanted));
	}
	end(&world);
}

UNIT(a_descriptor_that_finds_no_room_is_told)
{
	struct world world = begin();
	struct fd_pass got = FD_PASS_WANT(1);
	struct rlimit before, none;
	char text[16];

	assert(getrlimit(RLIMIT_NOFILE, &before) == 0);
	none = (struct rlimit){.rlim_max = before.rlim_max};
	send_fds(&world, "sixty", 1);
	assert(setrlimit(RLIMIT_NOFILE, &none) == 0);
	assert(fd_pass_receive(world.pair[1], text, sizeof(text), &got, 0) == 5);
	assert(got.fds[0] == -1 && got.is_cut);
	assert(setrlimit(RLIMIT_NOFILE, &before) == 0);
	end(&world);
}

UNIT(a_message_that_is_too_long_has_its_true_length)
{
	struct world world = begin();
	CLEANUP_FD_PASS struct fd_pass got = FD_PASS_WANT(1);
	char text[3];

	send_fds(&world, "sixty", 1);
	assert(fd_pass_receive(world.pair[1], text, sizeof(text), &got, 0) == 5);
	assert(memcmp(text, "six", 3) == 0 && is_same_file(got.fds[0], world.fds[0]));
	end(&world);
}

UNIT(nothing_there_and_nobody_there)
{
	struct world world = begin();
	struct fd_pass got = FD_PASS_WANT(1);
	char text[3];

	assert(fd_pass_receive(world.pair[1], text, sizeof(text), &got, MSG_DONTWAIT) == -EAGAIN);
	assert(shutdown(world.pair[0], SHUT_RDWR) == 0);
	assert(fd_pass_receive(world.pair[1], text, sizeof(text), &got, 0) == 0);
	assert(got.fds[0] == -1 && !got.is_cut);
	assert(fd_pass_send(world.pair[1], "hello", 5, NULL, 0, 0) == -EPIPE); /* no signal */
	end(&world);
}

UNIT(a_stolen_descriptor_stays_open)
{
	struct world world = begin();
	struct fd_pass got = FD_PASS_WANT(2);
	char text[16];
	int kept, closed;

	send_fds(&world, "hello", 2);
	assert(fd_pass_receive(world.pair[1], text, sizeof(text), &got, 0) == 5);
	closed = got.fds[1];
	kept = cleanup_steal_fd(&got.fds[0]);
	fd_pass_close(&got);
	assert(fcntl(kept, F_GETFD) >= 0 && fcntl(closed, F_GETFD) < 0 && got.fds[1] == -1);
	close(kept);
	end(&world);
}
