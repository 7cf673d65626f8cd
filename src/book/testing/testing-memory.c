/* SPDX-License-Identifier: Apache-2.0 */

/* Books in plain memory. */

#include "book/testing/testing-memory.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/bits.h"
#include "base/testing/unit.h"
#include "book/testing/book-testing.h"
#include "book/write/index.h"

#define MEMORY_GRAIN 64u /* bytes per line of a saved book */
#define MEMORY_WORDS (MEMORY_GRAIN / 8)

static int testing_memory_read_at(struct book_file *file, uint64_t offset, void *buffer,
				  size_t length)
{
	struct testing_memory *memory = container_of(file, struct testing_memory, file);

	if (memory->before_read)
		memory->before_read(memory);
	if (offset > file->size || length > file->size - offset)
		return -ENODATA;
	memcpy(buffer, memory->base + offset, length);
	return 0;
}

static int64_t testing_memory_next_data(struct book_file *file, uint64_t offset)
{
	struct testing_memory *memory = container_of(file, struct testing_memory, file);

	for (uint64_t page = offset / BOOK_PAGE; page < file->size / BOOK_PAGE; page++) {
		if (memory->is_data[page])
			return (int64_t)bits_max(offset, page * BOOK_PAGE);
	}
	return -ENXIO;
}

static int64_t testing_memory_next_hole(struct book_file *file, uint64_t offset)
{
	struct testing_memory *memory = container_of(file, struct testing_memory, file);

	for (uint64_t page = offset / BOOK_PAGE; page < file->size / BOOK_PAGE; page++) {
		if (!memory->is_data[page])
			return (int64_t)bits_max(offset, page * BOOK_PAGE);
	}
	return (int64_t)file->size;
}

static const struct book_file_ops testing_memory_ops = {
	.read_at = testing_memory_read_at,
	.next_data = testing_memory_next_data,
	.next_hole = testing_memory_next_hole,
};

void testing_memory_init(struct testing_memory *memory, uint64_t size)
{
	*memory = (struct testing_memory){.file = {.ops = &testing_memory_ops, .size = size}};
	memory->base = mmap(NULL, size, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	memory->is_data = calloc(size / BOOK_PAGE, 1);
	assert(memory->base != MAP_FAILED && memory->is_data);
}

void testing_memory_deinit(struct testing_memory *memory)
{
	writer_free(memory->writer);
	munmap(memory->base, memory->file.size);
	free(memory->is_data);
	*memory = (struct testing_memory){0};
}

static void testing_memory_touch(struct testing_memory *memory, uint64_t offset, uint64_t length)
{
	assert(length > 0 && offset + length <= memory->file.size);
	for (uint64_t page = offset / BOOK_PAGE; page <= (offset + length - 1) / BOOK_PAGE; page++)
		memory->is_data[page] = 1;
}

static int testing_memory_reserve(void *context, uint64_t offset, uint64_t length)
{
	testing_memory_touch(context, offset, length);
	return 0;
}

void testing_memory_write(struct testing_memory *memory, uint32_t ring_events)
{
	const struct writer_identity identity = {
		.pid = 4711,
		.uid = 1000,
		.euid = 1000,
		.source = BOOK_SOURCE_LIBRARY,
		.start_ticks = 123456,
		.pid_namespace = 4026531836u,
		.comm = "model",
		.cmdline = "model\0--steps\0"
			   "3",
		.cmdline_length = sizeof("model\0--steps\0"
					 "3"),
		.library = "0.1.0",
	};
	const struct writer_config config = {
		.base = memory->base,
		.size = memory->file.size,
		.room = memory->file.size,
		.ring_events = ring_events,
		.clock = BOOK_CLOCK_MONOTONIC,
		.reserve = testing_memory_reserve,
		.context = memory,
		.identity = &identity,
	};

	assert(writer_new(&memory->writer, &config) == 0);
}

void testing_memory_patch(struct testing_memory *memory, uint64_t offset, const void *bytes,
			  uint64_t length)
{
	testing_memory_touch(memory, offset, length);
	memcpy(memory->base + offset, bytes, length);
}

void testing_memory_save(const struct testing_memory *memory, const char *path)
{
	FILE *out = fopen(path, "we");

	assert(out);
	fprintf(out, "%" PRIx64 "\n", memory->file.size);
	for (uint64_t at = 0; at < memory->file.size; at += MEMORY_GRAIN) {
		uint64_t words[MEMORY_WORDS];
		uint32_t n = MEMORY_WORDS;

		if (!memory->is_data[at / BOOK_PAGE])
			continue;
		memcpy(words, memory->base + at, sizeof(words));
		while (n > 0 && words[n - 1] == 0)
			n--;
		if (n == 0)
			continue;
		fprintf(out, "%" PRIx64, at);
		for (uint32_t i = 0; i < n; i++)
			fprintf(out, " %" PRIx64, words[i]);
		fputc('\n', out);
	}
	assert(fclose(out) == 0);
}

void testing_memory_load(struct testing_memory *memory, const char *path)
{
	FILE *in = fopen(path, "re");
	char line[256];

	if (!in)
		printf("cannot open %s: %m\n", path);
	assert(in && fgets(line, sizeof(line), in));
	testing_memory_init(memory, strtoull(line, NULL, 16));
	while (fgets(line, sizeof(line), in)) {
		uint64_t words[MEMORY_WORDS] = {0};
		char *next;
		uint64_t at = strtoull(line, &next, 16);

		for (uint32_t i = 0; i < MEMORY_WORDS && *next == ' '; i++)
			words[i] = strtoull(next, &next, 16);
		assert(*next == '\n' && at % MEMORY_GRAIN == 0);
		testing_memory_patch(memory, at, words, sizeof(words));
	}
	fclose(in);
}

static void testing_memory_fill_rest(struct writer *writer)
{
	struct writer_device facts = {
		.unique_id = UINT64_C(0x1234567890abcdef),
		.arch = "wormhole_b0",
		.card = "n300",
		.cores = 64,
		.l1_per_core = 1499136,
		.memory = {[0] = {.capacity = UINT64_C(12) << 30, .banks = 12, .alignment = 32}},
	};

	writer_declare(writer, 0, &facts);
	facts.remote = 1;
	facts.unique_id++;
	writer_declare(writer, 5, &facts);
	writer_close_device(writer, 5);
	for (uint32_t i = 0; i < 3; i++)
		writer_mark(writer, intern_string(writer, "step", BOOK_NAME_MAX), i, 0);
	writer_reject(&writer->header->rejected.type);
}

void testing_memory_fill(struct testing_memory *memory)
{
	static const uint32_t devices[] = {0, 5, BOOK_DEVICES - 1};
	const struct book_shape shape = {.size_per_bank = 1024, .banks = 12, .first_bank = 2};
	struct writer *writer = memory->writer;
	uint32_t phase = intern_string(writer, "test_matmul/layer 3", BOOK_PATH_MAX);
	uint32_t banks = intern_shape(writer, &shape);
	struct shard_buffer buffer;

	for (uint32_t i = 0; i < 640; i++) {
		uint32_t k = i % 97;

		buffer = (struct shard_buffer){
			.address = 0x1000 + (uint64_t)k * 64,
			.size = 64 + k % 3 + (i % 50 == 0),
			.type = k % BOOK_TYPES,
			.flags = k % 8,
			.thread = 100 + i % 3,
			.stack = 1 + i % 4,
			.name = intern_string(writer, testing_text(i % TESTING_TEXTS),
					      BOOK_NAME_MAX),
			.phase = phase,
			.shape = i % 5 ? 0 : banks,
		};
		if (i % 3 == 2)
			writer_free_buffer(writer, devices[i % 2], &buffer);
		else
			writer_alloc(writer, devices[i % 2], &buffer, 0);
	}
	buffer.name = 0;
	buffer.type = INDEX_ANY;
	writer_free_buffer(writer, 0, &buffer);
	writer_alloc_mesh(writer, devices, ARRAY_SIZE(devices),
			  &(struct shard_buffer){
				  .address = 0x100000, .size = 1u << 20, .type = 1, .thread = 1},
			  0);
	writer_failed(writer, 0, &(struct shard_buffer){.size = UINT64_C(1) << 40, .type = 0},
		      &(struct writer_lack){.largest_free = 4096});
	writer_hooked(writer, 5, &(struct shard_buffer){.size = 32, .type = 2});
	writer_reset_peak(writer, 0, 1, 3);
	for (uint32_t i = 0; i < 2; i++) /* the second time it is a double free */
		writer_free_buffer(writer, 0,
				   &(struct shard_buffer){.address = 0x100000, .type = 1});
	for (uint32_t space = 1; space < 3; space++)
		writer_alloc(writer, 5,
			     &(struct shard_buffer){.address = 0x169000,
						    .size = 2048,
						    .type = 1,
						    .thread = 9,
						    .shape = banks,
						    .space = space},
			     0);
	writer_free_buffer(writer, 5, &(struct shard_buffer){.address = 0x169000, .type = 1});
	testing_memory_fill_rest(writer);
}
