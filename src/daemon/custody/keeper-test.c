/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The keeper as a real process: the next daemon gets back what the last one gave it, however often
 * and whenever the daemon is killed.
 */

#include "daemon/custody/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/testing/unit.h"
#include "base/threads/loop.h"
#include "daemon/custody/testing/testing-keeper.h"

static struct keeper *keeper;
static struct loop *loop;

static struct keeper_counts counts(void)
{
	struct keeper_counts now;

	keeper_counts(keeper, &now);
	return now;
}

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

UNIT(a_keeper_without_books_ends)
{
	struct testing_keeper_taken taken = {0};
	struct stat file;

	begin();
	assert(keeper_take(keeper, testing_keeper_take, &taken) == 0 && taken.count == 0);
	assert(stat(testing_keeper_path(), &file) == 0 && (file.st_mode & 0777) == 0600);
	assert(S_ISSOCK(file.st_mode) && counts().started == 1);
	end();
	testing_keeper_end();
}

UNIT(a_restarted_daemon_gets_its_books_back)
{
	begin();
	for (uint32_t i = 0; i < 100; i++)
		testing_keeper_add(keeper, i);
	for (uint32_t i = 0; i < 100; i += 2)
		testing_keeper_remove(keeper, i);
	end();
	for (int again = 0; again < 3; again++) {
		struct testing_keeper_taken taken = {0};

		begin();
		assert(keeper_take(keeper, testing_keeper_take, &taken) == 0);
		assert(taken.count == 50 && counts().started == 0);
		for (uint32_t i = 0; i < 100; i++)
			assert(taken.has[i] == i % 2);
		end();
	}
	begin();
	for (uint32_t i = 1; i < 100; i += 2)
		testing_keeper_remove(keeper, i);
	end();
	testing_keeper_end();
}

static void take_entry(void *context, const struct keeper_entry *entry, int fd)
{
	struct keeper_entry *only = context;

	assert(only->process.pid == 0 && close(fd) == 0);
	*only = *entry;
}

UNIT(adding_again_is_no_harm)
{
	struct keeper_entry entry, taken_entry = {0};
	int fd;

	begin();
	fd = testing_keeper_book(3, &entry);
	for (uint32_t i = 0; i < 10; i++) {
		entry.process.pid = 1 + i; /* the latest message counts */
		keeper_add(keeper, &entry, fd);
	}
	end();
	begin();
	assert(keeper_take(keeper, take_entry, &taken_entry) == 0);
	assert(process_id_equal(entry.process, taken_entry.process));
	assert(book_id_equal(entry.book, taken_entry.book));
	assert(entry.source == taken_entry.source && strcmp(entry.comm, taken_entry.comm) == 0);
	keeper_remove(keeper, entry.book);
	keeper_remove(keeper, entry.book);
	end();
	assert(close(fd) == 0);
	testing_keeper_end();
}

/* The state of a book that daemons add and remove at random until they are killed. */
enum book_state {
	BOOK_NONE,
	BOOK_ADDING, /* it may be held */
	BOOK_HELD,   /* it must be held */
	BOOK_REMOVING,
};

#define STORM_BOOKS 400u
#define STORM_KILLS 60

struct storm {
	uint8_t state[STORM_BOOKS];
	uint64_t taken; /* by daemons that were not killed meanwhile */
	uint64_t steps;
};

/* A daemon: takes the books, compares them with its predecessors' notes, and runs until killed. */
static _Noreturn void storm_daemon(struct storm *storm, unsigned int seed)
{
	struct testing_keeper_taken taken = {0};

	begin();
	assert(keeper_take(keeper, testing_keeper_take, &taken) == 0);
	/*
	 * A keeper without books that was about to exit. A daemon would send everything again to the
	 * next one; this one starts over. Books that should have been held are missed below.
	 */
	while (counts().lost > 0) {
		end();
		begin();
		assert(keeper_take(keeper, testing_keeper_take, &taken) == 0);
	}
	for (uint32_t i = 0; i < STORM_BOOKS; i++) {
		if (storm->state[i] == BOOK_HELD)
			assert(taken.has[i]);
		if (storm->state[i] == BOOK_NONE)
			assert(!taken.has[i]);
		/* Resolves what was in progress. */
		if (storm->state[i] != BOOK_NONE)
			storm->state[i] = taken.has[i] ? BOOK_HELD : BOOK_NONE;
	}
	storm->taken++;
	for (;;) {
		uint32_t i = (uint32_t)rand_r(&seed) % STORM_BOOKS;
		bool adds = storm->state[i] == BOOK_NONE;

		storm->state[i] = adds ? BOOK_ADDING : BOOK_REMOVING;
		if (adds)
			testing_keeper_add(keeper, i);
		else
			testing_keeper_remove(keeper, i);
		/* Only what has been sent can be relied on. */
		while (counts().waiting > 0)
			assert(loop_turn(loop, 10) >= 0);
		assert(counts().lost == 0);
		storm->state[i] = adds ? BOOK_HELD : BOOK_NONE;
		storm->steps++;
	}
}

UNIT_LONG(daemon_killed_at_any_moment, 300)
{
	struct storm *storm = mmap(NULL, sizeof(*storm), PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct testing_keeper_taken taken = {0};
	unsigned int seed = (unsigned int)getpid();
	uint32_t held = 0;

	assert(storm != MAP_FAILED);
	testing_keeper_begin();
	for (int i = 0; i < STORM_KILLS; i++) {
		pid_t pid = fork();
		int status;

		if (pid == 0) {
			(void)setpgid(0, 0); /* cannot fail in our own child */
			storm_daemon(storm, seed + (unsigned int)i);
		}
		assert(pid > 0);
		(void)usleep((useconds_t)(rand_r(&seed) % (i % 4 ? 20000 : 2000)));
		/* With its group: the keeper is not in it. */
		if (kill(-pid, SIGKILL) < 0)
			assert(kill(pid, SIGKILL) == 0);
		assert(waitpid(pid, &status, 0) == pid);
		assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	}
	assert(storm->taken > 0 && storm->steps > 100);

	begin();
	assert(keeper_take(keeper, testing_keeper_take, &taken) == 0);
	for (uint32_t i = 0; i < STORM_BOOKS; i++) {
		held += storm->state[i] == BOOK_HELD;
		assert(storm->state[i] != BOOK_HELD || taken.has[i]);
		testing_keeper_remove(keeper, i);
	}
	assert(taken.count >= held);
	end();
	testing_keeper_end();
	assert(munmap(storm, sizeof(*storm)) == 0);
}

static struct keeper *refilled;
static uint32_t refills, losses;

static void refill(void *context, struct keeper *to)
{
	refilled = to;
	refills++;
	for (uint32_t i = 0; i < 10; i++)
		testing_keeper_add(to, i);
}

static void lost(void *context, int error)
{
	assert(error < 0);
	losses++;
}

UNIT(killed_keeper_is_replaced)
{
	const struct keeper_hooks hooks = {.refill = refill, .lost = lost};
	struct testing_keeper_taken taken = {0};

	testing_keeper_begin();
	assert(loop_new(&loop) == 0);
	assert(keeper_new(&keeper, loop, testing_keeper_path(), &hooks) == 0);
	for (uint32_t i = 0; i < 3; i++) {
		pid_t pid = testing_keeper_pid();

		assert(kill(pid, SIGKILL) == 0);
		while (refills == i)
			assert(loop_turn(loop, 100) >= 0);
		assert(refilled == keeper && testing_keeper_pid() != pid);
	}
	assert(losses == 3 && counts().started == 4 && counts().lost == 3);
	end();

	begin();
	assert(keeper_take(keeper, testing_keeper_take, &taken) == 0 && taken.count == 10);
	for (uint32_t i = 0; i < 10; i++)
		testing_keeper_remove(keeper, i);
	end();
	testing_keeper_end();
}

/* The connection is lost, but not the keeper: what it missed meanwhile is corrected. */
UNIT(lost_connection_is_made_anew)
{
	const struct keeper_hooks hooks = {.refill = refill, .lost = lost};
	struct testing_keeper_taken taken = {0};
	int lines[20];

	testing_keeper_begin();
	assert(loop_new(&loop) == 0);
	assert(keeper_new(&keeper, loop, testing_keeper_path(), &hooks) == 0);
	for (uint32_t i = 5; i < 30; i++)
		testing_keeper_add(keeper, i); /* other files than those of the refill */
	/* So many connections that the oldest is closed. */
	for (size_t i = 0; i < 20; i++) {
		lines[i] = testing_keeper_line();
		(void)testing_keeper_list(lines[i]); /* it has been accepted */
	}
	while (refills == 0)
		assert(loop_turn(loop, 100) >= 0);
	assert(losses == 1 && counts().started == 1 && counts().lost == 1);
	for (size_t i = 0; i < 20; i++)
		assert(close(lines[i]) == 0);
	end();

	begin();
	assert(keeper_take(keeper, testing_keeper_take, &taken) == 0 && taken.count == 10);
	end();
	assert(keeper_quit(testing_keeper_path()) == 0);
	testing_keeper_end();
}

/* A stopped keeper accepts nothing: after some seconds another one replaces it, and it exits. */
UNIT_LONG(stuck_keeper_is_replaced, 120)
{
	const struct keeper_hooks hooks = {.refill = refill, .lost = lost};
	struct testing_keeper_taken taken = {0};
	pid_t pid;

	testing_keeper_begin();
	assert(loop_new(&loop) == 0);
	assert(keeper_new(&keeper, loop, testing_keeper_path(), &hooks) == 0);
	testing_keeper_add(keeper, 1);
	pid = testing_keeper_pid();
	assert(kill(pid, SIGSTOP) == 0);
	while (counts().waiting < 100)
		testing_keeper_add(keeper, (uint32_t)counts().waiting);
	while (refills == 0)
		assert(loop_turn(loop, 100) >= 0);
	assert(counts().started == 2 && losses >= 1);
	assert(kill(pid, SIGCONT) == 0);
	assert(waitpid(pid, NULL, 0) == pid);
	end();

	begin();
	assert(keeper_take(keeper, testing_keeper_take, &taken) == 0 && taken.count == 10);
	end();
	assert(keeper_quit(testing_keeper_path()) == 0);
	testing_keeper_end();
}

struct fetched {
	uint32_t count;
	uint32_t what;
	int fd;
};

static void fetch_one(void *context, uint32_t what, int fd)
{
	struct fetched *fetched = context;

	assert(fetched->count++ == 0);
	fetched->what = what;
	fetched->fd = fd;
}

UNIT(a_socket_is_held_apart_from_the_books)
{
	struct testing_keeper_taken taken = {0}, again = {0};
	struct fetched fetched = {0}, none = {0};
	int pair[2];
	char byte;

	assert(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
	begin();
	testing_keeper_add(keeper, 1);
	keeper_hold(keeper, 7, pair[0]);
	keeper_hold(keeper, 7, pair[0]);
	end();
	assert(close(pair[0]) == 0);
	begin();
	assert(keeper_take(keeper, testing_keeper_take, &taken) == 0 && taken.count == 1);
	assert(keeper_fetch(keeper, fetch_one, &fetched) == 0);
	assert(fetched.count == 1 && fetched.what == 7);
	assert(send(pair[1], "x", 1, MSG_NOSIGNAL) == 1);
	assert(recv(fetched.fd, &byte, 1, 0) == 1 && byte == 'x');
	keeper_release(keeper, fetched.fd);
	assert(close(fetched.fd) == 0);
	end();
	begin();
	assert(keeper_take(keeper, testing_keeper_take, &again) == 0 && again.count == 1);
	assert(keeper_fetch(keeper, fetch_one, &none) == 0 && none.count == 0);
	/* Nobody holds it any more. */
	assert(recv(pair[1], &byte, 1, 0) == 0);
	testing_keeper_remove(keeper, 1);
	end();
	assert(close(pair[1]) == 0);
	testing_keeper_end();
}

/* One of an earlier version: knows TAKE, and hangs up on what it does not know. */
static _Noreturn void be_an_older_keeper(int listening)
{
	struct keeper_wire message, end_message = KEEPER_WIRE_INIT(KEEPER_WIRE_END);
	int fd, line = accept4(listening, NULL, NULL, SOCK_CLOEXEC);

	assert(testing_keeper_wait(line, &message, &fd) == 0 && message.kind == KEEPER_WIRE_TAKE);
	assert(keeper_wire_send(line, &end_message, -1) == 0);
	assert(testing_keeper_wait(line, &message, &fd) == 0 && message.kind == KEEPER_WIRE_FETCH);
	_exit(0);
}

UNIT(an_older_keeper_is_replaced)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct testing_keeper_taken taken = {0};
	struct fetched fetched = {0};
	int listening = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	pid_t pid;

	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", testing_keeper_path());
	assert(bind(listening, (struct sockaddr *)&address, sizeof(address)) == 0);
	assert(listen(listening, 1) == 0);
	pid = fork();
	if (pid == 0)
		be_an_older_keeper(listening);
	assert(close(listening) == 0);
	begin();
	assert(keeper_take(keeper, testing_keeper_take, &taken) == 0 && counts().started == 0);
	assert(keeper_fetch(keeper, fetch_one, &fetched) == 0 && fetched.count == 0);
	assert(waitpid(pid, NULL, 0) == pid);
	while (counts().started == 0)
		assert(loop_turn(loop, 100) >= 0);
	end();
	testing_keeper_end();
}

UNIT(stuck_keeper_does_not_hold_up_the_start)
{
	struct testing_keeper_taken taken = {0};
	pid_t pid;

	begin();
	testing_keeper_add(keeper, 1);
	end();
	pid = testing_keeper_pid();
	assert(kill(pid, SIGSTOP) == 0);
	begin();
	assert(keeper_take(keeper, testing_keeper_take, &taken) == -ETIMEDOUT && taken.count == 0);
	while (counts().started == 0)
		assert(loop_turn(loop, 100) >= 0);
	assert(kill(pid, SIGCONT) == 0);
	assert(waitpid(pid, NULL, 0) == pid);
	end();
	testing_keeper_end();
}

/* Both are served; normally one of them is dead. */
UNIT(two_daemons_are_served_by_one_keeper)
{
	struct testing_keeper_taken taken = {0}, all = {0};
	struct keeper *other;

	begin();
	for (uint32_t i = 0; i < 10; i++)
		testing_keeper_add(keeper, i);
	assert(keeper_new(&other, loop, testing_keeper_path(), &testing_keeper_hooks) == 0);
	assert(keeper_take(other, testing_keeper_take, &taken) == 0 && taken.count == 10);
	testing_keeper_remove(other, 0);
	testing_keeper_add(other, 11);
	keeper_free(other);
	testing_keeper_add(keeper, 12);
	end();

	begin();
	assert(keeper_take(keeper, testing_keeper_take, &all) == 0);
	assert(all.count == 11 && !all.has[0] && all.has[11] && all.has[12]);
	end();
	assert(keeper_quit(testing_keeper_path()) == 0);
	testing_keeper_end();
}

/* As when an administrator terminates it, or the machine shuts down. */
UNIT(terminated_keeper_cleans_up)
{
	begin();
	testing_keeper_add(keeper, 1);
	end();
	assert(kill(testing_keeper_pid(), SIGTERM) == 0); /* it has its name, so it is set up */
	testing_keeper_end();
}

UNIT(quit_ends_the_keeper)
{
	assert(keeper_quit(testing_keeper_path()) == 0); /* there is none */
	begin();
	for (uint32_t i = 0; i < 10; i++)
		testing_keeper_add(keeper, i);
	end();
	assert(keeper_quit(testing_keeper_path()) == 0);
	testing_keeper_end();
}
