/* SPDX-License-Identifier: Apache-2.0 */

/* Shared by the tests of the server for the old protocol. */

#include "legacy/server/testing/legacy-server-testing.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/files/socket-lock.h"
#include "base/testing/unit.h"
#include "base/threads/loop.h"
#include "base/threads/worker.h"
#include "book/read/view.h"
#include "daemon/notify/log-writer.h"
#include "daemon/registry/collector.h"
#include "daemon/registry/registry.h"
#include "daemon/registry/tracked.h"
#include "legacy/wire/legacy-encode.h"
#include "model/snapshot-request.h"
#include "model/snapshot.h"

#define TESTING_PATIENCE_NS UINT64_C(30000000000)
#define TESTING_TURN_MS 5

static void testing_added(void *context, struct tracked *tracked)
{
	(void)context;
	(void)tracked;
}

static struct snapshot *testing_read(const struct book_list *book_list)
{
	const struct snapshot_request request = {.buffers = true, .incidents = true};
	struct snapshot *snapshot = snapshot_new(clock_ns(CLOCK_REALTIME));
	struct view view = VIEW_NULL;

	assert(snapshot);
	for (size_t i = 0; i < book_list->count; i++)
		assert(tracked_collect(book_list->list[i], &request, &view, snapshot) == 0);
	view_deinit(&view);
	assert(snapshot_finish(snapshot) == 0);
	return snapshot;
}

static struct book_list *testing_roster(void *context)
{
	return registry_books(context);
}

/* Reads the book as the consumer of exited processes would. */
static void testing_ended(void *context, struct tracked *tracked)
{
	struct legacy_testing_world *world = context;
	struct legacy_testing_ended *ended = &world->ended[world->ended_count++];
	struct book_list *book_list = calloc(1, sizeof(*book_list) + sizeof(struct tracked *));
	struct snapshot *snapshot;

	assert(book_list && world->ended_count <= LEGACY_TESTING_ENDED);
	book_list->refs = 1;
	book_list->count = 1;
	book_list->list[0] = tracked_ref(tracked);
	snapshot = testing_read(book_list);
	*ended = (struct legacy_testing_ended){.pid = tracked->process.pid};
	for (size_t i = 0; i < snapshot->buffer_count; i++) {
		ended->buffers++;
		ended->bytes += snapshot->buffers[i].size;
	}
	snapshot_free(snapshot);
	book_list_unref(book_list);
}

void legacy_testing_open(struct legacy_testing_world *world, const struct legacy_config *config)
{
	struct legacy_config own = config ? *config : (struct legacy_config){.fd = -1};
	struct registry_config registry = {
		.hooks = {.context = world,
			  .added = testing_added,
			  .notice = testing_added,
			  .ended = testing_ended},
	};
	struct collector_config collector = {.book_list = testing_roster};
	struct socket_lock_holder holder;

	*world = (struct legacy_testing_world){0};
	(void)snprintf(world->path, sizeof(world->path), "%.90s/old", unit_dir());
	(void)snprintf(world->output, sizeof(world->output), "%.90s/output", unit_dir());
	assert(loop_new(&world->loop) == 0);
	assert(worker_new(&world->work,
			  &(struct worker_config){.name = "queries", .loop = world->loop}) == 0);
	assert(log_writer_new(&world->log_writer, world->output, -1, 0) == 0);
	registry.loop = world->loop;
	registry.work = world->work;
	assert(registry_new(&world->registry, &registry) == 0);
	own.loop = world->loop;
	own.registry = world->registry;
	collector.context = world->registry;
	collector.proc = registry_proc(world->registry);
	assert(collector_new(&world->collector, &collector) == 0);
	own.collector = world->collector;
	own.log_writer = world->log_writer;
	own.work = world->work;
	assert(access_init(&world->access, NULL, registry_namespaces(world->registry)) == 0);
	own.access = &world->access;
	own.path = world->path;
	assert(legacy_server_new(&world->server, &own) == 0);
	assert(legacy_server_listen(world->server, &holder) == 0);
}

void legacy_testing_close(struct legacy_testing_world *world)
{
	legacy_server_stop(world->server);
	worker_free(world->work);
	legacy_server_finish(world->server);
	collector_free(world->collector);
	registry_free(world->registry);
	legacy_server_free(world->server);
	log_writer_free(world->log_writer);
	loop_free(world->loop);
}

void legacy_testing_until(struct legacy_testing_world *world, legacy_testing_fn *is_so,
			  void *context)
{
	uint64_t deadline = clock_ns(CLOCK_MONOTONIC) + TESTING_PATIENCE_NS;

	while (!is_so(world, context)) {
		assert(clock_ns(CLOCK_MONOTONIC) < deadline);
		assert(loop_turn(world->loop, TESTING_TURN_MS) == 0);
	}
}

struct legacy_counts legacy_testing_counts(const struct legacy_testing_world *world)
{
	struct legacy_counts counts;

	legacy_server_counts(world->server, &counts);
	return counts;
}

static bool testing_has_messages(struct legacy_testing_world *world, void *context)
{
	return legacy_testing_counts(world).messages >= *(uint64_t *)context;
}

void legacy_testing_until_messages(struct legacy_testing_world *world, uint64_t count)
{
	legacy_testing_until(world, testing_has_messages, &count);
	assert(legacy_testing_counts(world).messages == count);
}

static bool testing_has_ended(struct legacy_testing_world *world, void *context)
{
	return world->ended_count >= *(size_t *)context;
}

void legacy_testing_until_ended(struct legacy_testing_world *world, size_t count)
{
	legacy_testing_until(world, testing_has_ended, &count);
}

struct snapshot *legacy_testing_snapshot(struct legacy_testing_world *world)
{
	struct book_list *book_list = registry_books(world->registry);
	struct snapshot *snapshot = testing_read(book_list);

	book_list_unref(book_list);
	return snapshot;
}

static void testing_add(struct legacy_testing_memory *sum, const struct snapshot_memory *memory)
{
	sum->bytes += memory->used;
	sum->buffers += memory->buffers;
	sum->allocs += memory->allocs;
	sum->frees += memory->frees;
	sum->unknown_frees += memory->unknown_frees;
	sum->double_frees += memory->double_frees;
	sum->size_changes += memory->size_changes;
	sum->realloc_live += memory->realloc_live;
}

struct legacy_testing_memory legacy_testing_look(struct legacy_testing_world *world, uint32_t pid,
						 uint32_t device, uint32_t type)
{
	struct snapshot *snapshot = legacy_testing_snapshot(world);
	struct legacy_testing_memory sum = {0};

	for (size_t i = 0; i < snapshot->process_count; i++) {
		const struct snapshot_part *part =
			snapshot_find_part(snapshot, (uint32_t)i, device);

		if (!part || (pid && snapshot->processes[i].id.pid != pid))
			continue;
		for (uint32_t t = 0; t < BOOK_TYPES; t++) {
			if (type == BOOK_TYPES || type == t)
				testing_add(&sum, &part->memory[t]);
		}
	}
	snapshot_free(snapshot);
	return sum;
}

bool legacy_testing_printed(struct legacy_testing_world *world, const char *text)
{
	static char output[1 << 20];
	CLEANUP_FCLOSE FILE *file = fopen(world->output, "re");
	size_t n = file ? fread(output, 1, sizeof(output) - 1, file) : 0;

	output[n] = '\0';
	return strstr(output, text) != NULL;
}

static bool testing_has_printed(struct legacy_testing_world *world, void *context)
{
	return legacy_testing_printed(world, context);
}

void legacy_testing_until_printed(struct legacy_testing_world *world, const char *text)
{
	char copy[4096];

	(void)snprintf(copy, sizeof(copy), "%s", text);
	legacy_testing_until(world, testing_has_printed, copy);
}

int legacy_testing_connect(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	assert(fd >= 0);
	assert(connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0);
	return fd;
}

void legacy_testing_send_bytes(int fd, const void *bytes, size_t length)
{
	assert(send(fd, bytes, length, MSG_NOSIGNAL) == (ssize_t)length);
}

void legacy_testing_send(int fd, enum legacy_dialect dialect, const struct legacy_message *message)
{
	uint8_t bytes[LEGACY_SIZE_MAX];
	size_t length;

	assert(legacy_encode_request(dialect, message, bytes, &length) == 0);
	legacy_testing_send_bytes(fd, bytes, length);
}

struct legacy_message legacy_testing_alloc(int32_t device, uint8_t type, uint64_t id, uint64_t size)
{
	return (struct legacy_message){
		.type = LEGACY_ALLOC,
		.device = device,
		.pid = getpid(),
		.buffer_type = type,
		.size = size,
		.id = id,
		.timestamp = 1,
		.name = "",
		.stack = "",
	};
}

struct legacy_message legacy_testing_free(int32_t device, uint64_t id)
{
	struct legacy_message message = legacy_testing_alloc(device, 0, id, 0);

	message.type = LEGACY_FREE;
	message.timestamp = 0;
	return message;
}

void legacy_testing_text(struct legacy_message *message, const char *name, const char *stack)
{
	message->name = name;
	message->name_length = (uint32_t)strlen(name);
	message->stack = stack;
	message->stack_length = (uint32_t)strlen(stack);
}

struct legacy_message legacy_testing_ask(enum legacy_type type, int32_t device)
{
	return (struct legacy_message){.type = type, .device = device, .name = "", .stack = ""};
}

void legacy_testing_receive(struct legacy_testing_world *world, int fd, void *bytes, size_t length)
{
	uint64_t deadline = clock_ns(CLOCK_MONOTONIC) + TESTING_PATIENCE_NS;
	size_t done = 0;

	while (done < length) {
		ssize_t n = recv(fd, (char *)bytes + done, length - done, MSG_DONTWAIT);

		assert(n != 0 && (n > 0 || errno == EAGAIN));
		if (n > 0)
			done += (size_t)n;
		assert(clock_ns(CLOCK_MONOTONIC) < deadline);
		assert(loop_turn(world->loop, n > 0 ? 0 : TESTING_TURN_MS) == 0);
	}
}

pid_t legacy_testing_child(const struct legacy_testing_world *world, void (*main)(int fd))
{
	pid_t pid = fork();

	assert(pid >= 0);
	if (pid == 0) {
		/* Otherwise it would keep the server's sockets and locks. */
		assert(close_range(STDERR_FILENO + 1, ~0u, 0) == 0);
		main(legacy_testing_connect(world->path));
		for (;;)
			(void)pause(); /* until it is killed */
	}
	return pid;
}

void legacy_testing_kill(pid_t pid)
{
	assert(kill(pid, SIGKILL) == 0);
	assert(waitpid(pid, NULL, 0) == pid);
}
