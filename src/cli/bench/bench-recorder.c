/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The recorder of `ttmem record` in a child, told by bytes on a socket when to read. What it writes
 * goes to /dev/null: a disk is not what is measured.
 */

#include "cli/bench/bench-recorder.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/process/child.h"
#include "cli/bench/bench-book.h"
#include "recording/write/recorder.h"
#include "source/books/scan.h"

#define RECORDER_GO 'g'
#define RECORDER_PAUSE 'p'

static int recorder_socket = -1;
static pid_t recorder_pid = -1;

/* Until it is told to pause. False: there is nobody any more, or it cannot go on. */
static bool recorder_read(struct recorder *recorder, int fd)
{
	struct pollfd told = {.fd = fd, .events = POLLIN};
	unsigned int wait_ms;
	char byte = RECORDER_GO;

	if (recorder_round(recorder, &wait_ms) < 0 || write(fd, &byte, 1) != 1)
		return false;
	while (poll(&told, 1, (int)wait_ms) == 0) {
		if (recorder_round(recorder, &wait_ms) < 0)
			return false;
	}
	return read(fd, &byte, 1) == 1 && write(fd, &byte, 1) == 1;
}

static void recorder_run(int fd, int book_fd)
{
	const struct recorder_options options = {0};
	struct recorder *recorder;
	struct scan_book *book;
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	char byte;

	if (null < 0 || scan_book_new_consume(&book, book_fd) != 0)
		return;
	book->alive = true;
	if (recorder_new(&recorder, null, &options) < 0 || recorder_add(recorder, book, false) < 0)
		return;
	while (read(fd, &byte, 1) == 1 && recorder_read(recorder, fd))
		;
}

/* In the child. Other parts of the benchmark end when their descriptors are closed. */
static void recorder_become(int fd, int book_fd)
{
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* it would end at the next byte anyway */
	if (dup2(fd, STDIN_FILENO) == STDIN_FILENO &&
	    dup2(book_fd, STDOUT_FILENO) == STDOUT_FILENO &&
	    close_range(STDERR_FILENO + 1, ~0u, 0) == 0)
		recorder_run(STDIN_FILENO, STDOUT_FILENO);
	_exit(0);
}

bool bench_recorder_start(void)
{
	CLEANUP_CLOSE int book_fd = bench_book_open();
	int ends[2];

	if (book_fd < 0)
		return false;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		return false;
	recorder_pid = fork();
	if (recorder_pid == 0)
		recorder_become(ends[1], book_fd);
	(void)close(ends[1]);
	recorder_socket = ends[0];
	if (recorder_pid < 0)
		bench_recorder_end();
	return recorder_pid > 0;
}

/* Without SIGPIPE, which would end the benchmark with its recorder. */
static bool recorder_tell(char byte)
{
	return recorder_socket >= 0 && send(recorder_socket, &byte, 1, MSG_NOSIGNAL) == 1 &&
	       read(recorder_socket, &byte, 1) == 1;
}

bool bench_recorder_go(void)
{
	return recorder_tell(RECORDER_GO);
}

void bench_recorder_pause(void)
{
	(void)recorder_tell(RECORDER_PAUSE); /* one that is gone reads nothing either */
}

void bench_recorder_end(void)
{
	if (recorder_socket >= 0)
		(void)close(recorder_socket); /* ends the child */
	if (recorder_pid > 0)
		(void)child_reap(recorder_pid); /* how it ended tells nothing */
	recorder_socket = -1;
	recorder_pid = -1;
}
