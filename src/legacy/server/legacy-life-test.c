/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Old clients as processes: how they start, fork, reconnect, live in other namespaces and exit, and
 * what remains of them when the daemon exits. Cases about a known flaw of the old server are named
 * after it.
 */

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/testing/unit.h"
#include "base/threads/loop.h"
#include "daemon/registry/registry-open.h"
#include "daemon/registry/registry.h"
#include "daemon/registry/tracked.h"
#include "legacy/server/testing/legacy-server-testing.h"
#include "model/snapshot.h"
#include "model/testing/testing-stack.h"

#define LTEST_NOBODY 65534

static void ltest_one(int fd)
{
	struct legacy_message message = legacy_testing_alloc(0, 0, 0x1000, 12345);

	legacy_testing_send(fd, LEGACY_W72, &message);
	legacy_testing_send(fd, LEGACY_W72, &message);
}

/* Exits before anyone has looked. */
static void ltest_teardown(int fd)
{
	for (uint64_t i = 0; i < 1000; i++) {
		struct legacy_message message = legacy_testing_alloc(0, 0, i, 10);

		legacy_testing_send(fd, LEGACY_W72, &message);
	}
	for (uint64_t i = 0; i < 990; i++) {
		struct legacy_message message = legacy_testing_free(0, i);

		legacy_testing_send(fd, LEGACY_W72, &message);
	}
	_exit(0);
}

/* Fits into the socket's buffer: the server reads nothing meanwhile. */
static void ltest_few(int fd)
{
	for (uint64_t i = 0; i < 20; i++) {
		struct legacy_message message = legacy_testing_alloc(0, 0, i, 10);

		legacy_testing_send(fd, LEGACY_W144, &message);
	}
	_exit(0);
}

/* Frees what it allocated right before it exits. */
static void ltest_clean(int fd)
{
	struct legacy_message message = legacy_testing_alloc(0, 0, 0x77, 10);
	struct legacy_message gone = legacy_testing_free(0, 0x77);

	legacy_testing_send(fd, LEGACY_W144, &message);
	legacy_testing_send(fd, LEGACY_W144, &gone);
	_exit(0);
}

UNIT(last_words_are_printed)
{
	struct legacy_config config = {.fd = -1, .log_events = true};
	struct legacy_testing_world world;
	pid_t pid;

	legacy_testing_open(&world, &config);
	pid = legacy_testing_child(&world, ltest_clean);
	assert(waitpid(pid, NULL, 0) == pid);
	legacy_testing_until_ended(&world, 1);
	assert(world.ended[0].buffers == 0);
	legacy_testing_until_printed(&world, "Freed buffer 0x77 on device 0 (10 bytes, FINAL)\n");
	assert(!legacy_testing_printed(&world, "is dead"));
	legacy_testing_close(&world);
}

UNIT(pain_6_last_words_are_heard)
{
	struct legacy_testing_world world;
	pid_t pid;

	legacy_testing_open(&world, NULL);
	/* Read while it exits. */
	pid = legacy_testing_child(&world, ltest_teardown);
	legacy_testing_until_ended(&world, 1);
	assert(world.ended[0].pid == (uint32_t)pid && world.ended[0].buffers == 10);
	assert(legacy_testing_counts(&world).messages == 1990);
	assert(waitpid(pid, NULL, 0) == pid);
	/* Exited and reaped before it was accepted: the process no longer exists. */
	pid = legacy_testing_child(&world, ltest_few);
	assert(waitpid(pid, NULL, 0) == pid);
	legacy_testing_until_ended(&world, 2);
	assert(world.ended[1].pid == (uint32_t)pid && world.ended[1].buffers == 20);
	assert(legacy_testing_counts(&world).clients == 0);
	assert(legacy_testing_counts(&world).memory == 0);
	legacy_testing_close(&world);
}

/* A connection for every message; the last ones wait in the backlog. */
static void ltest_anew(int fd)
{
	const char *path = getenv("LTEST_PATH");

	(void)close(fd);
	for (uint64_t i = 0; i < 50; i++) {
		struct legacy_message message = legacy_testing_alloc(0, 0, i, 10);
		int own = legacy_testing_connect(path);

		legacy_testing_send(own, LEGACY_W648, &message);
		(void)close(own);
	}
	_exit(0);
}

UNIT(a_connection_for_every_message)
{
	struct legacy_testing_world world;
	pid_t pid;

	legacy_testing_open(&world, NULL);
	assert(setenv("LTEST_PATH", world.path, 1) == 0);
	pid = legacy_testing_child(&world, ltest_anew);
	legacy_testing_until_ended(&world, 1);
	assert(world.ended[0].buffers == 50 && world.ended_count == 1);
	assert(waitpid(pid, NULL, 0) == pid);
	/* The same, with all connections in the backlog. */
	pid = legacy_testing_child(&world, ltest_anew);
	assert(waitpid(pid, NULL, 0) == pid);
	legacy_testing_until_ended(&world, 2);
	assert(world.ended[1].pid == (uint32_t)pid && world.ended[1].buffers == 50);
	legacy_testing_close(&world);
}

UNIT(pain_7_a_zombie_is_dead)
{
	struct legacy_testing_world world;
	pid_t pid;

	legacy_testing_open(&world, NULL);
	pid = legacy_testing_child(&world, ltest_one);
	legacy_testing_until_messages(&world, 2);
	assert(kill(pid, SIGKILL) == 0);
	legacy_testing_until_ended(&world, 1); /* not reaped */
	assert(world.ended[0].bytes == 12345);
	assert(waitpid(pid, NULL, 0) == pid);
	legacy_testing_close(&world);
}

/* Runs the server as nobody, for one client that is root and that it may not even signal. */
static void ltest_serve_as_nobody(pid_t client, int ready, int end)
{
	struct timespec nap = {.tv_nsec = 1000000};
	struct legacy_testing_world world;

	assert(setgroups(0, NULL) == 0 && setresgid(LTEST_NOBODY, LTEST_NOBODY, -1u) == 0);
	assert(setresuid(LTEST_NOBODY, LTEST_NOBODY, LTEST_NOBODY) == 0);
	assert(kill(client, 0) < 0 && errno == EPERM);
	legacy_testing_open(&world, NULL);
	assert(write(ready, "x", 1) == 1);
	legacy_testing_until_messages(&world, 2);
	for (int i = 0; i < 200; i++) {
		assert(loop_turn(world.loop, 0) == 0);
		(void)nanosleep(&nap, NULL);
	}
	assert(legacy_testing_look(&world, (uint32_t)client, 0, 0).bytes == 12345);
	assert(world.ended_count == 0);
	/* Its exit is seen all the same. */
	assert(write(end, "x", 1) == 1);
	legacy_testing_until_ended(&world, 1);
	assert(world.ended[0].pid == (uint32_t)client && world.ended[0].bytes == 12345);
	legacy_testing_close(&world);
}

UNIT(pain_7_a_live_root_client_is_not_dead)
{
	int ready[2], end[2], status;
	pid_t client, server;
	char path[128];
	char byte;

	if (getuid() != 0)
		unit_skip("needs root");
	assert(pipe2(ready, O_CLOEXEC) == 0 && pipe2(end, O_CLOEXEC) == 0);
	(void)snprintf(path, sizeof(path), "%s/old", unit_dir());
	assert(chown(unit_dir(), LTEST_NOBODY, LTEST_NOBODY) == 0);
	client = fork();
	assert(client >= 0);
	if (client == 0) {
		assert(read(ready[0], &byte, 1) == 1);
		ltest_one(legacy_testing_connect(path));
		assert(read(end[0], &byte, 1) == 1);
		_exit(0);
	}
	server = fork();
	assert(server >= 0);
	if (server == 0) {
		ltest_serve_as_nobody(client, ready[1], end[1]);
		_exit(0);
	}
	assert(waitpid(server, &status, 0) == server);
	assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	assert(waitpid(client, NULL, 0) == client);
	for (int i = 0; i < 2; i++) {
		(void)close(ready[i]);
		(void)close(end[i]);
	}
}

UNIT(pain_7_another_pid_namespace)
{
	struct legacy_testing_world world;
	struct snapshot *snapshot;
	uint32_t outer, inner;
	pid_t pid;

	if (getuid() != 0)
		unit_skip("needs root");
	legacy_testing_open(&world, NULL);
	pid = fork();
	assert(pid >= 0);
	if (pid == 0) {
		if (unshare(CLONE_NEWPID) < 0)
			_exit(77);
		if (fork() == 0) {
			/* Its pid in its own namespace is 1. */
			ltest_one(legacy_testing_connect(world.path));
			for (;;)
				(void)pause();
		}
		for (;;)
			(void)pause();
	}
	legacy_testing_until_messages(&world, 2);
	snapshot = legacy_testing_snapshot(&world);
	assert(snapshot->process_count == 1);
	outer = snapshot->processes[0].id.pid;
	inner = snapshot->processes[0].ns_pid;
	snapshot_free(snapshot);
	assert(inner == 1 && outer != 1 && outer != (uint32_t)pid);
	assert(legacy_testing_counts(&world).stranger_pids == 0);
	assert(legacy_testing_look(&world, outer, 0, 0).bytes == 12345);
	assert(world.ended_count == 0);
	assert(kill((pid_t)outer, SIGKILL) == 0);
	legacy_testing_until_ended(&world, 1);
	assert(world.ended[0].pid == outer && world.ended[0].bytes == 12345);
	legacy_testing_kill(pid);
	legacy_testing_close(&world);
}

/* Where /proc shows only the user's own processes. */
UNIT(a_client_that_proc_hides)
{
	struct legacy_testing_world world;
	pid_t pid;

	assert(setenv("TTMEM_PROC_ROOT", unit_dir(), 1) == 0);
	legacy_testing_open(&world, NULL);
	pid = legacy_testing_child(&world, ltest_one);
	legacy_testing_until_messages(&world, 2);
	for (int i = 0; i < 20; i++)
		assert(loop_turn(world.loop, 1) == 0);
	assert(world.ended_count == 0);
	assert(legacy_testing_look(&world, (uint32_t)pid, 0, 0).bytes == 12345);
	legacy_testing_kill(pid);
	legacy_testing_until_ended(&world, 1);
	assert(world.ended[0].pid == (uint32_t)pid && world.ended[0].bytes == 12345);
	legacy_testing_close(&world);
}

UNIT(pain_8_disconnect_is_not_death)
{
	struct legacy_config config = {.fd = -1, .log_events = true};
	struct legacy_message message = legacy_testing_alloc(0, 0, 7, 100);
	struct legacy_testing_world world;
	char text[256];
	pid_t pid;
	int fd;

	legacy_testing_open(&world, &config);
	fd = legacy_testing_connect(world.path);
	legacy_testing_send(fd, LEGACY_W72, &message);
	(void)close(fd);
	pid = legacy_testing_child(&world, ltest_one);
	legacy_testing_until_messages(&world, 3);
	/* Losing a connection changes nothing. */
	assert(legacy_testing_look(&world, (uint32_t)getpid(), 0, 0).bytes == 100);
	assert(legacy_testing_look(&world, 0, 0, 0).bytes == 12445);
	legacy_testing_kill(pid);
	legacy_testing_until_ended(&world, 1);
	assert(world.ended[0].buffers == 1 && world.ended[0].bytes == 12345);
	/* No longer in use. */
	assert(legacy_testing_look(&world, 0, 0, 0).bytes == 100);
	(void)snprintf(text, sizeof(text),
		       "\n⚠️  Detected dead processes, cleaning up orphaned buffers...\n"
		       "   PID %d is dead, removing its buffers...\n"
		       "   ✓ Removed 1 buffers (0.0117731 MB) from PID %d\n",
		       pid, pid);
	legacy_testing_until_printed(&world, text);
	legacy_testing_close(&world);
}

/* Forks, and the child keeps using the same socket. */
static void ltest_family(int fd)
{
	ltest_one(fd);
	if (fork() == 0) {
		struct legacy_message message = legacy_testing_alloc(0, 0, 0x1000, 777);

		legacy_testing_send(fd, LEGACY_W72, &message);
		message.id++;
		legacy_testing_send(fd, LEGACY_W72, &message);
		for (;;)
			(void)pause();
	}
}

UNIT(a_child_with_an_inherited_connection)
{
	struct legacy_testing_world world;
	struct snapshot *snapshot;
	uint32_t child = 0;
	pid_t pid;

	legacy_testing_open(&world, NULL);
	pid = legacy_testing_child(&world, ltest_family);
	legacy_testing_until_messages(&world, 4);
	assert(legacy_testing_counts(&world).clients == 2);
	assert(legacy_testing_look(&world, (uint32_t)pid, 0, 0).bytes == 12345);
	snapshot = legacy_testing_snapshot(&world);
	for (size_t i = 0; i < snapshot->process_count; i++) {
		if (snapshot->processes[i].id.pid != (uint32_t)pid)
			child = snapshot->processes[i].id.pid;
	}
	snapshot_free(snapshot);
	assert(child && legacy_testing_look(&world, child, 0, 0).bytes == 1554);
	assert(legacy_testing_counts(&world).stranger_pids == 0);
	/* The parent exits; the connection and the child live on. */
	legacy_testing_kill(pid);
	legacy_testing_until_ended(&world, 1);
	assert(world.ended[0].pid == (uint32_t)pid && world.ended[0].bytes == 12345);
	assert(legacy_testing_look(&world, 0, 0, 0).bytes == 1554);
	assert(kill((pid_t)child, SIGKILL) == 0);
	legacy_testing_until_ended(&world, 2);
	assert(world.ended[1].pid == child && world.ended[1].bytes == 1554);
	legacy_testing_close(&world);
}

/* A book's descriptor, as held by another process while the daemon is away. */
static int ltest_hold(struct legacy_testing_world *world, uint64_t *ret_start)
{
	struct book_list *book_list = registry_books(world->registry);
	char path[64];
	int fd;

	assert(book_list->count == 1);
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", book_list->list[0]->book->file.fd);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert(fd >= 0);
	*ret_start = book_list->list[0]->process.start_ticks;
	book_list_unref(book_list);
	return fd;
}

/* Reports, and on a signal reconnects to free one of two. */
static void ltest_reconnect(int fd)
{
	struct legacy_message message = legacy_testing_alloc(1, 1, 0x1000, 100);
	sigset_t usr1;
	int number;

	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	(void)sigprocmask(SIG_BLOCK, &usr1, NULL);
	legacy_testing_text(&message, "weights", "a.py:1:f -> b.py:2:g");
	legacy_testing_send(fd, LEGACY_W648, &message);
	legacy_testing_send(fd, LEGACY_W648, &message);
	message.id++;
	legacy_testing_send(fd, LEGACY_W648, &message);
	(void)sigwait(&usr1, &number);
	(void)close(fd);
	fd = legacy_testing_connect(getenv("LTEST_PATH"));
	message.type = LEGACY_FREE;
	legacy_testing_send(fd, LEGACY_W648, &message);
	message.id--;
	legacy_testing_send(fd, LEGACY_W648, &message);
}

UNIT(pain_5_a_restart_forgets_nothing)
{
	struct legacy_testing_world world;
	struct legacy_testing_memory memory;
	struct snapshot *before, *after;
	struct scan_book *book;
	uint64_t start;
	pid_t pid;
	int held;

	legacy_testing_open(&world, NULL);
	assert(setenv("LTEST_PATH", world.path, 1) == 0);
	pid = legacy_testing_child(&world, ltest_reconnect);
	legacy_testing_until_messages(&world, 3);
	held = ltest_hold(&world, &start);
	before = legacy_testing_snapshot(&world);
	legacy_testing_close(&world);

	legacy_testing_open(&world, NULL);
	assert(registry_open_consume(registry_proc(world.registry), held,
				     (struct process_id){(uint32_t)pid, start}, &book) == 0);
	assert(legacy_server_adopt_consume(world.server, book,
					   (int)syscall(SYS_pidfd_open, pid, 0)) == 0);
	after = legacy_testing_snapshot(&world);
	assert(before->buffer_count == 2 && after->buffer_count == 2);
	assert(after->processes[0].id.pid == (uint32_t)pid && after->processes[0].alive);
	for (size_t i = 0; i < 2; i++) {
		const struct snapshot_buffer *a = &before->buffers[i], *b = &after->buffers[i];

		assert(a->address == b->address && a->size == b->size && a->refs == b->refs);
		assert(strcmp(a->name, b->name) == 0 &&
		       strcmp(testing_line(a->stack), testing_line(b->stack)) == 0);
		/* The times of birth are equal, up to the error of reading two clocks. */
		assert(llabs((long long)(a->born_ns - b->born_ns)) < 100000000);
	}
	snapshot_free(before);
	snapshot_free(after);
	/* The client continues where it was. */
	assert(kill(pid, SIGUSR1) == 0);
	legacy_testing_until_messages(&world, 2);
	memory = legacy_testing_look(&world, (uint32_t)pid, 1, 1);
	assert(memory.buffers == 1 && memory.bytes == 100 && memory.unknown_frees == 0);
	assert(legacy_testing_counts(&world).clients == 1);
	legacy_testing_kill(pid);
	legacy_testing_until_ended(&world, 1);
	assert(world.ended[0].buffers == 1);
	legacy_testing_close(&world);
}

static bool ltest_is_empty(struct legacy_testing_world *world, void *context)
{
	(void)context;
	return legacy_testing_counts(world).connections == 0;
}

/* As many as on a machine with many jobs, in a few processes. */
UNIT(a_thousand_connections)
{
	struct legacy_testing_world world;
	pid_t pids[10];

	legacy_testing_open(&world, NULL);
	assert(chmod(unit_dir(), 0755) == 0);
	for (int i = 0; i < 10; i++) {
		pids[i] = fork();
		assert(pids[i] >= 0);
		if (pids[i] == 0) {
			/* One user each, or the limit per user would be reached. */
			if (getuid() == 0 && setresuid(3000u + (uid_t)i, 3000u + (uid_t)i, 0) < 0)
				_exit(1);
			for (uint64_t k = 0; k < 100; k++) {
				struct legacy_message message = legacy_testing_alloc(0, 0, k, 1);

				legacy_testing_send(legacy_testing_connect(world.path), LEGACY_W144,
						    &message);
			}
			for (;;)
				(void)pause();
		}
	}
	if (getuid() != 0) {
		for (int i = 0; i < 10; i++)
			legacy_testing_kill(pids[i]);
		legacy_testing_close(&world);
		unit_skip("needs users of their own");
	}
	legacy_testing_until_messages(&world, 1000);
	assert(legacy_testing_counts(&world).connections == 1000);
	assert(legacy_testing_counts(&world).clients == 10);
	assert(legacy_testing_look(&world, 0, 0, 0).bytes == 1000);
	for (int i = 0; i < 10; i++)
		legacy_testing_kill(pids[i]);
	legacy_testing_until_ended(&world, 10);
	legacy_testing_until(&world, ltest_is_empty, NULL);
	legacy_testing_close(&world);
}
