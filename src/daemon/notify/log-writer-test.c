/* SPDX-License-Identifier: Apache-2.0 */

/* Output is complete and in order, and callers never wait for a slow reader. */

#include "daemon/notify/log-writer.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/testing/unit.h"

static size_t slurp(int fd, char *text, size_t size)
{
	size_t length = 0;
	ssize_t n;

	while ((n = read(fd, text + length, size - 1 - length)) > 0)
		length += (size_t)n;
	text[length] = '\0';
	return length;
}

UNIT(log_lines_come_out_in_order)
{
	struct log_writer *log_writer;
	char text[4096];
	int ends[2];

	assert(pipe2(ends, O_CLOEXEC) == 0);
	assert(log_writer_new(&log_writer, NULL, ends[1], 0) == 0);
	for (int i = 0; i < 100; i++)
		assert(log_writer_print(log_writer, "line %d\n", i));
	log_writer_free(log_writer);
	close(ends[1]);
	slurp(ends[0], text, sizeof(text));
	for (int i = 0, at = 0; i < 100; i++) {
		char line[16];
		int length = snprintf(line, sizeof(line), "line %d\n", i);

		assert(strncmp(text + at, line, (size_t)length) == 0);
		at += length;
	}
	close(ends[0]);
}

/* As SQLite writes a name that it found in a damaged database. */
UNIT(texts_of_libraries_are_escaped)
{
	struct log_writer *log_writer;
	char text[4096];
	int ends[2];

	assert(pipe2(ends, O_CLOEXEC) == 0);
	assert(log_writer_new(&log_writer, NULL, ends[1], 0) == 0);
	assert(log_writer_print(log_writer, "history: %s\n", "no such table: \x1b[2J\x07"));
	assert(log_writer_put(log_writer, "\x9b\\n\n", 4));
	log_writer_free(log_writer);
	close(ends[1]);
	slurp(ends[0], text, sizeof(text));
	assert(strcmp(text, "history: no such table: \\x1b[2J\\x07\n\xef\xbf\xbd\\n\n") == 0);
	close(ends[0]);
}

/* Without a reader, what does not fit is dropped and counted, and the gap is reported later. */
UNIT(a_log_reader_that_sleeps_does_not_block)
{
	struct log_writer *log_writer;
	uint64_t taken = 0, dropped;
	char *text = malloc(1 << 20);
	char told[96];
	int ends[2];

	assert(pipe2(ends, O_CLOEXEC) == 0);
	assert(log_writer_new(&log_writer, NULL, ends[1], 8192) == 0);
	for (int i = 0; i < 100000; i++)
		taken += log_writer_print(log_writer, "a line of some length, number %06d\n", i);
	dropped = log_writer_dropped(log_writer);
	assert(dropped > 0 && taken + dropped == 100000);
	/* Now read until there is room again. */
	assert(read(ends[0], text, 70000) > 0);
	while (!log_writer_print(log_writer, "the last line\n"))
		assert(read(ends[0], text, 70000) > 0);
	dropped = log_writer_dropped(log_writer);
	(void)snprintf(told, sizeof(told), "messages lost here: the output was too slow\n");
	assert(fcntl(ends[0], F_SETPIPE_SZ, 1 << 20) > 0);
	log_writer_free(log_writer);
	close(ends[1]);
	slurp(ends[0], text, 1 << 20);
	assert(strstr(text, told));
	assert(strstr(text, told) < strstr(text, "the last line\n"));
	assert(dropped > 0);
	close(ends[0]);
	free(text);
}

/* The thread is blocked in write(), but shutdown is not. The thread keeps its descriptor. */
UNIT(the_log_writer_ends_although_nothing_is_read)
{
	struct log_writer *log_writer;
	char line[1024];
	int ends[2];

	memset(line, 'x', sizeof(line));
	assert(pipe2(ends, O_CLOEXEC) == 0);
	assert(log_writer_new(&log_writer, NULL, ends[1], 1 << 20) == 0);
	for (int i = 0; i < 1024; i++)
		(void)log_writer_put(log_writer, line, sizeof(line)); /* some are dropped */
	log_writer_free(log_writer);
	unit_expect_fds(2);
}

UNIT(opens_a_rotated_file_again)
{
	struct log_writer *log_writer;
	char path[256], moved[256], text[256];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/log", unit_dir());
	(void)snprintf(moved, sizeof(moved), "%s/log.1", unit_dir());
	assert(log_writer_new(&log_writer, path, -1, 0) == 0);
	assert(log_writer_print(log_writer, "before\n"));
	for (;;) { /* until it has been written */
		fd = open(path, O_RDONLY | O_CLOEXEC);
		assert(fd >= 0);
		if (slurp(fd, text, sizeof(text)) > 0)
			break;
		close(fd);
		usleep(1000);
	}
	close(fd);
	assert(rename(path, moved) == 0);
	log_writer_reopen(log_writer);
	while (access(path, F_OK) < 0)
		usleep(1000);
	assert(log_writer_print(log_writer, "after\n"));
	log_writer_free(log_writer);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	slurp(fd, text, sizeof(text));
	assert(strcmp(text, "after\n") == 0);
	close(fd);
	fd = open(moved, O_RDONLY | O_CLOEXEC);
	slurp(fd, text, sizeof(text));
	assert(strcmp(text, "before\n") == 0);
	close(fd);
}

UNIT(a_file_that_cannot_be_opened_is_tried_again)
{
	struct log_writer *log_writer;
	char folder[256], path[280], text[256];
	int ends[2], fd;

	(void)snprintf(folder, sizeof(folder), "%s/folder", unit_dir());
	(void)snprintf(path, sizeof(path), "%s/log", folder);
	assert(pipe2(ends, O_CLOEXEC) == 0);
	assert(log_writer_new(&log_writer, path, ends[1], 0) == 0);
	assert(log_writer_check(log_writer) == -ENOENT);
	assert(log_writer_print(log_writer, "before\n"));
	assert(read(ends[0], text, sizeof(text)) == 7 && strncmp(text, "before\n", 7) == 0);
	assert(mkdir(folder, 0700) == 0);
	while (log_writer_check(log_writer) < 0)
		usleep(1000);
	assert(log_writer_print(log_writer, "after\n"));
	log_writer_free(log_writer);
	close(ends[1]);
	assert(read(ends[0], text, sizeof(text)) == 0 && close(ends[0]) == 0);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	slurp(fd, text, sizeof(text));
	assert(strcmp(text, "after\n") == 0);
	close(fd);
}

UNIT(a_rotation_that_fails_is_known)
{
	struct log_writer *log_writer;
	char folder[256], path[280], moved[256], text[256];
	int fd;

	(void)snprintf(folder, sizeof(folder), "%s/folder", unit_dir());
	(void)snprintf(path, sizeof(path), "%s/log", folder);
	(void)snprintf(moved, sizeof(moved), "%s/moved", unit_dir());
	assert(mkdir(folder, 0700) == 0);
	assert(log_writer_new(&log_writer, path, -1, 0) == 0);
	assert(log_writer_check(log_writer) == 0);
	assert(rename(folder, moved) == 0);
	log_writer_reopen(log_writer);
	while (log_writer_check(log_writer) != -ENOENT)
		usleep(1000);
	/* The old file stays in use. */
	assert(log_writer_print(log_writer, "still here\n"));
	log_writer_free(log_writer);
	(void)snprintf(path, sizeof(path), "%s/log", moved);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	slurp(fd, text, sizeof(text));
	assert(strcmp(text, "still here\n") == 0);
	close(fd);
}

static void *speak(void *context)
{
	for (int i = 0; i < 1000; i++)
		assert(log_writer_print(context, "%s\n", "0123456789"));
	return NULL;
}

UNIT(lines_of_many_threads_are_not_mixed)
{
	struct log_writer *log_writer;
	pthread_t threads[4];
	char path[256], line[64];
	size_t lines = 0;
	FILE *file;

	(void)snprintf(path, sizeof(path), "%s/log", unit_dir());
	assert(log_writer_new(&log_writer, path, -1, 0) == 0);
	for (int i = 0; i < 4; i++)
		assert(pthread_create(&threads[i], NULL, speak, log_writer) == 0);
	for (int i = 0; i < 4; i++)
		assert(pthread_join(threads[i], NULL) == 0);
	log_writer_free(log_writer);
	file = fopen(path, "re");
	assert(file);
	while (fgets(line, sizeof(line), file)) {
		assert(strcmp(line, "0123456789\n") == 0);
		lines++;
	}
	assert(lines == 4000);
	fclose(file);
}

UNIT(a_user_who_prints_too_much_prints_no_more_for_a_while)
{
	struct log_writer *log_writer;
	char text[4096];
	int ends[2];

	assert(pipe2(ends, O_CLOEXEC) == 0);
	assert(log_writer_new(&log_writer, NULL, ends[1], 0) == 0);
	/* Far more than comes back while this runs. */
	assert(log_writer_charge(log_writer, 7, 100 * LOG_WRITER_USER_BURST));
	for (int i = 0; i < 100; i++)
		assert(!log_writer_charge(log_writer, 7, 1));
	assert(log_writer_charge(log_writer, 8, 1));
	assert(quota_counted(QUOTA_LOG_LEFT_OUT) == 100);
	log_writer_free(log_writer);
	close(ends[1]);
	slurp(ends[0], text, sizeof(text));
	/* Said once, and not a hundred times. */
	assert(strcmp(text, "... 1 messages about user 7 left out: there are too many\n") == 0);
	close(ends[0]);
}
