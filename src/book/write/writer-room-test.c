/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The writer's rare paths: incidents that repeat, marks, devices, the fields of the header, and
 * what happens when it runs out of room or memory.
 */

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/process/freeze.h"
#include "base/testing/unit.h"
#include "book/testing/book-testing.h"
#include "book/write/incident.h"
#include "book/write/index.h"
#include "book/write/writer.h"

/* What a shard with the shortest ring costs before its first record. */
#define ROOM_SHARD                                                               \
	(sizeof(struct book_shard) + BOOK_RING_MIN * sizeof(struct book_event) + \
	 BOOK_GRAVES * sizeof(struct book_grave))

static void room_open(struct testing_book *book, uint64_t room)
{
	testing_book_init(book, TESTING_SIZE, BOOK_RING_MIN);
	book->room = room;
	testing_book_write(book);
	testing_book_read(book);
}

static void room_alloc(struct testing_book *book, uint32_t device, uint64_t address)
{
	struct shard_buffer buffer = testing_buffer(1, address, 64);

	writer_alloc(book->writer, device, &buffer, 0);
}

static struct book_rejected room_rejected(struct testing_book *book)
{
	assert(reader_refresh(&book->reader) == 0);
	return book->reader.header.rejected;
}

static struct view *room_view(struct testing_book *book, uint32_t device)
{
	static struct view view;

	assert(view_read(&view, &book->reader, device, VIEW_DEAD) == 0);
	assert(view.rows_exact && view.adds_up);
	return &view;
}

UNIT(no_room_for_records)
{
	struct testing_book book;

	room_open(&book, ROOM_SHARD + BOOK_PAGE);
	for (uint64_t i = 0; i < 100; i++)
		room_alloc(&book, 0, i * 64);
	assert(room_view(&book, 0)->live == 85);
	assert(room_view(&book, 0)->hot[1].allocs == 100);
	assert(room_view(&book, 0)->inexact == BOOK_INEXACT_LOW << 1);
	assert(room_rejected(&book).room == 0);
	testing_book_deinit(&book);
}

/* Long rings of the first devices leave room for those of all others, and for records. */
UNIT(no_device_is_refused_because_of_long_rings)
{
	const uint64_t size = UINT64_C(2) << 30;
	struct testing_book book;
	uint64_t rings = 0, previous = UINT64_MAX;

	testing_book_init(&book, size, BOOK_RING_MAX);
	testing_book_write(&book);
	testing_book_read(&book);
	for (uint32_t device = 0; device < 64; device++)
		room_alloc(&book, device, 0x1000);
	assert(room_rejected(&book).room == 0);
	for (uint32_t device = 0; device < 64; device++) {
		const struct book_shard *page = book.writer->shards[device]->page;

		assert(page->ring_events >= BOOK_RING_SURE && page->ring_events <= previous);
		assert(room_view(&book, device)->live == 1);
		previous = page->ring_events;
		rings += page->ring_events * sizeof(struct book_event);
	}
	assert(book.writer->shards[0]->page->ring_events == BOOK_RING_MAX);
	assert(book.writer->shards[3]->page->ring_events == BOOK_RING_MAX);
	assert(rings <= size / 2);
	testing_book_deinit(&book);
}

UNIT(no_room_for_a_shard)
{
	struct testing_book book;
	struct view view = VIEW_NULL;

	room_open(&book, ROOM_SHARD + BOOK_UNIT);
	room_alloc(&book, 0, 0x1000);
	/* The rest is less than a ring needs; the first device continues. */
	room_alloc(&book, 1, 0x1000);
	room_alloc(&book, 1, 0x1000);
	assert(view_read(&view, &book.reader, 1, VIEW_DEAD) == -ENOENT);
	assert(room_rejected(&book).room == 2);
	room_alloc(&book, 0, 0x2000);
	assert(room_view(&book, 0)->live == 2);
	view_deinit(&view);
	testing_book_deinit(&book);
}

/* Memory that cannot be reserved must not use up the room: the next attempt may succeed. */
UNIT(reserve_fails_and_recovers)
{
	struct testing_book book;

	room_open(&book, ROOM_SHARD + BOOK_PAGE + BOOK_UNIT);
	book.reserve_limit = 0;
	for (uint64_t i = 0; i < 1000; i++)
		room_alloc(&book, 0, i * 64);
	assert(room_rejected(&book).room == 1000);
	assert(book.writer->shards[0] == NULL);
	/* Enough for the page and the first step of the ring. */
	book.reserve_limit = sizeof(struct book_shard) + BOOK_PAGE;
	for (uint64_t i = 0; i < 60; i++)
		room_alloc(&book, 0, i * 64);
	assert(room_view(&book, 0)->live == 0 && room_view(&book, 0)->hot[1].allocs == 60);
	book.reserve_limit = UINT64_MAX;
	for (uint64_t i = 0; i < 100; i++)
		room_alloc(&book, 0, i * 64);
	assert(room_view(&book, 0)->live == 100 && room_view(&book, 0)->hot[1].allocs == 160);
	assert(room_rejected(&book).room == 1000);
	testing_book_deinit(&book);
}

/* Not even the log can grow: the event is lost, and the shard says in which direction. */
UNIT(no_memory_for_the_log)
{
	struct shard_buffer who = testing_buffer(1, 0, 64);
	struct testing_book book;
	struct view *view;

	room_open(&book, TESTING_SIZE);
	for (uint64_t i = 0; i < 63; i++)
		room_alloc(&book, 0, i * 64);
	book.reserve_limit = 0;
	room_alloc(&book, 0, 0x10000);
	view = room_view(&book, 0);
	assert(view->number == 63 && view->live == 63);
	assert(view->inexact == BOOK_INEXACT_LOW << 1 && room_rejected(&book).room == 1);
	writer_free_buffer(book.writer, 0, &who);
	view = room_view(&book, 0);
	assert(view->number == 63 && view->live == 63 && room_rejected(&book).room == 2);
	assert(view->inexact == (BOOK_INEXACT_LOW | BOOK_INEXACT_HIGH) << 1);
	who.type = INDEX_ANY;
	writer_free_all(book.writer, 0, 0, &who);
	assert(room_view(&book, 0)->live == 63);
	who.type = 2;
	writer_hooked(book.writer, 0, &who);
	assert(room_rejected(&book).room == 3);
	/* Once there is memory, everything continues. */
	book.reserve_limit = UINT64_MAX;
	writer_free_all(book.writer, 0, 0, &(struct shard_buffer){.type = INDEX_ANY});
	assert(room_view(&book, 0)->live == 0);
	testing_book_deinit(&book);
}

/* A shard without a graveyard does everything except recognise double frees. */
UNIT(no_room_for_graves)
{
	struct shard_buffer who = testing_buffer(1, 0x1000, 64);
	struct testing_book book;

	room_open(&book, ROOM_SHARD - BOOK_PAGE);
	room_alloc(&book, 0, 0x1000);
	writer_free_buffer(book.writer, 0, &who);
	writer_free_buffer(book.writer, 0, &who);
	assert(room_view(&book, 0)->cold[1].unknown_frees == 1);
	assert(room_view(&book, 0)->hot[1].frees == 1);
	assert(reader_refresh(&book.reader) == 0 && book.reader.header.lost_graves == 1);
	testing_book_deinit(&book);
}

/* Graves that did not fit are counted; a double free then looks like an unknown free. */
UNIT(no_memory_for_graves)
{
	struct shard_buffer who = testing_buffer(1, 0x1000, 64);
	struct testing_book book;

	room_open(&book, TESTING_SIZE);
	room_alloc(&book, 0, 0x1000);
	book.reserve_limit = 0;
	writer_free_buffer(book.writer, 0, &who);
	assert(reader_refresh(&book.reader) == 0 && book.reader.header.lost_graves == 1);
	book.reserve_limit = UINT64_MAX;
	writer_free_buffer(book.writer, 0, &who);
	assert(room_view(&book, 0)->cold[1].unknown_frees == 1);
	testing_book_deinit(&book);
}

/* An owner is stuck inside a call: other threads give up and count what they could not record. */
UNIT(a_lock_that_is_never_dropped_does_not_hang_the_writer)
{
	struct testing_book book;

	room_open(&book, TESTING_SIZE);
	room_alloc(&book, 0, 0x1000);
	assert(lock_take(&book.writer->shards[0]->lock));
	room_alloc(&book, 0, 0x2000);
	assert(room_rejected(&book).lock == 1 && room_view(&book, 0)->live == 1);
	assert(room_view(&book, 0)->inexact == BOOK_INEXACT_LOW << 1);
	lock_drop(&book.writer->shards[0]->lock);
	room_alloc(&book, 0, 0x2000);
	assert(room_view(&book, 0)->live == 2);
	testing_book_deinit(&book);
}

static void *room_make_shards(void *context)
{
	struct testing_book *book = context;

	for (uint32_t device = 0; device < 64; device++)
		room_alloc(book, device, (uint64_t)(uintptr_t)&device);
	return NULL;
}

/* Claims of several threads never overlap, even where the pool ends. */
UNIT(threads_at_the_end_of_the_pool)
{
	for (uint32_t round = 0; round < 20; round++) {
		pthread_t threads[3];
		struct testing_book book;
		uint64_t end = 0, shards = 0;

		testing_book_init(&book, BOOK_POOL_OFFSET + (200 + round) * BOOK_UNIT,
				  BOOK_RING_MIN);
		testing_book_write(&book);
		testing_book_read(&book);
		for (uint32_t i = 0; i < 3; i++)
			assert(pthread_create(&threads[i], NULL, room_make_shards, &book) == 0);
		for (uint32_t i = 0; i < 3; i++)
			pthread_join(threads[i], NULL);
		for (uint32_t unit = BOOK_POOL_FIRST_UNIT; unit < book.size / BOOK_UNIT; unit++) {
			struct book_segment segment;

			memcpy(&segment, book.base + BOOK_SEGMENTS_OFFSET + unit * 8, 8);
			if (!segment.units)
				continue;
			assert(unit >= end);
			end = unit + segment.units;
		}
		assert(end <= book.size / BOOK_UNIT);
		for (uint32_t device = 0; device < 64; device++)
			shards += book.writer->shards[device] != NULL;
		assert(shards >= 6);
		testing_book_deinit(&book);
	}
}

UNIT(repeated_incidents_raise_a_count)
{
	struct book_incident incident;
	struct shard_buffer who = testing_buffer(0, 0, 0);
	struct testing_book book;

	room_open(&book, TESTING_SIZE);
	for (uint64_t i = 0; i < 1000; i++) {
		who.address = i * 64;
		who.stack = 1 + i % 2; /* two call sites, whatever the address */
		writer_free_buffer(book.writer, 0, &who);
	}
	assert(reader_incident(&book.reader, BOOK_INCIDENT_UNKNOWN_FREE, 0, &incident) == 0);
	assert(incident.count == 500 && incident.address == 0);
	assert(incident.last_time > incident.second.time);
	assert(reader_incident(&book.reader, BOOK_INCIDENT_UNKNOWN_FREE, 1, &incident) == 0);
	assert(incident.count == 500 && incident.second.stack == 2);
	assert(reader_incident(&book.reader, BOOK_INCIDENT_UNKNOWN_FREE, 2, &incident) == -ENOENT);
	/* Another device is another incident; without a stack the address decides. */
	writer_free_buffer(book.writer, 1, &who);
	who.stack = 0;
	writer_free_buffer(book.writer, 1, &who);
	assert(reader_incident(&book.reader, BOOK_INCIDENT_UNKNOWN_FREE, 3, &incident) == 0);
	testing_book_deinit(&book);
}

UNIT(incidents_beyond_the_area_are_counted)
{
	struct book_incident incident;
	struct shard_buffer who = testing_buffer(0, 0, 0);
	struct testing_book book;

	room_open(&book, TESTING_SIZE);
	for (uint32_t i = 0; i < BOOK_INCIDENTS_PER_KIND + 10; i++) {
		who.address = i * 64;
		writer_free_buffer(book.writer, 0, &who);
	}
	assert(reader_refresh(&book.reader) == 0);
	assert(book.reader.header.incident_count[BOOK_INCIDENT_UNKNOWN_FREE] == 256);
	assert(book.reader.header.incident_lost[BOOK_INCIDENT_UNKNOWN_FREE] == 10);
	/* Other kinds have their own entries. */
	room_alloc(&book, 0, 0x100000);
	writer_free_buffer(book.writer, 0, &(struct shard_buffer){.address = 0x100000, .type = 1});
	writer_free_buffer(book.writer, 0, &(struct shard_buffer){.address = 0x100000, .type = 1});
	assert(reader_incident(&book.reader, BOOK_INCIDENT_DOUBLE_FREE, 0, &incident) == 0);
	testing_book_deinit(&book);
}

/* Entries are reserved in pages: without memory those of the next page are lost. */
UNIT(no_memory_for_incidents)
{
	const uint32_t page = BOOK_PAGE / sizeof(struct book_incident);
	struct shard_buffer who = testing_buffer(0, 0, 0);
	struct testing_book book;

	room_open(&book, TESTING_SIZE);
	for (uint32_t i = 0; i < page + 2; i++) {
		if (i == page)
			book.reserve_limit = 0;
		who.address = i * 64;
		writer_free_buffer(book.writer, 0, &who);
	}
	assert(reader_refresh(&book.reader) == 0);
	assert(book.reader.header.incident_count[BOOK_INCIDENT_UNKNOWN_FREE] == page);
	assert(book.reader.header.incident_lost[BOOK_INCIDENT_UNKNOWN_FREE] == 2);
	testing_book_deinit(&book);
}

UNIT(marks_keep_the_latest)
{
	struct testing_book book;
	struct book_mark mark;

	room_open(&book, TESTING_SIZE);
	for (uint32_t i = 0; i < BOOK_MARKS + 3; i++)
		writer_mark(book.writer, i + 1, 7, 9);
	assert(reader_refresh(&book.reader) == 0);
	assert(book.reader.header.mark_count == BOOK_MARKS + 3);
	assert(reader_mark(&book.reader, 2, &mark) == -ENOENT);
	for (uint32_t i = 3; i < BOOK_MARKS + 3; i++)
		assert(reader_mark(&book.reader, i, &mark) == 0 && mark.name == i + 1);
	assert(mark.thread == 7 && mark.phase == 9 && mark.time);
	testing_book_deinit(&book);
}

UNIT(declared_devices_are_in_the_book)
{
	struct writer_device facts = {
		.arch = "a name that is longer than its place", .cores = 3, .unique_id = 1};
	struct testing_book book;
	struct book_device device;

	room_open(&book, TESTING_SIZE);
	writer_declare(book.writer, BOOK_DEVICES - 1, &facts);
	assert(reader_device(&book.reader, BOOK_DEVICES - 1, &device) == 0);
	assert(strcmp(device.arch, "a name that is longer t") == 0 && !*device.card);
	assert(device.cores == 3 && device.unique_id == 1);
	writer_close_device(book.writer, BOOK_DEVICES - 1);
	assert(reader_device(&book.reader, BOOK_DEVICES - 1, &device) == 0 && device.closed_time);
	facts.arch = "short";
	writer_declare(book.writer, BOOK_DEVICES - 1, &facts); /* opened again */
	assert(reader_device(&book.reader, BOOK_DEVICES - 1, &device) == 0);
	assert(strcmp(device.arch, "short") == 0 && device.closed_time == 0);
	testing_book_deinit(&book);
}

UNIT(header_describes_the_process)
{
	struct testing_book book;
	const struct book_header *header = &book.reader.header;

	room_open(&book, TESTING_SIZE);
	assert(header->state == BOOK_STATE_OPEN && !header->paused && !header->closed_time);
	assert(header->cmdline_length == sizeof("test\0of a book"));
	assert(strcmp(header->comm, "test") == 0 && header->source == BOOK_SOURCE_LIBRARY);
	writer_set_paused(book.writer, true);
	assert(reader_refresh(&book.reader) == 0 && header->paused);
	writer_set_paused(book.writer, false);
	writer_goodbye(book.writer);
	assert(reader_refresh(&book.reader) == 0 && !header->paused);
	assert(header->state == BOOK_STATE_CLOSED && header->closed_time);
	/* Destructors that run later still count. */
	room_alloc(&book, 0, 0x1000);
	assert(room_view(&book, 0)->live == 1);
	testing_book_deinit(&book);
}

static int room_reserve_none(void *context, uint64_t offset, uint64_t length)
{
	return -ENOSPC;
}

UNIT(impossible_configurations_are_refused)
{
	static uint8_t memory[BOOK_UNIT];
	const struct writer_identity identity = {.pid = 1};
	const struct writer_config good = {
		.base = memory,
		.size = BOOK_SIZE_MIN,
		.ring_events = BOOK_RING_MIN,
		.reserve = room_reserve_none,
		.identity = &identity,
	};
	struct writer_config bad[] = {good, good, good, good, good, good, good, good};
	struct writer *writer = NULL;

	bad[0].base = NULL;
	bad[1].size = BOOK_SIZE_MIN - BOOK_UNIT;
	bad[2].size = BOOK_SIZE_MAX + BOOK_UNIT;
	bad[3].size = BOOK_SIZE_MIN + 1;
	bad[4].ring_events = BOOK_RING_MIN / 2;
	bad[5].ring_events = BOOK_RING_MAX * 2;
	bad[6].ring_events = BOOK_RING_MIN + 1;
	bad[7].reserve = NULL;
	for (uint32_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert(writer_new(&writer, &bad[i]) == -EINVAL && !writer);
	assert(writer_new(&writer, &good) == -ENOSPC && !writer);
	assert(!writer_free(NULL));
}

static int room_refuse(void *context, uint64_t offset, uint64_t length)
{
	return -EPERM;
}

/* What was reserved suffices for as many buffers as were asked for, over segments, and for incidents. */
UNIT(prepared_room_needs_no_more_memory)
{
	const uint64_t many = BOOK_SEGMENT_SLOTS + 5000;
	struct shard_buffer free = testing_buffer(1, 64, 0);
	struct testing_book book;

	testing_book_init(&book, UINT64_C(256) << 20, BOOK_RING_MIN);
	book.room = UINT64_C(256) << 20;
	testing_book_write(&book);
	testing_book_read(&book);
	writer_declare(book.writer, 3, &(struct writer_device){.cores = 1});
	for (uint64_t i = 0; i < 100; i++)
		room_alloc(&book, 0, i * 64);
	assert(writer_prepare(book.writer, many) == 0);
	assert(writer_prepare(book.writer, many) == 0);
	book.writer->reserve = room_refuse;
	freeze_set();
	writer_stop_clock(book.writer);
	for (uint64_t i = 100; i < 100 + many; i++)
		room_alloc(&book, 0, i * 64);
	for (uint64_t i = 0; i < many; i++)
		room_alloc(&book, 3, i * 64);
	for (uint64_t i = 0; i < 2; i++)
		writer_free_buffer(book.writer, 0, &free);
	writer_mark(book.writer, intern_string(book.writer, "a new name", BOOK_NAME_MAX), 1, 0);
	assert(room_view(&book, 0)->live == 99 + many && room_view(&book, 0)->inexact == 0);
	assert(room_view(&book, 3)->live == many && room_view(&book, 3)->inexact == 0);
	assert(room_rejected(&book).room == 0);
	assert(book.reader.header.incident_count[BOOK_INCIDENT_DOUBLE_FREE] == 1);
	assert(book.reader.header.mark_count == 1);
	/* A device that nobody spoke of is lost, and said to be. */
	room_alloc(&book, 5, 64);
	assert(room_rejected(&book).room == 1);
	testing_book_deinit(&book);
}

UNIT(less_room_than_was_asked_for_is_said)
{
	struct testing_book book;

	room_open(&book, ROOM_SHARD + 64 * BOOK_UNIT);
	room_alloc(&book, 0, 64);
	assert(writer_prepare(book.writer, 10000000) == -ENOSPC);
	room_alloc(&book, 0, 128);
	assert(room_view(&book, 0)->live == 2);
	testing_book_deinit(&book);
}
