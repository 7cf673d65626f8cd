/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A writer that ends at any write, and within it, leaves whole chunks and a torn one; a disk that is
 * full leaves whole chunks only.
 */

#include "recording/write/chunk-writer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/testing/unit.h"
#include "recording/testing/testing-chunks.h"

#define TEST_CHUNKS_MAX 10000u

/* What happens to writes: the process ends after so many, or the disk has so many bytes. */
static int64_t writes_left = INT64_MAX;
static size_t last_length = SIZE_MAX; /* bytes of the last write that still get through */
static uint64_t disk_size = UINT64_MAX;

/* In front of libc's. */
/* NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): libc's begin with __ */
ssize_t pwrite(int fd, const void *bytes, size_t length, off_t offset)
{
	if (writes_left-- == 1) {
		(void)syscall(SYS_pwrite64, fd, bytes, bits_min(length, last_length), offset);
		_exit(0);
	}
	if ((uint64_t)offset >= disk_size) {
		errno = ENOSPC;
		return -1;
	}
	length = bits_min(length, disk_size - (uint64_t)offset);
	return syscall(SYS_pwrite64, fd, bytes, length, offset);
}

static const char *test_path(void)
{
	static char path[4096];

	(void)snprintf(path, sizeof(path), "%s/test.ttrec", unit_dir());
	return path;
}

static int test_open(void)
{
	int fd = open(test_path(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert(fd >= 0);
	return fd;
}

/* Chunk @n; its contents grow with it, and some have none. */
static int test_add(struct chunk_writer *writer, uint32_t n)
{
	static uint8_t bytes[300 + 3 * TEST_CHUNKS_MAX];
	const struct chunk_part parts[] = {{bytes, n % 300}, {bytes + 300, n % 7 ? n * 3 : 0}};
	struct recording_entry entry = {.kind = RECORDING_BYTES, .count = n, .realtime_now = n};

	if (n % 300 == 0)
		return chunk_writer_add(writer, &entry, NULL, 0);
	for (uint32_t i = 0; i < 300 + n * 3; i++)
		bytes[i] = (uint8_t)((n + i) * 2654435761u >> 24);
	return chunk_writer_add(writer, &entry, parts, ARRAY_SIZE(parts));
}

static void test_write(uint32_t count, uint64_t size_max, int expected)
{
	struct recording_entry end = {.book = RECORDING_NONE};
	struct chunk_writer *writer;
	int fd = test_open(), r = 0;

	assert(chunk_writer_new(&writer, fd, size_max) == 0);
	for (uint32_t n = 0; n < count && r == 0; n++)
		r = test_add(writer, n);
	assert(r == expected && chunk_writer_failed(writer) == expected);
	if (expected)
		assert(test_add(writer, 1) == expected);
	(void)chunk_writer_end(writer, &end, "{}");
	chunk_writer_free(writer);
	close(fd);
}

/* Chunks are those that were added, in order. Return: how many. */
static uint32_t test_check(const struct testing_chunks *chunks)
{
	uint32_t n = 0;

	for (size_t i = 0; i < chunks->count; i++) {
		const struct recording_entry *entry = &chunks->chunks[i].head.entry;

		if (entry->kind != RECORDING_BYTES)
			continue;
		assert(entry->count == n);
		assert(n % 300 == 0 || entry->size == n % 300 + (n % 7 ? n * 3 : 0));
		n++;
	}
	return n;
}

UNIT(chunks_come_back_with_indexes_and_an_end)
{
	const struct testing_chunk *index;
	struct testing_chunks chunks;

	test_write(600, 0, 0);
	testing_chunks_read(&chunks, test_path());
	assert(chunks.torn == 0);
	assert(test_check(&chunks) == 600);
	assert(testing_chunks_count(&chunks, RECORDING_INDEX) == 3);
	assert(testing_chunks_find(&chunks, RECORDING_INDEX, 0) == &chunks.chunks[256]);
	assert(chunks.chunks[chunks.count - 1].head.entry.kind == RECORDING_END);
	/* An index has what the heads of its chunks have. */
	index = testing_chunks_find(&chunks, RECORDING_INDEX, 1);
	assert(index->head.entry.count == 256);
	for (size_t i = 0; i < 256; i++)
		assert(memcmp(index->contents + i * sizeof(struct recording_entry),
			      &chunks.chunks[257 + i].head.entry,
			      sizeof(struct recording_entry)) == 0);
	testing_chunks_deinit(&chunks);
}

/* In a child that ends within write @n, of which @length bytes get through. */
static void write_until(uint32_t n, size_t length)
{
	struct testing_chunks chunks;
	pid_t pid = fork();
	int status;

	assert(pid >= 0);
	if (pid == 0) {
		writes_left = n;
		last_length = length;
		test_write(270, 0, 0);
		_exit(1);
	}
	assert(waitpid(pid, &status, 0) == pid && status == 0);
	testing_chunks_read(&chunks, test_path());
	assert(chunks.count == (length == SIZE_MAX ? n : n - 1));
	assert(chunks.torn <= length);
	(void)test_check(&chunks);
	testing_chunks_deinit(&chunks);
}

UNIT(a_writer_killed_at_any_write_leaves_all_before_it)
{
	/* 270 chunks, two indexes, the end. */
	for (uint32_t n = 1; n <= 273; n++) {
		const size_t lengths[] = {SIZE_MAX, 0, 1 + n % 8,
					  8 + n % sizeof(struct recording_chunk),
					  8 + sizeof(struct recording_chunk) - 1};

		for (uint32_t i = 0; i < ARRAY_SIZE(lengths); i++) {
			/* All of them around the indexes; elsewhere in turn. */
			if ((n > 3 && n < 255) || (n > 259 && n < 270)
				    ? n % ARRAY_SIZE(lengths) == i
				    : true)
				write_until(n, lengths[i]);
		}
	}
}

UNIT(a_full_disk_leaves_whole_chunks)
{
	uint32_t ends = 0;

	for (disk_size = 1; disk_size < 130000; disk_size += 2777) {
		struct testing_chunks chunks;

		test_write(400, 0, -ENOSPC);
		testing_chunks_read(&chunks, test_path());
		assert(chunks.torn == 0 && chunks.size <= disk_size);
		assert(test_check(&chunks) < 400);
		ends += testing_chunks_count(&chunks, RECORDING_END) == 1;
		testing_chunks_deinit(&chunks);
	}
	assert(ends > 0);
	disk_size = UINT64_MAX;
}

UNIT(no_file_becomes_larger_than_it_may)
{
	struct testing_chunks chunks;

	test_write(TEST_CHUNKS_MAX, CHUNK_WRITER_SIZE_MIN, -EFBIG);
	testing_chunks_read(&chunks, test_path());
	assert(chunks.torn == 0 && chunks.size <= CHUNK_WRITER_SIZE_MIN);
	assert(chunks.size > CHUNK_WRITER_SIZE_MIN / 2);
	assert(testing_chunks_count(&chunks, RECORDING_END) == 1);
	testing_chunks_deinit(&chunks);
}

UNIT(too_large_a_chunk_is_refused_alone)
{
	const struct chunk_part part = {"", RECORDING_SIZE_MAX + 1}; /* refused before it is read */
	struct recording_entry entry = {.kind = RECORDING_BYTES};
	struct chunk_writer *writer;
	int fd = test_open();

	assert(chunk_writer_new(&writer, fd, 0) == 0);
	assert(chunk_writer_add(writer, &entry, &part, 1) == -EMSGSIZE);
	assert(chunk_writer_size(writer) == 0);
	assert(test_add(writer, 1) == 0);
	chunk_writer_free(writer);
	close(fd);
}
