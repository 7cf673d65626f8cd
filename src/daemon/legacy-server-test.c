/* SPDX-License-Identifier: Apache-2.0 */

/* The server for the old protocol: dialects, bursts, questions, limits, clients that do wrong. */

#include "daemon/legacy-server.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/loop.h"
#include "base/unit.h"
#include "core/snapshot.h"
#include "daemon/legacy-testing.h"
#include "wire/legacy-encode.h"

static const enum legacy_dialect stest_dialects[] = {LEGACY_W72, LEGACY_W112, LEGACY_W128,
						     LEGACY_W144, LEGACY_W648};

static uint32_t stest_pid(void)
{
	return (uint32_t)getpid();
}

UNIT(every_dialect_is_counted)
{
	struct legacy_testing_world world;
	uint64_t messages = 0;

	legacy_testing_open(&world, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(stest_dialects); i++) {
		struct legacy_message message =
			legacy_testing_alloc((int32_t)i, 1, 0x1000 + i, 4096);
		int fd = legacy_testing_connect(world.path);

		for (int k = 0; k < 3; k++, message.id += 0x1000)
			legacy_testing_send(fd, stest_dialects[i], &message);
		messages += 3;
		legacy_testing_until_messages(&world, messages);
		assert(legacy_testing_look(&world, stest_pid(), (uint32_t)i, 1).bytes == 3 * 4096);
		assert(legacy_testing_look(&world, stest_pid(), (uint32_t)i, 1).buffers == 3);
		message = legacy_testing_free((int32_t)i, 0x1000 + i);
		legacy_testing_send(fd, stest_dialects[i], &message);
		legacy_testing_until_messages(&world, ++messages);
		assert(legacy_testing_look(&world, stest_pid(), (uint32_t)i, 1).buffers == 2);
		(void)close(fd);
	}
	/* One process, one book. */
	assert(legacy_testing_counts(&world).clients == 1);
	legacy_testing_close(&world);
}

UNIT(circular_buffers_and_kernels)
{
	struct legacy_message message = legacy_testing_alloc(3, 0, 7, 2048);
	struct legacy_testing_world world;
	struct snapshot *snapshot;
	int fd, short_fd;

	legacy_testing_open(&world, NULL);
	fd = legacy_testing_connect(world.path);
	message.type = LEGACY_CB_ALLOC;
	legacy_testing_send(fd, LEGACY_W144, &message);
	message.type = LEGACY_KERNEL_LOAD;
	message.kernel_sort = 2;
	legacy_testing_send(fd, LEGACY_W144, &message);
	short_fd = legacy_testing_connect(world.path);
	message.type = LEGACY_CB_ALLOC;
	message.id = 8;
	legacy_testing_send(short_fd, LEGACY_W32, &message);
	legacy_testing_until_messages(&world, 3);
	assert(legacy_testing_look(&world, 0, 3, 5).bytes == 4096);
	assert(legacy_testing_look(&world, 0, 3, 6).bytes == 2048);
	snapshot = legacy_testing_snapshot(&world);
	for (size_t i = 0; i < snapshot->buffer_count; i++)
		assert(snapshot->buffers[i].type != 6 || snapshot->buffers[i].kernel_sort == 2);
	assert(strcmp(snapshot->processes[0].source, "socket") == 0);
	snapshot_free(snapshot);
	/* A FREE speaks of buffers: it does not touch what has the same number. */
	message = legacy_testing_free(3, 7);
	legacy_testing_send(fd, LEGACY_W144, &message);
	legacy_testing_until_messages(&world, 4);
	assert(legacy_testing_look(&world, 0, 3, BOOK_TYPES).buffers == 3);
	message.type = LEGACY_KERNEL_UNLOAD;
	legacy_testing_send(fd, LEGACY_W144, &message);
	message.type = LEGACY_CB_FREE;
	legacy_testing_send(fd, LEGACY_W144, &message);
	legacy_testing_until_messages(&world, 6);
	assert(legacy_testing_look(&world, 0, 3, BOOK_TYPES).buffers == 1);
	(void)close(fd);
	(void)close(short_fd);
	legacy_testing_close(&world);
}

UNIT(names_and_stacks)
{
	struct legacy_message message = legacy_testing_alloc(0, 1, 0x123456, 1 << 20);
	struct legacy_testing_world world;
	const struct snapshot_buffer *buffer;
	struct snapshot *snapshot;
	int fd;

	legacy_testing_open(&world, NULL);
	fd = legacy_testing_connect(world.path);
	legacy_testing_text(
		&message, "attention_weights_layer_0",
		"model.py:123:forward -> ./libtt.so(+0x1f) [0x7f] -> a:b.py:4:<lambda>");
	legacy_testing_send(fd, LEGACY_W648, &message);
	message.id++;
	legacy_testing_text(&message, "", "");
	legacy_testing_send(fd, LEGACY_W648, &message);
	legacy_testing_until_messages(&world, 2);
	snapshot = legacy_testing_snapshot(&world);
	assert(snapshot->buffer_count == 2);
	snapshot_sort_buffers(snapshot, SNAPSHOT_BY_AGE);
	buffer = &snapshot->buffers[0];
	assert(strcmp(buffer->name, "attention_weights_layer_0") == 0);
	assert(strcmp(buffer->stack, "model.py:123:forward -> ./libtt.so(+0x1f) [0x7f] -> "
				     "a:b.py:4:<lambda>") == 0);
	assert(!snapshot->buffers[1].name && !snapshot->buffers[1].stack);
	snapshot_free(snapshot);
	(void)close(fd);
	legacy_testing_close(&world);
}

UNIT(answers_in_the_size_of_the_asker)
{
	struct legacy_testing_world world;
	struct legacy_message message = legacy_testing_alloc(2, 0, 1, 1000);
	struct legacy_message ask = legacy_testing_ask(LEGACY_QUERY, 2);
	uint8_t bytes[LEGACY_SIZE_MAX];
	struct legacy_counters counters;
	struct legacy_w144 long_answer;
	int fd;

	legacy_testing_open(&world, NULL);
	fd = legacy_testing_connect(world.path);
	for (uint8_t type = 0; type < 5; type++) {
		message.buffer_type = type;
		message.size = 1000u + type;
		message.id = 0x1000u + type;
		legacy_testing_send(fd, LEGACY_W144, &message);
	}
	message.type = LEGACY_CB_ALLOC;
	message.size = 77;
	legacy_testing_send(fd, LEGACY_W144, &message);
	legacy_testing_until_messages(&world, 6);
	for (size_t i = 0; i < ARRAY_SIZE(stest_dialects); i++) {
		int asker = legacy_testing_connect(world.path);

		/* Alone, so that silence decides; and then three at once. */
		legacy_testing_send(asker, stest_dialects[i], &ask);
		legacy_testing_receive(&world, asker, bytes, legacy_size(stest_dialects[i]));
		for (int k = 0; k < 3; k++)
			legacy_testing_send(asker, stest_dialects[i], &ask);
		for (int k = 0; k < 3; k++) {
			legacy_testing_receive(&world, asker, bytes,
					       legacy_size(stest_dialects[i]));
			assert(bytes[0] == LEGACY_RESPONSE && bytes[4] == 2);
			memcpy(&counters, bytes + 40, sizeof(counters));
			/* SYSTEM_MEMORY counts as L1_SMALL, as it always did. */
			assert(counters.dram == 1000 && counters.l1 == 1001);
			assert(counters.l1_small == 1002 + 1003 && counters.trace == 1004);
		}
		(void)close(asker);
	}
	legacy_testing_send(fd, LEGACY_W144, &ask);
	legacy_testing_receive(&world, fd, &long_answer, sizeof(long_answer));
	assert(long_answer.cb == 77 && long_answer.kernel == 0);
	/* Out of range: zeros, but answered. */
	ask.device = 5000;
	legacy_testing_send(fd, LEGACY_W144, &ask);
	legacy_testing_receive(&world, fd, &long_answer, sizeof(long_answer));
	assert(long_answer.head.device == 5000 && long_answer.counters.dram == 0);
	(void)close(fd);
	legacy_testing_close(&world);
}

UNIT(an_answer_sees_what_came_before_and_nothing_else)
{
	struct legacy_message ask = legacy_testing_ask(LEGACY_QUERY, 0);
	struct legacy_testing_world world;
	uint8_t burst[40 * 72], one[LEGACY_SIZE_MAX];
	struct legacy_w72 answer;
	size_t length;
	int fd;

	legacy_testing_open(&world, NULL);
	fd = legacy_testing_connect(world.path);
	for (size_t i = 0; i < 20; i++) {
		struct legacy_message message = legacy_testing_alloc(0, 0, i, 10);

		assert(legacy_encode_request(LEGACY_W72, &message, one, &length) == 0);
		memcpy(burst + 2 * i * 72, one, 72);
		assert(legacy_encode_request(LEGACY_W72, &ask, one, &length) == 0);
		memcpy(burst + (2 * i + 1) * 72, one, 72);
	}
	legacy_testing_send_bytes(fd, burst, sizeof(burst));
	for (size_t i = 0; i < 20; i++) {
		legacy_testing_receive(&world, fd, &answer, sizeof(answer));
		assert(answer.counters.dram == (i + 1) * 10);
	}
	/* The same, but the asker has shut its side meanwhile. */
	legacy_testing_send_bytes(fd, burst, sizeof(burst));
	assert(shutdown(fd, SHUT_WR) == 0);
	for (size_t i = 0; i < 20; i++)
		legacy_testing_receive(&world, fd, &answer, sizeof(answer));
	assert(legacy_testing_look(&world, 0, 0, 0).buffers == 20);
	(void)close(fd);
	legacy_testing_close(&world);
}

UNIT(device_info)
{
	struct legacy_message ask = legacy_testing_ask(LEGACY_DEVICE_INFO_QUERY, -1);
	struct legacy_message message = legacy_testing_alloc(4, 0, 1, 1);
	struct legacy_testing_world world;
	struct legacy_w112 answer;
	char path[256];
	FILE *file;
	int fd;

	(void)snprintf(path, sizeof(path), "%s/class", unit_dir());
	assert(setenv("TTMEM_SYS_ROOT", unit_dir(), 1) == 0 && mkdir(path, 0755) == 0);
	(void)snprintf(path, sizeof(path), "%s/class/tenstorrent", unit_dir());
	assert(mkdir(path, 0755) == 0);
	(void)snprintf(path, sizeof(path), "%s/class/tenstorrent/tenstorrent!1", unit_dir());
	assert(mkdir(path, 0755) == 0);
	(void)snprintf(path, sizeof(path), "%s/class/tenstorrent/tenstorrent!1/device", unit_dir());
	assert(mkdir(path, 0755) == 0);
	(void)snprintf(path, sizeof(path), "%s/class/tenstorrent/tenstorrent!1/device/device",
		       unit_dir());
	file = fopen(path, "we");
	assert(file && fputs("0x401e\n", file) >= 0 && fclose(file) == 0);

	legacy_testing_open(&world, NULL);
	fd = legacy_testing_connect(world.path);
	legacy_testing_send(fd, LEGACY_W112, &ask);
	legacy_testing_receive(&world, fd, &answer, sizeof(answer));
	assert(answer.head.type == LEGACY_DEVICE_INFO_RESPONSE);
	assert(answer.info.devices == 2 && answer.info.available == 1);
	/* A device that a process uses counts too. */
	legacy_testing_send(fd, LEGACY_W112, &message);
	legacy_testing_send(fd, LEGACY_W112, &ask);
	legacy_testing_receive(&world, fd, &answer, sizeof(answer));
	assert(answer.info.devices == 5);
	ask.device = 1;
	legacy_testing_send(fd, LEGACY_W112, &ask);
	legacy_testing_receive(&world, fd, &answer, sizeof(answer));
	assert(answer.info.arch == 2 && answer.info.available == 1 && answer.info.devices == 0);
	ask.device = 3;
	legacy_testing_send(fd, LEGACY_W112, &ask);
	legacy_testing_receive(&world, fd, &answer, sizeof(answer));
	assert(answer.info.available == 0);
	(void)close(fd);
	legacy_testing_close(&world);
}

/* Reads until the server ends the connection. */
static size_t stest_receive_all(struct legacy_testing_world *world, int fd, char *text, size_t size)
{
	size_t length = 0;

	for (;;) {
		ssize_t n = recv(fd, text + length, size - length, MSG_DONTWAIT);

		if (n == 0)
			return length;
		assert(n > 0 || errno == EAGAIN);
		if (n > 0)
			length += (size_t)n;
		assert(loop_turn(world->loop, 1) == 0);
	}
}

UNIT(requests_that_no_server_ever_answered)
{
	static const char statistics[24] = {2};
	struct legacy_message message = legacy_testing_alloc(1, 1, 0x40, 2048);
	struct legacy_statistics records[4];
	struct legacy_testing_world world;
	char text[4096];
	size_t length = 0;
	int fd, asker;

	legacy_testing_open(&world, NULL);
	fd = legacy_testing_connect(world.path);
	legacy_testing_send(fd, LEGACY_W72, &message);
	legacy_testing_send(fd, LEGACY_W72, &message);
	legacy_testing_until_messages(&world, 2);
	asker = legacy_testing_connect(world.path);
	legacy_testing_send_bytes(asker, statistics, sizeof(statistics));
	length = stest_receive_all(&world, asker, (char *)records, sizeof(records));
	assert(length == sizeof(records[0]) && records[0].device == 1 && records[0].buffers == 1 &&
	       records[0].l1 == 2048 && records[0].dram == 0);
	(void)close(asker);

	asker = legacy_testing_connect(world.path);
	legacy_testing_send_bytes(asker, LEGACY_TEXT_REQUEST, strlen(LEGACY_TEXT_REQUEST));
	for (length = 0; length < 2 || memcmp(text + length - 2, "\n\n", 2) != 0; length++)
		legacy_testing_receive(&world, asker, text + length, 1);
	text[length] = '\0';
	assert(strstr(text, "Device 1:\n  L1: 1 buffers, 0.00 MB total\n"));
	assert(strstr(text, "    - Buffer 0x40: 2 KB (PID "));
	assert(strstr(text, ", ref_count=2)\n"));
	(void)close(asker);
	(void)close(fd);
	legacy_testing_close(&world);
}

UNIT(dumps_and_signals_print)
{
	struct legacy_message message = legacy_testing_alloc(0, 0, 0xabc, 3 << 20);
	struct legacy_message ask = legacy_testing_ask(LEGACY_DUMP_REMAINING, 0);
	struct legacy_testing_world world;
	struct legacy_config config = {.fd = -1, .quiet = true, .log_events = true};
	int fd;

	/* Quiet: but what was asked for is printed. */
	legacy_testing_open(&world, &config);
	fd = legacy_testing_connect(world.path);
	legacy_testing_send(fd, LEGACY_W72, &ask);
	legacy_testing_send(fd, LEGACY_W72, &message);
	legacy_testing_until_printed(&world, "✓ No buffers remaining - perfect cleanup!\n");
	legacy_testing_until_messages(&world, 2);
	legacy_testing_send(fd, LEGACY_W72, &ask);
	legacy_testing_until_printed(&world, "  📦 DRAM: 1 buffers, 3.00 MB total\n");
	legacy_testing_until_printed(&world, "📋 DUMP_REMAINING complete.\n");
	legacy_server_report(world.server, LEGACY_REPORT_SUMMARY);
	legacy_testing_until_printed(&world, "Device 0:\n  DRAM: 1 buffers, 3.00 MB total\n"
					     "Grand total: 1 buffers, 3.00 MB\n");
	legacy_server_report(world.server, LEGACY_REPORT_STATISTICS);
	legacy_testing_until_printed(&world, "  Active allocations: 1\n");
	legacy_server_report(world.server, LEGACY_REPORT_KERNELS);
	legacy_testing_until_printed(&world, "✓ No kernels loaded\n");
	assert(!legacy_testing_printed(&world, "Allocation Server started"));
	assert(!legacy_testing_printed(&world, "Allocated"));
	(void)close(fd);
	legacy_testing_close(&world);
}

UNIT(a_message_one_byte_at_a_time)
{
	struct legacy_message message = legacy_testing_alloc(0, 0, 5, 64);
	struct legacy_testing_world world;
	uint8_t bytes[LEGACY_SIZE_MAX];
	size_t length;
	int fd;

	legacy_testing_open(&world, NULL);
	fd = legacy_testing_connect(world.path);
	assert(legacy_encode_request(LEGACY_W144, &message, bytes, &length) == 0);
	for (int k = 0; k < 3; k++) {
		for (size_t i = 0; i < length; i++) {
			legacy_testing_send_bytes(fd, bytes + i, 1);
			if (i % 7 == 0)
				assert(loop_turn(world.loop, 0) == 0);
		}
	}
	legacy_testing_until_messages(&world, 3);
	assert(legacy_testing_look(&world, 0, 0, 0).realloc_live == 2);
	(void)close(fd);
	legacy_testing_close(&world);
}

static bool stest_has_no_connection(struct legacy_testing_world *world, void *context)
{
	(void)context;
	return legacy_testing_counts(world).connections == 0;
}

UNIT(garbage_costs_the_connection)
{
	struct legacy_message message = legacy_testing_alloc(0, 0, 5, 64);
	struct legacy_testing_world world;
	int fd, other;

	legacy_testing_open(&world, NULL);
	fd = legacy_testing_connect(world.path);
	other = legacy_testing_connect(world.path);
	legacy_testing_send(fd, LEGACY_W72, &message);
	legacy_testing_send(fd, LEGACY_W72, &message);
	legacy_testing_send_bytes(fd, "\xff\xfe\xfd and more that means nothing", 30);
	legacy_testing_until_messages(&world, 2);
	(void)close(fd);
	/* Half a message and gone. */
	legacy_testing_send_bytes(other, "\1\0\0\0\0\0\0\0", 8);
	(void)close(other);
	legacy_testing_until(&world, stest_has_no_connection, NULL);
	assert(legacy_testing_counts(&world).ended_garbage == 1);
	assert(legacy_testing_counts(&world).ended_truncated == 1);
	assert(legacy_testing_look(&world, 0, 0, 0).buffers == 1);
	legacy_testing_close(&world);
}

UNIT(who_does_not_read_holds_up_nobody)
{
	struct legacy_message message = legacy_testing_alloc(0, 0, 5, 64);
	struct legacy_message ask = legacy_testing_ask(LEGACY_QUERY, 0);
	struct legacy_testing_world world;
	uint8_t bytes[LEGACY_SIZE_MAX];
	struct legacy_w72 answer;
	int small = 2048;
	int deaf, fd;

	legacy_testing_open(&world, NULL);
	deaf = legacy_testing_connect(world.path);
	assert(setsockopt(deaf, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small)) == 0);
	assert(fcntl(deaf, F_SETFL, O_NONBLOCK) == 0);
	{
		size_t length;

		assert(legacy_encode_request(LEGACY_W648, &ask, bytes, &length) == 0);
		/* Until neither side takes any more. */
		for (int idle = 0; idle < 20;) {
			idle = send(deaf, bytes, length, MSG_NOSIGNAL) > 0 ? 0 : idle + 1;
			assert(loop_turn(world.loop, 1) == 0);
		}
	}
	fd = legacy_testing_connect(world.path);
	legacy_testing_send(fd, LEGACY_W72, &message);
	legacy_testing_send(fd, LEGACY_W72, &ask);
	legacy_testing_receive(&world, fd, &answer, sizeof(answer));
	assert(answer.counters.dram == 64);
	(void)close(fd);
	(void)close(deaf);
	legacy_testing_until(&world, stest_has_no_connection, NULL);
	legacy_testing_close(&world);
}

static bool stest_has_connections(struct legacy_testing_world *world, void *context)
{
	return legacy_testing_counts(world).accepted + legacy_testing_counts(world).ended_many >=
	       *(uint64_t *)context;
}

UNIT(a_user_has_so_many_connections)
{
	const uint64_t count = LEGACY_CONNECTIONS_PER_USER + 5;
	struct rlimit limit = {.rlim_cur = 8192, .rlim_max = 8192};
	struct legacy_testing_world world;
	int fds[LEGACY_CONNECTIONS_PER_USER + 5];

	if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
		unit_skip("not so many descriptors");
	legacy_testing_open(&world, NULL);
	for (uint64_t i = 0; i < count; i++) {
		fds[i] = legacy_testing_connect(world.path);
		if (i % 64 == 0)
			assert(loop_turn(world.loop, 0) == 0);
	}
	legacy_testing_until(&world, stest_has_connections, (void *)(uintptr_t)&count);
	assert(legacy_testing_counts(&world).ended_many == 5);
	assert(legacy_testing_counts(&world).connections == LEGACY_CONNECTIONS_PER_USER);
	for (uint64_t i = 0; i < count; i++)
		(void)close(fds[i]);
	legacy_testing_until(&world, stest_has_no_connection, NULL);
	legacy_testing_close(&world);
}

UNIT(without_descriptors_nothing_is_lost)
{
	struct legacy_message message = legacy_testing_alloc(0, 0, 5, 64);
	struct legacy_testing_world world;
	int fds[256], n = 0, fd;

	legacy_testing_open(&world, NULL);
	fd = legacy_testing_connect(world.path);
	legacy_testing_send(fd, LEGACY_W72, &message);
	legacy_testing_send(fd, LEGACY_W72, &message);
	/* None left: it cannot even be accepted. */
	{
		struct rlimit limit = {.rlim_cur = 64, .rlim_max = 8192};

		assert(setrlimit(RLIMIT_NOFILE, &limit) == 0);
	}
	while (n < 256 && (fds[n] = dup(fd)) >= 0)
		n++;
	for (int i = 0; i < 10; i++)
		assert(loop_turn(world.loop, 1) == 0);
	assert(legacy_testing_counts(&world).accept_pauses > 0);
	/* One: accepted and read, but there is none for the book. */
	(void)close(fds[--n]);
	for (int i = 0; i < 300 && legacy_testing_counts(&world).accepted == 0; i++)
		assert(loop_turn(world.loop, 1) == 0);
	for (int i = 0; i < 50; i++)
		assert(loop_turn(world.loop, 1) == 0);
	assert(legacy_testing_counts(&world).clients == 0);
	while (n > 0)
		(void)close(fds[--n]);
	legacy_testing_until_messages(&world, 2);
	for (int i = 0; i < 300 && legacy_testing_counts(&world).clients == 0; i++)
		assert(loop_turn(world.loop, 1) == 0);
	assert(legacy_testing_look(&world, 0, 0, 0).allocs == 2);
	(void)close(fd);
	legacy_testing_close(&world);
}

UNIT(lines_as_they_were)
{
	static const uint8_t kernel = 1;
	struct legacy_testing_world world;
	struct legacy_config config = {.fd = -1, .log_events = true, .trace_wire = true};
	struct legacy_message message = legacy_testing_alloc(0, 1, 0x1a0000, 524288);
	char expected[4096];
	int pid = (int)getpid();
	int fd;

	legacy_testing_open(&world, &config);
	fd = legacy_testing_connect(world.path);
	for (int i = 0; i < 2; i++)
		legacy_testing_send(fd, LEGACY_W144, &message);
	message = legacy_testing_free(0, 0x1a0000);
	for (int i = 0; i < 3; i++)
		legacy_testing_send(fd, LEGACY_W144, &message);
	message = legacy_testing_alloc(1, 0, 9, 1 << 19);
	message.type = LEGACY_CB_ALLOC;
	legacy_testing_send(fd, LEGACY_W144, &message);
	message.type = LEGACY_CB_FREE;
	legacy_testing_send(fd, LEGACY_W144, &message);
	message.type = LEGACY_KERNEL_LOAD;
	message.kernel_sort = kernel;
	legacy_testing_send(fd, LEGACY_W144, &message);
	message.type = LEGACY_KERNEL_UNLOAD;
	legacy_testing_send(fd, LEGACY_W144, &message);
	message = legacy_testing_alloc(3000, 0, 9, 1);
	legacy_testing_send(fd, LEGACY_W144, &message);
	message = legacy_testing_alloc(0, 9, 9, 1);
	legacy_testing_send(fd, LEGACY_W144, &message);
	message = legacy_testing_alloc(0, 0, 9, 0);
	legacy_testing_send(fd, LEGACY_W144, &message);
	legacy_testing_until_messages(&world, 12);
	(void)snprintf(expected, sizeof(expected),
		       "🚀 Allocation Server started\n"
		       "   Listening on: %s\n"
		       "   Press Ctrl+C to stop\n"
		       "🔄 Background cleanup thread started (checking every 10s)\n",
		       world.path);
	legacy_testing_until_printed(&world, expected);
	(void)snprintf(
		expected, sizeof(expected),
		"✓ [PID %d] Allocated 524288 bytes of L1 on device 0 (buffer_id=0x1a0000)\n"
		"✓ [PID %d] Allocated 524288 bytes of L1 on device 0 (buffer_id=0x1a0000, "
		"ref_count=2)\n"
		"✗ [PID %d] Freed buffer 0x1a0000 on device 0 (524288 bytes, ref_count=1 "
		"remaining)\n"
		"✗ [PID %d] Freed buffer 0x1a0000 on device 0 (524288 bytes, FINAL)\n"
		"⚠ [PID %d] Deallocation for unknown buffer 0x1a0000 on device 0 (allocated before "
		"tracking started)\n"
		"✓ [CB_ALLOC] Device 1: +0.5 MB (Total: 0.5 MB)\n"
		"✗ [CB_FREE] Device 1: -0.5 MB (Total: 0 MB)\n"
		"✓ [KERNEL_LOAD] Fabric kernel on Device 1: +0.5 MB (Total: 0.5 MB)\n"
		"✗ [KERNEL_UNLOAD] Fabric kernel on Device 1: -0.5 MB (Total: 0 MB)\n"
		"⚠️  Invalid device_id 3000 - ignoring message\n"
		"⚠️  Invalid buffer_type 9 for buffer 9 on device 0\n"
		"⚠️  Invalid size 0 - ignoring message\n",
		pid, pid, pid, pid, pid);
	legacy_testing_until_printed(&world, expected);
	assert(legacy_testing_printed(&world,
				      " W144 ALLOC device=0 type=1 size=524288 id=0x1a0000"));
	(void)close(fd);
	legacy_testing_close(&world);
}
