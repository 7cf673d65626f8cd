/* SPDX-License-Identifier: Apache-2.0 */

/* The native server with real sockets, books and a worker, and everything else played. */

#include "daemon/native.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/loop.h"
#include "base/unit.h"
#include "book/testing.h"
#include "daemon/access.h"
#include "daemon/tracked.h"
#include "daemon/work.h"
#include "source/accept.h"
#include "source/genuine.h"
#include "web/web.h"
#include "wire/native.h"
#include "wire/offer.h"

#define BOOKS_MAX 4

struct world {
	struct loop *loop;
	struct work *work;
	struct native *native;
	struct access access;
	struct proc proc;
	struct testing_book books[BOOKS_MAX];
	struct tracked *tracked[BOOKS_MAX];
	size_t count;
	unsigned int offers, dumps;
	size_t dump_size;
	char path[108];
};

/* The tests are their own registry. */
static int play_offer(void *context, struct accept_peer *peer)
{
	((struct world *)context)->offers++;
	accept_peer_free(peer);
	return 0;
}

static struct roster *play_roster(void *context)
{
	struct world *world = context;
	struct roster *roster = calloc(1, sizeof(*roster) + BOOKS_MAX * sizeof(struct tracked *));

	assert(roster);
	roster->refs = 1;
	roster->count = world->count;
	for (size_t i = 0; i < world->count; i++)
		roster->list[i] = tracked_ref(world->tracked[i]);
	return roster;
}

static int play_dump(void *context, const struct access_peer *asker, FILE *out)
{
	struct world *world = context;

	world->dumps++;
	for (size_t i = 0; i < world->dump_size; i++)
		putc('a' + (int)(i % 26), out);
	return 0;
}

static void play_health(void *context, struct web_health *ret_health)
{
	*ret_health = (struct web_health){.books = 5, .start_ns = 77};
}

static void world_open(struct world *world)
{
	struct native_config config = {.version = "1.2.3", .socket = "here"};
	int listening;

	memset(world, 0, sizeof(*world));
	assert(proc_open(&world->proc) == 0);
	assert(loop_new(&world->loop) == 0 && work_new(&world->work, world->loop, "desk") == 0);
	snprintf(world->path, sizeof(world->path), "%s/s", unit_dir());
	listening = accept_listen(world->path);
	assert(listening >= 0);
	config.loop = world->loop;
	config.work = world->work;
	config.proc = &world->proc;
	config.access = &world->access;
	config.hooks = (struct native_hooks){.context = world,
					     .offer_consume = play_offer,
					     .roster = play_roster,
					     .dump = play_dump,
					     .health = play_health};
	assert(native_new_consume(&world->native, &config, listening) == 0);
}

static void world_close(struct world *world)
{
	work_free(world->work);
	native_free(world->native);
	loop_free(world->loop);
	for (size_t i = 0; i < world->count; i++) {
		tracked_unref(world->tracked[i]);
		testing_book_deinit(&world->books[i]);
	}
	proc_close(&world->proc);
	unlink(world->path);
}

/* A process of user @maker with a book of its own, and a buffer in it. */
static void world_add(struct world *world, uint32_t pid, uint32_t maker, uint32_t devices)
{
	struct testing_book *book = &world->books[world->count];
	struct testing_op op = {.kind = TESTING_ALLOC, .buffer = testing_buffer(0, 0x1000, 4096)};
	struct scan_book *found;
	char path[64];
	int fd;

	/* A device has a log, and room for it. */
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
	found->owner = (struct proc_facts){
		.pid = pid, .ns_pid = 1, .start_ticks = 100, .real_uid = maker, .comm = "player"};
	world->tracked[world->count] = tracked_new_consume(found);
	assert(world->tracked[world->count]);
	world->count++;
}

static int world_connect(struct world *world)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	memcpy(address.sun_path, world->path, sizeof(world->path));
	assert(fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
	return fd;
}

static struct native_counts counts(struct world *world)
{
	struct native_counts counts;

	native_counts(world->native, &counts);
	return counts;
}

/* Turns until @fd has something to read. */
static void world_wait(struct world *world, int fd)
{
	struct pollfd wait = {.fd = fd, .events = POLLIN};

	while (poll(&wait, 1, 0) == 0)
		assert(loop_turn(world->loop, 10) == 0);
}

static void ask(int fd, enum native_kind kind, uint32_t want)
{
	struct native_request request;

	native_request_init(&request, kind);
	request.want = want;
	assert(send(fd, &request, sizeof(request), MSG_NOSIGNAL) == sizeof(request));
}

/* The next packet. Return: bytes of payload; @ret_fd: a descriptor, or -1. */
static size_t receive(struct world *world, int fd, struct native_reply *ret_reply,
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

	world_wait(world, fd);
	n = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
	assert(n > 0 && !(message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)));
	assert(native_reply_decode(packet, (size_t)n, ret_reply, &payload) == 0);
	memcpy(ret_payload, payload, ret_reply->length);
	*ret_fd = -1;
	if (CMSG_FIRSTHDR(&message))
		memcpy(ret_fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(int));
	return ret_reply->length;
}

/* A whole answer that is text. Return: its status. */
static int receive_text(struct world *world, int fd, char **ret_text, size_t *ret_length)
{
	static char payload[NATIVE_PACKET_MAX];
	struct native_reply reply;
	FILE *stream = open_memstream(ret_text, ret_length);
	int other;

	do {
		size_t n = receive(world, fd, &reply, payload, &other);

		assert(other == -1);
		assert(fwrite(payload, 1, n, stream) == n);
	} while (!(reply.flags & NATIVE_END));
	assert(fclose(stream) == 0);
	return reply.status;
}

UNIT(texts_come_whole_and_one_after_the_other)
{
	struct world world;
	size_t length;
	char *text;
	int fd;

	world_open(&world);
	world.dump_size = 1000000;
	fd = world_connect(&world);
	for (int i = 0; i < 3; i++) {
		ask(fd, NATIVE_DUMP, 0);
		assert(receive_text(&world, fd, &text, &length) == 0);
		assert(length == world.dump_size);
		for (size_t k = 0; k < length; k++)
			assert(text[k] == 'a' + (int)(k % 26));
		free(text);
	}
	ask(fd, NATIVE_STATUS, 0);
	assert(receive_text(&world, fd, &text, &length) == 0);
	assert(strstr(text, "\"version\":\"1.2.3\"") && strstr(text, "\"books\":5"));
	free(text);
	/* Nothing is remembered here. */
	ask(fd, NATIVE_LEAKS, 0);
	assert(receive_text(&world, fd, &text, &length) == -EOPNOTSUPP);
	assert(strstr(text, "remembers nothing"));
	free(text);
	assert(counts(&world).requests == 5 && counts(&world).connections == 1);
	close(fd);
	world_close(&world);
}

UNIT(too_large_an_answer_is_refused)
{
	struct world world;
	size_t length;
	char *text;
	int fd;

	world_open(&world);
	world.dump_size = (UINT64_C(64) << 20) + 1;
	fd = world_connect(&world);
	ask(fd, NATIVE_DUMP, 0);
	assert(receive_text(&world, fd, &text, &length) == -ENOBUFS);
	assert(strstr(text, "too large"));
	free(text);
	/* And nothing of it is still charged. */
	world.dump_size = UINT64_C(60) << 20;
	ask(fd, NATIVE_DUMP, 0);
	assert(receive_text(&world, fd, &text, &length) == 0 && length == world.dump_size);
	free(text);
	close(fd);
	world_close(&world);
}

UNIT(a_roster_has_totals_for_all_and_books_for_some)
{
	static char payload[NATIVE_PACKET_MAX];
	struct world world;
	struct native_reply reply;
	struct native_process process;
	struct native_part part;
	const void *parts;
	uid_t me = geteuid() ? geteuid() : 12345;
	int fd, book;
	char *text;
	size_t length;

	world_open(&world);
	world_add(&world, 100, me, 2);
	world_add(&world, 200, me + 1, 1);
	/* Root sees all, so somebody else connects. */
	assert(chmod(unit_dir(), 0755) == 0 && chmod(world.path, 0666) == 0);
	assert(seteuid(me) == 0);
	fd = world_connect(&world);
	assert(seteuid(getuid()) == 0);
	ask(fd, NATIVE_ROSTER, NATIVE_WANT_TOTALS | NATIVE_WANT_BOOKS);
	length = receive(&world, fd, &reply, payload, &book);
	assert(native_process_decode(payload, length, &process, &parts) == 0);
	assert(process.pid == 100 && process.parts == 2 && strcmp(process.comm, "player") == 0);
	assert(process.flags == (NATIVE_ALIVE | NATIVE_EXACT | NATIVE_MAY_SEE | NATIVE_HAS_BOOK));
	assert(native_part_get(parts, 1, &part) == 0);
	assert(part.device == 1 && part.memory[0].used == 4096 && part.memory[0].buffers == 1);
	assert(book >= 0 && genuine_check(book) == 0);
	assert((fcntl(book, F_GETFL) & O_ACCMODE) == O_RDONLY);
	assert(write(book, "x", 1) < 0);
	close(book);
	length = receive(&world, fd, &reply, payload, &book);
	assert(native_process_decode(payload, length, &process, &parts) == 0);
	assert(process.pid == 200 && process.parts == 1 && book == -1);
	assert(process.flags == (NATIVE_ALIVE | NATIVE_EXACT));
	assert(native_part_get(parts, 0, &part) == 0 && part.memory[0].used == 4096);
	assert(receive_text(&world, fd, &text, &length) == 0 && length == 0);
	free(text);
	/* Totals only where no book comes along; and neither. */
	for (uint32_t want = 0; want < 2; want++) {
		ask(fd, NATIVE_ROSTER, want ? NATIVE_WANT_REST | NATIVE_WANT_BOOKS : 0);
		length = receive(&world, fd, &reply, payload, &book);
		assert(native_process_decode(payload, length, &process, &parts) == 0);
		assert(process.pid == 100 && process.parts == 0 && (book >= 0) == (want == 1));
		if (book >= 0)
			close(book);
		length = receive(&world, fd, &reply, payload, &book);
		assert(native_process_decode(payload, length, &process, &parts) == 0);
		assert(process.pid == 200 && process.parts == want && book == -1);
		assert(receive_text(&world, fd, &text, &length) == 0);
		free(text);
	}
	ask(fd, NATIVE_STATUS, 0);
	assert(receive_text(&world, fd, &text, &length) == 0);
	free(text);
	close(fd);
	world_close(&world);
}

UNIT(many_devices_take_several_packets)
{
	static char payload[NATIVE_PACKET_MAX];
	uint32_t devices = NATIVE_PARTS_MAX * 2 + 5, seen = 0, packets = 0;
	struct world world;
	struct native_reply reply;
	struct native_process process;
	struct native_part part;
	const void *parts;
	int fd, book;

	world_open(&world);
	world_add(&world, 100, getuid(), devices);
	fd = world_connect(&world);
	ask(fd, NATIVE_ROSTER, NATIVE_WANT_TOTALS | NATIVE_WANT_BOOKS);
	do {
		size_t length = receive(&world, fd, &reply, payload, &book);

		assert(native_process_decode(payload, length, &process, &parts) == 0);
		assert((book >= 0) == (packets++ == 0));
		if (book >= 0)
			close(book);
		for (uint32_t i = 0; i < process.parts; i++) {
			assert(native_part_get(parts, i, &part) == 0);
			assert(part.device == seen++ && part.memory[0].used == 4096);
		}
	} while (process.flags & NATIVE_CONTINUES);
	assert(seen == devices && packets == 3);
	receive(&world, fd, &reply, payload, &book);
	assert(reply.flags == NATIVE_END && reply.status == 0);
	close(fd);
	world_close(&world);
}

/* Whether the server has hung up. */
static bool is_closed(struct world *world, int fd)
{
	char byte;

	world_wait(world, fd);
	return recv(fd, &byte, 1, 0) <= 0;
}

UNIT(garbage_costs_the_connection)
{
	struct world world;
	struct native_request request;
	struct offer offer = {.magic = OFFER_MAGIC, .version = 1, .size = sizeof(offer)};
	char large[NATIVE_REQUEST_MAX + 1] = {0};
	size_t lengths[] = {1, 4, 100, sizeof(large)}, length;
	int fd, good;
	char *text;

	world_open(&world);
	good = world_connect(&world);
	for (size_t i = 0; i < 4; i++) {
		fd = world_connect(&world);
		assert(send(fd, large, lengths[i], 0) == (ssize_t)lengths[i]);
		assert(is_closed(&world, fd));
		assert(counts(&world).garbage == i + 1);
		close(fd);
	}
	/* Nearly right. */
	native_request_init(&request, NATIVE_DUMP);
	request.reserved[0] = 1;
	fd = world_connect(&world);
	assert(send(fd, &request, sizeof(request), 0) == sizeof(request));
	assert(is_closed(&world, fd) && counts(&world).garbage == 5);
	close(fd);
	/* An offer without a book. */
	fd = world_connect(&world);
	assert(send(fd, &offer, sizeof(offer), 0) == sizeof(offer));
	assert(is_closed(&world, fd) && counts(&world).garbage == 6);
	close(fd);
	/* Later versions are told, and may try again. */
	native_request_init(&request, NATIVE_DUMP);
	request.version = 2;
	assert(send(good, &request, sizeof(request), 0) == sizeof(request));
	assert(receive_text(&world, good, &text, &length) == -EPROTONOSUPPORT);
	free(text);
	ask(good, NATIVE_DUMP, 0);
	assert(receive_text(&world, good, &text, &length) == 0);
	free(text);
	close(good);
	assert(world.offers == 0);
	world_close(&world);
}

UNIT(one_user_has_so_many_connections)
{
	struct world world;
	int fds[NATIVE_USER_CONNECTIONS_MAX + 1];
	size_t length;
	char *text;

	world_open(&world);
	for (uint32_t i = 0; i < NATIVE_USER_CONNECTIONS_MAX; i++)
		fds[i] = world_connect(&world);
	while (counts(&world).connections < NATIVE_USER_CONNECTIONS_MAX)
		assert(loop_turn(world.loop, 10) == 0);
	fds[NATIVE_USER_CONNECTIONS_MAX] = world_connect(&world);
	assert(is_closed(&world, fds[NATIVE_USER_CONNECTIONS_MAX]));
	assert(counts(&world).turned_away == 1);
	/* Those that are there are served, and one that goes makes room. */
	ask(fds[0], NATIVE_DUMP, 0);
	assert(receive_text(&world, fds[0], &text, &length) == 0);
	free(text);
	close(fds[1]);
	while (counts(&world).connections == NATIVE_USER_CONNECTIONS_MAX)
		assert(loop_turn(world.loop, 10) == 0);
	fds[1] = world_connect(&world);
	ask(fds[1], NATIVE_DUMP, 0);
	assert(receive_text(&world, fds[1], &text, &length) == 0);
	free(text);
	for (uint32_t i = 0; i <= NATIVE_USER_CONNECTIONS_MAX; i++)
		close(fds[i]);
	world_close(&world);
}

UNIT(going_away_at_any_moment)
{
	struct world world;
	int fd;

	world_open(&world);
	world.dump_size = 1 << 20;
	world_add(&world, 100, getuid(), 1);
	for (int i = 0; i < 30; i++) {
		fd = world_connect(&world);
		ask(fd, i % 2 ? NATIVE_DUMP : NATIVE_ROSTER, NATIVE_WANT_BOOKS);
		if (i % 3 == 0)
			shutdown(fd, SHUT_WR);
		for (int k = 0; k < i % 5; k++)
			assert(loop_turn(world.loop, 1) == 0);
		close(fd);
	}
	while (counts(&world).connections > 0)
		assert(loop_turn(world.loop, 10) == 0);
	world_close(&world);
}

UNIT(who_half_closes_is_answered)
{
	struct world world;
	size_t length;
	char *text;
	int fd;

	world_open(&world);
	world.dump_size = 1 << 20;
	fd = world_connect(&world);
	ask(fd, NATIVE_DUMP, 0);
	shutdown(fd, SHUT_WR);
	assert(receive_text(&world, fd, &text, &length) == 0 && length == world.dump_size);
	free(text);
	assert(is_closed(&world, fd));
	close(fd);
	world_close(&world);
}

/* Some who never read do not keep the others from being served. */
UNIT(who_does_not_read_holds_up_nobody)
{
	struct world world;
	int stuck[8], fd;
	size_t length;
	char *text;

	world_open(&world);
	world.dump_size = 4 << 20;
	for (size_t i = 0; i < 8; i++) {
		stuck[i] = world_connect(&world);
		ask(stuck[i], NATIVE_DUMP, 0);
	}
	while (world.dumps < 8)
		assert(loop_turn(world.loop, 10) == 0);
	fd = world_connect(&world);
	ask(fd, NATIVE_DUMP, 0);
	assert(receive_text(&world, fd, &text, &length) == 0 && length == world.dump_size);
	free(text);
	/* And are dropped in the end. */
	while (counts(&world).stuck < 8)
		assert(loop_turn(world.loop, 100) == 0);
	assert(counts(&world).connections == 1 && counts(&world).stuck == 8);
	close(fd);
	for (size_t i = 0; i < 8; i++)
		close(stuck[i]);
	world_close(&world);
}

UNIT(without_descriptors_they_wait)
{
	struct world world;
	struct rlimit limit, none;
	size_t length;
	char *text;
	int fd;

	world_open(&world);
	fd = world_connect(&world);
	ask(fd, NATIVE_DUMP, 0);
	assert(getrlimit(RLIMIT_NOFILE, &limit) == 0);
	none = limit;
	none.rlim_cur = (rlim_t)fd + 1;
	assert(setrlimit(RLIMIT_NOFILE, &none) == 0);
	for (int i = 0; i < 3; i++)
		assert(loop_turn(world.loop, 10) == 0);
	assert(counts(&world).connections == 0);
	assert(setrlimit(RLIMIT_NOFILE, &limit) == 0);
	assert(receive_text(&world, fd, &text, &length) == 0);
	free(text);
	close(fd);
	world_close(&world);
}
