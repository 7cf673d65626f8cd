/* SPDX-License-Identifier: Apache-2.0 */

/* What says why a file cannot be opened is the first failure. */

#include "recording/read/recording-file.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>

int (*recording_file_elsewhere)(const char *path);

int recording_file_open(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	int saved_errno = errno;

	if (fd >= 0 || !recording_file_elsewhere || (errno != EACCES && errno != ENOENT))
		return fd;
	fd = recording_file_elsewhere(path);
	errno = saved_errno;
	return fd < 0 ? -1 : fd;
}
