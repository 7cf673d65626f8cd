/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Every chunk knows the last index before it, and every index the one before. So the way in is the
 * last header of the file that can be found from its end, and from there back to the beginning. The
 * indexes must then describe the file without a gap up to the last of them; if they do not, headers
 * are read one after the other.
 */

#include "recording/read/chunk-file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "base/array.h"
#include "base/bits.h"
#include "base/cleanup.h"
#include "base/hash.h"
#include "recording/read/recording-file.h"

/* The skippable frame of a chunk. */
struct chunk_frame {
	uint32_t magic;
	uint32_t length;
	struct recording_chunk chunk;
};

_Static_assert(sizeof(struct chunk_frame) == 8 + sizeof(struct recording_chunk), "no padding");

#define CHUNK_FRAME sizeof(struct chunk_frame)
#define CHUNK_LENGTH_MAX (RECORDING_SIZE_MAX + (RECORDING_SIZE_MAX >> 7)) /* zstd adds less */
#define CHUNK_WINDOW (UINT64_C(256) << 10)
#define CHUNK_NUMBER_MAX (UINT64_C(1) << 62) /* as in a book */

void chunk_bytes_deinit(struct chunk_bytes *bytes)
{
	free(bytes->bytes);
	*bytes = CHUNK_BYTES_NULL;
}

static int chunk_bytes_room(struct chunk_bytes *bytes, size_t size)
{
	uint8_t *more = array_grow(bytes->bytes, &bytes->capacity, size, 1);

	if (!more)
		return -ENOMEM;
	bytes->bytes = more;
	bytes->size = size;
	return 0;
}

static int chunk_file_pread(const struct chunk_file *file, uint64_t offset, void *ret_bytes,
			    size_t length)
{
	uint8_t *to = ret_bytes;

	while (length > 0) {
		ssize_t n = pread(file->fd, to, length, (off_t)offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return -ENODATA; /* somebody has cut the file */
		to += n;
		offset += (uint64_t)n;
		length -= (size_t)n;
	}
	return 0;
}

static uint64_t chunk_total(const struct recording_entry *entry)
{
	return CHUNK_FRAME + entry->length;
}

static bool chunk_is_stream(uint32_t kind)
{
	return kind == RECORDING_EVENTS || kind == RECORDING_KEYFRAME || kind == RECORDING_GAP ||
	       kind == RECORDING_SITES;
}

/* Whether it can be used. What is of a kind that we do not know is not looked at. */
static bool chunk_is_usable(const struct recording_entry *entry)
{
	if (entry->size > RECORDING_SIZE_MAX || (entry->size == 0) != (entry->length == 0))
		return false;
	if (entry->kind == RECORDING_HEAD || entry->kind == RECORDING_END ||
	    entry->kind == RECORDING_INDEX)
		return true;
	if (entry->book >= RECORDING_BOOKS_MAX || entry->first > CHUNK_NUMBER_MAX ||
	    entry->last > CHUNK_NUMBER_MAX)
		return false;
	if (chunk_is_stream(entry->kind) && entry->device >= BOOK_DEVICES)
		return false;
	if (entry->kind == RECORDING_EVENTS &&
	    (entry->first == 0 || entry->count == 0 || entry->count > RECORDING_EVENTS_MAX ||
	     entry->last - entry->first != entry->count - 1 ||
	     entry->stamp_first > entry->stamp_last))
		return false;
	return entry->kind != RECORDING_GAP || (entry->first > 0 && entry->first <= entry->last);
}

static bool chunk_frame_is_whole(const struct chunk_frame *frame)
{
	const struct recording_chunk *chunk = &frame->chunk;

	return frame->magic == RECORDING_FRAME && frame->length == sizeof(*chunk) &&
	       chunk->magic == RECORDING_MAGIC &&
	       chunk->hash == hash_bytes(chunk, offsetof(struct recording_chunk, hash));
}

/* 0; -EBADMSG: there is no whole chunk; or another negative errno. */
static int chunk_file_header(const struct chunk_file *file, uint64_t offset,
			     struct recording_chunk *ret_chunk)
{
	struct chunk_frame frame;
	int r;

	if (offset > file->size || file->size - offset < CHUNK_FRAME)
		return -EBADMSG;
	r = chunk_file_pread(file, offset, &frame, sizeof(frame));
	if (r < 0)
		return r;
	if (!chunk_frame_is_whole(&frame) || frame.chunk.entry.offset != offset ||
	    frame.chunk.entry.length > CHUNK_LENGTH_MAX ||
	    frame.chunk.entry.length > file->size - offset - CHUNK_FRAME)
		return -EBADMSG;
	*ret_chunk = frame.chunk;
	return 0;
}

static int chunk_file_add(struct chunk_file *file, const struct recording_entry *entry)
{
	struct recording_entry *entries;

	if (entry->kind == RECORDING_INDEX)
		return 0;
	if (file->count >= CHUNK_FILE_ENTRIES_MAX)
		return -EFBIG;
	entries = array_grow(file->entries, &file->capacity, file->count + 1, sizeof(*entries));
	if (!entries)
		return -ENOMEM;
	file->entries = entries;
	entries[file->count] = *entry;
	if (!chunk_is_usable(entry))
		entries[file->count].kind = 0;
	file->count++;
	return 0;
}

/* The contents of the chunk at an offset, which must be of this length, as its header or an index said. */
static int chunk_file_contents(struct chunk_file *file, uint64_t offset, uint32_t length)
{
	const struct chunk_frame *frame;
	int r = chunk_bytes_room(&file->frame, CHUNK_FRAME + length);

	if (r == 0)
		r = chunk_file_pread(file, offset, file->frame.bytes, CHUNK_FRAME + length);
	if (r < 0)
		return r == -ENODATA ? -EBADMSG : r;
	frame = (const struct chunk_frame *)(const void *)file->frame.bytes;
	if (!chunk_frame_is_whole(frame) || frame->chunk.entry.length != length ||
	    frame->chunk.contents_hash != hash_bytes(file->frame.bytes + CHUNK_FRAME, length))
		return -EBADMSG;
	return 0;
}

int chunk_file_read(struct chunk_file *file, const struct recording_entry *entry,
		    struct chunk_bytes *contents)
{
	size_t size;
	int r;

	if (entry->size == 0) {
		contents->size = 0;
		return 0;
	}
	if (entry->size > RECORDING_SIZE_MAX)
		return -EBADMSG;
	r = chunk_file_contents(file, entry->offset, entry->length);
	if (r == 0)
		r = chunk_bytes_room(contents, entry->size);
	if (r < 0)
		return r;
	size = ZSTD_decompressDCtx(file->zstd, contents->bytes, entry->size,
				   file->frame.bytes + CHUNK_FRAME, entry->length);
	return size == entry->size ? 0 : -EBADMSG;
}

/* The last header in a window of the file, by its magic and its hash. */
static int chunk_file_search_window(const struct chunk_file *file, uint64_t from, uint64_t to,
				    uint8_t *window, struct recording_chunk *ret_chunk)
{
	static const uint64_t magic = RECORDING_MAGIC;
	const size_t inside = offsetof(struct chunk_frame, chunk.magic);
	int r = chunk_file_pread(file, from, window, to - from);

	if (r < 0)
		return r;
	for (uint64_t at = to - from - sizeof(magic) + 1; at-- > 0;) {
		if (window[at] != (uint8_t)magic || memcmp(window + at, &magic, sizeof(magic)) != 0)
			continue;
		if (from + at < inside)
			continue;
		r = chunk_file_header(file, from + at - inside, ret_chunk);
		if (r != -EBADMSG)
			return r;
	}
	return -EBADMSG;
}

/* The last chunk of the file that is whole. */
static int chunk_file_search(const struct chunk_file *file, struct recording_chunk *ret_chunk)
{
	CLEANUP_FREE uint8_t *window = malloc(CHUNK_WINDOW);
	uint64_t to = file->size, reach = CHUNK_LENGTH_MAX + CHUNK_WINDOW;
	int r = -EBADMSG;

	if (!window)
		return -ENOMEM;
	while (r == -EBADMSG && to >= CHUNK_FRAME && file->size - to < reach) {
		uint64_t from = to > CHUNK_WINDOW ? to - CHUNK_WINDOW : 0;

		r = chunk_file_search_window(file, from, to, window, ret_chunk);
		if (from == 0)
			break;
		to = from + sizeof(uint64_t) - 1; /* a magic may lie across the border */
	}
	return r;
}

/* The entries of an index must go on where the last one ended. */
static int chunk_file_add_index(struct chunk_file *file, const struct recording_chunk *index,
				struct chunk_bytes *contents)
{
	const struct recording_entry *entry = &index->entry;
	int r = chunk_file_read(file, entry, contents);

	if (r == 0 && contents->size % sizeof(*entry) != 0)
		r = -EBADMSG;
	for (size_t at = 0; r == 0 && at < contents->size; at += sizeof(*entry)) {
		struct recording_entry one;

		memcpy(&one, contents->bytes + at, sizeof(one));
		if (one.offset != file->end || one.length > CHUNK_LENGTH_MAX)
			return -EBADMSG;
		file->end += chunk_total(&one);
		r = chunk_file_add(file, &one);
	}
	if (r == 0 && entry->offset != file->end)
		r = -EBADMSG;
	if (r == 0)
		file->end += chunk_total(entry);
	return r;
}

/* Offsets of all indexes, the last one first. */
struct chunk_chain {
	uint64_t *offsets;
	size_t count, capacity;
};

static void chunk_chain_deinit(struct chunk_chain *chain)
{
	free(chain->offsets);
}

static int chunk_chain_find(const struct chunk_file *file, struct chunk_chain *chain)
{
	struct recording_chunk chunk;
	int r = chunk_file_search(file, &chunk);
	uint64_t next;

	if (r < 0)
		return r;
	next = chunk.entry.kind == RECORDING_INDEX ? chunk.entry.offset : chunk.index;
	while (next) {
		uint64_t *offsets = array_grow(chain->offsets, &chain->capacity, chain->count + 1,
					       sizeof(*offsets));

		if (!offsets)
			return -ENOMEM;
		chain->offsets = offsets;
		offsets[chain->count++] = next;
		r = chunk_file_header(file, next, &chunk);
		if (r < 0)
			return r;
		if (chunk.entry.kind != RECORDING_INDEX || chunk.index >= next)
			return -EBADMSG;
		next = chunk.index;
	}
	return 0;
}

static int chunk_file_read_indexes(struct chunk_file *file)
{
	CLEANUP(chunk_bytes_deinit) struct chunk_bytes contents = CHUNK_BYTES_NULL;
	CLEANUP(chunk_chain_deinit) struct chunk_chain chain = {0};
	int r = chunk_chain_find(file, &chain);

	for (size_t i = chain.count; r == 0 && i > 0; i--) {
		struct recording_chunk index;

		r = chunk_file_header(file, chain.offsets[i - 1], &index);
		if (r == 0)
			r = chunk_file_add_index(file, &index, &contents);
	}
	return r;
}

/* Goes on from header to header. */
static int chunk_file_walk(struct chunk_file *file)
{
	struct recording_chunk chunk;
	int r;

	while ((r = chunk_file_header(file, file->end, &chunk)) == 0) {
		r = chunk_file_add(file, &chunk.entry);
		if (r < 0)
			return r;
		file->end += chunk_total(&chunk.entry);
	}
	return r == -EBADMSG ? 0 : r;
}

/* After a loss of power a chunk may have its length and its header, but not its contents. */
static int chunk_file_drop_torn(struct chunk_file *file)
{
	while (file->count > 1) {
		const struct recording_entry *entry = &file->entries[file->count - 1];
		int r = chunk_file_contents(file, entry->offset, entry->length);

		if (r != -EBADMSG)
			return r;
		file->end = entry->offset;
		file->count--;
	}
	return 0;
}

static int chunk_file_load(struct chunk_file *file)
{
	int r = chunk_file_read_indexes(file);

	if (r == -EBADMSG) {
		file->count = 0;
		file->end = 0;
		r = 0;
	}
	if (r == 0)
		r = chunk_file_walk(file);
	return r < 0 ? r : chunk_file_drop_torn(file);
}

static int chunk_file_refuse(char *ret_why, const char *path, const char *text, int result)
{
	snprintf(ret_why, CHUNK_FILE_WHY_SIZE, "%s: %s", path, text);
	return result;
}

/* The first chunk says what the file is; nothing else is looked at before. */
static int chunk_file_check(const struct chunk_file *file, const char *path, char *ret_why)
{
	struct chunk_frame frame = {0};
	char text[96];
	int r = 0;

	if (file->size >= CHUNK_FRAME)
		r = chunk_file_pread(file, 0, &frame, sizeof(frame));
	if (r < 0)
		return chunk_file_refuse(ret_why, path, strerrordesc_np(-r), r);
	if (frame.magic != RECORDING_FRAME || frame.chunk.magic != RECORDING_MAGIC)
		return chunk_file_refuse(ret_why, path, "not a recording of ttmem", -EBADMSG);
	if (frame.chunk.major != RECORDING_MAJOR) {
		snprintf(text, sizeof(text), "of version %u.%u, this ttmem reads %u: update ttmem",
			 (unsigned int)frame.chunk.major, (unsigned int)frame.chunk.minor,
			 RECORDING_MAJOR);
		return chunk_file_refuse(ret_why, path, text, -EPROTONOSUPPORT);
	}
	if (!chunk_frame_is_whole(&frame) || frame.chunk.entry.kind != RECORDING_HEAD ||
	    frame.chunk.entry.offset != 0)
		return chunk_file_refuse(ret_why, path, "a recording whose beginning is damaged",
					 -EBADMSG);
	return 0;
}

static int chunk_file_open_path(struct chunk_file *file, const char *path, char *ret_why)
{
	struct stat st;

	file->fd = recording_file_open(path);
	if (file->fd < 0 || fstat(file->fd, &st) < 0)
		return chunk_file_refuse(ret_why, path, strerrordesc_np(errno), -errno);
	if (!S_ISREG(st.st_mode))
		return chunk_file_refuse(ret_why, path, "not a file", -EBADMSG);
	file->size = (uint64_t)st.st_size;
	file->zstd = ZSTD_createDCtx();
	return file->zstd ? 0 : chunk_file_refuse(ret_why, path, "no memory", -ENOMEM);
}

int chunk_file_open(struct chunk_file *file, const char *path, char ret_why[CHUNK_FILE_WHY_SIZE])
{
	int r;

	*file = (struct chunk_file){.fd = -1};
	r = chunk_file_open_path(file, path, ret_why);
	if (r == 0)
		r = chunk_file_check(file, path, ret_why);
	if (r == 0) {
		r = chunk_file_load(file);
		if (r < 0)
			(void)chunk_file_refuse(ret_why, path,
						r == -EFBIG ? "has more chunks than can be read"
							    : strerrordesc_np(-r),
						r);
		else if (file->count == 0)
			r = chunk_file_refuse(ret_why, path,
					      "a recording that was cut off at its beginning",
					      -EBADMSG);
	}
	if (r < 0)
		chunk_file_close(file);
	return r;
}

void chunk_file_close(struct chunk_file *file)
{
	if (file->fd >= 0)
		close(file->fd);
	ZSTD_freeDCtx(file->zstd);
	chunk_bytes_deinit(&file->frame);
	free(file->entries);
	*file = (struct chunk_file){.fd = -1};
}
