/* SPDX-License-Identifier: Apache-2.0 */

/* The server for the old protocol: dialects, bursts, limits, clients that misbehave. */

#include "legacy/server/legacy-server.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/testing/unit.h"
#include "base/threads/loop.h"
#include "legacy/server/testing/legacy-server-testing.h"
#include "legacy/wire/legacy-encode.h"
#include "model/snapshot.h"
#include "model/testing/testing-stack.h"

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
	/* A FREE refers to buffers: it does not touch others with the same number. */
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
	message.id++;
	/* Of backtrace_symbols(), the innermost first; its last part is cut off. */
	legacy_testing_text(&message, "",
			    "./libtt.so(allocate+0x1f) [0x7f] -> ./libtt.so(create+0x2) [0x7e] -> "
			    "./app(ma");
	legacy_testing_send(fd, LEGACY_W648, &message);
	legacy_testing_until_messages(&world, 3);
	snapshot = legacy_testing_snapshot(&world);
	assert(snapshot->buffer_count == 3);
	snapshot_sort_buffers(snapshot, SNAPSHOT_BY_AGE);
	buffer = &snapshot->buffers[0];
	assert(strcmp(buffer->name, "attention_weights_layer_0") == 0);
	assert(strcmp(testing_line(buffer->stack),
		      "model.py:123:forward -> ./libtt.so(+0x1f) [0x7f] -> "
		      "a:b.py:4:<lambda>") == 0);
	assert(!snapshot->buffers[1].name && !snapshot->buffers[1].stack);
	assert(strcmp(testing_line(snapshot->buffers[2].stack),
		      "./app(ma -> ./libtt.so(create+0x2) [0x7e] -> ./libtt.so(allocate+0x1f) "
		      "[0x7f]") == 0);
	snapshot_free(snapshot);
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

UNIT(garbage_closes_the_old_connection)
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
	/* Sends half a message and closes. */
	legacy_testing_send_bytes(other, "\1\0\0\0\0\0\0\0", 8);
	(void)close(other);
	legacy_testing_until(&world, stest_has_no_connection, NULL);
	assert(legacy_testing_counts(&world).ended_garbage == 1);
	assert(legacy_testing_counts(&world).ended_truncated == 1);
	assert(legacy_testing_look(&world, 0, 0, 0).buffers == 1);
	legacy_testing_close(&world);
}

UNIT(a_client_that_does_not_read_does_not_block_others)
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
		/* Until neither side accepts any more. */
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

static bool stest_has_ended_slow(struct legacy_testing_world *world, void *context)
{
	(void)context;
	return quota_counted(QUOTA_LEGACY_SLOW) == 1;
}

UNIT(a_client_that_does_not_read_is_dropped)
{
	struct legacy_config config = {.fd = -1, .patience_ms = 50};
	struct legacy_message ask = legacy_testing_ask(LEGACY_QUERY, 0);
	struct legacy_testing_world world;
	uint8_t bytes[LEGACY_SIZE_MAX];
	size_t length;
	int fd;

	legacy_testing_open(&world, &config);
	fd = legacy_testing_connect(world.path);
	assert(fcntl(fd, F_SETFL, O_NONBLOCK) == 0);
	assert(legacy_encode_request(LEGACY_W648, &ask, bytes, &length) == 0);
	/* Keeps asking and never reads. */
	while (!stest_has_ended_slow(&world, NULL)) {
		(void)!send(fd, bytes, length, MSG_NOSIGNAL);
		assert(loop_turn(world.loop, 1) == 0);
	}
	assert(legacy_testing_counts(&world).connections == 0);
	(void)close(fd);
	legacy_testing_close(&world);
}

static bool stest_has_connections(struct legacy_testing_world *world, void *context)
{
	return legacy_testing_counts(world).accepted + quota_counted(QUOTA_LEGACY_CONNECTIONS) >=
	       *(uint64_t *)context;
}

UNIT(connections_per_user_are_limited)
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
	assert(quota_counted(QUOTA_LEGACY_CONNECTIONS) == 5);
	assert(legacy_testing_counts(&world).connections == LEGACY_CONNECTIONS_PER_USER);
	for (uint64_t i = 0; i < count; i++)
		(void)close(fds[i]);
	legacy_testing_until(&world, stest_has_no_connection, NULL);
	legacy_testing_close(&world);
}

UNIT(events_are_kept_when_descriptors_run_out)
{
	struct legacy_message message = legacy_testing_alloc(0, 0, 5, 64);
	struct legacy_testing_world world;
	int fds[256], n = 0, fd;

	legacy_testing_open(&world, NULL);
	fd = legacy_testing_connect(world.path);
	legacy_testing_send(fd, LEGACY_W72, &message);
	legacy_testing_send(fd, LEGACY_W72, &message);
	/* No descriptor left: it cannot even be accepted. */
	{
		struct rlimit limit = {.rlim_cur = 64, .rlim_max = 8192};

		assert(setrlimit(RLIMIT_NOFILE, &limit) == 0);
	}
	while (n < 256 && (fds[n] = fcntl(fd, F_DUPFD_CLOEXEC, 0)) >= 0)
		n++;
	for (int i = 0; i < 10; i++)
		assert(loop_turn(world.loop, 1) == 0);
	assert(quota_counted(QUOTA_LEGACY_PAUSES) > 0);
	/* One: accepted and read, but none is left for the book. */
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

/* Twelve messages, at least one of each kind. */
static void stest_say_everything(int fd)
{
	struct legacy_message message = legacy_testing_alloc(0, 1, 0x1a0000, 524288);

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
	message.kernel_sort = 1;
	legacy_testing_send(fd, LEGACY_W144, &message);
	message.type = LEGACY_KERNEL_UNLOAD;
	legacy_testing_send(fd, LEGACY_W144, &message);
	message = legacy_testing_alloc(3000, 0, 9, 1);
	legacy_testing_send(fd, LEGACY_W144, &message);
	message = legacy_testing_alloc(0, 9, 9, 1);
	legacy_testing_send(fd, LEGACY_W144, &message);
	message = legacy_testing_alloc(0, 0, 9, 0);
	legacy_testing_send(fd, LEGACY_W144, &message);
}

UNIT(event_lines_have_the_old_form)
{
	struct legacy_testing_world world;
	struct legacy_config config = {.fd = -1, .log_events = true, .trace_wire = true};
	char expected[4096];
	int pid = (int)getpid();
	int fd;

	legacy_testing_open(&world, &config);
	fd = legacy_testing_connect(world.path);
	stest_say_everything(fd);
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
