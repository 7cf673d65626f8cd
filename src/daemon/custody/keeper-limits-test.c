/* SPDX-License-Identifier: Apache-2.0 */

/* The keeper and other users, the keeper at its limits, fake keepers, and what is in a keeper's way. */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/testing/unit.h"
#include "base/threads/loop.h"
#include "daemon/custody/keeper-start.h"
#include "daemon/custody/keeper-wire.h"
#include "daemon/custody/keeper.h"
#include "daemon/custody/testing/testing-keeper.h"

#define NOBODY 65534u

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

/* Runs as another user, who must own the folder to have a keeper of their own there. */
static void as_nobody(void (*run)(void))
{
	pid_t pid;
	int status;

	if (geteuid() != 0)
		unit_skip("only root can become somebody else");
	pid = fork();
	if (pid == 0) {
		assert(setresgid(NOBODY, NOBODY, NOBODY) == 0);
		assert(setresuid(NOBODY, NOBODY, NOBODY) == 0);
		run();
		_exit(0);
	}
	assert(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0);
}

static void stranger_knocks(void)
{
	const struct keeper_wire take = KEEPER_WIRE_INIT(KEEPER_WIRE_TAKE);
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct keeper_wire message;
	int fd, line = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	assert(line >= 0);
	assert(strlen(testing_keeper_path()) < sizeof(address.sun_path));
	memcpy(address.sun_path, testing_keeper_path(), strlen(testing_keeper_path()));
	assert(connect(line, (struct sockaddr *)&address, sizeof(address)) == 0);
	(void)keeper_wire_send(line, &take, -1); /* or closed already */
	assert(testing_keeper_wait(line, &message, &fd) == -EPIPE);
	assert(close(line) == 0);
}

static void stranger_is_kept_out(void)
{
	int fd;

	assert(keeper_start_connect(testing_keeper_path(), &fd) == -EACCES);
}

UNIT(other_users_get_no_books_from_the_keeper)
{
	begin();
	testing_keeper_add(keeper, 1);
	assert(chmod(unit_dir(), 0755) == 0);
	as_nobody(stranger_is_kept_out);
	/* Even if the mode of the socket was changed. */
	assert(chmod(testing_keeper_path(), 0777) == 0);
	as_nobody(stranger_knocks);
	end();
	assert(keeper_quit(testing_keeper_path()) == 0);
	testing_keeper_end();
}

/* Every keeper accepts root's daemon, but root's daemon accepts no user's keeper. */
static void stranger_listens(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	assert(strlen(testing_keeper_path()) < sizeof(address.sun_path));
	memcpy(address.sun_path, testing_keeper_path(), strlen(testing_keeper_path()));
	assert(bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
	assert(listen(fd, 1) == 0);
	(void)pause();
}

static int refused;

static void note_refusal(void *context, int error)
{
	refused = error;
}

UNIT(a_keeper_of_another_user_is_refused)
{
	const struct keeper_hooks hooks = {
		.refill = testing_keeper_hooks.refill,
		.lost = note_refusal,
	};
	pid_t pid;
	int fd;

	if (geteuid() != 0)
		unit_skip("only root can become somebody else");
	assert(chmod(unit_dir(), 0777) == 0);
	pid = fork();
	if (pid == 0) {
		assert(setresuid(NOBODY, NOBODY, NOBODY) == 0);
		stranger_listens();
		_exit(1);
	}
	while (keeper_start_connect(testing_keeper_path(), &fd) != -EPERM)
		(void)usleep(1000);
	assert(loop_new(&loop) == 0);
	assert(keeper_new(&keeper, loop, testing_keeper_path(), &hooks) == 0);
	assert(refused == -EPERM);
	end();
	assert(kill(pid, SIGKILL) == 0 && waitpid(pid, NULL, 0) == pid);
}

/* Sends as fast as the keeper reads. */
static void add_many(uint32_t count)
{
	struct keeper_counts now;

	for (uint32_t i = 0; i < count; i++) {
		testing_keeper_add(keeper, i);
		for (;;) {
			keeper_counts(keeper, &now);
			if (now.waiting < 100)
				break;
			assert(loop_turn(loop, 10) >= 0);
		}
	}
	assert(now.lost == 0 && now.dropped == 0);
}

UNIT(more_books_than_there_is_room_for)
{
	static struct testing_keeper_taken taken;
	struct keeper_counts now;

	if (geteuid() != 0)
		unit_skip("only root can raise the limit of descriptors for certain");
	begin();
	add_many(KEEPER_BOOKS_MAX + 10);
	end();
	begin();
	assert(keeper_take(keeper, testing_keeper_take, &taken) == 0);
	keeper_counts(keeper, &now);
	assert(taken.count == KEEPER_BOOKS_MAX && now.refused == 10);
	for (uint32_t i = 0; i < KEEPER_BOOKS_MAX; i++)
		assert(taken.has[i]);
	end();
	assert(keeper_quit(testing_keeper_path()) == 0);
	testing_keeper_end();
}

static void few_descriptors(void)
{
	const struct rlimit few = {.rlim_cur = 64, .rlim_max = 64};
	struct testing_keeper_taken taken = {0};
	struct keeper_counts now;

	assert(setrlimit(RLIMIT_NOFILE, &few) == 0);
	begin();
	for (uint32_t i = 0; i < 100; i++) {
		testing_keeper_add(keeper, i);
		do {
			keeper_counts(keeper, &now);
		} while (now.waiting > 0 && loop_turn(loop, 10) >= 0);
	}
	end();
	begin();
	assert(keeper_take(keeper, testing_keeper_take, &taken) == 0);
	keeper_counts(keeper, &now);
	assert(taken.count == 32 && now.refused == 68 && now.lost == 0);
	end();
	assert(keeper_quit(testing_keeper_path()) == 0);
	testing_keeper_end();
}

UNIT(limit_of_descriptors)
{
	assert(chmod(unit_dir(), 0777) == 0);
	testing_keeper_begin();
	as_nobody(few_descriptors);
}

/* A fake keeper: answers @kind with @message, @times times; -1 = without end. */
static pid_t fake_keeper(uint32_t kind, const struct keeper_wire *message, int fd, int times)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int listening = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	pid_t pid;

	assert(strlen(testing_keeper_path()) < sizeof(address.sun_path));
	memcpy(address.sun_path, testing_keeper_path(), strlen(testing_keeper_path()));
	assert(bind(listening, (struct sockaddr *)&address, sizeof(address)) == 0);
	assert(listen(listening, 1) == 0);
	pid = fork();
	if (pid == 0) {
		struct keeper_wire asked;
		int line = accept4(listening, NULL, NULL, SOCK_CLOEXEC), none;

		assert(testing_keeper_wait(line, &asked, &none) == 0 && asked.kind == kind);
		while (times-- != 0)
			testing_keeper_send(line, message, sizeof(*message), &fd, fd >= 0);
		(void)pause();
	}
	assert(pid > 0 && close(listening) == 0);
	return pid;
}

static void expect_take(const struct keeper_wire *message, int fd, int times, int expected)
{
	static struct testing_keeper_taken taken;
	pid_t pid = fake_keeper(KEEPER_WIRE_TAKE, message, fd, times);
	struct keeper_counts now;

	begin();
	keeper_counts(keeper, &now);
	assert(now.started == 0);
	assert(keeper_take(keeper, testing_keeper_take, &taken) == expected && taken.count == 0);
	assert(kill(pid, SIGKILL) == 0 && waitpid(pid, NULL, 0) == pid);
	/* It is replaced by a real one. */
	while (now.started == 0) {
		assert(loop_turn(loop, 100) >= 0);
		keeper_counts(keeper, &now);
	}
	end();
	testing_keeper_end();
}

UNIT(malformed_answers_of_the_keeper_are_refused)
{
	struct keeper_wire message = KEEPER_WIRE_INIT(KEEPER_WIRE_END), held;
	struct keeper_entry entry;
	int fd;

	testing_keeper_begin();
	fd = testing_keeper_book(1, &entry);
	held = testing_keeper_message(&entry);
	held.kind = KEEPER_WIRE_HELD;

	message.magic++;
	expect_take(&message, -1, 1, -EBADMSG);
	message = held;
	message.inode++;
	expect_take(&message, fd, 1, -EBADMSG);
	message = held;
	message.kind = KEEPER_WIRE_ADD;
	expect_take(&message, fd, 1, -EBADMSG);
	expect_take(&held, -1, 1, -EBADMSG);
	expect_take(&held, fd, 0, -ETIMEDOUT);
	assert(close(fd) == 0);
}

static void fetch_nothing(void *context, uint32_t what, int fd)
{
	assert(false);
}

/* What an answer to FETCH names, and what comes with it, have to be the same. */
UNIT(another_descriptor_than_the_keeper_names_is_refused)
{
	struct keeper_wire other = KEEPER_WIRE_INIT(KEEPER_WIRE_OTHER);
	struct stat file;
	int pair[2];
	pid_t pid;

	testing_keeper_begin();
	assert(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
	assert(fstat(pair[1], &file) == 0);
	other.source = 7;
	other.device = file.st_dev;
	other.inode = file.st_ino;
	pid = fake_keeper(KEEPER_WIRE_FETCH, &other, pair[0], 1);
	begin();
	assert(keeper_fetch(keeper, fetch_nothing, NULL) == -EBADMSG);
	end();
	assert(kill(pid, SIGKILL) == 0 && waitpid(pid, NULL, 0) == pid);
	assert(close(pair[0]) == 0 && close(pair[1]) == 0 && unlink(testing_keeper_path()) == 0);
	testing_keeper_end();
}

static void ignore_book(void *context, const struct keeper_entry *entry, int fd)
{
	assert(close(fd) == 0);
}

UNIT(an_endless_list_from_the_keeper_is_refused)
{
	struct keeper_wire held;
	struct keeper_entry entry;
	pid_t pid;
	int fd;

	testing_keeper_begin();
	fd = testing_keeper_book(1, &entry);
	held = testing_keeper_message(&entry);
	held.kind = KEEPER_WIRE_HELD;
	pid = fake_keeper(KEEPER_WIRE_TAKE, &held, fd, -1);
	begin();
	assert(keeper_take(keeper, ignore_book, NULL) == -ETIMEDOUT);
	end();
	assert(kill(pid, SIGKILL) == 0 && waitpid(pid, NULL, 0) == pid);
	assert(close(fd) == 0 && unlink(testing_keeper_path()) == 0);
	testing_keeper_end();
}

static uint32_t refills, losses;

static void refill(void *context, struct keeper *to)
{
	refills++;
	for (uint32_t i = 0; i < 10; i++)
		testing_keeper_add(to, i);
}

static void lost(void *context, int error)
{
	assert(error == -EEXIST);
	losses++;
}

static struct keeper_counts counts(void)
{
	struct keeper_counts now;

	keeper_counts(keeper, &now);
	return now;
}

/* Something that is no socket, at the keeper's path. */
static void put_in_the_way(void)
{
	int fd = open(testing_keeper_path(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

	assert(fd >= 0 && close(fd) == 0);
}

UNIT(a_dead_socket_is_cleared)
{
	struct stat file;
	pid_t pid;

	begin();
	testing_keeper_add(keeper, 1);
	end();
	pid = testing_keeper_pid();
	assert(kill(pid, SIGKILL) == 0 && waitpid(pid, NULL, 0) == pid);
	assert(stat(testing_keeper_path(), &file) == 0);
	begin();
	assert(counts().started == 1);
	end();
	testing_keeper_end();
}

UNIT(a_file_in_the_way_is_left_alone_and_waited_for)
{
	const struct keeper_hooks hooks = {.refill = refill, .lost = lost};
	struct testing_keeper_taken taken = {0};
	struct stat file;

	testing_keeper_begin();
	put_in_the_way();
	assert(loop_new(&loop) == 0);
	assert(keeper_new(&keeper, loop, testing_keeper_path(), &hooks) == 0);
	assert(losses == 1 && counts().started == 0 && counts().lost == 0);
	assert(keeper_take(keeper, testing_keeper_take, &taken) == 0 && taken.count == 0);
	testing_keeper_add(keeper, 11); /* nobody takes it: the refill counts */
	while (losses < 3)
		assert(loop_turn(loop, 100) >= 0);
	assert(stat(testing_keeper_path(), &file) == 0 && S_ISREG(file.st_mode));
	/* As soon as there is room for one, it is there, and has everything. */
	assert(unlink(testing_keeper_path()) == 0);
	while (refills == 0)
		assert(loop_turn(loop, 100) >= 0);
	assert(counts().started == 1);
	end();
	begin();
	assert(keeper_take(keeper, testing_keeper_take, &taken) == 0);
	assert(taken.count == 10 && !taken.has[11]);
	end();
	assert(keeper_quit(testing_keeper_path()) == 0);
	testing_keeper_end();
}

/* Timers are never early: so a wait that is too short is seen on every machine. */
UNIT(what_is_in_the_way_is_tried_less_and_less_often)
{
	const struct keeper_hooks hooks = {.refill = refill, .lost = lost};
	uint64_t start;

	testing_keeper_begin();
	put_in_the_way();
	assert(loop_new(&loop) == 0);
	start = loop_now(loop);
	assert(keeper_new(&keeper, loop, testing_keeper_path(), &hooks) == 0);
	while (losses < 4)
		assert(loop_turn(loop, 100) >= 0);
	/* 100, 200 and 400 ms. */
	assert(loop_now(loop) - start >= UINT64_C(700000000));
	end();
}
