/* SPDX-License-Identifier: Apache-2.0 */

/* Appends whole records to log files. */

#include "lib/process/append-file.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

/* Only a regular file below the size limit can neither block nor raise a signal. */
static bool append_file_may_write(int fd, bool is_shared, size_t length)
{
	struct rlimit limit;
	struct stat st;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || getrlimit(RLIMIT_FSIZE, &limit) < 0)
		return false;
	if (is_shared && (st.st_uid != geteuid() || st.st_nlink != 1))
		return false;
	return limit.rlim_cur == RLIM_INFINITY || (uint64_t)st.st_size + length <= limit.rlim_cur;
}

void append_file_record(const char *path, bool is_shared, const struct iovec *pieces, int count)
{
	const int flags = O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
	int saved_errno = errno;
	int cancel_state, fd;
	size_t length = 0;

	for (int i = 0; i < count; i++)
		length += pieces[i].iov_len;
	/* None of our calls may be a cancellation point. */
	(void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state); /* cannot fail */
	fd = open(path, flags | O_NOCTTY, 0600);
	if (fd >= 0 && append_file_may_write(fd, is_shared, length)) {
		/* A full disk costs the record, nothing else. */
		ssize_t written = writev(fd, pieces, count);

		(void)written;
	}
	if (fd >= 0)
		(void)close(fd);                          /* nothing left to do if it fails */
	(void)pthread_setcancelstate(cancel_state, NULL); /* was valid before */
	errno = saved_errno;
}
