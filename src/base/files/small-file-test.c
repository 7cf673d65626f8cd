/* SPDX-License-Identifier: Apache-2.0 */

/* Text that fits, text that does not, and paths that are not files. */

#include "base/files/small-file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/testing/unit.h"

static char folder[] = "/tmp/small-file-XXXXXX";
static int folder_fd;

static void begin(const char *text)
{
	CLEANUP_CLOSE int fd = -1;

	assert(mkdtemp(folder));
	folder_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	fd = openat(folder_fd, "file", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert(folder_fd >= 0 && fd >= 0);
	assert(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
}

static void end(void)
{
	assert(unlinkat(folder_fd, "file", 0) == 0 && rmdir(folder) == 0);
	close(folder_fd);
}

UNIT(a_file_is_read_whole)
{
	char text[32];

	begin("one\ntwo\n");
	assert(small_file_read(folder_fd, "file", text, sizeof(text)) == 8);
	assert(strcmp(text, "one\ntwo\n") == 0);
	assert(small_file_read(folder_fd, "file", text, 9) == 8 && strcmp(text, "one\ntwo\n") == 0);
	end();
}

UNIT(what_does_not_fit_is_cut)
{
	char text[5];

	begin("one\ntwo\n");
	assert(small_file_read(folder_fd, "file", text, sizeof(text)) == 4);
	assert(strcmp(text, "one\n") == 0);
	end();
}

/* The kernel returns it page by page. */
UNIT(a_long_file_of_the_kernel_is_read_to_its_end)
{
	static char text[1 << 20], again[1 << 20];
	CLEANUP_CLOSE int fd = open("/proc/kallsyms", O_RDONLY | O_CLOEXEC);
	ssize_t length;

	if (fd < 0)
		return;
	length = small_file_read_fd(fd, text, sizeof(text));
	assert(small_file_read(AT_FDCWD, "/proc/kallsyms", again, sizeof(again)) == length);
	assert(strcmp(text, again) == 0);
}

UNIT(the_first_line_has_no_end)
{
	char line[32];

	begin("one\ntwo\n");
	assert(small_file_read_line(folder_fd, "file", line, sizeof(line)) == 3);
	assert(strcmp(line, "one") == 0);
	assert(small_file_read_line(folder_fd, "file", line, 3) == 2 && strcmp(line, "on") == 0);
	end();
}

UNIT(an_empty_line_is_no_line)
{
	char text[8] = "before";

	begin("\ntwo\n");
	assert(small_file_read_line(folder_fd, "file", text, sizeof(text)) == -ENODATA);
	assert(text[0] == '\0');
	end();
}

UNIT(no_file_leaves_an_empty_text)
{
	char text[8] = "before";

	assert(small_file_read(AT_FDCWD, "/does/not/exist", text, sizeof(text)) == -ENOENT);
	assert(text[0] == '\0' && !small_file_stream(AT_FDCWD, "/does/not/exist"));
	assert(small_file_read(AT_FDCWD, "/tmp", text, sizeof(text)) == -EISDIR && !*text);
}

/* Pieces from a pipe are joined: a single read would return only the first. */
UNIT(a_descriptor_is_read_up_to_its_end)
{
	char text[32];
	int ends[2];

	/* In packet mode, so that a read returns no more than one write. */
	assert(pipe2(ends, O_CLOEXEC | O_DIRECT) == 0);
	assert(write(ends[1], "one", 3) == 3 && write(ends[1], "two", 3) == 3);
	close(ends[1]);
	assert(small_file_read_fd(ends[0], text, sizeof(text)) == 6);
	assert(strcmp(text, "onetwo") == 0);
	close(ends[0]);
}

UNIT(nobody_waits_for_the_other_end_of_a_fifo)
{
	CLEANUP_FCLOSE FILE *file = NULL;
	char text[8];

	begin("");
	assert(mkfifoat(folder_fd, "fifo", 0600) == 0);
	assert(small_file_read(folder_fd, "fifo", text, sizeof(text)) == 0);
	file = small_file_stream(folder_fd, "fifo");
	assert(file && !fgets(text, sizeof(text), file));
	assert(unlinkat(folder_fd, "fifo", 0) == 0);
	end();
}

UNIT(all_is_written_and_listed)
{
	CLEANUP_CLOSEDIR DIR *listing = NULL;
	CLEANUP_CLOSE int fd = -1;
	const struct dirent *entry;
	unsigned int files = 0;
	char text[8];

	begin("");
	fd = openat(folder_fd, "file", O_WRONLY | O_CLOEXEC);
	assert(small_file_write_fd(fd, "hello", 5) == 0);
	assert(small_file_read(folder_fd, "file", text, sizeof(text)) == 5);
	assert(strcmp(text, "hello") == 0);
	assert(small_file_write_fd(folder_fd, "hello", 5) == -EBADF);
	listing = small_file_list(folder_fd, ".");
	while (listing && (entry = readdir(listing)))
		files += strcmp(entry->d_name, "file") == 0;
	assert(files == 1 && !small_file_list(folder_fd, "file") && errno == ENOTDIR);
	end();
}

/* Of less than half a page the first read is taken for all; of more, there may be another. */
UNIT(a_long_file_is_read_to_its_end)
{
	static char long_text[10000], text[10001];

	memset(long_text, 'a', sizeof(long_text) - 1);
	begin(long_text);
	assert(small_file_read(folder_fd, "file", text, sizeof(text)) == 9999);
	assert(strcmp(text, long_text) == 0);
	assert(small_file_read(folder_fd, "file", text, 9999) == 9998 && strlen(text) == 9998);
	assert(small_file_read(folder_fd, "file", text, 1) == 0 && text[0] == '\0');
	end();
}

UNIT(a_read_that_fails_leaves_an_empty_text)
{
	char text[8] = "before";

	assert(small_file_read_fd(-1, text, sizeof(text)) == -EBADF && text[0] == '\0');
	assert(small_file_read_line(AT_FDCWD, "/does/not/exist", text, sizeof(text)) == -ENOENT);
	assert(small_file_write_fd(-1, text, 0) == 0);
}

static int interrupted[2];
static volatile sig_atomic_t signals;

/* The other end of the pipe: writes when the reader has been interrupted a few times. */
static void interrupt(int number)
{
	(void)number;
	if (++signals == 3 && write(interrupted[1], "text", 4) == 4)
		(void)close(interrupted[1]);
}

UNIT(a_read_that_is_interrupted_goes_on)
{
	const struct sigaction action = {.sa_handler = interrupt}; /* without SA_RESTART */
	const struct itimerval often = {.it_interval.tv_usec = 1000, .it_value.tv_usec = 1000};
	const struct itimerval never = {.it_value.tv_usec = 0};
	char text[8];

	assert(pipe2(interrupted, O_CLOEXEC) == 0 && sigaction(SIGALRM, &action, NULL) == 0);
	assert(setitimer(ITIMER_REAL, &often, NULL) == 0);
	assert(small_file_read_fd(interrupted[0], text, sizeof(text)) == 4);
	assert(strcmp(text, "text") == 0 && signals >= 3);
	assert(setitimer(ITIMER_REAL, &never, NULL) == 0 && close(interrupted[0]) == 0);
}

/* The pipe takes less than all at once. */
UNIT(a_write_in_parts_is_whole)
{
	static char bytes[1 << 18], got[1 << 18];
	int ends[2], status;
	pid_t pid;

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (char)(1 + i % 127);
	bytes[sizeof(bytes) - 1] = '\0';
	assert(pipe2(ends, O_CLOEXEC) == 0);
	pid = fork();
	assert(pid >= 0);
	if (pid == 0) {
		assert(close(ends[1]) == 0);
		_exit(small_file_read_fd(ends[0], got, sizeof(got)) == sizeof(got) - 1 &&
				      strcmp(got, bytes) == 0
			      ? 0
			      : 1);
	}
	assert(close(ends[0]) == 0);
	assert(small_file_write_fd(ends[1], bytes, sizeof(bytes) - 1) == 0 && close(ends[1]) == 0);
	assert(waitpid(pid, &status, 0) == pid && status == 0);
}
