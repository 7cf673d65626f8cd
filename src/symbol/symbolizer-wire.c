/* SPDX-License-Identifier: Apache-2.0 */

/* Sends and receives; everything received is checked before it is passed on. */

#include "symbol/symbolizer-wire.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/files/fd-pass.h"

uint32_t symbolizer_wire_size(uint32_t count)
{
	return (uint32_t)(offsetof(struct symbolizer_wire_answer, frames) +
			  count * sizeof(struct resolve_frame));
}

uint32_t symbolizer_wire_request_size(const struct symbolizer_wire_request *request)
{
	size_t name = request->kind == SYMBOLIZER_WIRE_DEMANGLE ? strlen(request->name) + 1 : 0;

	return (uint32_t)(offsetof(struct symbolizer_wire_request, name) + name);
}

int symbolizer_wire_ask(int socket, const struct symbolizer_wire_request *request,
			const int files[SYMBOLIZER_WIRE_FILES])
{
	size_t count = 0;

	while (count < SYMBOLIZER_WIRE_FILES && files[count] >= 0)
		count++;
	return fd_pass_send(socket, request, request->size, files, count, MSG_DONTWAIT);
}

int symbolizer_wire_tell(int socket, const struct symbolizer_wire_answer *answer)
{
	return fd_pass_send(socket, answer, answer->size, NULL, 0, 0);
}

/* Whether the only NUL is the last of @length bytes. */
static bool symbolizer_wire_is_text(const char *text, size_t length)
{
	return length > 0 && memchr(text, 0, length) == text + length - 1;
}

static bool symbolizer_wire_is_request(const struct symbolizer_wire_request *request, size_t length,
				       bool has_file)
{
	size_t head = offsetof(struct symbolizer_wire_request, name);

	if (length < head || request->magic != SYMBOLIZER_WIRE_MAGIC ||
	    request->version != SYMBOLIZER_WIRE_VERSION || request->size != length)
		return false;
	if (request->kind == SYMBOLIZER_WIRE_FIND)
		return has_file && length == head;
	if (has_file || request->address != 0)
		return false;
	return request->kind == SYMBOLIZER_WIRE_DEMANGLE
		       ? symbolizer_wire_is_text(request->name, length - head)
		       : request->kind == SYMBOLIZER_WIRE_PROBE && length == head;
}

int symbolizer_wire_hear(int socket, struct symbolizer_wire_request *ret_request,
			 int ret_files[SYMBOLIZER_WIRE_FILES])
{
	CLEANUP_FD_PASS struct fd_pass files = FD_PASS_WANT(SYMBOLIZER_WIRE_FILES);
	struct symbolizer_wire_request request;
	ssize_t n = fd_pass_receive(socket, &request, sizeof(request), &files, 0);

	if (n < 0)
		return (int)n;
	if (n == 0)
		return -EPIPE;
	if (files.is_cut || (size_t)n > sizeof(request) ||
	    !symbolizer_wire_is_request(&request, (size_t)n, files.fds[0] >= 0))
		return -EBADMSG;
	memcpy(ret_request, &request, (size_t)n);
	for (size_t i = 0; i < SYMBOLIZER_WIRE_FILES; i++)
		ret_files[i] = cleanup_steal_fd(&files.fds[i]);
	return 0;
}

static bool symbolizer_wire_ends(const char text[RESOLVE_TEXT_SIZE])
{
	return strnlen(text, RESOLVE_TEXT_SIZE) < RESOLVE_TEXT_SIZE;
}

static bool symbolizer_wire_is_answer(const struct symbolizer_wire_answer *answer, size_t length)
{
	size_t head = symbolizer_wire_size(0);

	if (length < head || answer->magic != SYMBOLIZER_WIRE_MAGIC ||
	    answer->version != SYMBOLIZER_WIRE_VERSION || answer->size != length ||
	    answer->count > RESOLVE_FRAMES_MAX || answer->result > 0 || answer->has_debug > 1 ||
	    answer->reserved != 0 || answer->build_id_length > RESOLVE_BUILD_ID_MAX ||
	    !symbolizer_wire_ends(answer->link))
		return false;
	if (answer->kind == SYMBOLIZER_WIRE_DEMANGLE)
		return answer->count == 0 && symbolizer_wire_is_text(answer->text, length - head);
	if ((answer->kind != SYMBOLIZER_WIRE_FIND && answer->kind != SYMBOLIZER_WIRE_PROBE) ||
	    length != symbolizer_wire_size(answer->count))
		return false;
	for (uint32_t i = 0; i < answer->count; i++) {
		const struct resolve_frame *frame = &answer->frames[i];

		if (frame->reserved != 0 || !symbolizer_wire_ends(frame->function) ||
		    !symbolizer_wire_ends(frame->file))
			return false;
	}
	return true;
}

int symbolizer_wire_receive(int socket, uint64_t serial, struct symbolizer_wire_answer *ret_answer)
{
	CLEANUP_FD_PASS struct fd_pass none = FD_PASS_WANT(0);
	struct symbolizer_wire_answer answer;
	ssize_t n = fd_pass_receive(socket, &answer, sizeof(answer), &none, MSG_DONTWAIT);

	if (n == 0 || n == -ECONNRESET)
		return -EPIPE;
	if (n < 0)
		return (int)n;
	if (none.is_cut || (size_t)n > sizeof(answer) ||
	    !symbolizer_wire_is_answer(&answer, (size_t)n) || answer.serial != serial)
		return -EBADMSG;
	memcpy(ret_answer, &answer, (size_t)n);
	return 0;
}
