/* SPDX-License-Identifier: Apache-2.0 */

/* Messages with one error each, and misbehaving daemons: none harms the others. */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/testing/unit.h"
#include "base/threads/loop.h"
#include "daemon/custody/keeper-start.h"
#include "daemon/custody/keeper-wire.h"
#include "daemon/custody/keeper.h"
#include "daemon/custody/testing/testing-keeper.h"

static struct keeper *keeper;
static struct loop *loop;

static void begin(void)
{
	testing_keeper_begin();
	assert(loop_new(&loop) == 0);
	assert(keeper_new(&keeper, loop, testing_keeper_path(), &testing_keeper_hooks) == 0);
}

static void end(void)
{
	keeper = keeper_free(keeper);
	loop = loop_free(loop);
}

/* Sends on a new connection, which the keeper must close. */
static void expect_hang_up(const void *bytes, size_t length, const int *fds, size_t count)
{
	struct keeper_wire message;
	int line = testing_keeper_line(), fd;

	testing_keeper_send(line, bytes, length, fds, count);
	assert(testing_keeper_wait(line, &message, &fd) == -EPIPE);
	assert(close(line) == 0);
}

UNIT(wrong_messages_cost_the_line)
{
	struct keeper_wire good, bad;
	struct keeper_entry entry;
	char garbage[512];
	int fds[3];

	begin();
	testing_keeper_add(keeper, 1);
	fds[0] = fds[1] = fds[2] = testing_keeper_book(2, &entry);
	good = testing_keeper_message(&entry);

#define EXPECT_BAD(change)                                 \
	do {                                               \
		bad = good;                                \
		change;                                    \
		expect_hang_up(&bad, sizeof(bad), fds, 1); \
	} while (0)
	EXPECT_BAD(bad.magic++);
	EXPECT_BAD(bad.version++);
	EXPECT_BAD(bad.size--);
	EXPECT_BAD(bad.kind = 0);
	EXPECT_BAD(bad.kind = 99);
	EXPECT_BAD(bad.pid = 0);
	EXPECT_BAD(memset(bad.comm, 'x', sizeof(bad.comm)));
	EXPECT_BAD(bad.comm[sizeof(bad.comm) - 1] = 'x');
	EXPECT_BAD(bad.held = 1);
	EXPECT_BAD(bad.refused = 1);
	EXPECT_BAD(bad.kind = KEEPER_WIRE_REMOVE);
	EXPECT_BAD(bad.kind = KEEPER_WIRE_HELD);

	expect_hang_up(&good, sizeof(good), NULL, 0);
	expect_hang_up(&good, sizeof(good), fds, 2);
	expect_hang_up(&good, sizeof(good), fds, 3);
	expect_hang_up(&good, sizeof(good) - 1, fds, 1);
	bad = KEEPER_WIRE_INIT(KEEPER_WIRE_TAKE);
	bad.pid = 1;
	expect_hang_up(&bad, sizeof(bad), NULL, 0);
	bad = KEEPER_WIRE_INIT(KEEPER_WIRE_END);
	expect_hang_up(&bad, sizeof(bad), NULL, 0);
	memset(garbage, 0x5a, sizeof(garbage));
	memcpy(garbage, &good, sizeof(good));
	expect_hang_up(garbage, sizeof(garbage), fds, 1);
	expect_hang_up("", 0, NULL, 0);

	/* None of it was accepted, and what was held is still held. */
	assert(close(fds[0]) == 0);
	fds[0] = testing_keeper_line();
	assert(testing_keeper_list(fds[0]).held == 1);
	assert(close(fds[0]) == 0);
	end();
	assert(keeper_quit(testing_keeper_path()) == 0);
	testing_keeper_end();
}

/* Valid messages with a wrong descriptor: refused, counted, and the connection stays open. */
UNIT(wrong_descriptors_are_refused)
{
	struct keeper_wire good, bad;
	struct keeper_entry entry;
	int line, fd, other;
	char path[64];

	begin();
	line = testing_keeper_line();
	fd = testing_keeper_book(2, &entry);
	good = testing_keeper_message(&entry);

	bad = good;
	bad.inode++;
	testing_keeper_send(line, &bad, sizeof(bad), &fd, 1);
	bad = good;
	bad.device++;
	testing_keeper_send(line, &bad, sizeof(bad), &fd, 1);
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	other = open(path, O_RDWR | O_CLOEXEC);
	assert(other >= 0);
	testing_keeper_send(line, &good, sizeof(good), &other, 1);
	assert(close(other) == 0);
	other = open(path, O_PATH | O_CLOEXEC);
	assert(other >= 0);
	testing_keeper_send(line, &good, sizeof(good), &other, 1);
	assert(close(other) == 0);
	bad = testing_keeper_list(line);
	assert(bad.held == 0 && bad.refused == 4);

	testing_keeper_send(line, &good, sizeof(good), &fd, 1);
	bad = testing_keeper_list(line);
	assert(bad.held == 1 && bad.refused == 4);
	assert(close(fd) == 0 && close(line) == 0);
	end();
	assert(keeper_quit(testing_keeper_path()) == 0);
	testing_keeper_end();
}

/* A message that holds @fd as something other than a book. */
static struct keeper_wire hold_message(int fd)
{
	struct keeper_wire message = KEEPER_WIRE_INIT(KEEPER_WIRE_HOLD);
	struct stat file;

	assert(fstat(fd, &file) == 0);
	message.source = 7;
	message.device = file.st_dev;
	message.inode = file.st_ino;
	return message;
}

static void send_hold(int line, int fd)
{
	struct keeper_wire message = hold_message(fd);

	testing_keeper_send(line, &message, sizeof(message), &fd, 1);
	assert(close(fd) == 0);
}

/* The same for what is no book: a file or a socket, and the one that is named. */
UNIT(only_files_and_sockets_are_held)
{
	const struct keeper_wire fetch = KEEPER_WIRE_INIT(KEEPER_WIRE_FETCH);
	struct keeper_wire message;
	int line, fd, ends[2], pair[2];

	begin();
	line = testing_keeper_line();
	assert(pipe2(ends, O_CLOEXEC) == 0);
	assert(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
	send_hold(line, ends[0]);
	send_hold(line, ends[1]);
	send_hold(line, open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	send_hold(line, open("/dev/null", O_RDWR | O_CLOEXEC));
	send_hold(line, open("/proc/self/exe", O_PATH | O_CLOEXEC));
	message = hold_message(pair[0]);
	message.inode++;
	testing_keeper_send(line, &message, sizeof(message), &pair[0], 1);
	message = hold_message(pair[0]);
	message.device++;
	testing_keeper_send(line, &message, sizeof(message), &pair[0], 1);
	message = testing_keeper_list(line);
	assert(message.held == 0 && message.refused == 7);

	/* It may be written to, unlike a book. */
	send_hold(line, memfd_create("ledger", MFD_CLOEXEC));
	send_hold(line, pair[0]);
	assert(keeper_wire_send(line, &fetch, -1) == 0);
	for (int i = 0; i < 2; i++) {
		assert(testing_keeper_wait(line, &message, &fd) == 0);
		assert(message.kind == KEEPER_WIRE_OTHER && close(fd) == 0);
	}
	assert(testing_keeper_wait(line, &message, &fd) == 0);
	assert(message.kind == KEEPER_WIRE_END && message.held == 2 && message.refused == 7);
	assert(close(pair[1]) == 0 && close(line) == 0);
	end();
	assert(keeper_quit(testing_keeper_path()) == 0);
	testing_keeper_end();
}

UNIT(sweep_keeps_books_of_this_connection)
{
	const struct keeper_wire sweep = KEEPER_WIRE_INIT(KEEPER_WIRE_SWEEP);
	struct keeper_wire message;
	struct keeper_entry entry;
	int line, fd;

	begin();
	fd = testing_keeper_book(1, &entry);
	keeper_add(keeper, &entry, fd);
	for (uint32_t i = 2; i < 20; i++)
		testing_keeper_add(keeper, i);
	end();
	line = testing_keeper_line();
	message = testing_keeper_message(&entry);
	testing_keeper_send(line, &message, sizeof(message), &fd, 1);
	assert(keeper_wire_send(line, &sweep, -1) == 0);
	assert(testing_keeper_list(line).held == 1);
	assert(close(fd) == 0 && close(line) == 0);
	assert(keeper_quit(testing_keeper_path()) == 0);
	testing_keeper_end();
}

/* More connections than allowed: the oldest are closed, and their messages count. */
UNIT(too_many_lines)
{
	struct keeper_wire message;
	struct keeper_entry entry;
	int lines[50], fd;

	begin();
	for (size_t i = 0; i < 50; i++) {
		fd = testing_keeper_book((uint32_t)i, &entry);
		message = testing_keeper_message(&entry);
		while (keeper_start_connect(testing_keeper_path(), &lines[i]) == -EAGAIN)
			(void)usleep(1000);
		assert(keeper_wire_send(lines[i], &message, fd) == 0);
		assert(close(fd) == 0);
	}
	assert(testing_keeper_list(lines[49]).held == 50);
	for (size_t i = 0; i < 50; i++)
		assert(close(lines[i]) == 0);
	end();
	assert(keeper_quit(testing_keeper_path()) == 0);
	testing_keeper_end();
}

/* A daemon that never reads its answer blocks nobody. */
UNIT(taker_that_does_not_read)
{
	const struct keeper_wire take = KEEPER_WIRE_INIT(KEEPER_WIRE_TAKE);
	int lazy, line;

	begin();
	lazy = testing_keeper_line();
	for (uint32_t i = 0; i < 1000; i++) {
		testing_keeper_add(keeper, i);
		while (keeper_wire_send(lazy, &take, -1) == -EAGAIN)
			assert(loop_turn(loop, 1) >= 0);
	}
	line = testing_keeper_line();
	assert(testing_keeper_list(line).held <= 1000); /* some may still be in flight */
	end();
	assert(testing_keeper_list(line).held == 1000);
	assert(close(line) == 0 && close(lazy) == 0);
	assert(keeper_quit(testing_keeper_path()) == 0);
	testing_keeper_end();
}

/*
 * A daemon that dies with unread answers resets the connection; the messages it sent still count.
 */
UNIT(a_client_that_dies_with_unread_answers_is_dropped)
{
	const struct keeper_wire take = KEEPER_WIRE_INIT(KEEPER_WIRE_TAKE);
	struct pollfd answered = {.events = POLLIN};
	struct keeper_wire message;
	struct keeper_entry entry;
	pid_t pid;
	int fd;

	begin();
	testing_keeper_add(keeper, 0);
	end();
	pid = testing_keeper_pid();
	answered.fd = testing_keeper_line();
	assert(keeper_wire_send(answered.fd, &take, -1) == 0);
	assert(poll(&answered, 1, -1) == 1);
	assert(kill(pid, SIGSTOP) == 0);
	for (uint32_t i = 1; i < 20; i++) {
		fd = testing_keeper_book(i, &entry);
		message = testing_keeper_message(&entry);
		assert(keeper_wire_send(answered.fd, &message, fd) == 0 && close(fd) == 0);
	}
	assert(close(answered.fd) == 0);
	assert(kill(pid, SIGCONT) == 0);
	fd = testing_keeper_line();
	assert(testing_keeper_list(fd).held == 20);
	assert(close(fd) == 0);
	assert(keeper_quit(testing_keeper_path()) == 0);
	testing_keeper_end();
}
