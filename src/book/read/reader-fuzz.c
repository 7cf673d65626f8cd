/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The reader on hostile books: the input is a list of patches to a small valid book, some of them
 * applied only after a number of reads, as a living owner would. Then all of the book is read in
 * every way. Nothing may crash, hang, or take more memory than a few times the file.
 *
 * A patch: place (1 byte; 0x80: the next byte says after how many reads), offset in it (2), length
 * (1), bytes.
 */

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/bits.h"
#include "base/testing/unit.h"
#include "book/read/reader.h"
#include "book/read/view.h"
#include "book/testing/testing-memory.h"

#define FUZZ_PATCHES 256u
#define FUZZ_LENGTH 64u
#define FUZZ_MEMORY (64u << 20) /* more than 20 MiB of book ever need */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define FUZZ_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define FUZZ_SANITIZED 1
#endif
#endif

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct fuzz_patch {
	uint64_t offset;
	uint32_t length;
	uint32_t after;             /* reads */
	uint8_t bytes[FUZZ_LENGTH]; /* once applied: the previous bytes */
	bool made;
};

struct fuzz {
	struct testing_memory memory;
	struct fuzz_patch patches[FUZZ_PATCHES];
	uint32_t count;
	uint32_t next;
	uint64_t reads;
	struct view view;
};

static struct fuzz *fuzz_new(void)
{
	struct fuzz *fuzz = calloc(1, sizeof(*fuzz));

	assert(fuzz);
	testing_memory_init(&fuzz->memory, TESTING_MEMORY_SIZE);
	testing_memory_write(&fuzz->memory, BOOK_RING_MIN);
	testing_memory_fill(&fuzz->memory);
	fuzz->memory.context = fuzz;
	return fuzz;
}

/* Where patches go: the parts that a reader reads. */
static uint64_t fuzz_place(const struct fuzz *fuzz, uint8_t place, uint64_t offset)
{
	const struct writer *writer = fuzz->memory.writer;
	const struct book_shard *shard = writer->shards[place & 0x40 ? 5 : 0]->page;
	const struct book_arena *arenas = (const void *)(fuzz->memory.base + BOOK_ARENAS_OFFSET);

	switch (place & 0x0f) {
	case 0:
		return offset % BOOK_PAGE;
	case 1:
		return BOOK_ARENAS_OFFSET + offset % (BOOK_ARENA_COUNT * sizeof(struct book_arena));
	case 2:
		return BOOK_MARKS_OFFSET + offset % 128;
	case 3:
		return BOOK_SEGMENTS_OFFSET + BOOK_POOL_FIRST_UNIT * 8 + offset % 1280;
	case 4:
		return book_incident_offset(offset >> 8 & 3, 0) + offset % 512;
	case 5:
		return book_device_offset(place & 0x40 ? 5 : 0) + offset % 512;
	case 6:
	case 7:
	case 8:
		return book_shard_offset(place & 0x40 ? 5 : 0) + offset % sizeof(*shard);
	case 9: /* head, slots and the location of the ring */
		return book_shard_offset(place & 0x40 ? 5 : 0) + offset % 80;
	case 10:
		return book_unit_offset(shard->ring_unit) + offset;
	case 11:
		return book_unit_offset(shard->directory[0]) + offset % 8192;
	case 12:
		return book_unit_offset(arenas[BOOK_ARENA_STRINGS].directory[0]) + offset % 1024;
	case 13:
		return book_unit_offset(arenas[BOOK_ARENA_SHAPES].directory[0]) + offset % 128;
	case 14:
		if (place & 0x20) /* the warm counters of a shard that has some */
			return book_shard_offset(5) + offsetof(struct book_shard, warm) +
			       offset % sizeof(shard->warm);
		return book_shard_offset((uint32_t)offset % BOOK_DEVICES);
	default:
		return offset * 256;
	}
}

static void fuzz_parse(struct fuzz *fuzz, const uint8_t *data, size_t size)
{
	uint32_t after = 0;

	fuzz->count = fuzz->next = 0;
	fuzz->reads = 0;
	while (size >= 5 && fuzz->count < FUZZ_PATCHES) {
		struct fuzz_patch *patch = &fuzz->patches[fuzz->count];
		uint64_t offset;

		if (data[0] & 0x80)
			after += data[1];
		offset = fuzz_place(fuzz, data[0], data[2] | (uint64_t)data[3] << 8);
		*patch = (struct fuzz_patch){.offset = offset, .after = after};
		patch->length = 1 + data[4] % FUZZ_LENGTH;
		data += 5;
		size -= 5;
		patch->length = (uint32_t)bits_min(patch->length, size);
		if (patch->length == 0 || offset + patch->length > fuzz->memory.file.size)
			return;
		memcpy(patch->bytes, data, patch->length);
		data += patch->length;
		size -= patch->length;
		fuzz->count++;
	}
}

/* Exchanges the patch's bytes with the book's. */
static void fuzz_swap(struct fuzz *fuzz, struct fuzz_patch *patch)
{
	uint8_t old[FUZZ_LENGTH];

	memcpy(old, fuzz->memory.base + patch->offset, patch->length);
	testing_memory_patch(&fuzz->memory, patch->offset, patch->bytes, patch->length);
	memcpy(patch->bytes, old, patch->length);
	patch->made = !patch->made;
}

static void fuzz_before_read(struct testing_memory *memory)
{
	struct fuzz *fuzz = memory->context;

	while (fuzz->next < fuzz->count && fuzz->patches[fuzz->next].after <= fuzz->reads)
		fuzz_swap(fuzz, &fuzz->patches[fuzz->next++]);
	fuzz->reads++;
}

/* Reads every byte, so that a sanitizer sees uninitialised ones. */
static uint64_t fuzz_use(const void *data, size_t length)
{
	const uint8_t *bytes = data;
	uint64_t sum = 0;

	for (size_t i = 0; i < length; i++)
		sum += bytes[i];
	return sum;
}

static uint64_t fuzz_rows(struct reader *reader, const struct view *view)
{
	struct view_iterator it = {0};
	uint64_t sum = view->number + view->live;
	uint64_t rows = 0;

	sum += fuzz_use(view->hot, sizeof(view->hot)) + fuzz_use(view->cold, sizeof(view->cold)) +
	       fuzz_use(view->warm, sizeof(view->warm));
	while (view_next(view, &it)) {
		const uint32_t strings[] = {it.record->name, it.record->phase};
		struct book_shape shape;

		assert(book_meta_type(it.record->meta) < BOOK_TYPES);
		assert(book_meta_refs(it.record->meta) > 0);
		sum += fuzz_use(it.record, sizeof(*it.record));
		if (++rows > 1000)
			continue; /* the rest is more of the same */
		for (uint32_t i = 0; i < ARRAY_SIZE(strings); i++) {
			size_t length;
			const char *text = reader_string(reader, strings[i], &length);

			if (text)
				sum += fuzz_use(text, length);
		}
		shape = reader_shape(reader, it.record->shape);
		sum += fuzz_use(&shape, sizeof(shape)) + reader_occupied(reader, it.record);
	}
	assert(rows == view->live);
	return sum;
}

static uint64_t fuzz_shards(struct reader *reader, struct view *view)
{
	uint64_t sum = 0;
	int64_t device;
	uint32_t n = 0;

	for (device = reader_next_shard(reader, 0); device >= 0 && n < 8;
	     device = reader_next_shard(reader, (uint32_t)device + 1), n++) {
		assert(device < BOOK_DEVICES);
		for (int owner = VIEW_LIVING; owner <= VIEW_DEAD; owner++) {
			if (view_read(view, reader, (uint32_t)device, (enum view_owner)owner) == 0)
				sum += view->rows_exact ? fuzz_rows(reader, view) : view->number;
			if (view_read_totals(view, reader, (uint32_t)device,
					     (enum view_owner)owner) == 0)
				sum += fuzz_use(view->hot, sizeof(view->hot)) + view->number;
		}
	}
	return sum;
}

static uint64_t fuzz_rest(struct reader *reader)
{
	uint64_t sum = (uint64_t)reader_refresh(reader);
	struct book_incident incident;
	struct book_device device;
	struct book_arena arena;
	struct book_mark mark;

	for (uint32_t kind = 0; kind <= BOOK_INCIDENT_KINDS; kind++) {
		for (uint32_t i = 0; i < 4 && reader_incident(reader, kind, i, &incident) == 0; i++)
			sum += fuzz_use(&incident, sizeof(incident));
	}
	for (uint64_t n = 0; n < 8; n++) {
		if (reader_mark(reader, n, &mark) == 0 ||
		    reader_mark(reader, reader->header.mark_count - n, &mark) == 0)
			sum += fuzz_use(&mark, sizeof(mark));
	}
	for (uint32_t n = 0; n < 8; n++) {
		if (reader_device(reader, n, &device) == 0)
			sum += fuzz_use(&device, sizeof(device)) + strlen(device.arch) +
			       strlen(device.card);
	}
	for (uint32_t kind = 0; kind <= BOOK_ARENA_COUNT; kind++) {
		if (reader_arena(reader, kind, &arena) == 0)
			sum += fuzz_use(&arena, sizeof(arena));
	}
	return sum;
}

static void fuzz_check_memory(void)
{
#ifndef FUZZ_SANITIZED
	struct rusage usage;

	assert(getrusage(RUSAGE_SELF, &usage) == 0);
	assert(usage.ru_maxrss <= FUZZ_MEMORY >> 10);
#endif
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct fuzz *fuzz;
	static volatile uint64_t used;
	struct reader reader;

	if (!fuzz)
		fuzz = fuzz_new();
	fuzz_parse(fuzz, data, size);
	fuzz->memory.before_read = fuzz_before_read;
	if (reader_init(&reader, &fuzz->memory.file) == 0) {
		used += strlen(reader.header.comm) + strlen(reader.header.library);
		used += fuzz_use(reader.header.cmdline, reader.header.cmdline_length);
		used += fuzz_shards(&reader, &fuzz->view);
		used += fuzz_rest(&reader);
		reader_deinit(&reader);
	}
	for (uint32_t i = fuzz->next; i-- > 0;)
		fuzz_swap(fuzz, &fuzz->patches[i]);
	fuzz->memory.before_read = NULL;
	(void)used; /* keeps the reads from being optimised away */
	fuzz_check_memory();
	return 0;
}
