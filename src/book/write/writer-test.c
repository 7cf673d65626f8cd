/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What each call means, one by one and with the numbers spelled out. property-test.c covers random
 * mixtures, writer-room-test.c room and failures.
 */

#include "book/write/writer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/testing/unit.h"
#include "book/testing/book-testing.h"
#include "book/write/index.h"

#define WTEST_DEVICE 2u

struct wtest {
	struct testing_book book;
	struct writer *writer;
	struct view *view;
};

static void wtest_init(struct wtest *test)
{
	testing_book_open(&test->book);
	test->writer = test->book.writer;
	test->view = calloc(1, sizeof(*test->view));
	assert(test->view);
}

static void wtest_deinit(struct wtest *test)
{
	view_deinit(test->view);
	free(test->view);
	testing_book_deinit(&test->book);
}

static void wtest_alloc(struct wtest *test, uint32_t type, uint64_t address, uint64_t size)
{
	struct shard_buffer buffer = testing_buffer(type, address, size);

	writer_alloc(test->writer, WTEST_DEVICE, &buffer, 0);
}

static void wtest_free(struct wtest *test, uint32_t type, uint64_t address)
{
	struct shard_buffer who = testing_buffer(type, address, 0);

	writer_free_buffer(test->writer, WTEST_DEVICE, &who);
}

static const struct book_hot *wtest_hot(struct wtest *test, uint32_t type)
{
	assert(view_read(test->view, &test->book.reader, WTEST_DEVICE, VIEW_DEAD) == 0);
	assert(test->view->adds_up);
	return &test->view->hot[type];
}

static const struct book_cold *wtest_cold(struct wtest *test, uint32_t type)
{
	wtest_hot(test, type);
	return &test->view->cold[type];
}

/* The only live record. */
static const struct book_record *wtest_row(struct wtest *test)
{
	static struct book_record record;
	struct view_iterator it = {0};

	wtest_hot(test, 0);
	assert(test->view->live == 1 && view_next(test->view, &it));
	record = *it.record;
	return &record;
}

static uint32_t wtest_incidents(struct wtest *test, uint32_t kind, struct book_incident *ret_last)
{
	uint32_t n = 0;

	while (reader_incident(&test->book.reader, kind, n, ret_last) == 0)
		n++;
	assert(reader_refresh(&test->book.reader) == 0);
	assert(test->book.reader.header.incident_count[kind] == n);
	if (n > 0)
		assert(reader_incident(&test->book.reader, kind, n - 1, ret_last) == 0);
	return n;
}

UNIT(alloc_and_free)
{
	struct wtest test;
	const struct book_record *row;

	wtest_init(&test);
	wtest_alloc(&test, 1, 0x1000, 100);
	row = wtest_row(&test);
	assert(row->address == 0x1000 && row->size == 100 && row->thread_space == 7 && row->birth);
	assert(book_meta_type(row->meta) == 1 && book_meta_refs(row->meta) == 1);
	assert(wtest_hot(&test, 1)->bytes == 100 && wtest_hot(&test, 1)->buffers == 1);
	assert(wtest_hot(&test, 1)->peak_time == row->birth);
	wtest_free(&test, 1, 0x1000);
	assert(wtest_hot(&test, 1)->bytes == 0 && wtest_hot(&test, 1)->buffers == 0);
	assert(wtest_hot(&test, 1)->allocs == 1 && wtest_hot(&test, 1)->frees == 1);
	assert(wtest_hot(&test, 1)->peak == 100);
	assert(test.view->live == 0 && test.view->number == 2);
	assert(wtest_hot(&test, 0)->allocs == 0);
	wtest_deinit(&test);
}

UNIT(types_do_not_collide)
{
	struct wtest test;

	wtest_init(&test);
	for (uint32_t type = 0; type < BOOK_TYPES; type++)
		wtest_alloc(&test, type, 0x1000, 10 + type);
	for (uint32_t type = 0; type < BOOK_TYPES; type++)
		assert(wtest_hot(&test, type)->bytes == 10 + type);
	wtest_free(&test, 3, 0x1000);
	assert(wtest_hot(&test, 3)->bytes == 0 && test.view->live == BOOK_TYPES - 1);
	wtest_deinit(&test);
}

UNIT(same_key_and_size_is_a_reference)
{
	struct wtest test;

	wtest_init(&test);
	wtest_alloc(&test, 0, 0x1000, 100);
	wtest_alloc(&test, 0, 0x1000, 100);
	assert(book_meta_refs(wtest_row(&test)->meta) == 2);
	assert(wtest_hot(&test, 0)->bytes == 100 && wtest_hot(&test, 0)->buffers == 1);
	assert(wtest_hot(&test, 0)->allocs == 2 && wtest_cold(&test, 0)->realloc_live == 1);
	wtest_free(&test, 0, 0x1000);
	assert(book_meta_refs(wtest_row(&test)->meta) == 1);
	assert(wtest_hot(&test, 0)->frees == 1 && wtest_hot(&test, 0)->buffers == 1);
	wtest_free(&test, 0, 0x1000);
	assert(wtest_hot(&test, 0)->frees == 2 && test.view->live == 0);
	assert(wtest_cold(&test, 0)->double_frees == 0);
	wtest_deinit(&test);
}

/* More references than can be counted: the buffer stays forever, and the book says so. */
UNIT(references_have_a_maximum)
{
	struct wtest test;
	struct book_record *record;

	wtest_init(&test);
	wtest_alloc(&test, 0, 0x1000, 100);
	record = records_at(&test.writer->shards[WTEST_DEVICE]->records, 0);
	record->meta = book_meta(0, 0, BOOK_META_REFS_MAX - 1);
	wtest_alloc(&test, 0, 0x1000, 100);
	assert(book_meta_refs(wtest_row(&test)->meta) == BOOK_META_REFS_MAX);
	assert(test.view->inexact == 0);
	wtest_alloc(&test, 0, 0x1000, 100);
	assert(book_meta_refs(wtest_row(&test)->meta) == BOOK_META_REFS_MAX);
	assert(book_meta_type(wtest_row(&test)->meta) == 0);
	wtest_free(&test, 0, 0x1000);
	assert(book_meta_refs(wtest_row(&test)->meta) == BOOK_META_REFS_MAX);
	assert(test.view->inexact == BOOK_INEXACT_HIGH);
	wtest_deinit(&test);
}

UNIT(another_size_is_a_size_change)
{
	struct book_incident incident;
	struct wtest test;

	wtest_init(&test);
	wtest_alloc(&test, 0, 0x1000, 100);
	wtest_alloc(&test, 0, 0x1000, 100);
	wtest_alloc(&test, 0, 0x1000, 300);
	assert(wtest_row(&test)->size == 300 && book_meta_refs(wtest_row(&test)->meta) == 1);
	assert(wtest_hot(&test, 0)->bytes == 300 && wtest_hot(&test, 0)->buffers == 1);
	assert(wtest_hot(&test, 0)->allocs == 3 && wtest_hot(&test, 0)->frees == 1);
	assert(wtest_hot(&test, 0)->peak == 300 && wtest_cold(&test, 0)->size_changes == 1);
	assert(test.view->number == 4);
	assert(wtest_incidents(&test, BOOK_INCIDENT_SIZE_CHANGE, &incident) == 1);
	assert(incident.address == 0x1000 && incident.device == WTEST_DEVICE && incident.type == 0);
	assert(incident.first.size == 100 && incident.second.size == 300 && incident.size == 300);
	assert(incident.first.time < incident.second.time && incident.count == 1);
	/* Shrinking: the two sizes never exist together. */
	wtest_alloc(&test, 0, 0x1000, 50);
	assert(wtest_hot(&test, 0)->bytes == 50 && wtest_hot(&test, 0)->peak == 300);
	wtest_deinit(&test);
}

UNIT(an_unknown_free_is_counted)
{
	struct book_incident incident;
	struct wtest test;

	wtest_init(&test);
	wtest_free(&test, 4, 0x1000);
	assert(wtest_cold(&test, 4)->unknown_frees == 1 && wtest_hot(&test, 4)->frees == 0);
	assert(wtest_hot(&test, 4)->last && test.view->number == 1);
	assert(wtest_incidents(&test, BOOK_INCIDENT_UNKNOWN_FREE, &incident) == 1);
	assert(incident.address == 0x1000 && incident.type == 4 && incident.second.thread == 7);
	wtest_free(&test, INDEX_ANY, 0x2000); /* type not known: counted with the first type */
	assert(wtest_cold(&test, 0)->unknown_frees == 1);
	assert(wtest_incidents(&test, BOOK_INCIDENT_UNKNOWN_FREE, &incident) == 2);
	assert(incident.type == INDEX_ANY);
	wtest_deinit(&test);
}

UNIT(double_free_names_both_parties)
{
	struct shard_buffer who = testing_buffer(3, 0x1000, 64);
	struct book_incident incident;
	struct wtest test;

	wtest_init(&test);
	who.name = intern_string(test.writer, "twice", BOOK_NAME_MAX);
	writer_alloc(test.writer, WTEST_DEVICE, &who, 0);
	who.thread = 8;
	who.stack = 55;
	writer_free_buffer(test.writer, WTEST_DEVICE, &who);
	who.thread = 9;
	who.stack = 66;
	writer_free_buffer(test.writer, WTEST_DEVICE, &who);
	assert(wtest_cold(&test, 3)->double_frees == 1 && wtest_hot(&test, 3)->frees == 1);
	assert(wtest_incidents(&test, BOOK_INCIDENT_DOUBLE_FREE, &incident) == 1);
	assert(incident.type == 3 && incident.size == 64 && incident.address == 0x1000);
	assert(incident.first.thread == 8 && incident.first.stack == 55);
	assert(incident.second.thread == 9 && incident.second.stack == 66);
	assert(incident.first.name == who.name && incident.first.time < incident.second.time);
	/* It is also found without a type. */
	who.type = INDEX_ANY;
	writer_free_buffer(test.writer, WTEST_DEVICE, &who);
	assert(wtest_cold(&test, 3)->double_frees == 2);
	/* A new buffer at the address makes it an ordinary free. */
	wtest_alloc(&test, 3, 0x1000, 64);
	wtest_free(&test, 3, 0x1000);
	assert(wtest_cold(&test, 3)->double_frees == 2 && wtest_hot(&test, 3)->frees == 2);
	wtest_deinit(&test);
}

UNIT(each_shard_has_its_own_graveyard)
{
	struct wtest test;

	wtest_init(&test);
	for (uint64_t i = 0; i <= BOOK_GRAVES; i++) {
		wtest_alloc(&test, 0, i * 64, 1);
		wtest_free(&test, 0, i * 64);
	}
	wtest_free(&test, 0, 64); /* the oldest that is still in the graveyard */
	assert(wtest_cold(&test, 0)->double_frees == 1 && wtest_cold(&test, 0)->unknown_frees == 0);
	wtest_free(&test, 0, 0); /* the one before it: forgotten */
	assert(wtest_cold(&test, 0)->double_frees == 1 && wtest_cold(&test, 0)->unknown_frees == 1);
	wtest_deinit(&test);
}

UNIT(free_without_a_type_finds_the_buffer)
{
	struct wtest test;

	wtest_init(&test);
	wtest_alloc(&test, 2, 0x1000, 100);
	wtest_free(&test, INDEX_ANY, 0x1000); /* only one: no ambiguity */
	assert(wtest_hot(&test, 2)->frees == 1 && wtest_cold(&test, 2)->ambiguous_frees == 0);
	wtest_alloc(&test, 2, 0x1000, 100);
	wtest_alloc(&test, 0, 0x1000, 100);
	wtest_alloc(&test, 5, 0x1000, 100);
	wtest_free(&test, INDEX_ANY, 0x1000); /* the youngest */
	assert(wtest_hot(&test, 5)->buffers == 0 && wtest_cold(&test, 5)->ambiguous_frees == 1);
	wtest_free(&test, INDEX_ANY, 0x1000);
	assert(wtest_hot(&test, 0)->buffers == 0 && wtest_cold(&test, 0)->ambiguous_frees == 1);
	wtest_free(&test, INDEX_ANY, 0x1000);
	assert(wtest_hot(&test, 2)->buffers == 0 && wtest_cold(&test, 2)->ambiguous_frees == 0);
	wtest_deinit(&test);
}

UNIT(alias_adds_no_bytes)
{
	struct shard_buffer buffer = testing_buffer(5, 0x1000, 4096);
	struct wtest test;

	wtest_init(&test);
	buffer.flags = BOOK_META_ALIAS >> BOOK_META_FLAGS_SHIFT;
	writer_alloc(test.writer, WTEST_DEVICE, &buffer, 0);
	assert(wtest_hot(&test, 5)->bytes == 0 && wtest_hot(&test, 5)->buffers == 1);
	assert(wtest_hot(&test, 5)->peak == 0 && wtest_row(&test)->size == 4096);
	assert(book_meta_flags(wtest_row(&test)->meta) == buffer.flags);
	wtest_free(&test, 5, 0x1000);
	assert(wtest_hot(&test, 5)->bytes == 0 && wtest_hot(&test, 5)->buffers == 0);
	wtest_deinit(&test);
}

UNIT(hooked_and_failed_calls_are_only_counted)
{
	struct shard_buffer buffer = testing_buffer(1, 0x1000, 4096);
	struct book_incident incident;
	struct wtest test;

	wtest_init(&test);
	writer_hooked(test.writer, WTEST_DEVICE, &buffer);
	assert(wtest_cold(&test, 1)->hooked == 1 && wtest_hot(&test, 1)->allocs == 0);
	writer_failed(
		test.writer, WTEST_DEVICE, &buffer,
		&(struct writer_lack){.largest_free = 512, .size_per_bank = 1024, .banks = 4});
	assert(wtest_hot(&test, 1)->allocs == 0 && test.view->live == 0 && test.view->number == 2);
	assert(wtest_incidents(&test, BOOK_INCIDENT_ALLOC_FAILED, &incident) == 1);
	assert(incident.size == 4096 && incident.largest_free == 512 && incident.type == 1);
	wtest_deinit(&test);
}

UNIT(a_clash_names_who_allocated_the_buffer_and_who_was_refused)
{
	struct shard_buffer buffer = testing_buffer(1, 0x9000, 4096);
	struct shard_buffer refused = {
		.type = 1, .address = 0x9000, .size = 0x5000, .thread = 9, .phase = 3};
	struct book_incident incident;
	struct wtest test;

	wtest_init(&test);
	buffer.space = refused.space = 2;
	buffer.thread = 7;
	writer_alloc(test.writer, WTEST_DEVICE, &buffer, 0);
	writer_clash(test.writer, WTEST_DEVICE, &refused, 0x9800);
	assert(wtest_incidents(&test, BOOK_INCIDENT_CLASH, &incident) == 1);
	assert(incident.address == 0x9000 && incident.size == 0x800 && incident.space == 2);
	assert(incident.type == 1 && incident.device == WTEST_DEVICE);
	assert(incident.first.size == 4096 && incident.first.thread == 7 && incident.first.time);
	assert(incident.second.size == 0x5000 && incident.second.thread == 9);
	assert(incident.second.phase == 3 && incident.second.time >= incident.first.time);
	/* Nothing has been allocated, and the buffer stays. */
	assert(wtest_hot(&test, 1)->allocs == 1 && wtest_hot(&test, 1)->buffers == 1);
	wtest_deinit(&test);
}

UNIT(a_clash_with_a_buffer_that_is_gone_has_one_side)
{
	struct shard_buffer refused = {.type = 1, .address = 0x9000, .size = 0x5000, .thread = 9};
	struct book_incident incident;
	struct wtest test;

	wtest_init(&test);
	writer_clash(test.writer, WTEST_DEVICE, &refused, 0x9800);
	assert(wtest_incidents(&test, BOOK_INCIDENT_CLASH, &incident) == 1);
	assert(incident.first.time == 0 && incident.second.thread == 9);
	wtest_deinit(&test);
}

UNIT(peaks_can_be_reset)
{
	struct wtest test;

	wtest_init(&test);
	writer_reset_peak(test.writer, WTEST_DEVICE, INDEX_ANY, 7); /* no shard: creates none */
	assert(view_read(test.view, &test.book.reader, WTEST_DEVICE, VIEW_DEAD) == -ENOENT);
	for (uint32_t type = 0; type < BOOK_TYPES; type++) {
		wtest_alloc(&test, type, 0x1000, 100);
		wtest_alloc(&test, type, 0x2000, 50);
		wtest_free(&test, type, 0x1000);
	}
	writer_reset_peak(test.writer, WTEST_DEVICE, 2, 7);
	assert(wtest_hot(&test, 2)->peak == 50 && wtest_hot(&test, 3)->peak == 150);
	assert(wtest_hot(&test, 2)->peak_time == wtest_hot(&test, 2)->last);
	writer_reset_peak(test.writer, WTEST_DEVICE, INDEX_ANY, 7);
	for (uint32_t type = 0; type < BOOK_TYPES; type++)
		assert(wtest_hot(&test, type)->peak == 50);
	wtest_deinit(&test);
}

UNIT(free_all_of_an_owner)
{
	struct shard_buffer who = testing_buffer(INDEX_ANY, 0, 0);
	struct wtest test;

	wtest_init(&test);
	for (uint32_t i = 0; i < 300; i++) {
		struct shard_buffer buffer = testing_buffer(i % 2 ? 5 : 0, i * 64, 64);

		writer_alloc(test.writer, WTEST_DEVICE, &buffer, i % 3);
		writer_alloc(test.writer, WTEST_DEVICE, &buffer, 0); /* references do not matter */
	}
	who.type = 5;
	writer_free_all(test.writer, WTEST_DEVICE, 1, &who);
	assert(wtest_hot(&test, 5)->buffers == 100 && wtest_hot(&test, 0)->buffers == 150);
	assert(wtest_hot(&test, 5)->frees == 50);
	who.type = INDEX_ANY;
	writer_free_all(test.writer, WTEST_DEVICE, 2, &who);
	assert(test.view->live == 250);
	assert(wtest_hot(&test, 5)->buffers == 50 && wtest_hot(&test, 0)->buffers == 100);
	writer_free_all(test.writer, WTEST_DEVICE, 0, &who);
	assert(wtest_hot(&test, 5)->buffers == 0 && test.view->live == 0);
	writer_free_all(test.writer, WTEST_DEVICE + 1, 0, &who); /* no shard */
	/* They are in the graveyard like all others. */
	wtest_free(&test, 0, 0);
	assert(wtest_cold(&test, 0)->double_frees == 1);
	wtest_deinit(&test);
}

UNIT(mesh_calls_reach_every_device)
{
	const uint32_t devices[] = {3, 0, BOOK_DEVICES, 7};
	struct shard_buffer buffer = testing_buffer(1, 0x1000, 64);
	struct wtest test;
	uint64_t birth = 0;

	wtest_init(&test);
	writer_alloc_mesh(test.writer, devices, 4, &buffer, 0);
	for (uint32_t i = 0; i < 4; i++) {
		struct view_iterator it = {0};

		if (i == 2)
			continue;
		assert(view_read(test.view, &test.book.reader, devices[i], VIEW_DEAD) == 0);
		assert(test.view->live == 1 && view_next(test.view, &it));
		assert(!birth || it.record->birth == birth);
		birth = it.record->birth;
	}
	writer_free_mesh(test.writer, devices, 4, &buffer);
	assert(view_read(test.view, &test.book.reader, 7, VIEW_DEAD) == 0 && test.view->live == 0);
	assert(reader_refresh(&test.book.reader) == 0);
	assert(test.book.reader.header.rejected.device == 2);
	wtest_deinit(&test);
}

UNIT(counters_for_the_owner)
{
	struct book_hot hot;
	struct wtest test;

	wtest_init(&test);
	assert(!writer_counters(test.writer, WTEST_DEVICE, 0, 0, &hot));
	wtest_alloc(&test, 0, 0x1000, 100);
	assert(writer_counters(test.writer, WTEST_DEVICE, 0, 0, &hot));
	assert(hot.bytes == 100 && hot.peak == 100 && hot.allocs == 1 && hot.buffers == 1);
	wtest_deinit(&test);
}
