/* SPDX-License-Identifier: Apache-2.0 */

/* Requests to the native server and its answers. */

#include "daemon/native/testing/native-server-testing.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/testing/unit.h"
#include "base/threads/loop.h"
#include "book/testing/testing-model.h"
#include "daemon/registry/collector.h"
#include "source/books/verify-book.h"
#include "wire/link.h"

UNIT(documents_come_whole_and_one_after_the_other)
{
	struct native_testing world;
	size_t length;
	char *text;
	int fd;

	native_testing_open(&world);
	world.dump_size = 1000000;
	fd = native_testing_connect(&world);
	for (int i = 0; i < 3; i++) {
		native_testing_get(fd, "/api/v1/dump");
		assert(native_testing_receive_http(&world, fd, &text, &length) == 200);
		assert(length == world.dump_size);
		for (size_t k = 0; k < length; k++)
			assert(text[k] == 'a' + (int)(k % 26));
		free(text);
	}
	native_testing_get(fd, "/api/v1/status");
	assert(native_testing_receive_http(&world, fd, &text, &length) == 200);
	assert(strstr(text, "\"version\":\"1.2.3\"") && strstr(text, "\"books\":5"));
	free(text);
	assert(native_testing_counts(&world).requests == 4 &&
	       native_testing_counts(&world).connections == 1);
	close(fd);
	native_testing_close(&world);
}

UNIT(requests_that_wait_together_share_one_reading)
{
	static const char *const targets[] = {"/api/v1/smi", "/api/v1/ps", "/api/devices",
					      "/api/devices/0/stats"};
	struct native_testing world;
	int fds[5];

	native_testing_open(&world);
	native_testing_add(&world, 100, getuid(), 1);
	world.dump_waits = true;
	for (size_t i = 0; i < 5; i++) {
		fds[i] = native_testing_connect(&world);
		native_testing_get(fds[i], i > 0 ? targets[i - 1] : "/api/v1/dump");
		while (native_testing_counts(&world).requests <= i)
			assert(loop_turn(world.loop, 10) == 0);
	}
	assert(sem_post(&world.dump_goes_on) == 0);
	for (size_t i = 0; i < 5; i++) {
		size_t length;
		char *text;

		assert(native_testing_receive_http(&world, fds[i], &text, &length) == 200);
		free(text);
		close(fds[i]);
	}
	assert(collector_readings(world.collector) == 1);
	native_testing_close(&world);
}

UNIT(what_cannot_be_answered_is_told)
{
	static const struct {
		const char *target;
		unsigned int status;
		const char *text;
	} wrong[] = {
		{"/api/v1/leaks", 503, "the past cannot be asked"}, /* no recorder here */
		{"/api/v1/nothing", 404, "no such path"},
		{"/api/v1/dump?pid=1", 400, "unknown parameter \"pid\""},
		{"/api/v1/leaks?pid=x", 400, "\"x\" is not the number of a process"},
		{"/api/v1/stream", 404, "over TCP only"},
		{"/metrics", 404, "over TCP only"},
	};
	struct native_testing world;
	size_t length;
	char *text;
	int fd;

	native_testing_open(&world);
	fd = native_testing_connect(&world);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		native_testing_get(fd, wrong[i].target);
		assert(native_testing_receive_http(&world, fd, &text, &length) == wrong[i].status);
		assert(strstr(text, wrong[i].text));
		free(text);
	}
	close(fd);
	native_testing_close(&world);
}

/* Whether it is sent before the connection is accepted, or after. */
UNIT(a_link_is_handed_on_with_its_connection)
{
	struct link_hello hello = {.want = LINK_WANT_LINES};
	struct native_testing world;
	int fd;

	native_testing_open(&world);
	link_head_init(&hello.head, LINK_HELLO, sizeof(hello));
	for (unsigned int late = 0; late < 2; late++) {
		fd = native_testing_connect(&world);
		while (late && native_testing_counts(&world).connections == 0)
			assert(loop_turn(world.loop, 10) == 0);
		assert(send(fd, &hello, sizeof(hello), MSG_NOSIGNAL) == sizeof(hello));
		assert(native_testing_is_closed(&world, fd));
		assert(world.links == late + 1 && world.link_want == LINK_WANT_LINES);
		assert(native_testing_counts(&world).connections == 0);
		close(fd);
	}
	assert(native_testing_counts(&world).garbage == 0 && world.offers == 0);
	native_testing_close(&world);
}

UNIT(details_are_for_who_may_see_them)
{
	struct native_testing world;
	size_t length;
	char *text;
	int fd;

	if (geteuid() != 0)
		unit_skip("only root can become somebody else");
	native_testing_open(&world);
	assert(chmod(unit_dir(), 0755) == 0 && chmod(world.path, 0666) == 0);
	assert(seteuid(12345) == 0);
	fd = native_testing_connect(&world);
	assert(seteuid(0) == 0);
	native_testing_get(fd, "/api/v1/map"); /* of everybody's buffers */
	assert(native_testing_receive_http(&world, fd, &text, &length) == 403);
	free(text);
	native_testing_get(fd, "/api/v1/buffers"); /* their own */
	assert(native_testing_receive_http(&world, fd, &text, &length) == 200);
	free(text);
	native_testing_get(fd, "/api/v1/status");
	assert(native_testing_receive_http(&world, fd, &text, &length) == 200);
	assert(strstr(text, "\"you_see_all\":false"));
	free(text);
	close(fd);
	native_testing_close(&world);
}

UNIT(an_older_command_is_told_to_upgrade)
{
	struct native_testing world;
	size_t length;
	char *text;
	int fd;

	native_testing_open(&world);
	fd = native_testing_connect(&world);
	for (uint32_t kind = NATIVE_OLD_FIRST; kind <= NATIVE_OLD_STATUS; kind++) {
		struct native_request request;

		/* Leaks, incidents, series, dump and status, with the fields that they had. */
		native_request_init(&request, (enum native_kind)kind);
		memset(request.old, 0xff, 16);
		memcpy(request.old + 76, "1a-2b", 5);
		assert(send(fd, &request, sizeof(request), 0) == sizeof(request));
		assert(native_testing_receive_text(&world, fd, &text, &length) == -EOPNOTSUPP);
		assert(strstr(text, "this ttmemd is newer") && strstr(text, "upgrade ttmem"));
		free(text);
	}
	close(fd);
	native_testing_close(&world);
}

UNIT(too_large_an_answer_is_refused)
{
	struct native_testing world;
	size_t length;
	char *text;
	int fd;

	native_testing_open(&world);
	world.dump_size = (UINT64_C(64) << 20) + 1;
	fd = native_testing_connect(&world);
	native_testing_get(fd, "/api/v1/dump");
	assert(native_testing_receive_http(&world, fd, &text, &length) == 503);
	assert(strstr(text, "too large"));
	free(text);
	/* And none of it is still charged. */
	world.dump_size = UINT64_C(60) << 20;
	native_testing_get(fd, "/api/v1/dump");
	assert(native_testing_receive_http(&world, fd, &text, &length) == 200 &&
	       length == world.dump_size);
	free(text);
	close(fd);
	native_testing_close(&world);
}

UNIT(a_roster_has_totals_for_all_and_books_for_some)
{
	static char payload[NATIVE_PACKET_MAX];
	struct native_testing world;
	struct native_reply reply;
	struct native_process process;
	struct native_part part;
	const void *parts;
	const uid_t me = 12345;
	int fd, book;
	char *text;
	size_t length;

	if (geteuid())
		unit_skip("needs root to be another user");
	native_testing_open(&world);
	native_testing_add(&world, 100, me, 2);
	native_testing_add(&world, 200, me + 1, 1);
	assert(chmod(unit_dir(), 0755) == 0 && chmod(world.path, 0666) == 0);
	assert(seteuid(me) == 0);
	fd = native_testing_connect(&world);
	assert(seteuid(getuid()) == 0);
	native_testing_ask(fd, NATIVE_LIST, NATIVE_WANT_TOTALS | NATIVE_WANT_BOOKS);
	length = native_testing_receive(&world, fd, &reply, payload, &book);
	assert(native_process_decode(payload, length, &process, &parts) == 0);
	assert(process.pid == 100 && process.parts == 2 && strcmp(process.comm, "player") == 0);
	assert(process.flags == (NATIVE_ALIVE | NATIVE_EXACT | NATIVE_MAY_SEE | NATIVE_HAS_BOOK));
	assert(native_part_get(parts, 1, &part) == 0);
	assert(part.device == 1 && part.memory[0].used == 4096 && part.memory[0].buffers == 1);
	assert(book >= 0 && verify_book_check(book) == 0);
	assert((fcntl(book, F_GETFL) & O_ACCMODE) == O_RDONLY);
	assert(write(book, "x", 1) < 0);
	close(book);
	length = native_testing_receive(&world, fd, &reply, payload, &book);
	assert(native_process_decode(payload, length, &process, &parts) == 0);
	assert(process.pid == 200 && process.parts == 1 && book == -1);
	assert(process.flags == (NATIVE_ALIVE | NATIVE_EXACT));
	assert(native_part_get(parts, 0, &part) == 0 && part.memory[0].used == 4096);
	assert(native_testing_receive_text(&world, fd, &text, &length) == 0 && length == 0);
	free(text);
	/* Neither totals nor books; then totals only where no book is sent. */
	for (uint32_t want = 0; want < 2; want++) {
		native_testing_ask(fd, NATIVE_LIST,
				   want ? NATIVE_WANT_REST | NATIVE_WANT_BOOKS : 0);
		length = native_testing_receive(&world, fd, &reply, payload, &book);
		assert(native_process_decode(payload, length, &process, &parts) == 0);
		assert(process.pid == 100 && process.parts == 0 && (book >= 0) == (want == 1));
		if (book >= 0)
			close(book);
		length = native_testing_receive(&world, fd, &reply, payload, &book);
		assert(native_process_decode(payload, length, &process, &parts) == 0);
		assert(process.pid == 200 && process.parts == want && book == -1);
		assert(native_testing_receive_text(&world, fd, &text, &length) == 0);
		free(text);
	}
	/* One connection serves both kinds of requests. */
	native_testing_get(fd, "/api/v1/status");
	assert(native_testing_receive_http(&world, fd, &text, &length) == 200);
	free(text);
	close(fd);
	native_testing_close(&world);
}

/* Commands from before take flags that they do not know for garbage. */
UNIT(how_a_device_was_joined_is_told_to_those_who_accept_it)
{
	static char payload[NATIVE_PACKET_MAX];
	struct native_testing world;
	struct native_request request;
	struct native_process process;
	struct native_reply reply;
	struct native_part part;
	const void *parts;
	char *text;
	size_t length;
	int fd, book;

	native_testing_open(&world);
	native_testing_add(&world, 100, geteuid(), 1);
	fd = native_testing_connect(&world);
	native_request_init(&request, NATIVE_LIST);
	request.want = NATIVE_WANT_TOTALS;
	for (uint32_t accepts = 0; accepts < 4; accepts++) {
		request.accepts = accepts; /* nothing is known of the second bit */
		assert(send(fd, &request, sizeof(request), MSG_NOSIGNAL) == sizeof(request));
		length = native_testing_receive(&world, fd, &reply, payload, &book);
		assert(native_process_decode(payload, length, &process, &parts) == 0);
		assert(native_part_get(parts, 0, &part) == 0);
		assert(native_part_number(&part, NATIVE_PART_JOINED) ==
		       (accepts & NATIVE_ACCEPTS_JOINED ? SNAPSHOT_BY_NUMBER + 1 : 0));
		assert(accepts & NATIVE_ACCEPTS_JOINED || part.flags == 0);
		assert(native_testing_receive_text(&world, fd, &text, &length) == 0);
		free(text);
	}
	close(fd);
	native_testing_close(&world);
}

/* They are further parts of the process, which older commands take for devices: only for those who accept them. */
UNIT(what_buffers_occupy_is_told_to_those_who_accept_it)
{
	struct testing_model *model = testing_model_new();
	static char payload[NATIVE_PACKET_MAX];
	struct shard_buffer placed = testing_buffer(1, 0x2000, 2048);
	struct native_testing world;
	struct native_request request;
	struct native_process process;
	struct native_reply reply;
	struct native_part part;
	const void *parts;
	char *text;
	size_t length;
	int fd, book;

	native_testing_open(&world);
	native_testing_add(&world, 100, geteuid(), 2);
	testing_model_shapes(model, world.books[0].writer);
	placed.shape = 1; /* 2048 bytes in each of 12 banks */
	writer_alloc(world.books[0].writer, 1, &placed, 0);
	fd = native_testing_connect(&world);
	native_request_init(&request, NATIVE_LIST);
	request.want = NATIVE_WANT_TOTALS;
	for (uint32_t accepts = 0; accepts <= NATIVE_ACCEPTS_OCCUPIED;
	     accepts += NATIVE_ACCEPTS_OCCUPIED) {
		request.accepts = accepts;
		assert(send(fd, &request, sizeof(request), MSG_NOSIGNAL) == sizeof(request));
		length = native_testing_receive(&world, fd, &reply, payload, &book);
		assert(native_process_decode(payload, length, &process, &parts) == 0);
		/* Of the first device nothing is known, and nothing is sent. */
		assert(process.parts == (accepts ? 3 : 2));
		assert(native_part_get(parts, 1, &part) == 0 && part.device == 1);
		assert(part.memory[1].used == 2048 && !(part.flags & NATIVE_PART_OCCUPIED));
		if (accepts) {
			assert(native_part_get(parts, 2, &part) == 0 && part.device == 1);
			assert(part.flags == NATIVE_PART_OCCUPIED);
			assert(part.memory[1].used == 24576 && part.memory[1].buffers == 1);
			assert(part.memory[0].used == 0 && part.memory[0].buffers == 0);
		}
		assert(native_testing_receive_text(&world, fd, &text, &length) == 0);
		free(text);
	}
	close(fd);
	native_testing_close(&world);
	testing_model_free(model);
}

UNIT(many_devices_take_several_packets)
{
	static char payload[NATIVE_PACKET_MAX];
	uint32_t devices = NATIVE_PARTS_MAX * 2 + 5, seen = 0, packets = 0;
	struct native_testing world;
	struct native_reply reply;
	struct native_process process;
	struct native_part part;
	const void *parts;
	int fd, book;

	native_testing_open(&world);
	native_testing_add(&world, 100, getuid(), devices);
	fd = native_testing_connect(&world);
	native_testing_ask(fd, NATIVE_LIST, NATIVE_WANT_TOTALS | NATIVE_WANT_BOOKS);
	do {
		size_t length = native_testing_receive(&world, fd, &reply, payload, &book);

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
	native_testing_receive(&world, fd, &reply, payload, &book);
	assert(reply.flags == NATIVE_END && reply.status == 0);
	close(fd);
	native_testing_close(&world);
}
