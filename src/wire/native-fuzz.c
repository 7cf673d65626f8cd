/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The decoders of the native protocol with arbitrary packets. The first byte says whether the rest
 * is a request or a packet of a reply; whatever is accepted must satisfy what the header promises.
 */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/testing/unit.h"
#include "wire/native.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fuzz_request(const uint8_t *data, size_t size)
{
	struct native_request request;

	if (native_request_decode(data, size, &request) < 0)
		return;
	assert(native_is_request(data, size));
	assert(request.kind > 0 && request.kind < NATIVE_KINDS);
	assert(memcmp(&request, data, sizeof(request)) == 0);
}

static void fuzz_driver_memory(const void *payload, size_t length)
{
	struct native_driver_memory memory;
	uint32_t count;

	if (native_driver_memory_count(length, &count) < 0)
		return;
	assert(count * sizeof(memory) == length);
	for (uint32_t i = 0; i < count; i++) {
		if (native_driver_memory_get(payload, i, &memory) == 0)
			assert(memory.pid > 0 && memory.number < NATIVE_DEVICES);
	}
}

static void fuzz_reply(const uint8_t *data, size_t size)
{
	struct native_reply reply;
	struct native_process process;
	struct native_part part;
	const void *payload, *parts;

	if (native_reply_decode(data, size, &reply, &payload) < 0)
		return;
	assert((const uint8_t *)payload + reply.length == data + size);
	fuzz_driver_memory(payload, reply.length);
	if (native_process_decode(payload, reply.length, &process, &parts) < 0)
		return;
	for (uint32_t i = 0; i < process.parts; i++) {
		if (native_part_get(parts, i, &part) == 0)
			assert(part.device < NATIVE_DEVICES);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *copy;

	if (size == 0)
		return 0;
	/* A separate allocation, so that a read beyond its end is detected. */
	copy = malloc(size);
	assert(copy);
	memcpy(copy, data + 1, size - 1);
	if (data[0] & 1)
		fuzz_reply(copy, size - 1);
	else
		fuzz_request(copy, size - 1);
	free(copy);
	return 0;
}
