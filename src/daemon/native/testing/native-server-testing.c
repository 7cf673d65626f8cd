/* SPDX-License-Identifier: Apache-2.0 */

/* A native server for tests. */

#include "daemon/native/testing/native-server-testing.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/testing/unit.h"
#include "base/threads/loop.h"
#include "base/threads/worker.h"
#include "daemon/registry/collector.h"
#include "daemon/registry/tracked.h"
#include "model/health.h"
#include "model/query.h"
#include "source/books/accept.h"
#include "wire/http-request.h"
#include "wire/http-response.h"

/* The tests play the registry. */
static int play_offer(void *context, struct accept_peer *peer)
{
	((struct native_testing *)context)->offers++;
	accept_peer_free(peer);
	return 0;
}

static void play_link(void *context, struct accept_peer *peer, uint32_t want)
{
	struct native_testing *world = context;

	world->links++;
	world->link_want = want;
	accept_peer_free(peer);
}

static struct book_list *play_books(void *context)
{
	struct native_testing *world = context;
	struct book_list *book_list =
		calloc(1, sizeof(*book_list) + NATIVE_TESTING_BOOKS * sizeof(struct tracked *));

	assert(book_list);
	book_list->refs = 1;
	book_list->count = world->count;
	for (size_t i = 0; i < world->count; i++)
		book_list->list[i] = tracked_ref(world->tracked[i]);
	return book_list;
}

static int play_totals(void *context, uint64_t since_ns, struct snapshot **ret_snapshot)
{
	return collector_totals(((struct native_testing *)context)->collector, since_ns,
				ret_snapshot);
}

static int play_snapshot(void *context, const struct snapshot_request *request,
			 struct snapshot **ret_snapshot)
{
	return play_totals(context,
			   request->since_ns ? request->since_ns : clock_ns(CLOCK_MONOTONIC),
			   ret_snapshot);
}

static int play_dump(void *context, const struct query_asker *asker, uint64_t since_ns, FILE *out)
{
	struct native_testing *world = context;
	unsigned int number = __atomic_fetch_add(&world->dumps, 1, __ATOMIC_RELAXED);

	if (number < NATIVE_TESTING_DUMPS)
		world->dump_users[number] = asker->user_id;
	if (world->dump_waits)
		assert(sem_wait(&world->dump_goes_on) == 0);
	for (size_t i = 0; i < world->dump_size; i++)
		putc('a' + (int)(i % 26), out);
	return 0;
}

static void play_health(void *context, struct health *ret_health)
{
	*ret_health =
		(struct health){.books = 5, .start_ns = 77, .version = "1.2.3", .socket = "here"};
}

void native_testing_open(struct native_testing *world)
{
	struct native_config config = {.loop = NULL};
	struct collector_config collector = {0};
	int listening;

	memset(world, 0, sizeof(*world));
	assert(sem_init(&world->dump_goes_on, 0, 0) == 0);
	assert(proc_open(&world->proc) == 0);
	assert(loop_new(&world->loop) == 0 &&
	       worker_new(&world->work,
			  &(struct worker_config){.name = "queries", .loop = world->loop}) == 0);
	snprintf(world->path, sizeof(world->path), "%s/s", unit_dir());
	listening = accept_listen(world->path);
	assert(listening >= 0);
	collector.context = world;
	collector.book_list = play_books;
	collector.proc = &world->proc;
	assert(collector_new(&world->collector, &collector) == 0);
	config.loop = world->loop;
	config.work = world->work;
	config.proc = &world->proc;
	assert(namespaces_init(&world->namespaces) == 0);
	world->access.namespaces = &world->namespaces;
	config.access = &world->access;
	world->provider = (struct web_provider){.context = world,
						.snapshot = play_snapshot,
						.dump = play_dump,
						.health = play_health};
	config.provider = &world->provider;
	config.hooks = (struct native_hooks){.context = world,
					     .offer_consume = play_offer,
					     .link_consume = play_link,
					     .book_list = play_books,
					     .totals = play_totals};
	assert(native_new(&world->native, &config) == 0);
	assert(native_listen_consume(world->native, listening) == 0);
}

void native_testing_close(struct native_testing *world)
{
	world->work = worker_free(world->work);
	native_free(world->native);
	collector_free(world->collector);
	loop_free(world->loop);
	for (size_t i = 0; i < world->count; i++) {
		tracked_unref(world->tracked[i]);
		testing_book_deinit(&world->books[i]);
	}
	namespaces_deinit(&world->namespaces);
	proc_close(&world->proc);
	unlink(world->path);
}

void native_testing_add(struct native_testing *world, uint32_t pid, uint32_t maker,
			uint32_t devices)
{
	struct testing_book *book = &world->books[world->count];
	struct testing_op op = {.kind = TESTING_ALLOC, .buffer = testing_buffer(0, 0x1000, 4096)};
	struct scan_book *found;
	char path[64];
	int fd;

	/* Room for the log of each device. */
	testing_book_init(book, BOOK_POOL_OFFSET + UINT64_C(512) * 1024 * 1024, 1024);
	testing_book_write(book);
	for (uint32_t i = 0; i < devices; i++) {
		op.device = i;
		testing_op_do(book->writer, &op);
	}
	snprintf(path, sizeof(path), "/proc/self/fd/%d", book->fd);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert(fd >= 0 && scan_book_new_consume(&found, fd) == 0);
	found->uid = maker;
	found->alive = true;
	found->owner = (struct proc_facts){.id.pid = pid,
					   .ns_pid = 1,
					   .id.start_ticks = 100,
					   .real_uid = maker,
					   .comm = "player"};
	world->tracked[world->count] = tracked_new_consume(found, 0, "");
	assert(world->tracked[world->count]);
	world->count++;
}

int native_testing_connect(struct native_testing *world)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	memcpy(address.sun_path, world->path, sizeof(world->path));
	assert(fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
	return fd;
}

struct native_counts native_testing_counts(struct native_testing *world)
{
	struct native_counts counts;

	native_counts(world->native, &counts);
	return counts;
}

void native_testing_wait(struct native_testing *world, int fd)
{
	struct pollfd wait = {.fd = fd, .events = POLLIN};

	while (poll(&wait, 1, 0) == 0)
		assert(loop_turn(world->loop, 10) == 0);
}

void native_testing_ask(int fd, enum native_kind kind, uint32_t want)
{
	struct native_request request;

	native_request_init(&request, kind);
	request.want = want;
	assert(send(fd, &request, sizeof(request), MSG_NOSIGNAL) == sizeof(request));
}

size_t native_testing_receive(struct native_testing *world, int fd, struct native_reply *ret_reply,
			      char *ret_payload, int *ret_fd)
{
	static char packet[NATIVE_PACKET_MAX];
	union {
		char space[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec vector = {.iov_base = packet, .iov_len = sizeof(packet)};
	struct msghdr message = {.msg_iov = &vector,
				 .msg_iovlen = 1,
				 .msg_control = control.space,
				 .msg_controllen = sizeof(control.space)};
	const void *payload;
	ssize_t n;

	native_testing_wait(world, fd);
	n = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
	assert(n > 0 && !(message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)));
	assert(native_reply_decode(packet, (size_t)n, ret_reply, &payload) == 0);
	memcpy(ret_payload, payload, ret_reply->length);
	*ret_fd = -1;
	if (CMSG_FIRSTHDR(&message))
		memcpy(ret_fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(int));
	return ret_reply->length;
}

int native_testing_receive_text(struct native_testing *world, int fd, char **ret_text,
				size_t *ret_length)
{
	static char payload[NATIVE_PACKET_MAX];
	struct native_reply reply;
	FILE *stream = open_memstream(ret_text, ret_length);
	int other;

	do {
		size_t n = native_testing_receive(world, fd, &reply, payload, &other);

		assert(other == -1);
		assert(fwrite(payload, 1, n, stream) == n);
	} while (!(reply.flags & NATIVE_END));
	assert(fclose(stream) == 0);
	return reply.status;
}

void native_testing_get(int fd, const char *target)
{
	char bytes[HTTP_REQUEST_MAX];
	int length = http_request_encode(target, bytes);

	assert(length > 0 && send(fd, bytes, (size_t)length, MSG_NOSIGNAL) == length);
}

unsigned int native_testing_receive_http(struct native_testing *world, int fd, char **ret_text,
					 size_t *ret_length)
{
	static char packet[NATIVE_PACKET_MAX];
	struct http_response response;
	int r = 0;

	http_response_init(&response, SIZE_MAX);
	while (r == 0) {
		ssize_t n;

		native_testing_wait(world, fd);
		n = recv(fd, packet, sizeof(packet), 0);
		assert(n > 0);
		r = http_response_feed(&response, packet, (size_t)n);
	}
	assert(r == HTTP_COMPLETE);
	*ret_text = response.body ? response.body : strdup("");
	*ret_length = response.body_length;
	return response.status;
}

bool native_testing_is_closed(struct native_testing *world, int fd)
{
	char byte;

	native_testing_wait(world, fd);
	return recv(fd, &byte, 1, 0) <= 0;
}
