/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Questions of old clients: answered in their size, in order, including those that no old server
 * answered.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/testing/unit.h"
#include "base/threads/loop.h"
#include "legacy/server/testing/legacy-server-testing.h"
#include "legacy/wire/legacy-encode.h"
#include "model/snapshot.h"

static const enum legacy_dialect qtest_dialects[] = {LEGACY_W72, LEGACY_W112, LEGACY_W128,
						     LEGACY_W144, LEGACY_W648};

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
	for (size_t i = 0; i < ARRAY_SIZE(qtest_dialects); i++) {
		int asker = legacy_testing_connect(world.path);

		/* One alone, so that silence decides; then three at once. */
		legacy_testing_send(asker, qtest_dialects[i], &ask);
		legacy_testing_receive(&world, asker, bytes, legacy_size(qtest_dialects[i]));
		for (int k = 0; k < 3; k++)
			legacy_testing_send(asker, qtest_dialects[i], &ask);
		for (int k = 0; k < 3; k++) {
			legacy_testing_receive(&world, asker, bytes,
					       legacy_size(qtest_dialects[i]));
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
	/* The same, but the client has shut down its side meanwhile. */
	legacy_testing_send_bytes(fd, burst, sizeof(burst));
	assert(shutdown(fd, SHUT_WR) == 0);
	for (size_t i = 0; i < 20; i++)
		legacy_testing_receive(&world, fd, &answer, sizeof(answer));
	assert(legacy_testing_look(&world, 0, 0, 0).buffers == 20);
	(void)close(fd);
	legacy_testing_close(&world);
}

static void qtest_write(const char *path, const char *text)
{
	FILE *file = fopen(path, "we");

	assert(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

UNIT(device_info_comes_from_the_driver)
{
	struct legacy_message ask = legacy_testing_ask(LEGACY_DEVICE_INFO_QUERY, -1);
	struct legacy_message message = legacy_testing_alloc(4, 0, 1, 1);
	struct legacy_testing_world world;
	struct legacy_w112 answer;
	char path[256];
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
	qtest_write(path, "0x401e\n");
	(void)snprintf(path, sizeof(path), "%s/class/tenstorrent/tenstorrent!1/device/vendor",
		       unit_dir());
	qtest_write(path, "0x1e52\n");

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
	/* Its number is used, but nothing is known about it. */
	ask.device = 4;
	legacy_testing_send(fd, LEGACY_W112, &ask);
	legacy_testing_receive(&world, fd, &answer, sizeof(answer));
	assert(answer.info.available == 0 && answer.info.total_dram == 0);
	(void)close(fd);
	legacy_testing_close(&world);
}

/* One wrong number in a free: the device does not exist, and is not counted; the free is. */
UNIT(a_stray_free_makes_no_device)
{
	struct legacy_message ask = legacy_testing_ask(LEGACY_DEVICE_INFO_QUERY, -1);
	struct legacy_message message = legacy_testing_alloc(2, 0, 1, 1000);
	struct legacy_testing_world world;
	struct legacy_w112 answer;
	struct snapshot *snapshot;
	int fd;

	legacy_testing_open(&world, NULL);
	fd = legacy_testing_connect(world.path);
	legacy_testing_send(fd, LEGACY_W112, &message);
	message = legacy_testing_free(1023, 1);
	legacy_testing_send(fd, LEGACY_W112, &message);
	legacy_testing_send(fd, LEGACY_W112, &ask);
	legacy_testing_receive(&world, fd, &answer, sizeof(answer));
	assert(answer.info.devices == 3);
	snapshot = legacy_testing_snapshot(&world);
	assert(snapshot->device_count == 1 && snapshot->devices[0].device == 2);
	assert(snapshot->process_count == 1 && snapshot->processes[0].stray_frees == 1);
	assert(snapshot->incident_count == 1 && snapshot->incidents[0].device == 1023);
	snapshot_free(snapshot);
	(void)close(fd);
	legacy_testing_close(&world);
}

/* Reads until the server ends the connection. */
static size_t qtest_receive_all(struct legacy_testing_world *world, int fd, char *text, size_t size)
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
	length = qtest_receive_all(&world, asker, (char *)records, sizeof(records));
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

	/* Quiet, but reports that were asked for are printed. */
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
