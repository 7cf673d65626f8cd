/* SPDX-License-Identifier: Apache-2.0 */

/* Sending and receiving; nothing that was received is handed on before it was checked. */

#include "symbol/symbolizer-wire.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bits.h"

union symbolizer_wire_control {
	char space[CMSG_SPACE(SYMBOLIZER_WIRE_FILES * sizeof(int))];
	struct cmsghdr align;
};

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

static int symbolizer_wire_send(int socket, const struct msghdr *header, int flags)
{
	while (sendmsg(socket, header, flags | MSG_NOSIGNAL) < 0) {
		if (errno != EINTR)
			return -errno;
	}
	return 0;
}

int symbolizer_wire_ask(int socket, const struct symbolizer_wire_request *request,
			const int files[SYMBOLIZER_WIRE_FILES])
{
	union symbolizer_wire_control control = {.space = {0}};
	struct iovec vector = {
		.iov_base = (void *)(uintptr_t)request, /* only read */
		.iov_len = request->size,
	};
	struct msghdr header = {.msg_iov = &vector, .msg_iovlen = 1};
	size_t count = 0;

	while (count < SYMBOLIZER_WIRE_FILES && files[count] >= 0)
		count++;
	if (count > 0) {
		header.msg_control = control.space;
		header.msg_controllen = CMSG_SPACE(count * sizeof(int));
		control.align.cmsg_level = SOL_SOCKET;
		control.align.cmsg_type = SCM_RIGHTS;
		control.align.cmsg_len = CMSG_LEN(count * sizeof(int));
		memcpy(CMSG_DATA(&control.align), files, count * sizeof(int));
	}
	return symbolizer_wire_send(socket, &header, MSG_DONTWAIT);
}

int symbolizer_wire_tell(int socket, const struct symbolizer_wire_answer *answer)
{
	struct iovec vector = {
		.iov_base = (void *)(uintptr_t)answer, /* only read */
		.iov_len = answer->size,
	};
	const struct msghdr header = {.msg_iov = &vector, .msg_iovlen = 1};

	return symbolizer_wire_send(socket, &header, 0);
}

static void symbolizer_wire_take(struct msghdr *header, int ret_files[SYMBOLIZER_WIRE_FILES])
{
	for (struct cmsghdr *at = CMSG_FIRSTHDR(header); at; at = CMSG_NXTHDR(header, at)) {
		size_t length = at->cmsg_len - CMSG_LEN(0);

		if (at->cmsg_level == SOL_SOCKET && at->cmsg_type == SCM_RIGHTS)
			memcpy(ret_files, CMSG_DATA(at),
			       bits_min(length, SYMBOLIZER_WIRE_FILES * sizeof(int)));
	}
}

/* Whether there is a text that ends with the last of so many bytes. */
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
	union symbolizer_wire_control control;
	struct symbolizer_wire_request request;
	struct iovec vector = {.iov_base = &request, .iov_len = sizeof(request)};
	struct msghdr header = {
		.msg_iov = &vector,
		.msg_iovlen = 1,
		.msg_control = control.space,
		.msg_controllen = sizeof(control.space),
	};
	int files[SYMBOLIZER_WIRE_FILES] = {-1, -1};
	ssize_t n;

	do {
		n = recvmsg(socket, &header, MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	symbolizer_wire_take(&header, files);
	if (!(header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) &&
	    symbolizer_wire_is_request(&request, (size_t)n, files[0] >= 0)) {
		memcpy(ret_request, &request, (size_t)n);
		memcpy(ret_files, files, sizeof(files));
		return 0;
	}
	for (size_t i = 0; i < SYMBOLIZER_WIRE_FILES; i++) {
		if (files[i] >= 0)
			(void)close(files[i]); /* open for reading only */
	}
	return n == 0 ? -EPIPE : -EBADMSG;
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
	struct symbolizer_wire_answer answer;
	struct iovec vector = {.iov_base = &answer, .iov_len = sizeof(answer)};
	struct msghdr header = {.msg_iov = &vector, .msg_iovlen = 1}; /* no descriptors: dropped */
	ssize_t n;

	do {
		n = recvmsg(socket, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno == ECONNRESET ? -EPIPE : -errno;
	if (n == 0)
		return -EPIPE;
	if (header.msg_flags & (MSG_TRUNC | MSG_CTRUNC) ||
	    !symbolizer_wire_is_answer(&answer, (size_t)n) || answer.serial != serial)
		return -EBADMSG;
	memcpy(ret_answer, &answer, (size_t)n);
	return 0;
}
