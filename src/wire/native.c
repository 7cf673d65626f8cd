/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Checking what arrives on the native socket. Every field with a limited range is checked here,
 * once, so that users of a decoded struct can rely on it.
 */

#include "wire/native.h"

#include <errno.h>
#include <string.h>

void native_request_init(struct native_request *request, enum native_kind kind)
{
	*request = (struct native_request){
		.magic = NATIVE_REQUEST_MAGIC,
		.version = NATIVE_VERSION,
		.size = sizeof(*request),
		.kind = kind,
	};
}

bool native_is_request(const void *bytes, size_t length)
{
	uint32_t magic;

	if (length < sizeof(magic))
		return false;
	memcpy(&magic, bytes, sizeof(magic));
	return magic == NATIVE_REQUEST_MAGIC;
}

static bool native_is_zero(const void *bytes, size_t length)
{
	const unsigned char *at = bytes;

	for (size_t i = 0; i < length; i++) {
		if (at[i])
			return false;
	}
	return true;
}

/* Printable ASCII, terminated by NUL, and only NULs after it. */
static bool native_is_word(const char *text, size_t size)
{
	size_t length = strnlen(text, size);

	for (size_t i = 0; i < length; i++) {
		if (text[i] <= ' ' || text[i] > '~')
			return false;
	}
	return length < size && native_is_zero(text + length, size - length);
}

/* Any bytes, but only NULs after the first NUL. */
static bool native_is_field(const char *text, size_t size)
{
	size_t length = strnlen(text, size);

	return native_is_zero(text + length, size - length);
}

static bool native_request_is_right(const struct native_request *request)
{
	return request->kind > 0 && request->kind < NATIVE_KINDS &&
	       !(request->want & ~NATIVE_WANT_ALL) &&
	       native_is_zero(request->reserved, sizeof(request->reserved));
}

int native_request_decode(const void *bytes, size_t length, struct native_request *ret_request)
{
	struct native_request request;
	uint32_t head[2];

	if (length < sizeof(head))
		return -EBADMSG;
	memcpy(head, bytes, sizeof(head));
	if (head[0] != NATIVE_REQUEST_MAGIC)
		return -EBADMSG;
	if (head[1] != NATIVE_VERSION)
		return -EPROTONOSUPPORT;
	if (length != sizeof(request))
		return -EBADMSG;
	memcpy(&request, bytes, sizeof(request));
	if (request.size != sizeof(request) || !native_request_is_right(&request))
		return -EBADMSG;
	*ret_request = request;
	return 0;
}

void native_reply_init(struct native_reply *reply, uint32_t kind)
{
	*reply = (struct native_reply){
		.magic = NATIVE_REPLY_MAGIC,
		.version = NATIVE_VERSION,
		.kind = kind,
	};
}

int native_reply_decode(const void *bytes, size_t length, struct native_reply *ret_reply,
			const void **ret_payload)
{
	struct native_reply reply;

	if (length < sizeof(reply) || length > NATIVE_PACKET_MAX)
		return -EBADMSG;
	memcpy(&reply, bytes, sizeof(reply));
	if (reply.magic != NATIVE_REPLY_MAGIC)
		return -EBADMSG;
	if (reply.version != NATIVE_VERSION)
		return -EPROTONOSUPPORT;
	if (reply.kind >= NATIVE_KINDS || reply.flags & ~NATIVE_END || reply.status > 0 ||
	    (reply.status && !(reply.flags & NATIVE_END)) ||
	    reply.length != length - sizeof(reply) || reply.reserved[0] || reply.reserved[1])
		return -EBADMSG;
	*ret_reply = reply;
	*ret_payload = (const char *)bytes + sizeof(reply);
	return 0;
}

int native_process_decode(const void *payload, size_t length, struct native_process *ret_process,
			  const void **ret_parts)
{
	struct native_process process;

	if (length < sizeof(process))
		return -EBADMSG;
	memcpy(&process, payload, sizeof(process));
	if (process.parts > NATIVE_PARTS_MAX ||
	    length != sizeof(process) + process.parts * sizeof(struct native_part) ||
	    process.flags & ~NATIVE_PROCESS_FLAGS || process.reserved || process.pid == 0 ||
	    process.pid > INT32_MAX || !native_is_field(process.comm, sizeof(process.comm)) ||
	    !native_is_word(process.container, sizeof(process.container)))
		return -EBADMSG;
	*ret_process = process;
	*ret_parts = (const char *)payload + sizeof(process);
	return 0;
}

uint32_t native_part_number(const struct native_part *part, uint32_t shift)
{
	return part->flags >> shift & NATIVE_PART_NUMBER;
}

static bool native_part_is_right(const struct native_part *part)
{
	return part->device < NATIVE_DEVICES && !(part->flags & ~NATIVE_PART_FLAGS) &&
	       native_part_number(part, NATIVE_PART_JOINED) <= NATIVE_PART_NUMBER_MAX &&
	       native_part_number(part, NATIVE_PART_UNMATCHED) <= NATIVE_PART_NUMBER_MAX &&
	       native_is_field(part->arch, sizeof(part->arch)) &&
	       native_is_field(part->card, sizeof(part->card));
}

int native_part_get(const void *parts, uint32_t index, struct native_part *ret_part)
{
	struct native_part part;

	memcpy(&part, (const char *)parts + index * sizeof(part), sizeof(part));
	if (!native_part_is_right(&part))
		return -EBADMSG;
	for (uint32_t type = 0; type < NATIVE_TYPES; type++) {
		if (part.memory[type].bound > 2 || part.memory[type].flags & ~NATIVE_MEMORY_FLAGS)
			return -EBADMSG;
	}
	*ret_part = part;
	return 0;
}

int native_driver_memory_count(size_t length, uint32_t *ret_count)
{
	if (length == 0 || length > NATIVE_PAYLOAD_MAX ||
	    length % sizeof(struct native_driver_memory) != 0)
		return -EBADMSG;
	*ret_count = (uint32_t)(length / sizeof(struct native_driver_memory));
	return 0;
}

int native_driver_memory_get(const void *payload, uint32_t index,
			     struct native_driver_memory *ret_memory)
{
	struct native_driver_memory memory;

	memcpy(&memory, (const char *)payload + index * sizeof(memory), sizeof(memory));
	if (memory.pid == 0 || memory.pid > INT32_MAX || memory.number >= NATIVE_DEVICES ||
	    memory.reserved)
		return -EBADMSG;
	*ret_memory = memory;
	return 0;
}
