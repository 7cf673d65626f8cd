/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What the old server got wrong, one case for each, named after the numbered list of its known
 * flaws: with real processes, real sockets, real kills. Cases about processes and their exits are
 * in legacy-life-test.c.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/files/socket-lock.h"
#include "base/testing/unit.h"
#include "base/threads/loop.h"
#include "legacy/server/testing/legacy-server-testing.h"
#include "legacy/wire/legacy-encode.h"
#include "model/snapshot.h"

static uint32_t ptest_pid(void)
{
	return (uint32_t)getpid();
}

UNIT(pain_1_builds_of_every_age_at_once)
{
	static const enum legacy_dialect dialects[] = {LEGACY_W72, LEGACY_W112, LEGACY_W128,
						       LEGACY_W144, LEGACY_W648};
	struct legacy_testing_world world;
	int fds[ARRAY_SIZE(dialects)];
	struct legacy_w72 answer;

	legacy_testing_open(&world, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(dialects); i++)
		fds[i] = legacy_testing_connect(world.path);
	for (uint64_t k = 0; k < 200; k++) {
		for (size_t i = 0; i < ARRAY_SIZE(dialects); i++) {
			struct legacy_message message =
				legacy_testing_alloc((int32_t)i, 1, k << 12, 100 + i);

			legacy_testing_send(fds[i], dialects[i], &message);
		}
		assert(loop_turn(world.loop, 0) == 0);
	}
	legacy_testing_until_messages(&world, 200 * ARRAY_SIZE(dialects));
	for (size_t i = 0; i < ARRAY_SIZE(dialects); i++) {
		struct legacy_message ask = legacy_testing_ask(LEGACY_QUERY, (int32_t)i);
		uint8_t bytes[LEGACY_SIZE_MAX];

		/* "device_id 2657333" was really a pid. */
		assert(legacy_testing_look(&world, 0, (uint32_t)i, 1).bytes == 200 * (100 + i));
		legacy_testing_send(fds[i], dialects[i], &ask);
		legacy_testing_receive(&world, fds[i], bytes, legacy_size(dialects[i]));
		memcpy(&answer, bytes, sizeof(answer));
		assert(answer.counters.l1 == 200 * (100 + i));
		(void)close(fds[i]);
	}
	assert(legacy_testing_counts(&world).refused_device == 0);
	legacy_testing_close(&world);
}

UNIT(pain_2_partial_reads_are_joined)
{
	struct legacy_message message = legacy_testing_alloc(0, 0, 1, 10);
	struct legacy_testing_world world;
	uint8_t bytes[2 * LEGACY_SIZE_MAX];
	size_t length;
	uint64_t sent = 0;

	legacy_testing_open(&world, NULL);
	assert(legacy_encode_request(LEGACY_W112, &message, bytes, &length) == 0);
	memcpy(bytes + length, bytes, length);
	for (size_t cut = 1; cut < 2 * length; cut += 3) {
		int fd = legacy_testing_connect(world.path);

		legacy_testing_send_bytes(fd, bytes, cut);
		assert(loop_turn(world.loop, 1) == 0 && loop_turn(world.loop, 0) == 0);
		legacy_testing_send_bytes(fd, bytes + cut, 2 * length - cut);
		legacy_testing_until_messages(&world, sent += 2);
		(void)close(fd);
	}
	assert(legacy_testing_look(&world, 0, 0, 0).allocs == sent);
	legacy_testing_close(&world);
}

UNIT(pain_3_a_backlog_costs_what_it_weighs)
{
	struct legacy_message message = legacy_testing_alloc(0, 0, 1, 10);
	struct legacy_testing_world world;
	uint64_t sent = 0, turns = 0;
	int room = 1 << 20, fd;
	uint8_t bytes[LEGACY_SIZE_MAX];
	size_t length;

	legacy_testing_open(&world, NULL);
	fd = legacy_testing_connect(world.path);
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room)); /* as the client did */
	assert(legacy_encode_request(LEGACY_W144, &message, bytes, &length) == 0);
	while (send(fd, bytes, length, MSG_DONTWAIT) == (ssize_t)length)
		sent++;
	assert(sent > 100);
	/* Neither one read per message nor reads that go on until all are read. */
	while (legacy_testing_counts(&world).messages < sent) {
		assert(loop_turn(world.loop, 1000) == 0);
		assert(++turns <= sent * length / 65536 + 4);
	}
	(void)close(fd);
	legacy_testing_close(&world);
}

#define PTEST_STORM 100000u

static void ptest_storm(int fd)
{
	for (uint64_t i = 0; i < PTEST_STORM; i++) {
		struct legacy_message message = legacy_testing_alloc(0, 1, i % 1000, 64);

		if (i / 1000 % 2)
			message = legacy_testing_free(0, i % 1000);
		legacy_testing_send(fd, LEGACY_W144, &message);
	}
}

UNIT(pain_4_nothing_is_dropped)
{
	struct legacy_testing_world world;
	struct legacy_testing_memory memory;
	pid_t pid;

	legacy_testing_open(&world, NULL);
	pid = legacy_testing_child(&world, ptest_storm);
	legacy_testing_until_messages(&world, PTEST_STORM);
	memory = legacy_testing_look(&world, (uint32_t)pid, 0, 1);
	assert(memory.allocs == PTEST_STORM / 2 && memory.frees == PTEST_STORM / 2);
	assert(memory.buffers == 0 && memory.unknown_frees == 0 && memory.double_frees == 0);
	legacy_testing_kill(pid);
	legacy_testing_until_ended(&world, 1);
	assert(world.ended[0].buffers == 0);
	legacy_testing_close(&world);
}

UNIT(pain_9_a_reused_address_is_a_new_buffer)
{
	const uint64_t address = 25718784;
	struct legacy_testing_world world;
	struct legacy_message message = legacy_testing_alloc(2, 1, address, 524288);
	struct legacy_message gone = legacy_testing_free(2, address);
	struct legacy_testing_memory memory;
	struct snapshot *snapshot;
	int fd;

	legacy_testing_open(&world, NULL);
	fd = legacy_testing_connect(world.path);
	legacy_testing_send(fd, LEGACY_W72, &message);
	legacy_testing_send(fd, LEGACY_W72, &gone);
	message.size = 98304;
	legacy_testing_send(fd, LEGACY_W72, &message);
	legacy_testing_until_messages(&world, 3);
	assert(legacy_testing_look(&world, 0, 2, 1).bytes == 98304);
	legacy_testing_send(fd, LEGACY_W72, &gone);
	/* The late free of an old pointer: already freed, not "before tracking started". */
	legacy_testing_send(fd, LEGACY_W72, &gone);
	legacy_testing_until_messages(&world, 5);
	memory = legacy_testing_look(&world, 0, 2, 1);
	assert(memory.bytes == 0 && memory.allocs == 2 && memory.frees == 2);
	assert(memory.double_frees == 1 && memory.unknown_frees == 0);
	snapshot = legacy_testing_snapshot(&world);
	assert(snapshot->incident_count == 1);
	assert(strcmp(snapshot->incidents[0].kind, "double_free") == 0);
	assert(snapshot->incidents[0].address == address && snapshot->incidents[0].size == 98304);
	snapshot_free(snapshot);
	/* Without the free in between, the size changes: the new size counts, not the first. */
	message.size = 524288;
	legacy_testing_send(fd, LEGACY_W72, &message);
	message.size = 98304;
	legacy_testing_send(fd, LEGACY_W72, &message);
	legacy_testing_until_messages(&world, 7);
	memory = legacy_testing_look(&world, 0, 2, 1);
	assert(memory.bytes == 98304 && memory.buffers == 1 && memory.size_changes == 1);
	(void)close(fd);
	legacy_testing_close(&world);
}

static void ptest_same_address(int fd)
{
	struct legacy_message message = legacy_testing_alloc(0, 0, 0x1000, 100);

	legacy_testing_send(fd, LEGACY_W72, &message);
	legacy_testing_send(fd, LEGACY_W72, &message);
}

UNIT(pain_10_same_address_in_two_processes_is_two_buffers)
{
	struct legacy_message gone = legacy_testing_free(0, 0x1000);
	struct legacy_testing_world world;
	pid_t pids[2];
	int fd;

	legacy_testing_open(&world, NULL);
	pids[0] = legacy_testing_child(&world, ptest_same_address);
	pids[1] = legacy_testing_child(&world, ptest_same_address);
	legacy_testing_until_messages(&world, 4);
	assert(legacy_testing_counts(&world).clients == 2);
	assert(legacy_testing_look(&world, 0, 0, 0).bytes == 200);
	/* A free by a third process affects neither. */
	fd = legacy_testing_connect(world.path);
	legacy_testing_send(fd, LEGACY_W72, &gone);
	legacy_testing_send(fd, LEGACY_W72, &gone);
	legacy_testing_until_messages(&world, 6);
	for (int i = 0; i < 2; i++) {
		assert(legacy_testing_look(&world, (uint32_t)pids[i], 0, 0).bytes == 100);
		assert(legacy_testing_look(&world, (uint32_t)pids[i], 0, 0).realloc_live == 1);
	}
	assert(legacy_testing_look(&world, ptest_pid(), 0, BOOK_TYPES).unknown_frees == 2);
	legacy_testing_kill(pids[0]);
	legacy_testing_until_ended(&world, 1);
	assert(legacy_testing_look(&world, 0, 0, 0).bytes == 100);
	legacy_testing_kill(pids[1]);
	legacy_testing_until_ended(&world, 2);
	(void)close(fd);
	legacy_testing_close(&world);
}

UNIT(pain_12_no_counter_wraps)
{
	struct legacy_message message = legacy_testing_alloc(0, 0, 5, 100);
	struct legacy_message ask = legacy_testing_ask(LEGACY_QUERY, 0);
	struct legacy_testing_world world;
	struct legacy_w144 answer;
	int fd;

	legacy_testing_open(&world, NULL);
	fd = legacy_testing_connect(world.path);
	/* The old server counted the same one twice; freed three times, its counter was 1.8e19. */
	for (int kind = 0; kind < 2; kind++) {
		message.type = kind ? LEGACY_KERNEL_LOAD : LEGACY_CB_ALLOC;
		message.size = 100;
		for (int i = 0; i < 2; i++)
			legacy_testing_send(fd, LEGACY_W144, &message);
		legacy_testing_send(fd, LEGACY_W144, &ask);
		legacy_testing_receive(&world, fd, &answer, sizeof(answer));
		assert((kind ? answer.kernel : answer.cb) == 100);
		message.type = kind ? LEGACY_KERNEL_UNLOAD : LEGACY_CB_FREE;
		message.size = 1 << 30;
		for (int i = 0; i < 3; i++)
			legacy_testing_send(fd, LEGACY_W144, &message);
		legacy_testing_send(fd, LEGACY_W144, &ask);
		legacy_testing_receive(&world, fd, &answer, sizeof(answer));
		assert((kind ? answer.kernel : answer.cb) == 0);
	}
	/* Nor when the largest sizes add up. */
	message = legacy_testing_alloc(0, 0, 0, UINT64_C(100) << 30);
	for (message.id = 0; message.id < 1000; message.id++) {
		legacy_testing_send(fd, LEGACY_W144, &message);
		assert(loop_turn(world.loop, 0) == 0);
	}
	legacy_testing_send(fd, LEGACY_W144, &ask);
	legacy_testing_receive(&world, fd, &answer, sizeof(answer));
	assert(answer.counters.dram == (UINT64_C(100) << 30) * 1000);
	message.size++;
	legacy_testing_send(fd, LEGACY_W144, &message);
	legacy_testing_send(fd, LEGACY_W144, &ask);
	legacy_testing_receive(&world, fd, &answer, sizeof(answer));
	assert(answer.counters.dram == (UINT64_C(100) << 30) * 1000);
	assert(legacy_testing_counts(&world).refused_size == 1);
	(void)close(fd);
	legacy_testing_close(&world);
}

UNIT(pain_13_devices_out_of_range_are_refused)
{
	static const int32_t wrong[] = {-1, 1024, 2657333, 100000000, INT32_MAX, INT32_MIN};
	static const int32_t right[] = {0, 7, 8, 31, 255, 1023};
	struct legacy_message message = legacy_testing_alloc(0, 0, 5, 100);
	struct legacy_testing_world world;
	int fd;

	legacy_testing_open(&world, NULL);
	fd = legacy_testing_connect(world.path);
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		message.device = wrong[i];
		message.type = i % 2 ? LEGACY_ALLOC : LEGACY_FREE;
		legacy_testing_send(fd, LEGACY_W144, &message);
	}
	message.type = LEGACY_ALLOC;
	for (size_t i = 0; i < ARRAY_SIZE(right); i++) {
		message.device = right[i];
		legacy_testing_send(fd, LEGACY_W144, &message);
	}
	legacy_testing_until_messages(&world, ARRAY_SIZE(wrong) + ARRAY_SIZE(right));
	assert(legacy_testing_counts(&world).refused_device == ARRAY_SIZE(wrong));
	for (size_t i = 0; i < ARRAY_SIZE(right); i++)
		assert(legacy_testing_look(&world, 0, (uint32_t)right[i], 0).bytes == 100);
	(void)close(fd);
	legacy_testing_close(&world);
}

UNIT(pain_14_the_socket_is_not_taken_from_anybody)
{
	struct legacy_testing_world world;
	struct legacy_config config = {.fd = -1};
	struct legacy_server *second = NULL;
	struct stat st;
	struct socket_lock_holder holder = {0};

	legacy_testing_open(&world, NULL);
	assert(stat(world.path, &st) == 0 && (st.st_mode & 0777) == 0666);
	config.loop = world.loop;
	config.registry = world.registry;
	config.log_writer = world.log_writer;
	config.work = world.work;
	config.path = world.path;
	assert(legacy_server_new(&second, &config) == 0);
	assert(legacy_server_listen(second, &holder) == -EADDRINUSE);
	assert(holder.pid == (uint32_t)getpid());
	legacy_server_free(second);
	assert(stat(world.path, &st) == 0);
	/* Another file is at the path now: it stays. */
	assert(unlink(world.path) == 0);
	{
		FILE *other = fopen(world.path, "we");

		assert(other && fclose(other) == 0);
	}
	legacy_server_stop(world.server);
	assert(stat(world.path, &st) == 0 && S_ISREG(st.st_mode));
	legacy_testing_close(&world);
}

/* /tmp may be swept, and somebody may have been faster: the next try decides. */
UNIT(a_removed_socket_is_bound_again)
{
	struct legacy_testing_world world;
	struct socket_lock_holder holder;
	struct stat st;

	legacy_testing_open(&world, NULL);
	assert(unlink(world.path) == 0 && mkdir(world.path, 0700) == 0);
	assert(legacy_server_listen(world.server, &holder) == -EEXIST);
	assert(holder.kind == SOCKET_LOCK_FOLDER);
	assert(rmdir(world.path) == 0);
	assert(legacy_server_listen(world.server, &holder) == 0);
	assert(stat(world.path, &st) == 0 && S_ISSOCK(st.st_mode));
	assert(legacy_server_listen(world.server, &holder) == 0); /* still there */
	(void)close(legacy_testing_connect(world.path));
	legacy_testing_close(&world);
}

/* Claims to be other processes. */
static void ptest_lie(int fd)
{
	struct legacy_message message = legacy_testing_alloc(0, 0, 1, 100);

	message.pid = getppid();
	legacy_testing_send(fd, LEGACY_W72, &message);
	message.pid = 1;
	message.id = 2;
	legacy_testing_send(fd, LEGACY_W72, &message);
}

UNIT(pain_14_a_pid_is_not_believed)
{
	struct legacy_testing_world world;
	pid_t pid;

	legacy_testing_open(&world, NULL);
	pid = legacy_testing_child(&world, ptest_lie);
	legacy_testing_until_messages(&world, 2);
	assert(legacy_testing_counts(&world).clients == 1);
	assert(legacy_testing_counts(&world).stranger_pids == 2);
	assert(legacy_testing_look(&world, (uint32_t)pid, 0, 0).bytes == 200);
	legacy_testing_kill(pid);
	legacy_testing_until_ended(&world, 1);
	assert(world.ended[0].pid == (uint32_t)pid && world.ended[0].bytes == 200);
	legacy_testing_close(&world);
}

UNIT(pain_15_the_list_is_not_cut)
{
	struct legacy_message ask = legacy_testing_ask(LEGACY_DUMP_REMAINING, 0);
	struct legacy_config config = {.fd = -1, .quiet = true};
	struct legacy_testing_world world;
	char text[64];
	int fd;

	legacy_testing_open(&world, &config);
	fd = legacy_testing_connect(world.path);
	for (uint64_t i = 0; i < 500; i++) {
		struct legacy_message message = legacy_testing_alloc(0, 1, 0x1000 + i, 1024);

		legacy_testing_send(fd, LEGACY_W144, &message);
		assert(loop_turn(world.loop, 0) == 0);
	}
	legacy_testing_send(fd, LEGACY_W144, &ask);
	legacy_testing_until_printed(&world, "Total remaining buffers: 500\n");
	for (uint64_t i = 0; i < 500; i++) {
		(void)snprintf(text, sizeof(text), "🔹 ID: 0x%llx | Size: 1 KB",
			       (unsigned long long)(0x1000 + i));
		assert(legacy_testing_printed(&world, text));
	}
	(void)close(fd);
	legacy_testing_close(&world);
}

static void ptest_hold_two(int fd)
{
	for (uint64_t i = 0; i < 2; i++) {
		struct legacy_message message = legacy_testing_alloc(6, 0, 0x2000 + i, 1024);

		legacy_testing_send(fd, LEGACY_W72, &message);
	}
}

UNIT(pain_16_holders_are_told_over_the_wire)
{
	struct legacy_testing_world world;
	char text[4096], line[64];
	size_t length;
	pid_t pid;
	int fd;

	legacy_testing_open(&world, NULL);
	pid = legacy_testing_child(&world, ptest_hold_two);
	legacy_testing_until_messages(&world, 2);
	fd = legacy_testing_connect(world.path);
	legacy_testing_send_bytes(fd, LEGACY_TEXT_REQUEST, strlen(LEGACY_TEXT_REQUEST));
	for (length = 0; length < 2 || memcmp(text + length - 2, "\n\n", 2) != 0; length++)
		legacy_testing_receive(&world, fd, text + length, 1);
	text[length] = '\0';
	(void)snprintf(line, sizeof(line), "Buffer 0x2001: 1 KB (PID %d, ref_count=1)\n", pid);
	assert(strstr(text, "Device 6:\n") && strstr(text, line));
	assert(strstr(text, "Total remaining buffers: 2\n"));
	legacy_testing_kill(pid);
	legacy_testing_until_ended(&world, 1);
	(void)close(fd);
	legacy_testing_close(&world);
}

UNIT(pain_20_a_grand_total_is_printed)
{
	struct legacy_testing_world world;
	int fd;

	legacy_testing_open(&world, NULL);
	fd = legacy_testing_connect(world.path);
	for (uint8_t type = 0; type < 5; type++) {
		struct legacy_message message =
			legacy_testing_alloc(type % 2, type, 0x1000u + type, 10u << 20);

		legacy_testing_send(fd, LEGACY_W144, &message);
	}
	legacy_testing_until_messages(&world, 5);
	legacy_server_report(world.server, LEGACY_REPORT_SUMMARY);
	legacy_testing_until_printed(&world, "Device 0:\n"
					     "  DRAM: 1 buffers, 10.00 MB total\n"
					     "  SYSTEM_MEMORY: 1 buffers, 10.00 MB total\n"
					     "  TRACE: 1 buffers, 10.00 MB total\n"
					     "Device 1:\n"
					     "  L1: 1 buffers, 10.00 MB total\n"
					     "  L1_SMALL: 1 buffers, 10.00 MB total\n"
					     "Grand total: 5 buffers, 50.00 MB\n");
	(void)close(fd);
	legacy_testing_close(&world);
}

UNIT(pain_22_ids_as_older_scripts_read_them)
{
	struct legacy_config config = {.fd = -1, .log_events = true, .decimal_ids = true};
	struct legacy_message message = legacy_testing_alloc(2, 1, 25718784, 524288);
	struct legacy_message gone = legacy_testing_free(2, 25718784);
	struct legacy_testing_world world;
	char text[512];
	int fd, pid = (int)getpid();

	legacy_testing_open(&world, &config);
	fd = legacy_testing_connect(world.path);
	legacy_testing_send(fd, LEGACY_W72, &message);
	legacy_testing_send(fd, LEGACY_W72, &gone);
	legacy_testing_send(fd, LEGACY_W72, &gone);
	legacy_testing_until_messages(&world, 3);
	(void)snprintf(text, sizeof(text),
		       "✓ [PID %d] Allocated 524288 bytes of L1 on device 2 (buffer_id=25718784)\n"
		       "✗ [PID %d] Freed buffer 25718784 on device 2 (524288 bytes, FINAL)\n"
		       "⚠ [PID %d] Deallocation for unknown buffer 25718784 on device 2 (allocated "
		       "before tracking started)\n",
		       pid, pid, pid);
	legacy_testing_until_printed(&world, text);
	(void)close(fd);
	legacy_testing_close(&world);
}
