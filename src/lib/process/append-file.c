/* SPDX-License-Identifier: Apache-2.0 */

/* Appends whole records to log files. */

#include "lib/process/append-file.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "base/files/user-file.h"

static bool append_file_has_room(uint64_t end)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_FSIZE, &limit) == 0 &&
	       (limit.rlim_cur == RLIM_INFINITY || end <= limit.rlim_cur);
}

/* Only a regular file below the size limit can neither block nor raise a signal. */
static bool append_file_may_write(int fd, bool is_shared, size_t length)
{
	struct stat st;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return false;
	if (is_shared && (st.st_uid != geteuid() || st.st_nlink != 1))
		return false;
	return append_file_has_room((uint64_t)st.st_size + length);
}

/* A full disk, or a reader that does not read, costs the record, nothing else. */
static void append_file_write(int fd, const struct iovec *pieces, int count)
{
	ssize_t written = writev(fd, pieces, count);

	(void)written;
}

/* To a pipe or a terminal, whose other end may be gone: then no SIGPIPE may be left behind. */
static void append_file_write_pipe(int fd, const struct iovec *pieces, int count)
{
	static const struct timespec at_once;
	sigset_t pipe, before, pending;

	sigemptyset(&pipe);
	sigaddset(&pipe, SIGPIPE);
	if (pthread_sigmask(SIG_BLOCK, &pipe, &before) != 0)
		return;
	if (sigpending(&pending) == 0 && writev(fd, pieces, count) < 0 && errno == EPIPE &&
	    !sigismember(&pending, SIGPIPE))
		(void)sigtimedwait(&pipe, NULL, &at_once); /* ours, if it has come */
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL); /* was valid before */
}

/*
 * To a descriptor of the application. A file has its position there, so it is not opened again; what could
 * block is, because O_NONBLOCK belongs to the application's own opening of it.
 */
static void append_file_to_number(int number, const struct iovec *pieces, int count, size_t length)
{
	const struct msghdr message = {
		/* NOLINTNEXTLINE(clang-diagnostic-cast-qual): only read */
		.msg_iov = (struct iovec *)(uintptr_t)pieces,
		.msg_iovlen = (size_t)count,
	};
	char path[32];
	struct stat st;
	int fd;

	if (fstat(number, &st) < 0)
		return;
	if (S_ISREG(st.st_mode)) {
		off_t at = lseek(number, 0, SEEK_CUR);
		off_t end = at > st.st_size ? at : st.st_size;

		if (append_file_has_room((uint64_t)end + length))
			append_file_write(number, pieces, count);
		return;
	}
	if (S_ISSOCK(st.st_mode)) {
		(void)sendmsg(number, &message, MSG_DONTWAIT | MSG_NOSIGNAL); /* lost if full */
		return;
	}
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", number); /* fits */
	fd = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return;
	append_file_write_pipe(fd, pieces, count);
	(void)close(fd); /* nothing left to do if it fails */
}

static void append_file_to_path(const char *path, bool is_shared, const struct iovec *pieces,
				int count, size_t length)
{
	int fd =
		open(path,
		     O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY,
		     0600);

	if (fd < 0)
		return;
	if (append_file_may_write(fd, is_shared, length))
		append_file_write(fd, pieces, count);
	(void)close(fd); /* nothing left to do if it fails */
}

void append_file_record(const char *path, bool is_shared, const struct iovec *pieces, int count)
{
	int number = user_file_number(path);
	int saved_errno = errno;
	size_t length = 0;
	int cancel_state;

	for (int i = 0; i < count; i++)
		length += pieces[i].iov_len;
	/* None of our calls may be a cancellation point. */
	(void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state); /* cannot fail */
	if (number >= 0)
		append_file_to_number(number, pieces, count, length);
	else
		append_file_to_path(path, is_shared, pieces, count, length);
	(void)pthread_setcancelstate(cancel_state, NULL); /* was valid before */
	errno = saved_errno;
}
