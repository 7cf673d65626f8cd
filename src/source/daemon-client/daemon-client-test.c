/* SPDX-License-Identifier: Apache-2.0 */

/* Talking to a fake daemon: one that answers well, badly, or not at all. */

#include "source/daemon-client/daemon-client.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/testing/unit.h"
#include "book/testing/book-testing.h"
#include "model/snapshot-request.h"
#include "model/snapshot.h"
#include "source/books/scan.h"
#include "source/daemon-client/testing/daemon-client-testing.h"

/* A scan of an empty /proc. */
static struct scan *empty_scan(void)
{
	struct scan *scan;

	setenv("TTMEM_PROC_ROOT", unit_dir(), 1);
	assert(scan_new(&scan) == 0 && scan_run(scan) == 0 && scan->count == 0);
	return scan;
}

static int ask(struct daemon_client *remote, char **ret_text)
{
	size_t length;

	return daemon_client_get(remote, "/api/v1/status", NULL, ret_text, &length);
}

#define HEAD "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"

static void serve_text(int fd, const void *packet, size_t length)
{
	daemon_client_testing_send(fd, HEAD "Content-Le");
	daemon_client_testing_send(fd, "ngth: 11\r\n\r\nhello ");
	daemon_client_testing_send(fd, "world");
}

static void serve_chunks(int fd, const void *packet, size_t length)
{
	daemon_client_testing_send(fd, HEAD
				   "Transfer-Encoding: chunked\r\n\r\n6\r\nhello \r\n5\r\nwor");
	daemon_client_testing_send(fd, "ld\r\n0\r\n\r\n");
}

UNIT(a_document_comes_in_pieces)
{
	daemon_client_testing_fn *const good[] = {serve_text, serve_chunks};

	for (size_t i = 0; i < 2; i++) {
		struct daemon_client_testing server = daemon_client_testing_here(good[i]);
		struct daemon_client *remote;
		char *text;

		assert(daemon_client_new(&remote) == 0);
		for (int k = 0; k < 3; k++) {
			assert(ask(remote, &text) == 0 && strcmp(text, "hello world") == 0);
			free(text);
		}
		daemon_client_free(remote);
		daemon_client_testing_stop(&server);
	}
}

UNIT(no_daemon_is_no_failure)
{
	struct daemon_client *remote;
	char *text;

	assert(daemon_client_new(&remote) == 0);
	setenv("TTMEM_SOCKET", "none", 1);
	assert(ask(remote, &text) == DAEMON_CLIENT_NONE);
	setenv("TTMEM_SOCKET", "/nowhere/at/all", 1);
	assert(ask(remote, &text) == DAEMON_CLIENT_NONE);
	assert(strstr(daemon_client_reason(remote), "no ttmemd"));
	daemon_client_free(remote);
}

static void serve_once(int fd, const void *packet, size_t length)
{
	serve_text(fd, packet, length);
	shutdown(fd, SHUT_RDWR);
}

UNIT(a_connection_that_was_closed_is_made_again)
{
	struct daemon_client_testing server = daemon_client_testing_here(serve_once);
	struct daemon_client *remote;
	char *text;

	assert(daemon_client_new(&remote) == 0);
	for (int i = 0; i < 3; i++) {
		assert(ask(remote, &text) == 0);
		free(text);
	}
	daemon_client_free(remote);
	daemon_client_testing_stop(&server);
}

static void serve_nothing(int fd, const void *packet, size_t length)
{
}

UNIT(a_silent_daemon_is_not_asked_again)
{
	struct daemon_client_testing server = daemon_client_testing_here(serve_nothing);
	uint64_t start = clock_ns(CLOCK_MONOTONIC);
	struct daemon_client *remote;
	char *text;

	assert(daemon_client_new(&remote) == 0);
	assert(ask(remote, &text) == DAEMON_CLIENT_SILENT);
	assert(clock_ns(CLOCK_MONOTONIC) - start >= DAEMON_CLIENT_PATIENCE_NS);
	assert(strcmp(daemon_client_reason(remote), "ttmemd does not answer") == 0);
	/* The next time it fails at once: the daemon is known to hang. */
	daemon_client_testing_stop(&server);
	assert(ask(remote, &text) == DAEMON_CLIENT_SILENT);
	daemon_client_free(remote);
}

static void serve_refusal(int fd, const void *packet, size_t length)
{
	if (memmem(packet, length, "/status", 7))
		daemon_client_testing_send(
			fd, "HTTP/1.1 403 Forbidden\r\nContent-Length: 9\r\n\r\nnot today");
	else
		serve_text(fd, packet, length);
}

UNIT(a_refusal_is_told)
{
	struct daemon_client_testing server = daemon_client_testing_here(serve_refusal);
	struct daemon_client *remote;
	size_t length;
	char *text;

	assert(daemon_client_new(&remote) == 0);
	assert(ask(remote, &text) == DAEMON_CLIENT_REFUSED);
	assert(strcmp(daemon_client_reason(remote), "ttmemd: not today") == 0);
	assert(daemon_client_get(remote, "/api/v1/dump", NULL, &text, &length) == 0 &&
	       length == 11);
	free(text);
	daemon_client_free(remote);
	daemon_client_testing_stop(&server);
}

static void serve_nobody(int fd, const void *packet, size_t length)
{
	shutdown(fd, SHUT_RDWR);
}

UNIT(a_daemon_that_hangs_up_is_asked_again)
{
	struct daemon_client_testing server = daemon_client_testing_here(serve_nobody);
	struct daemon_client *remote;
	char *text;

	assert(daemon_client_new(&remote) == 0);
	assert(ask(remote, &text) == DAEMON_CLIENT_REFUSED);
	assert(strstr(daemon_client_reason(remote), "hung up"));
	daemon_client_testing_stop(&server);
	server = daemon_client_testing_here(serve_text);
	assert(ask(remote, &text) == 0);
	free(text);
	daemon_client_free(remote);
	daemon_client_testing_stop(&server);
}

static void serve_garbage(int fd, const void *packet, size_t length)
{
	daemon_client_testing_send(fd, "garbage\n");
}

static void serve_native(int fd, const void *packet, size_t length)
{
	daemon_client_testing_reply(fd, NATIVE_LIST, 0, "", 0, true);
}

static void serve_half(int fd, const void *packet, size_t length)
{
	daemon_client_testing_send(fd, HEAD "Content-Length: 11\r\n\r\nhello");
	shutdown(fd, SHUT_RDWR);
}

static void serve_too_much(int fd, const void *packet, size_t length)
{
	daemon_client_testing_send(fd, HEAD "Content-Length: 1\r\n\r\nhello");
}

static void serve_huge(int fd, const void *packet, size_t length)
{
	daemon_client_testing_send(fd, HEAD "Content-Length: 999999999999\r\n\r\nhello");
}

UNIT(garbage_is_not_understood)
{
	daemon_client_testing_fn *const wrong[] = {serve_garbage, serve_native, serve_half,
						   serve_too_much, serve_huge};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		struct daemon_client_testing server = daemon_client_testing_here(wrong[i]);
		struct daemon_client *remote;
		char *text;

		assert(daemon_client_new(&remote) == 0);
		assert(ask(remote, &text) == DAEMON_CLIENT_GARBAGE);
		daemon_client_free(remote);
		daemon_client_testing_stop(&server);
	}
}

UNIT(daemons_of_other_users_are_trusted_only_if_chosen)
{
	struct daemon_client_testing server;
	struct daemon_client *remote;
	char path[108], *text;

	if (geteuid() != 0)
		unit_skip("only root can become somebody else");
	if (access("/run/ttmem/ttmemd.sock", F_OK) == 0)
		unit_skip("a daemon runs here");
	unsetenv("TTMEM_SOCKET");
	/* Our own is trusted anywhere. */
	snprintf(path, sizeof(path), "%s/ttmem", unit_dir());
	assert(mkdir(path, 0777) == 0 && chmod(path, 0777) == 0 && chmod(unit_dir(), 0777) == 0);
	snprintf(path, sizeof(path), "%s/ttmem/ttmemd.sock", unit_dir());
	assert(daemon_client_new(&remote) == 0);
	server = daemon_client_testing_start(path, 0, serve_text);
	assert(ask(remote, &text) == 0);
	free(text);
	daemon_client_testing_stop(&server);
	daemon_client_free(remote);
	/* Another user's is not, unless it is named explicitly. */
	assert(daemon_client_new(&remote) == 0);
	server = daemon_client_testing_start(path, 12345, serve_text);
	assert(ask(remote, &text) == DAEMON_CLIENT_STRANGER);
	assert(strstr(daemon_client_reason(remote), "user 12345"));
	setenv("TTMEM_SOCKET", path, 1);
	assert(ask(remote, &text) == 0);
	free(text);
	daemon_client_testing_stop(&server);
	daemon_client_free(remote);
}

static int open_for_reading(int fd)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return open(path, O_RDONLY | O_CLOEXEC);
}

struct row {
	struct native_process process;
	struct native_part parts[2];
};

static struct row some_row(const struct testing_book *book)
{
	struct row row = {.process = {.pid = 77,
				      .ns_pid = 7,
				      .start_ticks = 5,
				      .user = 1000,
				      .maker = 1001,
				      .flags = NATIVE_ALIVE | NATIVE_EXACT,
				      .parts = 2,
				      .comm = "train",
				      .container = "abc"}};
	struct stat st;

	assert(fstat(book->fd, &st) == 0);
	row.process.book_device = st.st_dev;
	row.process.book_inode = st.st_ino;
	row.parts[0].memory[0].used = 100;
	row.parts[0].memory[0].capacity = 1000;
	row.parts[1].device = 3;
	row.parts[1].unique_id = 0xabc;
	row.parts[1].memory[6].buffers = 2;
	return row;
}

UNIT(a_book_goes_to_the_scan)
{
	struct scan *scan = empty_scan();
	struct daemon_client *remote;
	struct testing_book book;
	struct row row;

	testing_book_open(&book);
	row = some_row(&book);
	row.process.flags |= NATIVE_MAY_SEE | NATIVE_HAS_BOOK;
	assert(daemon_client_new(&remote) == 0);
	for (int i = 0; i < 2; i++) {
		assert(daemon_client_take_consume(remote, scan, &row, sizeof(row),
						  open_for_reading(book.fd)) == 0);
		assert(scan->count == 1 && daemon_client_count(remote) == 0);
	}
	assert(scan->books[0]->owner.id.pid == 77 && scan->books[0]->alive);
	assert(scan->books[0]->uid == 1001 && strcmp(scan->books[0]->container, "abc") == 0);
	assert(scan_has(scan, scan->books[0]->id));
	/*
	 * The daemon does not list it the next time, and its process is not visible: it is dropped.
	 */
	assert(scan_run(scan) == 0 && scan->books[0]->gone);
	/* Listed again, it is the same book. */
	assert(daemon_client_take_consume(remote, scan, &row, sizeof(row),
					  open_for_reading(book.fd)) == 0);
	assert(scan->count == 1 && !scan->books[0]->gone);
	daemon_client_free(remote);
	scan_free(scan);
	testing_book_deinit(&book);
}

/* Its owner may see to that; the daemon's totals are shown, and everybody else's books are. */
UNIT(a_book_that_cannot_be_read_is_no_failure)
{
	struct scan *scan = empty_scan();
	struct daemon_client *remote;
	struct testing_book book;
	struct row row;
	char path[64];

	testing_book_open(&book);
	row = some_row(&book);
	row.process.flags |= NATIVE_MAY_SEE | NATIVE_HAS_BOOK;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", book.fd);
	assert(daemon_client_new(&remote) == 0);
	assert(daemon_client_take_consume(remote, scan, &row, sizeof(row),
					  open(path, O_WRONLY | O_CLOEXEC)) == 0);
	assert(scan->count == 0 && daemon_client_count(remote) == 1);
	daemon_client_free(remote);
	scan_free(scan);
	testing_book_deinit(&book);
}

UNIT(the_daemon_vouches_for_what_was_refused)
{
	struct scan *scan = empty_scan();
	struct daemon_client *remote;
	struct testing_book book;
	struct row row;

	testing_book_open(&book);
	row = some_row(&book);
	row.process.flags |= NATIVE_MAY_SEE | NATIVE_HAS_BOOK;
	scan->refused[0] = (struct scan_refused){.pid = 5, .book.inode = 1};
	scan->refused[1] = (struct scan_refused){
		.pid = 77, .book = {row.process.book_device, row.process.book_inode}};
	scan->refused[2] = (struct scan_refused){.pid = 6, .book.inode = 2};
	scan->refused_count = 3;
	assert(daemon_client_new(&remote) == 0);
	assert(daemon_client_take_consume(remote, scan, &row, sizeof(row),
					  open_for_reading(book.fd)) == 0);
	assert(scan->refused_count == 2);
	assert(scan->refused[0].pid == 5 && scan->refused[1].pid == 6);
	daemon_client_free(remote);
	scan_free(scan);
	testing_book_deinit(&book);
}

UNIT(a_descriptor_that_is_no_book_leaves_only_totals)
{
	struct scan *scan = empty_scan();
	struct daemon_client *remote;
	struct testing_book book;
	struct row row;

	testing_book_open(&book);
	row = some_row(&book);
	row.process.flags |= NATIVE_MAY_SEE | NATIVE_HAS_BOOK;
	assert(daemon_client_new(&remote) == 0);
	assert(daemon_client_take_consume(remote, scan, &row, sizeof(row),
					  open("/dev/null", O_RDONLY | O_CLOEXEC)) == 0);
	assert(scan->count == 0 && daemon_client_count(remote) == 1);
	assert(daemon_client_take_consume(remote, scan, &row, sizeof(row) - 1, -1) ==
	       DAEMON_CLIENT_GARBAGE);
	row.parts[1].device = 9999;
	assert(daemon_client_take_consume(remote, scan, &row, sizeof(row), -1) ==
	       DAEMON_CLIENT_GARBAGE);
	daemon_client_free(remote);
	scan_free(scan);
	testing_book_deinit(&book);
}

static void serve_two_parts(int fd, const void *packet, size_t length)
{
	const struct native_request *request = packet;
	struct testing_book book;
	struct row row;

	assert(length == sizeof(*request));
	testing_book_open(&book);
	row = some_row(&book);
	assert(request->want == (NATIVE_WANT_BOOKS | NATIVE_WANT_REST));
	assert(request->accepts & NATIVE_ACCEPTS_JOINED);
	row.parts[1].flags = (SNAPSHOT_JOINED_OPEN + 1) << NATIVE_PART_JOINED;
	row.process.flags |= NATIVE_CONTINUES;
	daemon_client_testing_reply(fd, request->kind, 0, &row, sizeof(row), false);
	row.parts[0].device = 8;
	row.parts[1].device = 9;
	daemon_client_testing_reply(fd, request->kind, 0, &row, sizeof(row), false);
	/* More about the same devices. */
	assert(request->accepts & NATIVE_ACCEPTS_OCCUPIED);
	row.process.flags &= ~NATIVE_CONTINUES;
	for (uint32_t i = 0; i < 2; i++) {
		row.parts[i] = (struct native_part){.device = 8 + i, .flags = NATIVE_PART_OCCUPIED};
		row.parts[i].memory[0] =
			(struct native_memory){.used = 24576, .buffers = 1 + i, .unknown_frees = 5};
	}
	daemon_client_testing_reply(fd, request->kind, 0, &row, sizeof(row), false);
	daemon_client_testing_reply(fd, request->kind, 0, "", 0, true);
	testing_book_deinit(&book);
}

UNIT(totals_of_others_are_in_the_snapshot)
{
	struct daemon_client_testing server = daemon_client_testing_here(serve_two_parts);
	struct snapshot_request request = {.buffers = true};
	struct snapshot *snapshot = snapshot_new(1);
	struct scan *scan = empty_scan();
	const struct snapshot_process *process;
	struct daemon_client *remote;

	assert(daemon_client_new(&remote) == 0);
	assert(daemon_client_refresh(remote, scan) == 0 && daemon_client_count(remote) == 1);
	assert(daemon_client_collect(remote, &request, snapshot) == 0);
	assert(snapshot_finish(snapshot) == 0);
	assert(snapshot->process_count == 1 && snapshot->device_count == 3);
	process = &snapshot->processes[0];
	assert(process->id.pid == 77 && process->user_id == 1000 && process->maker_id == 1001);
	assert(process->alive && process->exact && strcmp(process->comm, "train") == 0);
	assert(strcmp(process->container, "abc") == 0 && process->part_count == 4);
	assert(process->parts[0].memory[0].used == 100);
	assert(process->parts[0].facts.capacity[0] == 1000);
	assert(process->parts[1].facts.unique_id == 0xabc);
	assert(process->parts[0].joined == SNAPSHOT_BY_NUMBER); /* an older daemon tells nothing */
	assert(process->parts[1].joined == SNAPSHOT_JOINED_OPEN);
	assert(process->parts[3].device == 9 && process->parts[3].memory[6].buffers == 2);
	assert(process->parts[0].memory[0].occupied.known == 0);
	assert(process->parts[3].memory[0].occupied.bytes == 24576);
	assert(process->parts[3].memory[0].occupied.known == 2);
	assert(process->parts[3].memory[0].unplaced_frees == 5);
	assert(snapshot->note_count == 1);
	assert(strstr(snapshot->notes[0], "details of 1 process of other users"));
	snapshot_free(snapshot);
	daemon_client_free(remote);
	scan_free(scan);
	daemon_client_testing_stop(&server);
}

UNIT(a_daemon_that_hangs_is_noted)
{
	struct daemon_client_testing server = daemon_client_testing_here(serve_nothing);
	struct snapshot_request request = {.buffers = false};
	struct snapshot *snapshot = snapshot_new(1);
	struct scan *scan = empty_scan();
	struct daemon_client *remote;

	assert(daemon_client_new(&remote) == 0);
	assert(daemon_client_refresh(remote, scan) == DAEMON_CLIENT_SILENT);
	assert(daemon_client_collect(remote, &request, snapshot) == 0);
	assert(snapshot->note_count == 1 && strstr(snapshot->notes[0], "ttmemd does not answer"));
	snapshot_free(snapshot);
	daemon_client_free(remote);
	scan_free(scan);
	daemon_client_testing_stop(&server);
}
