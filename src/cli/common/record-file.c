/* SPDX-License-Identifier: Apache-2.0 */

/* A recording has addresses, names and paths of programs: only its owner may read it. */

#include "cli/common/record-file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/files/user-file.h"
#include "base/text.h"
#include "recording/write/recorder.h"

#define RECORD_MODE 0600
#define RECORD_NAMES_MAX 10000

int record_file_open(const char *command, const char *path)
{
	CLEANUP_CLOSE int fd = user_file_open(path, O_TRUNC, RECORD_MODE);
	struct stat st;
	int r = fd < 0 ? fd : 0;

	if (r == 0 && fstat(fd, &st) < 0)
		r = -errno;
	/* Parts of it are read again at their offsets. */
	if (r == 0 && !S_ISREG(st.st_mode))
		r = -ESPIPE;
	if (r == 0 && fchmod(fd, RECORD_MODE) < 0)
		r = -errno;
	if (r == 0)
		return cleanup_steal_fd(&fd);
	fprintf(stderr, "ttmem %s: %s: %s\n", command, path,
		r == -ESPIPE ? "not a regular file" : user_file_error(r));
	return r;
}

/* @stem: the path without number and ending. */
static int record_file_make_new(const char *stem, char *ret_path, size_t size)
{
	for (int i = 1; i < RECORD_NAMES_MAX; i++) {
		int fd, n = i == 1 ? snprintf(ret_path, size, "%s.ttrec", stem)
				   : snprintf(ret_path, size, "%s-%d.ttrec", stem, i);

		if (n < 0 || (size_t)n >= size)
			return -ENAMETOOLONG;
		fd = open(ret_path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, RECORD_MODE);
		if (fd >= 0)
			return fd;
		if (errno != EEXIST)
			return -errno;
	}
	return -EEXIST;
}

int record_file_make_in(const char *folder, uint32_t pid, const char *why, char *ret_path,
			size_t size)
{
	char stem[4096];
	int n = snprintf(stem, sizeof(stem), "%s/ttmem-%" PRIu32 "-%s", folder, pid, why);

	if (n < 0 || (size_t)n >= sizeof(stem))
		return -ENAMETOOLONG;
	return record_file_make_new(stem, ret_path, size);
}

int record_file_make(const char *command, const char *what, char *ret_path, size_t size)
{
	char stem[256];
	int fd;

	(void)snprintf(stem, sizeof(stem), "ttmem-%s", what);
	fd = record_file_make_new(stem, ret_path, size);
	if (fd < 0)
		fprintf(stderr, "ttmem %s: %s: %s\n", command, ret_path, strerrordesc_np(-fd));
	return fd;
}

static const char *record_reason(int result)
{
	switch (result) {
	case -ENOSPC:
	case -EDQUOT:
		return "the disk is full";
	case -EFBIG:
		return "it has reached its largest size";
	default:
		return strerrordesc_np(-result);
	}
}

void record_file_tell(const char *command, const char *path, const struct recorder_sums *sums,
		      int result)
{
	char size[TEXT_NUMBER_SIZE];

	if (result < 0)
		fprintf(stderr, "ttmem %s: %s: the recording ended early: %s\n", command, path,
			record_reason(result));
	fprintf(stderr, "recorded: %" PRIu64 " event%s of %" PRIu32 " process%s in %s, %s",
		sums->events, sums->events == 1 ? "" : "s", sums->books,
		sums->books == 1 ? "" : "es", path, text_size(sums->bytes, size));
	if (sums->missed)
		fprintf(stderr,
			"; %" PRIu64 " event%s missing in %" PRIu32 " gap%s, totals are exact",
			sums->missed, sums->missed == 1 ? " is" : "s are", sums->gaps,
			sums->gaps == 1 ? "" : "s");
	if (sums->unreadable)
		fprintf(stderr, "; %" PRIu32 " device%s could not be read", sums->unreadable,
			sums->unreadable == 1 ? "" : "s");
	fputs("\n", stderr);
}
