/* SPDX-License-Identifier: Apache-2.0 */

/* Messages in which one thing is wrong. */

#include "symbol/symbolizer-wire.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/testing/unit.h"

static int pair[2];
static struct symbolizer_wire_answer answer, received;
static struct symbolizer_wire_request request;

static void begin(void)
{
	assert(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
	answer = (struct symbolizer_wire_answer){
		.magic = SYMBOLIZER_WIRE_MAGIC,
		.version = SYMBOLIZER_WIRE_VERSION,
		.size = symbolizer_wire_size(2),
		.kind = SYMBOLIZER_WIRE_FIND,
		.serial = 7,
		.count = 2,
		.link = "x.debug",
		.frames = {{.line = 3, .function = "f", .file = "/f.c"}, {.function = "g"}},
	};
	request = (struct symbolizer_wire_request){
		.magic = SYMBOLIZER_WIRE_MAGIC,
		.version = SYMBOLIZER_WIRE_VERSION,
		.size = offsetof(struct symbolizer_wire_request, name),
		.kind = SYMBOLIZER_WIRE_FIND,
		.serial = 9,
		.address = 0x1234,
	};
}

static void end(void)
{
	assert(close(pair[0]) == 0 && close(pair[1]) == 0);
}

static int answered(size_t length)
{
	assert(send(pair[1], &answer, length, 0) == (ssize_t)length);
	return symbolizer_wire_receive(pair[0], 7, &received);
}

UNIT(an_answer_survives_a_round_trip)
{
	begin();
	assert(symbolizer_wire_receive(pair[0], 7, &received) == -EAGAIN);
	assert(symbolizer_wire_tell(pair[1], &answer) == 0);
	assert(symbolizer_wire_receive(pair[0], 7, &received) == 0);
	assert(memcmp(&received, &answer, answer.size) == 0);
	assert(close(pair[1]) == 0);
	assert(symbolizer_wire_receive(pair[0], 7, &received) == -EPIPE);
	assert(close(pair[0]) == 0);
}

#define WRONG_ANSWER(name, change)                         \
	UNIT(answer_##name)                                \
	{                                                  \
		begin();                                   \
		assert(answered(answer.size) == 0);        \
		{                                          \
			change;                            \
		}                                          \
		assert(answered(answer.size) == -EBADMSG); \
		end();                                     \
	}

WRONG_ANSWER(magic, answer.magic++)
WRONG_ANSWER(version, answer.version++)
WRONG_ANSWER(kind, answer.kind = 4)
WRONG_ANSWER(serial, answer.serial++)
WRONG_ANSWER(result, answer.result = 1)
WRONG_ANSWER(debug, answer.has_debug = 2)
WRONG_ANSWER(build_id, answer.build_id_length = RESOLVE_BUILD_ID_MAX + 1)
WRONG_ANSWER(reserved, answer.reserved = 1)
WRONG_ANSWER(link, memset(answer.link, 'x', sizeof(answer.link)))
WRONG_ANSWER(function, memset(answer.frames[1].function, 'x', RESOLVE_TEXT_SIZE))
WRONG_ANSWER(file, memset(answer.frames[1].file, 'x', RESOLVE_TEXT_SIZE))
WRONG_ANSWER(frame_reserved, answer.frames[0].reserved = 1)
WRONG_ANSWER(count, answer.count = 1)
WRONG_ANSWER(no_frames, answer.size = symbolizer_wire_size(1))

UNIT(answers_of_wrong_length_are_refused)
{
	begin();
	assert(answered(answer.size - 1) == -EBADMSG);
	assert(answered(answer.size + 1) == -EBADMSG);
	assert(answered(8) == -EBADMSG);
	answer.count = RESOLVE_FRAMES_MAX + 1;
	answer.size = symbolizer_wire_size(answer.count);
	assert(answered(sizeof(answer)) == -EBADMSG);
	end();
}

UNIT(an_answer_brings_no_descriptors)
{
	union {
		char space[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = {.space = {0}};
	struct iovec vector = {.iov_base = &answer, .iov_len = 0};
	struct msghdr header = {
		.msg_iov = &vector,
		.msg_iovlen = 1,
		.msg_control = control.space,
		.msg_controllen = sizeof(control.space),
	};

	begin();
	vector.iov_len = answer.size;
	control.align.cmsg_level = SOL_SOCKET;
	control.align.cmsg_type = SCM_RIGHTS;
	control.align.cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(&control.align), &pair[0], sizeof(int));
	assert(sendmsg(pair[1], &header, 0) > 0);
	assert(symbolizer_wire_receive(pair[0], 7, &received) == -EBADMSG);
	end();
}

/* Sends a request with @count files. */
static int asked(size_t count)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	const int files[SYMBOLIZER_WIRE_FILES] = {count > 0 ? fd : -1, count > 1 ? fd : -1};
	int got[SYMBOLIZER_WIRE_FILES] = {-1, -1};
	struct symbolizer_wire_request copy;
	int r;

	assert(fd >= 0 && symbolizer_wire_ask(pair[0], &request, files) == 0 && close(fd) == 0);
	r = symbolizer_wire_hear(pair[1], &copy, got);
	if (r < 0)
		return r;
	assert(memcmp(&copy, &request, request.size) == 0);
	for (size_t i = 0; i < SYMBOLIZER_WIRE_FILES; i++) {
		assert((got[i] >= 0) == (i < count));
		if (got[i] >= 0)
			assert(fcntl(got[i], F_GETFD) == FD_CLOEXEC && close(got[i]) == 0);
	}
	return 0;
}

UNIT(a_request_has_one_or_two_descriptors)
{
	begin();
	assert(asked(1) == 0 && asked(2) == 0);
	assert(asked(0) == -EBADMSG);
	request.kind = SYMBOLIZER_WIRE_PROBE;
	assert(asked(0) == -EBADMSG); /* has an address */
	request.address = 0;
	assert(asked(0) == 0);
	assert(asked(1) == -EBADMSG); /* and the file is closed again */
	request.kind = 4;
	assert(asked(0) == -EBADMSG && asked(1) == -EBADMSG);
	end();
}

UNIT(names_to_decode_are_checked)
{
	begin();
	request.kind = SYMBOLIZER_WIRE_DEMANGLE;
	memcpy(request.name, "_Z1fv", 6);
	request.size = symbolizer_wire_request_size(&request);
	assert(request.size == 38);
	assert(asked(0) == -EBADMSG); /* has an address */
	request.address = 0;
	assert(asked(0) == 0);
	assert(asked(1) == -EBADMSG);
	request.size--; /* no NUL */
	assert(asked(0) == -EBADMSG);
	request.size += 2; /* bytes behind the NUL */
	assert(asked(0) == -EBADMSG);
	request.size = offsetof(struct symbolizer_wire_request, name);
	assert(asked(0) == -EBADMSG);
	memset(request.name, 'x', sizeof(request.name));
	request.size = sizeof(request);
	assert(asked(0) == -EBADMSG);
	end();
}

UNIT(decoded_names_are_checked)
{
	begin();
	answer.kind = SYMBOLIZER_WIRE_DEMANGLE;
	answer.count = 0;
	memcpy(answer.text, "f()", 4);
	answer.size = symbolizer_wire_size(0) + 4;
	assert(answered(answer.size) == 0 && strcmp(received.text, "f()") == 0);
	answer.size--; /* no NUL */
	assert(answered(answer.size) == -EBADMSG);
	answer.size += 2; /* bytes behind the NUL */
	assert(answered(answer.size) == -EBADMSG);
	answer.size = symbolizer_wire_size(0);
	assert(answered(answer.size) == -EBADMSG);
	answer.size = symbolizer_wire_size(1);
	answer.count = 1;
	assert(answered(answer.size) == -EBADMSG);
	end();
}

UNIT(requests_with_a_wrong_head_are_refused)
{
	begin();
	request.magic++;
	assert(asked(1) == -EBADMSG);
	request.magic--;
	request.version++;
	assert(asked(1) == -EBADMSG);
	request.version--;
	request.size++;
	assert(asked(1) == -EBADMSG);
	request.size--;
	assert(asked(1) == 0);
	assert(send(pair[0], &request, request.size - 1, 0) == request.size - 1);
	assert(symbolizer_wire_hear(pair[1], &request, (int[SYMBOLIZER_WIRE_FILES]){0}) ==
	       -EBADMSG);
	assert(close(pair[0]) == 0);
	assert(symbolizer_wire_hear(pair[1], &request, (int[SYMBOLIZER_WIRE_FILES]){0}) == -EPIPE);
	assert(close(pair[1]) == 0);
}
