/* SPDX-License-Identifier: Apache-2.0 */

/* Offering books: listeners that behave well or badly, and what they receive. */

#include <ttmem/ttmem.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/files/fd-pass.h"
#include "base/testing/unit.h"
#include "book/testing/book-testing.h"
#include "lib/testing/testing-observer.h"
#include "wire/offer.h"

#define OFFER_BOOK_LIMIT_MS 120000

/* What one message delivered. */
struct offer_book_taken {
	int connection;
	int book;
	int pid_fd;
	struct ucred sender;
};

static void offer_book_path(char path[108], const char *name)
{
	assert(snprintf(path, 108, "%s/%s", unit_dir(), name) < 108);
}

static int offer_book_socket(const char *path, int backlog)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	assert(fd >= 0 && strlen(path) < sizeof(address.sun_path));
	memcpy(address.sun_path, path, strlen(path) + 1);
	if (backlog < 0) {
		assert(fcntl(fd, F_SETFL, O_NONBLOCK) == 0);
		assert(connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
		return fd;
	}
	assert(bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
	assert(listen(fd, backlog) == 0);
	return fd;
}

static int offer_book_listen(const char *name)
{
	char path[108];

	offer_book_path(path, name);
	return offer_book_socket(path, 16);
}

static bool offer_book_comes(int fd, int milliseconds)
{
	struct pollfd poll_fd = {.fd = fd, .events = POLLIN};

	return poll(&poll_fd, 1, milliseconds) == 1;
}

static struct offer_book_taken offer_book_take(int listener)
{
	struct offer_book_taken taken = {.book = -1, .pid_fd = -1};
	struct fd_pass got = FD_PASS_WANT(OFFER_FDS);
	struct offer offer;
	socklen_t size = sizeof(taken.sender);

	assert(offer_book_comes(listener, OFFER_BOOK_LIMIT_MS));
	taken.connection = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	assert(taken.connection >= 0 && offer_book_comes(taken.connection, OFFER_BOOK_LIMIT_MS));
	assert(fd_pass_receive(taken.connection, &offer, sizeof(offer), &got, 0) == sizeof(offer));
	assert(offer.magic == OFFER_MAGIC && offer.version == OFFER_VERSION);
	assert(offer.size == sizeof(offer) && offer.reserved == 0);
	assert(!got.is_cut && got.fds[0] >= 0);
	taken.book = got.fds[0];
	taken.pid_fd = got.fds[1];
	assert(getsockopt(taken.connection, SOL_SOCKET, SO_PEERCRED, &taken.sender, &size) == 0);
	return taken;
}

static void offer_book_drop(const struct offer_book_taken *taken)
{
	close(taken->connection);
	close(taken->book);
	if (taken->pid_fd >= 0)
		close(taken->pid_fd);
}

/* The process of a pidfd; -1 once it has been reaped. */
static int offer_book_pid_of(int pid_fd)
{
	char path[64], line[128];
	int pid = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", pid_fd);
	file = fopen(path, "re");
	assert(file);
	while (fgets(line, sizeof(line), file))
		(void)sscanf(line, "Pid: %d", &pid);
	fclose(file);
	return pid;
}

/* Checks that the received book is @pid's and has @bytes. */
static void offer_book_check(const struct offer_book_taken *taken, pid_t pid, uint64_t bytes)
{
	struct observer w;

	assert(taken->sender.pid == pid && taken->sender.uid == getuid());
	observer_open_fd(&w, taken->book);
	assert(observer_header(&w)->pid == (uint32_t)pid);
	assert(observer_look(&w, 0, VIEW_DEAD) && w.view.hot[TTMEM_DRAM].bytes == bytes);
	observer_close(&w);
}

static void offer_book_track(const char *list)
{
	observer_track();
	unit_expect_fds(0);
	assert(setenv("TTMEM_OFFER", list, 1) == 0);
}

UNIT(book_and_pidfd)
{
	char path[108];
	struct offer_book_taken taken;
	int listener = offer_book_listen("a");
	int go[2];
	pid_t child;

	offer_book_path(path, "a");
	offer_book_track(path);
	assert(pipe2(go, O_CLOEXEC) == 0);
	child = fork();
	assert(child >= 0);
	if (child == 0) {
		char byte;

		ttmem_alloc(0, TTMEM_DRAM, 1, 42, "offered");
		_exit(read(go[0], &byte, 1) == 1 ? 0 : 1);
	}
	taken = offer_book_take(listener);
	assert(offer_book_pid_of(taken.pid_fd) == child);
	assert(!offer_book_comes(taken.pid_fd, 0)); /* alive */
	assert(!offer_book_comes(taken.connection, 0));
	assert(write(go[1], "", 1) == 1);
	assert(offer_book_comes(taken.pid_fd,
				OFFER_BOOK_LIMIT_MS)); /* dead, and the connection is closed */
	assert(offer_book_comes(taken.connection, OFFER_BOOK_LIMIT_MS));
	observer_wait(child);
	offer_book_check(&taken, child, 42);
	/* Only once: nothing else arrives. */
	assert(!offer_book_comes(listener, 0));
	offer_book_drop(&taken);
	close(listener);
	close(go[0]);
	close(go[1]);
}

/* The book was offered before the first event returned, so a kill right after it loses nothing. */
UNIT(killed_at_once)
{
	int listener = offer_book_listen("a");
	char path[108];

	offer_book_path(path, "a");
	offer_book_track(path);
	for (int i = 0; i < (testing_quick() ? 10 : 50); i++) {
		struct offer_book_taken taken;
		pid_t child = fork();

		assert(child >= 0);
		if (child == 0) {
			ttmem_alloc(0, TTMEM_DRAM, 1, (uint64_t)i + 1, NULL);
			kill(getpid(), SIGKILL);
		}
		assert(waitpid(child, NULL, 0) == child);
		taken = offer_book_take(listener);
		offer_book_check(&taken, child, (uint64_t)i + 1);
		offer_book_drop(&taken);
	}
	close(listener);
}

/* Of five sockets four are tried: one is dead, one stays full, and the others receive the book. */
UNIT(four_sockets_are_offered_the_book)
{
	char path[5][108], list[5 * 108];
	int listener[5], filler;
	double start;
	pid_t child;

	for (int i = 0; i < 5; i++) {
		snprintf(list, sizeof(list), "socket %d", i);
		offer_book_path(path[i], list);
	}
	listener[0] = offer_book_socket(path[0], 16);
	listener[1] = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0); /* not bound */
	listener[2] = offer_book_socket(path[2], 0);
	filler = offer_book_socket(path[2], -1);
	listener[3] = offer_book_socket(path[3], 16);
	listener[4] = offer_book_socket(path[4], 16);
	snprintf(list, sizeof(list), "%s:%s:%s:%s:%s", path[0], path[1], path[2], path[3], path[4]);
	offer_book_track(list);
	start = observer_now();
	child = fork();
	assert(child >= 0);
	if (child == 0) {
		ttmem_alloc(0, TTMEM_DRAM, 1, 1, NULL);
		_exit(ttmem_enabled() == 1 ? 0 : 1);
	}
	observer_wait(child);
	assert(observer_now() - start < 3); /* typically 0.1 */
	for (int i = 0; i < 5; i += 3) {
		struct offer_book_taken taken = offer_book_take(listener[i]);

		offer_book_check(&taken, child, 1);
		offer_book_drop(&taken);
	}
	assert(!offer_book_comes(listener[4], 0));
	close(filler);
	for (int i = 0; i < 5; i++)
		close(listener[i]);
}

/* A full queue that empties soon: the sender waits and gets through. */
UNIT(a_full_queue_is_retried)
{
	struct offer_book_taken taken;
	int listener, filler, waiting;
	char path[108];
	pid_t child;

	offer_book_path(path, "a");
	listener = offer_book_socket(path, 0);
	filler = offer_book_socket(path, -1);
	offer_book_track(path);
	child = fork();
	assert(child >= 0);
	if (child == 0) {
		ttmem_alloc(0, TTMEM_DRAM, 1, 1, NULL);
		_exit(0);
	}
	usleep(20000);
	waiting = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	assert(waiting >= 0);
	observer_wait(child);
	if (!offer_book_comes(listener, 100))
		unit_skip("the machine was too busy to be in time");
	taken = offer_book_take(listener);
	offer_book_check(&taken, child, 1);
	offer_book_drop(&taken);
	close(waiting);
	close(filler);
	close(listener);
}

static void *offer_book_slam(void *context)
{
	const int *listener = context;

	for (;;) {
		int fd = accept4(*listener, NULL, NULL, SOCK_CLOEXEC);

		if (fd < 0)
			return NULL;
		close(fd);
	}
}

/* A listener that hangs up at once must not cause SIGPIPE, which kills by default. */
UNIT(a_listener_that_hangs_up_raises_no_signal)
{
	int listener = offer_book_listen("a");
	pthread_t thread;
	char path[108];

	offer_book_path(path, "a");
	offer_book_track(path);
	assert(pthread_create(&thread, NULL, offer_book_slam, &listener) == 0);
	for (int i = 0; i < (testing_quick() ? 25 : 200); i++) {
		pid_t child = fork();

		assert(child >= 0);
		if (child == 0) {
			ttmem_alloc(0, TTMEM_DRAM, 1, 1, NULL);
			_exit(0);
		}
		observer_wait(child);
	}
	assert(shutdown(listener, SHUT_RDWR) == 0);
	assert(pthread_join(thread, NULL) == 0);
	close(listener);
}

/* Malformed lists, and impossible paths. */
UNIT(malformed_socket_lists_are_ignored)
{
	int listener = offer_book_listen("a");
	char long_path[400], list[600], path[108];
	const char *lists[] = {"", ":", "::::::", "/", "relative", "/dev/null", list};
	struct offer_book_taken taken;
	pid_t child = 0;

	memset(long_path, 'x', sizeof(long_path) - 1);
	long_path[sizeof(long_path) - 1] = '\0';
	offer_book_path(path, "a");
	snprintf(list, sizeof(list), ":%s:/nowhere/at/all:%s", long_path, path);
	for (uint32_t i = 0; i < ARRAY_SIZE(lists); i++) {
		offer_book_track(lists[i]);
		child = fork();
		assert(child >= 0);
		if (child == 0) {
			ttmem_alloc(0, TTMEM_DRAM, 1, 1, NULL);
			_exit(ttmem_enabled() == 1 ? 0 : 1);
		}
		observer_wait(child);
	}
	/* In the last one the fourth entry is a real socket. */
	taken = offer_book_take(listener);
	offer_book_check(&taken, child, 1);
	offer_book_drop(&taken);
	close(listener);
}

/* The daemon's socket: named explicitly, at its default path, or disabled. */
static bool offer_book_reaches(int listener)
{
	struct offer_book_taken taken;
	pid_t child = fork();

	assert(child >= 0);
	if (child == 0) {
		ttmem_alloc(0, TTMEM_DRAM, 1, 1, NULL);
		_exit(ttmem_enabled() == 1 ? 0 : 1);
	}
	observer_wait(child);
	if (!offer_book_comes(listener, 0))
		return false;
	taken = offer_book_take(listener);
	offer_book_check(&taken, child, 1);
	offer_book_drop(&taken);
	return true;
}

UNIT(daemon_sockets)
{
	char path[108];
	int named, usual;

	if (access("/run/ttmem/ttmemd.sock", F_OK) == 0)
		unit_skip("a daemon runs here");
	observer_track();
	unit_expect_fds(0);
	offer_book_path(path, "ttmem");
	assert(mkdir(path, 0700) == 0);
	usual = offer_book_listen("ttmem/ttmemd.sock");
	named = offer_book_listen("named");
	assert(!offer_book_reaches(usual)); /* TTMEM_SOCKET=none */
	offer_book_path(path, "named");
	assert(setenv("TTMEM_SOCKET", path, 1) == 0);
	assert(offer_book_reaches(named) && !offer_book_comes(usual, 0));
	assert(setenv("TTMEM_SOCKET", "/nowhere", 1) == 0);
	assert(!offer_book_reaches(usual) && !offer_book_comes(named, 0));
	assert(setenv("TTMEM_SOCKET", "", 1) == 0);
	assert(offer_book_reaches(usual));
	assert(unsetenv("TTMEM_SOCKET") == 0);
	assert(offer_book_reaches(usual)); /* through XDG_RUNTIME_DIR, which the runner sets */
	/* The process that started the program receives it first, then the daemon too. */
	assert(setenv("TTMEM_OFFER", path, 1) == 0);
	assert(offer_book_reaches(named) && offer_book_comes(usual, 0));
	close(named);
	close(usual);
}

/* A child that makes its own book closes its parent's connection. */
UNIT(connection_ends_with_its_process)
{
	struct offer_book_taken parent, child;
	int listener = offer_book_listen("a");
	char path[108];
	int go[2];
	pid_t pid;

	offer_book_path(path, "a");
	offer_book_track(path);
	assert(pipe2(go, O_CLOEXEC) == 0);
	pid = fork();
	assert(pid >= 0);
	if (pid == 0) {
		int done[2];
		char byte;

		ttmem_alloc(0, TTMEM_DRAM, 1, 1, NULL);
		assert(pipe2(done, O_CLOEXEC) == 0);
		if (fork() == 0) {
			ttmem_alloc(0, TTMEM_DRAM, 1, 2, NULL);
			assert(write(done[1], "", 1) == 1);
			_exit(read(go[0], &byte, 1) == 1 ? 0 : 1);
		}
		_exit(read(done[0], &byte, 1) == 1 ? 0 : 1);
	}
	parent = offer_book_take(listener);
	child = offer_book_take(listener);
	assert(parent.sender.pid == pid && child.sender.pid != pid);
	assert(offer_book_comes(parent.connection, OFFER_BOOK_LIMIT_MS));
	assert(!offer_book_comes(child.connection, 0));
	assert(write(go[1], "", 1) == 1);
	assert(offer_book_comes(child.connection, OFFER_BOOK_LIMIT_MS));
	observer_wait(pid);
	offer_book_drop(&parent);
	offer_book_drop(&child);
	close(listener);
	close(go[0]);
	close(go[1]);
}

UNIT(exec_ends_the_connection)
{
	struct offer_book_taken taken;
	int listener = offer_book_listen("a");
	char path[108];
	pid_t child;

	offer_book_path(path, "a");
	offer_book_track(path);
	child = fork();
	assert(child >= 0);
	if (child == 0) {
		ttmem_alloc(0, TTMEM_DRAM, 1, 1, NULL);
		execlp("sleep", "sleep", "100", NULL);
		_exit(1);
	}
	taken = offer_book_take(listener);
	assert(offer_book_comes(taken.connection, OFFER_BOOK_LIMIT_MS));
	assert(!offer_book_comes(taken.pid_fd, 0)); /* the process continues */
	assert(kill(child, SIGKILL) == 0 && waitpid(child, NULL, 0) == child);
	offer_book_drop(&taken);
	close(listener);
}

/* The application has closed our connection and has a socket of its own at that number. */
static _Noreturn void offer_book_with_foreign_socket(void)
{
	int ours = -1, pair[2];
	pid_t child;
	struct stat st;
	char byte;

	ttmem_alloc(0, TTMEM_DRAM, 1, 1, NULL);
	for (int fd = 3; fd < 1024; fd++) {
		if (fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode) && fd > 900)
			ours = fd;
	}
	assert(ours > 0);
	assert(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) == 0);
	assert(dup2(pair[0], ours) == ours && close(pair[0]) == 0);
	child = fork();
	assert(child >= 0);
	if (child == 0) {
		ttmem_alloc(0, TTMEM_DRAM, 1, 2, NULL);
		_exit(write(ours, "x", 1) == 1 ? 0 : 1);
	}
	observer_wait(child);
	_exit(read(pair[1], &byte, 1) == 1 && byte == 'x' ? 0 : 1);
}

UNIT(foreign_socket_on_our_number)
{
	int listener = offer_book_listen("a");
	char path[108];
	pid_t child;

	offer_book_path(path, "a");
	offer_book_track(path);
	child = fork();
	assert(child >= 0);
	if (child == 0) {
		close(listener);
		offer_book_with_foreign_socket();
	}
	observer_wait(child);
	close(listener);
}

/* Without standard descriptors none of ours takes their numbers: printed text goes nowhere else. */
UNIT(standard_descriptors_are_not_taken)
{
	int listener = offer_book_listen("a");
	struct offer_book_taken taken;
	char path[108];
	pid_t child;

	offer_book_path(path, "a");
	offer_book_track(path);
	child = fork();
	assert(child >= 0);
	if (child == 0) {
		if (close_range(0, ~0u, 0) < 0)
			_exit(2);
		ttmem_alloc(0, TTMEM_DRAM, 1, 1, NULL);
		_exit(write(1, "secret", 6) < 0 && write(0, "secret", 6) < 0 && errno == EBADF ? 0
											       : 1);
	}
	observer_wait(child);
	taken = offer_book_take(listener);
	offer_book_check(&taken, child, 1);
	offer_book_drop(&taken);
	close(listener);
}
