/* SPDX-License-Identifier: Apache-2.0 */

/* Daemons that speak an older protocol, and daemons of today that hang up. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/testing/unit.h"
#include "model/snapshot.h"
#include "source/books/scan.h"
#include "source/daemon-client/daemon-client.h"
#include "source/daemon-client/testing/daemon-client-testing.h"
#include "source/proc/namespaces.h"

static int ask(struct daemon_client *remote, char **ret_text)
{
	size_t length;

	return daemon_client_get(remote, "/api/v1/status", NULL, ret_text, &length);
}

/*
 * Like daemons from before HTTP: they hang up on garbage, and answer requests of their own
 * protocol.
 */
static void serve_as_before_http(int fd, const void *packet, size_t length)
{
	struct native_request request;

	if (native_request_decode(packet, length, &request) < 0) {
		shutdown(fd, SHUT_RDWR);
		return;
	}
	if (request.kind == NATIVE_OLD_STATUS)
		daemon_client_testing_reply(fd, request.kind, 0, "{}", 2, false);
	daemon_client_testing_reply(fd, request.kind, 0, "", 0, true);
}

UNIT(an_older_daemon_is_named_and_still_gives_its_roster)
{
	struct daemon_client_testing server = daemon_client_testing_here(serve_as_before_http);
	struct daemon_client *remote;
	struct scan *scan;
	char *text;

	setenv("TTMEM_PROC_ROOT", unit_dir(), 1); /* without processes */
	assert(scan_new(&scan) == 0 && scan_run(scan) == 0);
	assert(daemon_client_new(&remote) == 0);
	for (int i = 0; i < 2; i++) {
		assert(ask(remote, &text) == DAEMON_CLIENT_OLDER);
		assert(strstr(daemon_client_reason(remote), "is older than this ttmem"));
		assert(strstr(daemon_client_reason(remote), "upgrade"));
		assert(daemon_client_refresh(remote, scan) == 0);
	}
	daemon_client_free(remote);
	scan_free(scan);
	daemon_client_testing_stop(&server);
}

static unsigned int hang_ups; /* that are left, of the server's process */

/* Like daemons of today: they refuse the older protocol. */
static void serve_after_hanging_up(int fd, const void *packet, size_t length)
{
	struct native_request request;

	if (native_request_decode(packet, length, &request) == 0)
		daemon_client_testing_reply(fd, request.kind, -EOPNOTSUPP, "upgrade ttmem", 13,
					    true);
	else if (hang_ups > 0 && hang_ups--)
		shutdown(fd, SHUT_RDWR);
	else
		daemon_client_testing_send(fd, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello");
}

UNIT(a_daemon_that_hangs_up_once_is_neither_older_nor_newer)
{
	for (hang_ups = 1; hang_ups <= 100; hang_ups += 99) {
		struct daemon_client_testing server =
			daemon_client_testing_here(serve_after_hanging_up);
		struct daemon_client *remote;
		char *text;

		assert(daemon_client_new(&remote) == 0);
		if (hang_ups == 1) {
			assert(ask(remote, &text) == 0 && strcmp(text, "hello") == 0);
			free(text);
		} else {
			assert(ask(remote, &text) == DAEMON_CLIENT_REFUSED);
			assert(strstr(daemon_client_reason(remote), "hung up"));
		}
		daemon_client_free(remote);
		daemon_client_testing_stop(&server);
	}
}

/* A daemon that speaks HTTP but does not know a newer document. */
static void serve_no_path(int fd, const void *packet, size_t length)
{
	daemon_client_testing_send(fd, "HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno");
}

UNIT(a_daemon_that_does_not_know_a_document_is_older)
{
	struct daemon_client_testing server = daemon_client_testing_here(serve_no_path);
	struct daemon_client *remote;
	char *text;

	assert(daemon_client_new(&remote) == 0);
	assert(ask(remote, &text) == DAEMON_CLIENT_OLDER);
	daemon_client_free(remote);
	daemon_client_testing_stop(&server);
}

/* As a daemon refuses a kind that it does not know. */
static void serve_no_driver_memory(int fd, const void *packet, size_t length)
{
	(void)packet;
	(void)length;
	daemon_client_testing_reply(fd, 0, -EBADMSG, "not understood", 14, true);
}

UNIT(a_daemon_that_does_not_know_of_the_drivers_memory_is_no_failure)
{
	struct daemon_client_testing server = daemon_client_testing_here(serve_no_driver_memory);
	struct snapshot *snapshot = snapshot_new(1);
	struct snapshot_claim *claims = NULL;
	struct daemon_client *remote;
	size_t count;

	assert(snapshot && daemon_client_new(&remote) == 0);
	assert(daemon_client_driver_memory(remote, snapshot) == 0);
	assert(daemon_client_outcome(remote) == 0);
	assert(snapshot->driver_memory_count == 0 && snapshot->note_count == 0);
	assert(daemon_client_openers(remote, snapshot, &claims, &count) == DAEMON_CLIENT_REFUSED);
	assert(daemon_client_outcome(remote) == 0 && !claims);
	daemon_client_free(remote);
	snapshot_free(snapshot);
	daemon_client_testing_stop(&server);
}

static void serve_driver_memory(int fd, const void *packet, size_t length)
{
	struct native_driver_memory told[2] = {
		{.pid = 5, .number = 1, .pinned = 7, .tlb_windows = 2},
		{.pid = 6, .number = 0, .dma = 8}};
	struct native_request request;

	if (native_request_decode(packet, length, &request) < 0)
		return;
	daemon_client_testing_reply(fd, request.kind, 0, told, sizeof(told), false);
	daemon_client_testing_reply(fd, request.kind, 0, "", 0, true);
}

UNIT(what_the_driver_tells_the_daemon_is_taken)
{
	struct daemon_client_testing server = daemon_client_testing_here(serve_driver_memory);
	struct snapshot *snapshot = snapshot_new(1);
	struct daemon_client *remote;

	assert(snapshot && daemon_client_new(&remote) == 0);
	assert(daemon_client_driver_memory(remote, snapshot) == 0);
	assert(snapshot->driver_memory_count == 2);
	assert(snapshot->driver_memory[0].pid == 5 && snapshot->driver_memory[0].number == 1);
	assert(snapshot->driver_memory[0].pinned == 7 && snapshot->driver_memory[0].dma == 0);
	assert(snapshot->driver_memory[0].tlb_windows == 2);
	assert(snapshot->driver_memory[1].pid == 6 && snapshot->driver_memory[1].dma == 8);
	daemon_client_free(remote);
	snapshot_free(snapshot);
	daemon_client_testing_stop(&server);
}

static uint64_t openers_namespace;

/* The daemon itself, and a process that has two cards open. */
static void serve_openers(int fd, const void *packet, size_t length)
{
	struct {
		struct native_process process;
		struct native_part parts[2];
	} told = {.process = {.book_inode = openers_namespace, .pid = 4, .flags = NATIVE_ALIVE}};
	struct native_request request;

	if (native_request_decode(packet, length, &request) < 0)
		return;
	daemon_client_testing_reply(fd, request.kind, 0, &told, sizeof(told.process), false);
	told.process.pid = 5;
	told.process.start_ticks = 77;
	told.process.parts = 2;
	told.parts[1].device = 1;
	daemon_client_testing_reply(fd, request.kind, 0, &told, sizeof(told), false);
	daemon_client_testing_reply(fd, request.kind, 0, "", 0, true);
}

UNIT(openers_are_taken_if_pids_are_counted_as_ours)
{
	struct daemon_client_testing server;
	struct snapshot *snapshot = snapshot_new(1);
	struct snapshot_claim *claims = NULL;
	struct daemon_client *remote;
	size_t count = 0;

	openers_namespace = namespaces_our_pids();
	server = daemon_client_testing_here(serve_openers);
	assert(openers_namespace && snapshot && daemon_client_new(&remote) == 0);
	assert(daemon_client_openers(remote, snapshot, &claims, &count) == 0 && count == 2);
	assert(claims[0].is_open_only && claims[0].process.id.pid == 5 && claims[0].device == 0);
	assert(claims[1].process.id.start_ticks == 77 && claims[1].device == 1);
	free(claims);
	daemon_client_free(remote);
	daemon_client_testing_stop(&server);

	openers_namespace++;
	server = daemon_client_testing_here(serve_openers);
	assert(daemon_client_new(&remote) == 0);
	assert(daemon_client_openers(remote, snapshot, &claims, &count) == DAEMON_CLIENT_NONE);
	assert(daemon_client_outcome(remote) == 0);
	daemon_client_free(remote);
	snapshot_free(snapshot);
	daemon_client_testing_stop(&server);
}

static void serve_wrong_driver_memory(int fd, const void *packet, size_t length)
{
	static const struct native_driver_memory wrong = {.pid = 5, .number = NATIVE_DEVICES};
	struct native_request request;

	if (native_request_decode(packet, length, &request) < 0)
		return;
	daemon_client_testing_reply(fd, request.kind, 0, &wrong, sizeof(wrong), false);
	daemon_client_testing_reply(fd, request.kind, 0, "", 0, true);
}

UNIT(a_wrong_entry_is_garbage)
{
	struct daemon_client_testing server = daemon_client_testing_here(serve_wrong_driver_memory);
	struct snapshot *snapshot = snapshot_new(1);
	struct daemon_client *remote;

	assert(snapshot && daemon_client_new(&remote) == 0);
	assert(daemon_client_driver_memory(remote, snapshot) == DAEMON_CLIENT_GARBAGE);
	assert(snapshot->driver_memory_count == 0);
	daemon_client_free(remote);
	snapshot_free(snapshot);
	daemon_client_testing_stop(&server);
}
