/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What the reader refuses, one error at a time, and what it returns for the rest of a book:
 * strings, devices, incidents, marks, shards.
 */

#include "book/read/reader.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/testing/unit.h"
#include "book/read/view.h"
#include "book/testing/book-testing.h"
#include "book/testing/testing-memory.h"

static void rtest_open(struct testing_memory *memory)
{
	testing_memory_init(memory, TESTING_MEMORY_SIZE);
	testing_memory_write(memory, BOOK_RING_MIN);
	testing_memory_fill(memory);
}

/* The outcome for a book in which one word of the header is replaced. */
static int rtest_with_u32(struct testing_memory *memory, uint64_t offset, uint32_t value)
{
	struct reader reader;
	uint32_t good;
	int r;

	memcpy(&good, memory->base + offset, sizeof(good));
	testing_memory_patch(memory, offset, &value, sizeof(value));
	r = reader_init(&reader, &memory->file);
	if (r == 0)
		reader_deinit(&reader);
	testing_memory_patch(memory, offset, &good, sizeof(good));
	return r;
}

static int rtest_with_size(struct testing_memory *memory, uint64_t size)
{
	uint64_t good = memory->file.size;
	struct reader reader;
	int r;

	testing_memory_patch(memory, offsetof(struct book_header, file_size), &size, sizeof(size));
	memory->file.size = size;
	r = reader_init(&reader, &memory->file);
	memory->file.size = good;
	testing_memory_patch(memory, offsetof(struct book_header, file_size), &good, sizeof(good));
	return r;
}

#define RTEST_AT(member) offsetof(struct book_header, member)

UNIT(refuses_headers)
{
	struct testing_memory memory;

	rtest_open(&memory);
	assert(rtest_with_u32(&memory, RTEST_AT(version), BOOK_VERSION) == 0);
	assert(rtest_with_u32(&memory, RTEST_AT(magic), 0) == READER_NOT_YET);
	assert(rtest_with_u32(&memory, RTEST_AT(magic) + 4, 1) == READER_NOT_YET);
	assert(rtest_with_u32(&memory, RTEST_AT(version), 0) == READER_BAD_VERSION);
	assert(rtest_with_u32(&memory, RTEST_AT(version), BOOK_VERSION + 1) == READER_BAD_VERSION);
	assert(rtest_with_u32(&memory, RTEST_AT(file_size), 0) == READER_BAD_SIZE);
	assert(rtest_with_u32(&memory, RTEST_AT(file_size) + 4, 1) == READER_BAD_SIZE);
	assert(rtest_with_u32(&memory, RTEST_AT(header_size), 4095) == READER_BAD_LAYOUT);
	assert(rtest_with_u32(&memory, RTEST_AT(record_size), 64) == READER_BAD_LAYOUT);
	assert(rtest_with_u32(&memory, RTEST_AT(event_size), 32) == READER_BAD_LAYOUT);
	assert(rtest_with_u32(&memory, RTEST_AT(shard_size), 4096) == READER_BAD_LAYOUT);
	assert(rtest_with_u32(&memory, RTEST_AT(ring_events), 512) == READER_BAD_LAYOUT);
	assert(rtest_with_u32(&memory, RTEST_AT(ring_events), 1025) == READER_BAD_LAYOUT);
	assert(rtest_with_u32(&memory, RTEST_AT(ring_events), 1u << 21) == READER_BAD_LAYOUT);
	testing_memory_deinit(&memory);
}

UNIT(refuses_sizes)
{
	struct testing_memory memory;

	rtest_open(&memory);
	assert(rtest_with_size(&memory, BOOK_SIZE_MIN) == 0);
	assert(rtest_with_size(&memory, BOOK_SIZE_MIN - BOOK_UNIT) == READER_BAD_SIZE);
	assert(rtest_with_size(&memory, BOOK_SIZE_MIN + BOOK_PAGE) == READER_BAD_SIZE);
	assert(rtest_with_size(&memory, 0) == READER_BAD_SIZE);
	testing_memory_deinit(&memory);
	/* A size that is too large is refused before a byte is read. */
	memory.file.size = BOOK_SIZE_MAX + BOOK_UNIT;
	assert(reader_init(&(struct reader){0}, &memory.file) == READER_BAD_SIZE);
}

UNIT(outcomes_have_words)
{
	for (int outcome = 0; outcome <= READER_BAD_LAYOUT; outcome++)
		assert(*reader_strerror(outcome));
	assert(strcmp(reader_strerror(-ENODATA), strerror(ENODATA)) == 0);
}

UNIT(header_text_is_ended)
{
	const uint32_t length = UINT32_MAX;
	struct testing_memory memory;
	struct reader reader;
	char full[16];

	rtest_open(&memory);
	memset(full, 'x', sizeof(full));
	testing_memory_patch(&memory, RTEST_AT(comm), full, sizeof(full));
	testing_memory_patch(&memory, RTEST_AT(library), full, sizeof(full));
	testing_memory_patch(&memory, RTEST_AT(cmdline_length), &length, sizeof(length));
	assert(reader_init(&reader, &memory.file) == 0);
	assert(strlen(reader.header.comm) == 15 && strlen(reader.header.library) == 15);
	assert(reader.header.cmdline_length == sizeof(reader.header.cmdline));
	reader_deinit(&reader);
	testing_memory_deinit(&memory);
}

UNIT(strings_have_bounds)
{
	struct testing_memory memory;
	struct reader reader;
	struct book_arena arena;
	uint16_t length;
	size_t n;

	rtest_open(&memory);
	assert(reader_init(&reader, &memory.file) == 0);
	assert(reader_arena(&reader, BOOK_ARENA_STRINGS, &arena) == 0);
	assert(reader_arena(&reader, BOOK_ARENA_COUNT, &arena) == -EINVAL);
	assert(!reader_string(&reader, 0, &n));
	assert(reader_string(&reader, 1, &n) && n == 19 && arena.used % 8 == 0);
	assert(!reader_string(&reader, (uint32_t)(arena.used / 8), &n));
	assert(!reader_string(&reader, UINT32_MAX, &n));
	/* A length that leads beyond the end (of string 4, the second), and an impossible one. */
	assert(reader_string(&reader, 4, &n) && n == 7);
	length = (uint16_t)(arena.used - 32 - 2 + 1);
	testing_memory_patch(&memory, book_unit_offset(arena.directory[0]) + 32, &length, 2);
	reader_deinit(&reader);
	assert(reader_init(&reader, &memory.file) == 0);
	assert(reader_string(&reader, 1, &n) && !reader_string(&reader, 4, &n));
	length = BOOK_PATH_MAX + 1;
	testing_memory_patch(&memory, book_unit_offset(arena.directory[0]) + 8, &length, 2);
	reader_deinit(&reader);
	assert(reader_init(&reader, &memory.file) == 0);
	assert(!reader_string(&reader, 1, &n));
	reader_deinit(&reader);
	testing_memory_deinit(&memory);
}

UNIT(strings_are_found_by_their_beginning)
{
	struct testing_memory memory;
	struct reader reader;
	uint16_t none = 0;
	uint32_t first, second;
	const char *bytes;
	size_t n;

	rtest_open(&memory);
	assert(reader_init(&reader, &memory.file) == 0);
	first = reader_find_string(&reader, "", 0);
	second = reader_find_string(&reader, "", first);
	assert(first == 1 && second == 4);
	bytes = reader_string(&reader, second, &n);
	assert(bytes && n == 7);
	{
		char whole[8] = "", longer[9] = "";

		memcpy(whole, bytes, 7);
		memcpy(longer, bytes, 7);
		longer[7] = 'x';
		assert(reader_find_string(&reader, whole, 0) == second);
		assert(reader_find_string(&reader, longer, 0) == 0);
	}
	assert(reader_find_string(&reader, "no such beginning", 0) == 0);
	assert(reader_find_string(&reader, "", UINT32_MAX) == 0);
	/* Without the first one's bytes there are gaps in its place: still the second is found. */
	{
		struct book_arena arena;

		assert(reader_arena(&reader, BOOK_ARENA_STRINGS, &arena) == 0);
		for (uint64_t at = 8; at < 32; at += 8)
			testing_memory_patch(&memory, book_unit_offset(arena.directory[0]) + at,
					     &none, 2);
	}
	reader_deinit(&reader);
	assert(reader_init(&reader, &memory.file) == 0);
	assert(reader_find_string(&reader, "", 0) == 1 && reader_find_string(&reader, "", 3) == 4);
	reader_deinit(&reader);
	testing_memory_deinit(&memory);
}

/* An arena in an impossible place, or larger than possible. */
UNIT(arenas_are_checked)
{
	const uint64_t at = BOOK_ARENAS_OFFSET;
	struct testing_memory memory;
	struct book_arena good, bad;
	struct reader reader;
	size_t n;

	rtest_open(&memory);
	memcpy(&good, memory.base + at, sizeof(good));
	for (int i = 0; i < 6; i++) {
		bad = good;
		if (i == 0)
			bad.directory[0] = 0;
		else if (i == 1)
			bad.directory[0]++;
		else if (i == 2)
			bad.directory[0] = UINT32_MAX;
		else if (i == 3)
			bad.used = UINT64_MAX;
		else if (i == 4)
			bad.used = 64u << 20; /* the largest, but there is only one segment */
		else if (i == 5) {
			bad.used = 2u << 20;
			bad.directory[1] = bad.directory[0]; /* one segment twice */
		}
		testing_memory_patch(&memory, at, &bad, sizeof(bad));
		assert(reader_init(&reader, &memory.file) == 0);
		assert(!reader_string(&reader, 1, &n));
		assert(!reader_string(&reader, 2, &n));
		/* The reader continues as soon as the arena is valid again. */
		testing_memory_patch(&memory, at, &good, sizeof(good));
		assert(reader_string(&reader, 1, &n));
		reader_deinit(&reader);
	}
	testing_memory_deinit(&memory);
}

UNIT(shapes_are_checked)
{
	const uint64_t at = BOOK_ARENAS_OFFSET + BOOK_ARENA_SHAPES * sizeof(struct book_arena);
	struct testing_memory memory;
	struct reader reader;
	const uint32_t none = 0;

	rtest_open(&memory);
	assert(reader_init(&reader, &memory.file) == 0);
	assert(reader_shape(&reader, 1).banks == 12);
	assert(reader_shape(&reader, 0).banks == 0);
	assert(reader_shape(&reader, 2).banks == 0);
	assert(reader_shape(&reader, UINT32_MAX).banks == 0);
	testing_memory_patch(&memory, at + offsetof(struct book_arena, directory), &none, 4);
	assert(reader_shape(&reader, 1).banks == 12); /* what was stored once stays */
	reader_deinit(&reader);
	assert(reader_init(&reader, &memory.file) == 0);
	assert(reader_shape(&reader, 1).banks == 0);
	reader_deinit(&reader);
	testing_memory_deinit(&memory);
}

UNIT(reader_reads_and_checks_devices)
{
	struct book_device *entry, device;
	struct testing_memory memory;
	struct reader reader;
	uint32_t declared;

	rtest_open(&memory);
	assert(reader_init(&reader, &memory.file) == 0);
	assert(reader_device(&reader, 1, &device) == -ENOENT);
	assert(reader_device(&reader, 0, &device) == 0);
	assert(strcmp(device.arch, "wormhole_b0") == 0 && strcmp(device.card, "n300") == 0);
	assert(device.unique_id == UINT64_C(0x1234567890abcdef) && device.closed_time == 0);
	assert(device.memory[0].capacity == UINT64_C(12) << 30 && device.remote == 0);
	assert(reader_device(&reader, 5, &device) == 0);
	assert(device.closed_time != 0 && device.remote == 1);
	assert(reader_declared(&reader, 0, READER_DECLARED_MAX, &declared) == 0);
	assert(declared == (1u << 0 | 1u << 5));
	assert(reader_declared(&reader, 3, 5, &declared) == 0 && declared == 1u << 2);

	entry = (struct book_device *)(void *)(memory.base + book_device_offset(0));
	memset(entry->arch, 'x', sizeof(entry->arch));
	assert(reader_device(&reader, 0, &device) == 0);
	assert(strlen(device.arch) == sizeof(device.arch) - 1);
	entry->generation++; /* left in the middle of a rewrite */
	assert(reader_device(&reader, 0, &device) == -EAGAIN);
	reader_deinit(&reader);
	testing_memory_deinit(&memory);
}

/* The entry changes once between the reads: the second try succeeds. */
static void rtest_redeclare(struct testing_memory *memory)
{
	struct book_device *entry =
		(struct book_device *)(void *)(memory->base + book_device_offset(0));

	if (++*(uint32_t *)memory->context == 3) {
		entry->cores++;
		entry->generation += 2;
	}
}

UNIT(a_device_that_changes_meanwhile)
{
	struct testing_memory memory;
	struct book_device device;
	struct reader reader;
	uint32_t reads = 0;

	rtest_open(&memory);
	assert(reader_init(&reader, &memory.file) == 0);
	memory.before_read = rtest_redeclare;
	memory.context = &reads;
	assert(reader_device(&reader, 0, &device) == 0);
	assert(device.cores == 65 && reads == 6);
	reader_deinit(&reader);
	testing_memory_deinit(&memory);
}

UNIT(incidents_and_marks)
{
	struct book_incident incident;
	struct testing_memory memory;
	struct book_mark mark;
	struct reader reader;

	rtest_open(&memory);
	assert(reader_init(&reader, &memory.file) == 0);
	assert(reader_incident(&reader, BOOK_INCIDENT_ALLOC_FAILED, 0, &incident) == 0);
	assert(incident.count == 1 && incident.size == UINT64_C(1) << 40);
	assert(incident.largest_free == 4096 && incident.device == 0 && incident.type == 0);
	assert(reader_incident(&reader, BOOK_INCIDENT_ALLOC_FAILED, 1, &incident) == -ENOENT);
	assert(reader_incident(&reader, BOOK_INCIDENT_KINDS, 0, &incident) == -ENOENT);
	assert(reader_incident(&reader, 0, BOOK_INCIDENTS_PER_KIND, &incident) == -ENOENT);
	for (uint64_t n = 0; n < 3; n++)
		assert(reader_mark(&reader, n, &mark) == 0 && mark.thread == n && mark.name);
	assert(reader_mark(&reader, 3, &mark) == -ENOENT);
	assert(reader_mark(&reader, BOOK_MARKS, &mark) == -ENOENT); /* the place of mark 0 */
	assert(reader_mark(&reader, UINT64_MAX, &mark) == -ENOENT);
	reader_deinit(&reader);
	testing_memory_deinit(&memory);
}

UNIT(shards_are_found)
{
	struct testing_memory memory;
	struct reader reader;

	rtest_open(&memory);
	assert(reader_init(&reader, &memory.file) == 0);
	assert(reader_next_shard(&reader, 0) == 0);
	assert(reader_next_shard(&reader, 1) == 5);
	assert(reader_next_shard(&reader, 6) == BOOK_DEVICES - 1);
	assert(reader_next_shard(&reader, BOOK_DEVICES) == -ENXIO);
	reader_deinit(&reader);
	testing_memory_deinit(&memory);
}

/* A shard's page with one error; the result of reading it both ways. */
static void rtest_refuses_shard(struct testing_memory *memory, uint64_t member, uint64_t value,
				size_t size, int living, int dead)
{
	struct view *view = calloc(1, sizeof(*view));
	uint64_t at = book_shard_offset(0) + member;
	struct reader reader;
	uint64_t good;

	memcpy(&good, memory->base + at, size);
	testing_memory_patch(memory, at, &value, size);
	assert(view && reader_init(&reader, &memory->file) == 0);
	assert(view_read(view, &reader, 0, VIEW_LIVING) == living);
	assert(view_read_totals(view, &reader, 0, VIEW_DEAD) == dead);
	assert(view_read(view, &reader, 0, VIEW_DEAD) == dead);
	testing_memory_patch(memory, at, &good, size);
	assert(view_read(view, &reader, 0, VIEW_LIVING) == 0 && view->adds_up);
	assert(view_read(view, &reader, 0, VIEW_DEAD) == 0 && view->adds_up);
	view_deinit(view);
	free(view);
	reader_deinit(&reader);
}

#define RTEST_SHARD(member) \
	offsetof(struct book_shard, member), sizeof(((struct book_shard *)NULL)->member)

static void rtest_refuses(struct testing_memory *memory, uint64_t member, size_t size,
			  uint64_t value)
{
	rtest_refuses_shard(memory, member, value, size, -EBADMSG, -EBADMSG);
}

UNIT(shards_are_checked)
{
	struct testing_memory memory;

	rtest_open(&memory);
	rtest_refuses_shard(&memory, offsetof(struct book_shard, state), 2, 4, -ENOENT, -ENOENT);
	rtest_refuses(&memory, RTEST_SHARD(slots), BOOK_SLOTS_MAX + 1);
	rtest_refuses(&memory, RTEST_SHARD(slots), UINT64_MAX);
	rtest_refuses(&memory, RTEST_SHARD(head), UINT64_MAX);
	rtest_refuses(&memory, RTEST_SHARD(head), UINT64_MAX - 1);
	rtest_refuses(&memory, RTEST_SHARD(ring_unit), 0);
	rtest_refuses(&memory, RTEST_SHARD(ring_unit), UINT32_MAX);
	rtest_refuses(&memory, RTEST_SHARD(ring_events), 0);
	rtest_refuses(&memory, RTEST_SHARD(ring_events), 1000);
	rtest_refuses(&memory, RTEST_SHARD(ring_events), 2048); /* not what the segment says */
	testing_memory_deinit(&memory);
}

/* Rows only: counters alone do not need the directory. */
UNIT(directories_are_checked)
{
	struct testing_memory memory;
	struct book_shard *page;
	struct view *view = calloc(1, sizeof(*view));
	struct reader reader;
	uint32_t good;

	rtest_open(&memory);
	page = (struct book_shard *)(void *)(memory.base + book_shard_offset(0));
	good = page->directory[0];
	assert(view && reader_init(&reader, &memory.file) == 0);
	for (int i = 0; i < 4; i++) {
		const uint32_t bad[] = {0, good + 1, page->ring_unit, UINT32_MAX};

		page->directory[0] = bad[i];
		assert(view_read(view, &reader, 0, VIEW_LIVING) == -EBADMSG);
		assert(view_read(view, &reader, 0, VIEW_DEAD) == -EBADMSG);
		assert(view_read_totals(view, &reader, 0, VIEW_LIVING) == 0);
		assert(view_read_totals(view, &reader, 0, VIEW_DEAD) == 0);
	}
	page->directory[0] = page->directory[1] = good; /* one segment twice */
	page->slots += BOOK_SEGMENT_SLOTS;
	assert(view_read(view, &reader, 0, VIEW_DEAD) == -EBADMSG);
	view_deinit(view);
	free(view);
	reader_deinit(&reader);
	testing_memory_deinit(&memory);
}

static unsigned int rtest_searches;

static int64_t rtest_next_hole(struct book_file *file, uint64_t offset)
{
	const struct testing_memory *memory = container_of(file, struct testing_memory, file);
	uint64_t page = offset / BOOK_PAGE;

	rtest_searches++;
	while (memory->is_data[page])
		page++;
	return (int64_t)bits_max(offset, page * BOOK_PAGE);
}

/* Whether pages @from up to @to have no hole. */
static int rtest_is_solid(struct reader *reader, uint64_t from, uint64_t to)
{
	return reader_is_solid(reader, from * BOOK_PAGE, to * BOOK_PAGE);
}

UNIT(the_end_of_the_data_is_searched_for_once)
{
	static const struct book_file_ops ops = {.next_hole = rtest_next_hole};
	struct testing_memory memory;
	struct reader reader = {.file = &memory.file};

	testing_memory_init(&memory, TESTING_MEMORY_SIZE);
	memory.file.ops = &ops;
	memset(memory.is_data, 1, 20);
	memory.is_data[10] = 0;
	assert(rtest_is_solid(&reader, 1, 4) == 1 && rtest_searches == 1);
	assert(rtest_is_solid(&reader, 4, 10) == 1 && rtest_is_solid(&reader, 2, 3) == 1);
	assert(rtest_searches == 1);
	assert(rtest_is_solid(&reader, 9, 11) == 0);
	assert(rtest_is_solid(&reader, 10, 12) == 0);
	rtest_searches = 0;
	assert(rtest_is_solid(&reader, 11, 12) == 1 && rtest_is_solid(&reader, 12, 20) == 1);
	assert(rtest_searches == 1);
	/* The owner has stored more. */
	memory.is_data[20] = 1;
	assert(rtest_is_solid(&reader, 11, 21) == 1 && rtest_searches == 2);
	testing_memory_deinit(&memory);
}
