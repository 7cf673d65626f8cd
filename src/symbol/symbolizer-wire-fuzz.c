/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Every packet, as an answer or as a request, is either refused or valid: all texts end within it.
 * The author of a file may control the process that answers.
 */

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/testing/unit.h"
#include "symbol/symbolizer-wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool ends(const char *text, size_t size)
{
	return memchr(text, '\0', size);
}

static void check_answer(const struct symbolizer_wire_answer *answer, size_t size)
{
	assert(answer->size == size && answer->count <= RESOLVE_FRAMES_MAX);
	assert(answer->build_id_length <= RESOLVE_BUILD_ID_MAX);
	assert(ends(answer->link, sizeof(answer->link)));
	if (answer->kind == SYMBOLIZER_WIRE_DEMANGLE) {
		assert(ends(answer->text, size - offsetof(struct symbolizer_wire_answer, text)));
		return;
	}
	assert(symbolizer_wire_size(answer->count) == size);
	for (uint32_t i = 0; i < answer->count; i++) {
		assert(ends(answer->frames[i].function, RESOLVE_TEXT_SIZE));
		assert(ends(answer->frames[i].file, RESOLVE_TEXT_SIZE));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct symbolizer_wire_answer answer;
	static struct symbolizer_wire_request request;
	int files[SYMBOLIZER_WIRE_FILES];
	uint64_t serial = 0;
	int pair[2], r;

	/* Use the serial of the packet, or the fuzzer would have to guess it. */
	if (size >= offsetof(struct symbolizer_wire_answer, result))
		memcpy(&serial, data + offsetof(struct symbolizer_wire_answer, serial),
		       sizeof(serial));
	if (size == 0 || size > sizeof(answer))
		return 0;
	assert(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
	assert(send(pair[0], data, size, 0) == (ssize_t)size);
	assert(send(pair[0], data, size, 0) == (ssize_t)size);
	r = symbolizer_wire_receive(pair[1], serial, &answer);
	assert(r == 0 || r == -EBADMSG);
	if (r == 0)
		check_answer(&answer, size);
	r = symbolizer_wire_hear(pair[1], &request, files);
	assert(r == 0 || r == -EBADMSG);
	if (r == 0) {
		assert(request.kind != SYMBOLIZER_WIRE_FIND); /* FIND has a file */
		assert(request.size == size && symbolizer_wire_request_size(&request) == size);
	}
	assert(close(pair[0]) == 0 && close(pair[1]) == 0);
	return 0;
}
