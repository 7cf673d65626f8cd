/* SPDX-License-Identifier: Apache-2.0 */

/* Entries for the journal, byte by byte, received by a socket in its place. */

#include "daemon/notify/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/quota.h"
#include "base/testing/unit.h"

static const struct journal_entry leak = {
	.kind = "leak",
	.message = "Process 7 (python3) left 3 buffers",
	.pid = 7,
	.comm = "python3",
	.device = 2,
	.type = "L1",
	.bytes = 4096,
	.buffers = 3,
	.stack = "load (model.py:12) <- main (model.py:40)",
	.site = "load (model.py:12)",
};

static const char *path(void)
{
	static char text[4096];

	(void)snprintf(text, sizeof(text), "%s/journal", unit_dir());
	return text;
}

static int listen_here(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	assert(strlen(path()) < sizeof(address.sun_path));
	memcpy(address.sun_path, path(), strlen(path()));
	assert(fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
	return fd;
}

static bool has_line(const char *bytes, const char *line)
{
	const char *at = strstr(bytes, line);

	return at && (at == bytes || at[-1] == '\n') && at[strlen(line)] == '\n';
}

/* Every line is a field of ours. */
static void check_fields(const char *bytes, size_t length)
{
	size_t at = 0;

	assert(strlen(bytes) == length && bytes[length - 1] == '\n');
	while (at < length) {
		size_t name = strspn(bytes + at, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_");

		assert(name > 0 && bytes[at + name] == '=');
		at += strcspn(bytes + at, "\n") + 1;
	}
}

UNIT(fields_of_a_leak)
{
	char bytes[JOURNAL_ENTRY_MAX];
	size_t length = journal_format(&leak, bytes);

	assert(length > 0 && length < sizeof(bytes));
	check_fields(bytes, length);
	assert(has_line(bytes, "MESSAGE=Process 7 (python3) left 3 buffers"));
	assert(has_line(bytes, "MESSAGE_ID=8de2c3113e8346e49b3db1f38a597b41"));
	assert(has_line(bytes, "PRIORITY=4") && has_line(bytes, "SYSLOG_IDENTIFIER=ttmemd"));
	assert(has_line(bytes, "TTMEM_KIND=leak") && has_line(bytes, "TTMEM_PID=7"));
	assert(has_line(bytes, "TTMEM_STACK=load (model.py:12) <- main (model.py:40)"));
	assert(has_line(bytes, "TTMEM_SITE=load (model.py:12)"));
	assert(has_line(bytes, "TTMEM_COMM=python3") && has_line(bytes, "TTMEM_DEVICE=2"));
	assert(has_line(bytes, "TTMEM_TYPE=L1") && has_line(bytes, "TTMEM_BYTES=4096"));
	assert(has_line(bytes, "TTMEM_BUFFERS=3"));
}

UNIT(what_is_not_known_is_left_out)
{
	const struct journal_entry entry = {
		.kind = "something new", .message = "hello", .device = JOURNAL_NONE};
	char bytes[JOURNAL_ENTRY_MAX];
	size_t length = journal_format(&entry, bytes);

	assert(length > 0);
	check_fields(bytes, length);
	assert(has_line(bytes, "PRIORITY=5") && has_line(bytes, "TTMEM_KIND=something new"));
	assert(!strstr(bytes, "MESSAGE_ID=") && !strstr(bytes, "TTMEM_PID="));
	assert(!strstr(bytes, "TTMEM_COMM=") && !strstr(bytes, "TTMEM_DEVICE="));
	assert(!strstr(bytes, "TTMEM_TYPE=") && !strstr(bytes, "TTMEM_SITE="));
}

/* The name of a process cannot add a field to an entry. */
UNIT(hostile_texts_add_no_journal_fields)
{
	struct journal_entry entry = leak;
	char bytes[JOURNAL_ENTRY_MAX], large[2 * JOURNAL_ENTRY_MAX];
	size_t length;

	entry.comm = "x\nPRIORITY=0\r\nTTMEM_PID=1\n\xff\xfe";
	entry.message = "a\nMESSAGE_ID=00000000000000000000000000000000\n";
	length = journal_format(&entry, bytes);
	check_fields(bytes, length);
	assert(!has_line(bytes, "PRIORITY=0") && !has_line(bytes, "TTMEM_PID=1"));
	assert(has_line(bytes, "TTMEM_COMM=x PRIORITY=0  TTMEM_PID=1 \xef\xbf\xbd\xef\xbf\xbd"));

	/* The longest value for each field; each byte becomes three. */
	memset(large, 0xff, sizeof(large));
	large[sizeof(large) - 1] = '\0';
	entry = (struct journal_entry){
		.kind = large,
		.message = large,
		.pid = UINT32_MAX,
		.comm = large,
		.device = UINT32_MAX - 1,
		.type = large,
		.bytes = UINT64_MAX,
		.buffers = UINT64_MAX,
	};
	length = journal_format(&entry, bytes);
	assert(length > 0);
	check_fields(bytes, length);
}

UNIT(sent_and_received)
{
	char expected[JOURNAL_ENTRY_MAX], bytes[JOURNAL_ENTRY_MAX];
	size_t length = journal_format(&leak, expected);
	struct journal *journal;
	int fd;

	assert(journal_new(&journal, path()) == 0);
	assert(journal_send(journal, &leak) == -ENOENT && quota_counted(QUOTA_JOURNAL) == 1);
	fd = listen_here();
	assert(journal_send(journal, &leak) == 0);
	assert(recv(fd, bytes, sizeof(bytes), 0) == (ssize_t)length);
	assert(memcmp(bytes, expected, length) == 0);

	/* A restarted journal is found again. */
	assert(close(fd) == 0);
	assert(journal_send(journal, &leak) == -ECONNREFUSED && quota_counted(QUOTA_JOURNAL) == 2);
	assert(unlink(path()) == 0);
	fd = listen_here();
	assert(journal_send(journal, &leak) == 0);
	assert(recv(fd, bytes, sizeof(bytes), 0) == (ssize_t)length);
	assert(close(fd) == 0);
	journal_free(journal);
}

UNIT(a_missing_journal_is_noticed_and_found_again)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct journal *journal;
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%.90s/journal", unit_dir());
	assert(journal_new(&journal, address.sun_path) == 0);
	assert(journal_check(journal) == -ENOENT);
	assert(bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
	assert(journal_check(journal) == 0);
	assert(close(fd) == 0 && journal_check(journal) == -ECONNREFUSED);
	journal_free(journal);
}

UNIT(a_stuck_journal_does_not_block)
{
	struct journal *journal;
	int fd = listen_here();
	uint64_t sent = 0;
	char bytes[JOURNAL_ENTRY_MAX];

	assert(journal_new(&journal, path()) == 0);
	for (int i = 0; i < 10000; i++) {
		int r = journal_send(journal, &leak);

		assert(r == 0 || r == -EAGAIN);
		sent += r == 0;
	}
	assert(quota_counted(QUOTA_JOURNAL) == 10000 - sent && sent < 10000);
	for (; sent > 0; sent--)
		assert(recv(fd, bytes, sizeof(bytes), 0) > 0);
	assert(journal_send(journal, &leak) == 0);
	assert(close(fd) == 0);
	journal_free(journal);
}

UNIT(stream_of_the_journal)
{
	char told[64];
	struct stat file;
	int fds[2];

	assert(pipe2(fds, O_CLOEXEC) == 0 && fstat(fds[1], &file) == 0);
	assert(unsetenv("JOURNAL_STREAM") == 0 && !journal_is_stream(fds[1]));
	(void)snprintf(told, sizeof(told), "%lu:%lu", (unsigned long)file.st_dev,
		       (unsigned long)file.st_ino);
	assert(setenv("JOURNAL_STREAM", told, 1) == 0);
	assert(journal_is_stream(fds[1]) && !journal_is_stream(STDIN_FILENO));
	(void)snprintf(told + strlen(told), 2, "x");
	assert(setenv("JOURNAL_STREAM", told, 1) == 0 && !journal_is_stream(fds[1]));
	assert(setenv("JOURNAL_STREAM", "", 1) == 0 && !journal_is_stream(fds[1]));
	assert(setenv("JOURNAL_STREAM", "1:2", 1) == 0 && !journal_is_stream(fds[1]));
	assert(close(fds[0]) == 0 && close(fds[1]) == 0);
	assert(!journal_is_stream(fds[1]));
}
