/* SPDX-License-Identifier: Apache-2.0 */

/* Names of recordings, and what is said of one. */

#include "cli/common/record-file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/testing/unit.h"
#include "cli/common/testing/testing-printed.h"
#include "recording/write/recorder.h"

struct opening {
	const char *path;
	int fd;
};

static void open_it(void *context)
{
	struct opening *opening = context;

	opening->fd = record_file_open("try", opening->path);
}

UNIT(a_recording_is_only_its_owners)
{
	struct opening opening = {unit_path("file"), -1};
	struct stat st;
	int fd = open(opening.path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	assert(fd >= 0 && write(fd, "old", 3) == 3 && fchmod(fd, 0666) == 0 && close(fd) == 0);
	assert(strcmp(testing_printed(STDERR_FILENO, open_it, &opening), "") == 0);
	assert(opening.fd >= 0 && fstat(opening.fd, &st) == 0 && st.st_size == 0);
	assert((st.st_mode & 0777) == 0600 && close(opening.fd) == 0);
}

UNIT(what_cannot_be_a_recording_is_told)
{
	struct opening opening = {"/dev/null", 7};

	assert(strcmp(testing_printed(STDERR_FILENO, open_it, &opening),
		      "ttmem try: /dev/null: not a regular file\n") == 0);
	assert(opening.fd == -ESPIPE);
	opening.path = "/does/not/exist";
	assert(strcmp(testing_printed(STDERR_FILENO, open_it, &opening),
		      "ttmem try: /does/not/exist: No such file or directory\n") == 0);
	assert(opening.fd == -ENOENT);
}

static int make(char *ret_path, size_t size)
{
	int fd = record_file_make_in(unit_dir(), 7, "why", ret_path, size);

	if (fd >= 0)
		assert(close(fd) == 0);
	return fd < 0 ? fd : 0;
}

UNIT(a_new_file_has_a_number_if_need_be)
{
	char path[512], expected[512];
	size_t length;
	struct stat st;

	assert(make(path, sizeof(path)) == 0 && stat(path, &st) == 0);
	assert((st.st_mode & 0777) == 0600);
	length = (size_t)snprintf(expected, sizeof(expected), "%s/ttmem-7-why.ttrec", unit_dir());
	assert(strcmp(path, expected) == 0);
	assert(make(path, sizeof(path)) == 0 && strstr(path, "/ttmem-7-why-2.ttrec"));
	assert(make(path, sizeof(path)) == 0 && strstr(path, "/ttmem-7-why-3.ttrec"));
	assert(unlink(expected) == 0 && make(path, length + 1) == 0);
	assert(strcmp(path, expected) == 0 && unlink(expected) == 0);
	assert(make(path, length) == -ENAMETOOLONG);
	assert(record_file_make_in("/does/not/exist", 7, "why", path, sizeof(path)) == -ENOENT);
}

UNIT(a_stem_has_a_longest)
{
	static char folder[4096], path[8192];

	memset(folder, '/', sizeof(folder) - 1);
	assert(record_file_make_in(folder, 7, "why", path, sizeof(path)) == -ENAMETOOLONG);
}

struct making {
	const char *what;
	char path[64];
	int fd;
};

static void make_it(void *context)
{
	struct making *making = context;

	making->fd = record_file_make("try", making->what, making->path, sizeof(making->path));
}

UNIT(one_in_the_current_folder_is_named_after_what_it_is_of)
{
	struct making making = {.what = "all"};

	assert(chdir(unit_dir()) == 0);
	assert(strcmp(testing_printed(STDERR_FILENO, make_it, &making), "") == 0);
	assert(making.fd >= 0 && close(making.fd) == 0);
	assert(strcmp(making.path, "ttmem-all.ttrec") == 0);
	making.what = "no/folder";
	assert(strstr(testing_printed(STDERR_FILENO, make_it, &making),
		      "ttmem-no/folder.ttrec: No such file or directory\n"));
	assert(making.fd == -ENOENT);
}

struct telling {
	struct recorder_sums sums;
	int result;
};

static void tell(void *context)
{
	const struct telling *telling = context;

	record_file_tell("try", "file", &telling->sums, telling->result);
}

UNIT(what_was_recorded_is_told_in_a_line)
{
	struct telling telling = {.sums = {.events = 1, .books = 1, .bytes = 2048}};

	assert(strcmp(testing_printed(STDERR_FILENO, tell, &telling),
		      "recorded: 1 event of 1 process in file, 2.0 KiB\n") == 0);
	telling.sums = (struct recorder_sums){
		.events = 2, .books = 2, .bytes = 1, .missed = 1, .gaps = 1, .unreadable = 1};
	assert(strcmp(testing_printed(STDERR_FILENO, tell, &telling),
		      "recorded: 2 events of 2 processes in file, 1 B; 1 event is missing in 1 "
		      "gap, totals are exact; 1 device could not be read\n") == 0);
	telling.sums.missed = telling.sums.gaps = telling.sums.unreadable = 2;
	telling.result = -ENOSPC;
	assert(strcmp(testing_printed(STDERR_FILENO, tell, &telling),
		      "ttmem try: file: the recording ended early: the disk is full\n"
		      "recorded: 2 events of 2 processes in file, 1 B; 2 events are missing in 2 "
		      "gaps, totals are exact; 2 devices could not be read\n") == 0);
	telling.result = -EFBIG;
	assert(strstr(testing_printed(STDERR_FILENO, tell, &telling), "its largest size\n"));
	telling.result = -EDQUOT;
	assert(strstr(testing_printed(STDERR_FILENO, tell, &telling), "the disk is full\n"));
	telling.result = -EIO;
	assert(strstr(testing_printed(STDERR_FILENO, tell, &telling), "Input/output error\n"));
}
