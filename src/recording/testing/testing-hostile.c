/* SPDX-License-Identifier: Apache-2.0 */

/* Applies the patches chunk by chunk. */

#include "recording/testing/testing-hostile.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zstd.h>

#include "base/bits.h"
#include "base/hash.h"
#include "base/testing/unit.h"
#include "recording/testing/testing-chunks.h"

struct hostile_input {
	const uint8_t *data;
	size_t size;
};

static bool hostile_take(struct hostile_input *input, void *to, size_t length)
{
	if (input->size < length)
		return false;
	memcpy(to, input->data, length);
	input->data += length;
	input->size -= length;
	return true;
}

/* Applies the patches of one chunk. Return: the size of its contents. */
static uint32_t hostile_patch(struct hostile_input input, uint8_t number,
			      struct recording_entry *entry, uint8_t *contents)
{
	struct {
		uint8_t chunk, where;
		uint8_t offset[2];
		uint8_t length;
	} head;
	uint32_t size = entry->size;

	while (hostile_take(&input, &head, sizeof(head))) {
		size_t offset = (size_t)head.offset[0] | (size_t)head.offset[1] << 8;
		size_t length = bits_min(head.length, input.size);
		size_t room = head.where == 0 ? sizeof(*entry) : size;
		uint8_t *to = head.where == 0 ? (uint8_t *)entry : contents;

		if (head.chunk == number && head.where > 1)
			size = (uint32_t)bits_min(size, offset);
		else if (head.chunk == number && offset < room)
			memcpy(to + offset, input.data, bits_min(length, room - offset));
		input.data += length;
		input.size -= length;
	}
	return size;
}

static void hostile_put(int fd, uint64_t *offset, const void *bytes, size_t length)
{
	assert(pwrite(fd, bytes, length, (off_t)*offset) == (ssize_t)length);
	*offset += length;
}

static void hostile_chunk(int fd, uint64_t *offset, const struct testing_chunk *good,
			  uint8_t number, const struct hostile_input *input)
{
	static const uint32_t frame[2] = {RECORDING_FRAME, sizeof(struct recording_chunk)};
	struct recording_chunk head = good->head;
	uint8_t *contents = malloc(good->head.entry.size + 1);
	size_t bound = ZSTD_compressBound(good->head.entry.size);
	uint8_t *packed = malloc(bound);
	uint32_t size, length = 0;

	assert(contents && packed);
	if (good->contents)
		memcpy(contents, good->contents, good->head.entry.size);
	size = hostile_patch(*input, number, &head.entry, contents);
	if (size > 0)
		length = (uint32_t)ZSTD_compress(packed, bound, contents, size, 1);
	/* What an entry says of its place and length is true, or its chunk is not found at all. */
	head.entry.offset = *offset;
	head.entry.length = length;
	if (head.entry.size == good->head.entry.size)
		head.entry.size = size;
	head.index = 0;
	head.contents_hash = hash_bytes(packed, length);
	head.hash = hash_bytes(&head, offsetof(struct recording_chunk, hash));
	hostile_put(fd, offset, frame, sizeof(frame));
	hostile_put(fd, offset, &head, sizeof(head));
	hostile_put(fd, offset, packed, length);
	free(contents);
	free(packed);
}

int testing_hostile_new(const struct testing_chunks *good, const uint8_t *data, size_t size)
{
	struct hostile_input input = {data, size};
	uint64_t offset = 0, missing;
	uint8_t torn = 0;
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	assert(fd >= 0);
	(void)hostile_take(&input, &torn, 1);
	for (size_t i = 0; i < good->count; i++) {
		if (good->chunks[i].head.entry.kind != RECORDING_INDEX)
			hostile_chunk(fd, &offset, &good->chunks[i], (uint8_t)i, &input);
	}
	missing = torn < 128 ? torn : (torn - 127u) * offset / 128;
	assert(ftruncate(fd, (off_t)(offset - bits_min(missing, offset))) == 0);
	return fd;
}
