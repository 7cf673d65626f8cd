/* SPDX-License-Identifier: Apache-2.0 */

/* A report carries only files that the owner of the process may read. */

#include "cli/export/visualizer/export-sources.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/testing/unit.h"
#include "model/snapshot.h"

#define OTHER 1001 /* any user but us */

static char path[256];

static void put(const void *bytes, size_t length, mode_t mode)
{
	int fd;

	snprintf(path, sizeof(path), "%s/source.py", unit_dir());
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert(fd >= 0 && write(fd, bytes, length) == (ssize_t)length);
	assert(fchmod(fd, mode) == 0 && close(fd) == 0);
}

static struct export_sources of(uint32_t user)
{
	struct snapshot_process process = {
		.id.pid = (uint32_t)getpid(), .maker_id = user, .user_id = 0, .source = "book"};
	struct export_sources sources;

	export_sources_init(&sources, &process);
	return sources;
}

static int try(struct export_sources *sources)
{
	char *text = NULL;
	int r = export_sources_read(sources, path, &text);

	free(text);
	return r;
}

UNIT(contents_become_valid_text)
{
	struct export_sources sources = of(geteuid());
	char *text = NULL;

	put("a\nb\xff\0c", 6, 0600);
	assert(export_sources_read(&sources, path, &text) == 0);
	assert(strcmp(text, "a\nb\xef\xbf\xbd\xef\xbf\xbd"
			    "c") == 0);
	assert(sources.left == EXPORT_SOURCES_MAX - 6);
	free(text);
}

UNIT(sizes_are_limited)
{
	static const char bytes[EXPORT_SOURCE_MAX + 1];
	struct export_sources sources = of(geteuid());

	put(bytes, sizeof(bytes), 0600);
	assert(try(&sources) == -EFBIG);
	put(bytes, sizeof(bytes) - 1, 0600);
	for (uint32_t i = 0; i < EXPORT_SOURCES_MAX / EXPORT_SOURCE_MAX; i++)
		assert(try(&sources) == 0);
	put("a", 1, 0600);
	assert(try(&sources) == -EFBIG);
}

UNIT(other_kinds_of_file_and_relative_paths_are_refused)
{
	struct export_sources sources = of(geteuid());

	snprintf(path, sizeof(path), "%s/pipe", unit_dir());
	assert(mkfifo(path, 0600) == 0 && try(&sources) == -EINVAL);
	snprintf(path, sizeof(path), "source.py");
	assert(try(&sources) == -EINVAL);
	snprintf(path, sizeof(path), "/proc/self/fd/0");
	assert(try(&sources) < 0);
}

UNIT(what_the_owner_of_the_process_may_not_read_is_left_out)
{
	struct export_sources sources = of(OTHER);

	if (geteuid() != 0)
		unit_skip("needs root");
	put("secret", 6, 0600);
	assert(chmod(unit_dir(), 0755) == 0);
	assert(try(&sources) == -EACCES);
	put("public", 6, 0644);
	/* The folder above, pytest's or TMPDIR, may be closed to others. */
	if (try(&sources) != 0)
		unit_skip("TMPDIR is closed to other users");
	assert(chmod(unit_dir(), 0700) == 0);
	assert(try(&sources) == -EACCES);
}
