/* SPDX-License-Identifier: Apache-2.0 */

/* Reads every chunk and checks both of its hashes. */

#include "recording/testing/testing-chunks.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/hash.h"
#include "base/testing/unit.h"

#define CHUNKS_HEAD (8u + sizeof(struct recording_chunk))

/* The chunk at @offset; false if it is not whole. */
static bool chunks_next(int fd, uint64_t offset, struct testing_chunk *ret_chunk)
{
	struct recording_chunk *head = &ret_chunk->head;
	CLEANUP_FREE uint8_t *frame = NULL;
	uint32_t start[2];

	if (pread(fd, start, sizeof(start), (off_t)offset) != sizeof(start) ||
	    pread(fd, head, sizeof(*head), (off_t)(offset + 8)) != sizeof(*head) ||
	    start[0] != RECORDING_FRAME || start[1] != sizeof(*head) ||
	    head->magic != RECORDING_MAGIC ||
	    head->hash != hash_bytes(head, offsetof(struct recording_chunk, hash)))
		return false;
	ret_chunk->contents = NULL;
	if (head->entry.length == 0)
		return true;
	frame = malloc(head->entry.length);
	assert(frame);
	if (pread(fd, frame, head->entry.length, (off_t)(offset + CHUNKS_HEAD)) !=
		    (ssize_t)head->entry.length ||
	    head->contents_hash != hash_bytes(frame, head->entry.length))
		return false;
	ret_chunk->contents = malloc(head->entry.size);
	assert(ret_chunk->contents);
	assert(ZSTD_decompress(ret_chunk->contents, head->entry.size, frame, head->entry.length) ==
	       head->entry.size);
	return true;
}

void testing_chunks_read(struct testing_chunks *ret_chunks, const char *path)
{
	CLEANUP_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct testing_chunk chunk;
	uint64_t offset = 0, index = 0;
	struct stat st;

	assert(fd >= 0 && fstat(fd, &st) == 0);
	*ret_chunks = (struct testing_chunks){.size = (uint64_t)st.st_size};
	while (chunks_next(fd, offset, &chunk)) {
		ret_chunks->chunks = array_grow(ret_chunks->chunks, &ret_chunks->capacity,
						ret_chunks->count + 1, sizeof(chunk));
		assert(ret_chunks->chunks);
		ret_chunks->chunks[ret_chunks->count++] = chunk;
		assert(chunk.head.entry.offset == offset);
		assert(chunk.head.index == index);
		if (chunk.head.entry.kind == RECORDING_INDEX)
			index = offset;
		offset += CHUNKS_HEAD + chunk.head.entry.length;
	}
	ret_chunks->torn = ret_chunks->size - offset;
}

void testing_chunks_deinit(struct testing_chunks *chunks)
{
	for (size_t i = 0; i < chunks->count; i++)
		free(chunks->chunks[i].contents);
	free(chunks->chunks);
	*chunks = (struct testing_chunks){0};
}

const struct testing_chunk *testing_chunks_find(const struct testing_chunks *chunks, uint32_t kind,
						size_t n)
{
	for (size_t i = 0; i < chunks->count; i++) {
		if (chunks->chunks[i].head.entry.kind == kind && n-- == 0)
			return &chunks->chunks[i];
	}
	return NULL;
}

size_t testing_chunks_count(const struct testing_chunks *chunks, uint32_t kind)
{
	size_t count = 0;

	while (testing_chunks_find(chunks, kind, count))
		count++;
	return count;
}
