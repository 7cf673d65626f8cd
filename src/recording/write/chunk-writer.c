/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A chunk is put together in memory and written at its offset by one call. A file that is cut
 * anywhere is therefore cut within its last chunk, whose hashes do not match then.
 */

#include "recording/write/chunk-writer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

#include "base/bits.h"
#include "base/hash.h"

#define CHUNK_LEVEL 1 /* higher ones cannot keep up with an application */

/* The skippable frame: magic, length, then the chunk. */
#define CHUNK_FRAME_HEAD 8u
#define CHUNK_HEAD (CHUNK_FRAME_HEAD + sizeof(struct recording_chunk))

/* The end's JSON is shorter. */
#define CHUNK_END_MAX 8192u

struct chunk_writer {
	int fd;
	int failed; /* negative errno */
	uint64_t size, size_max, last;
	uint64_t index; /* offset of the last index, 0 = none */
	ZSTD_CCtx *zstd;
	uint8_t *buffer;
	size_t capacity;
	uint32_t entry_count;
	struct recording_entry entries[RECORDING_INDEX_EVERY]; /* since the last index */
};

int chunk_writer_new(struct chunk_writer **ret_writer, int fd, uint64_t size_max)
{
	struct chunk_writer *writer = calloc(1, sizeof(*writer));

	if (!writer)
		return -ENOMEM;
	writer->fd = fd;
	writer->size_max = size_max ? bits_max(size_max, CHUNK_WRITER_SIZE_MIN) : UINT64_MAX;
	writer->zstd = ZSTD_createCCtx();
	if (!writer->zstd ||
	    ZSTD_isError(
		    ZSTD_CCtx_setParameter(writer->zstd, ZSTD_c_compressionLevel, CHUNK_LEVEL)) ||
	    /* For zstd's own test of the file; our hash is of the compressed bytes. */
	    ZSTD_isError(ZSTD_CCtx_setParameter(writer->zstd, ZSTD_c_checksumFlag, 1))) {
		chunk_writer_free(writer);
		return -ENOMEM;
	}
	*ret_writer = writer;
	return 0;
}

struct chunk_writer *chunk_writer_free(struct chunk_writer *writer)
{
	if (!writer)
		return NULL;
	ZSTD_freeCCtx(writer->zstd);
	free(writer->buffer);
	free(writer);
	return NULL;
}

static int chunk_room(struct chunk_writer *writer, size_t needed)
{
	uint8_t *buffer;

	if (needed <= writer->capacity)
		return 0;
	needed = bits_align_up(needed, 65536);
	buffer = realloc(writer->buffer, needed);
	if (!buffer)
		return -ENOMEM;
	writer->buffer = buffer;
	writer->capacity = needed;
	return 0;
}

/* The contents as one frame behind the place of the head. Return: its length, or -ENOMEM. */
static int64_t chunk_compress(struct chunk_writer *writer, uint64_t size,
			      const struct chunk_part *parts, size_t count)
{
	ZSTD_outBuffer out;
	int r = chunk_room(writer, CHUNK_HEAD + ZSTD_compressBound(size) + count * 32);

	if (r < 0)
		return r;
	out = (ZSTD_outBuffer){.dst = writer->buffer + CHUNK_HEAD,
			       .size = writer->capacity - CHUNK_HEAD};
	(void)ZSTD_CCtx_reset(writer->zstd, ZSTD_reset_session_only); /* cannot fail */
	(void)ZSTD_CCtx_setPledgedSrcSize(writer->zstd, size);        /* nor this, after a reset */
	for (size_t i = 0; i < count; i++) {
		ZSTD_inBuffer in = {.src = parts[i].bytes, .size = parts[i].length};
		ZSTD_EndDirective how = i + 1 == count ? ZSTD_e_end : ZSTD_e_continue;

		if (ZSTD_compressStream2(writer->zstd, &out, &in, how) != 0 && how == ZSTD_e_end)
			return -ENOMEM; /* there is room for everything, so it had no memory */
		if (in.pos != in.size)
			return -ENOMEM;
	}
	return (int64_t)out.pos;
}

static void chunk_head(struct chunk_writer *writer, const struct recording_entry *entry)
{
	const uint32_t frame[2] = {RECORDING_FRAME, sizeof(struct recording_chunk)};
	struct recording_chunk chunk = {
		.magic = RECORDING_MAGIC,
		.major = RECORDING_MAJOR,
		.minor = RECORDING_MINOR,
		.index = writer->index,
		.entry = *entry,
	};

	if (entry->length)
		chunk.contents_hash = hash_bytes(writer->buffer + CHUNK_HEAD, entry->length);
	chunk.hash = hash_bytes(&chunk, offsetof(struct recording_chunk, hash));
	memcpy(writer->buffer, frame, sizeof(frame));
	memcpy(writer->buffer + CHUNK_FRAME_HEAD, &chunk, sizeof(chunk));
}

/* One write, unless the disk takes less: then the file is cut back to whole chunks. */
static int chunk_write(struct chunk_writer *writer, size_t length)
{
	size_t done = 0;
	int r;

	while (done < length) {
		ssize_t n = pwrite(writer->fd, writer->buffer + done, length - done,
				   (off_t)(writer->size + done));

		if (n > 0) {
			done += (size_t)n;
			continue;
		}
		if (n < 0 && errno == EINTR)
			continue;
		r = n < 0 ? -errno : -EIO;
		/* If it cannot be cut, the torn chunk stays, which readers find. */
		(void)!ftruncate(writer->fd, (off_t)writer->size);
		return r;
	}
	writer->size += length;
	writer->last = length;
	return 0;
}

/* What the last index and the end may still need. */
static uint64_t chunk_reserve(const struct chunk_writer *writer)
{
	return 2 * CHUNK_HEAD + ZSTD_compressBound(sizeof(writer->entries)) + CHUNK_END_MAX;
}

/* Writes a chunk whose second frame is in the buffer; size and length are the entry's. */
static int chunk_finish(struct chunk_writer *writer, const struct recording_entry *entry,
			uint64_t reserve)
{
	struct recording_entry full = *entry;
	int r;

	if (writer->size + CHUNK_HEAD + full.length + reserve > writer->size_max)
		return -EFBIG;
	full.offset = writer->size;
	chunk_head(writer, &full);
	r = chunk_write(writer, CHUNK_HEAD + full.length);
	if (r == 0 && full.kind != RECORDING_INDEX && full.kind != RECORDING_END)
		writer->entries[writer->entry_count++] = full;
	return r;
}

static int chunk_append(struct chunk_writer *writer, const struct recording_entry *entry,
			const struct chunk_part *parts, size_t count, uint64_t reserve)
{
	struct recording_entry full = *entry;
	uint64_t size = 0;
	int64_t length = 0;

	for (size_t i = 0; i < count; i++)
		size += parts[i].length;
	if (size > RECORDING_SIZE_MAX)
		return -EMSGSIZE;
	length = size > 0 ? chunk_compress(writer, size, parts, count)
			  : chunk_room(writer, CHUNK_HEAD);
	if (length < 0)
		return (int)length;
	full.size = (uint32_t)size;
	full.length = (uint32_t)length;
	return chunk_finish(writer, &full, reserve);
}

/* The chunks since the last index; made at the moment of the one that was added last. */
static int chunk_index(struct chunk_writer *writer, uint64_t reserve)
{
	const struct recording_entry *last = &writer->entries[writer->entry_count - 1];
	const struct chunk_part part = {writer->entries,
					writer->entry_count * sizeof(writer->entries[0])};
	struct recording_entry entry = {
		.kind = RECORDING_INDEX,
		.book = RECORDING_NONE,
		.device = RECORDING_NONE,
		.count = writer->entry_count,
		.stamp_first = last->stamp_now,
		.stamp_last = last->stamp_now,
		.stamp_now = last->stamp_now,
		.monotonic_now = last->monotonic_now,
		.realtime_now = last->realtime_now,
	};
	uint64_t offset = writer->size;
	int r = chunk_append(writer, &entry, &part, 1, reserve);

	if (r == 0) {
		writer->index = offset;
		writer->entry_count = 0;
	}
	return r;
}

/* After each chunk: an index, if it is time for one. */
static int chunk_added(struct chunk_writer *writer, int r)
{
	if (r == 0 && writer->entry_count == RECORDING_INDEX_EVERY) {
		uint64_t last = writer->last;

		r = chunk_index(writer, chunk_reserve(writer));
		writer->last = last;
	}
	if (r < 0 && r != -EMSGSIZE)
		writer->failed = r;
	return r;
}

int chunk_writer_add(struct chunk_writer *writer, const struct recording_entry *entry,
		     const struct chunk_part *parts, size_t count)
{
	if (writer->failed)
		return writer->failed;
	return chunk_added(writer,
			   chunk_append(writer, entry, parts, count, chunk_reserve(writer)));
}

int chunk_writer_copy(struct chunk_writer *writer, const struct recording_entry *entry,
		      const void *frame)
{
	int r = writer->failed;

	if (r == 0)
		r = chunk_room(writer, CHUNK_HEAD + entry->length);
	if (r < 0)
		return r;
	if (entry->length)
		memcpy(writer->buffer + CHUNK_HEAD, frame, entry->length);
	return chunk_added(writer, chunk_finish(writer, entry, chunk_reserve(writer)));
}

int chunk_writer_end(struct chunk_writer *writer, const struct recording_entry *entry,
		     const char *json)
{
	const struct chunk_part part = {json, strlen(json)};
	struct recording_entry end = *entry;
	int r = 0;

	end.kind = RECORDING_END;
	/* Without an index a reader goes from chunk to chunk: the end says more than the index. */
	if (writer->entry_count > 0)
		(void)chunk_index(writer, CHUNK_HEAD + CHUNK_END_MAX);
	if (part.length > CHUNK_END_MAX / 2)
		r = -EMSGSIZE;
	return r < 0 ? r : chunk_append(writer, &end, &part, 1, 0);
}

uint64_t chunk_writer_size(const struct chunk_writer *writer)
{
	return writer->size;
}

uint64_t chunk_writer_last(const struct chunk_writer *writer)
{
	return writer->last;
}

int chunk_writer_failed(const struct chunk_writer *writer)
{
	return writer->failed;
}
