/* SPDX-License-Identifier: Apache-2.0 */

/* One call to a book's file fails: what is returned is right, or the failure is told. */

#include <errno.h>
#include <string.h>

#include "base/bits.h"
#include "base/hash.h"
#include "base/testing/unit.h"
#include "book/read/log.h"
#include "book/read/reader.h"
#include "book/read/view.h"
#include "book/testing/book-testing.h"
#include "book/testing/testing-memory.h"

/* Passes on all calls but one. */
struct failing {
	struct book_file file;
	struct book_file *whole;
	uint32_t calls, fails; /* the number of the one, from 1 on; 0 = none */
};

static struct book_file *failing_next(struct book_file *file)
{
	struct failing *failing = (struct failing *)(void *)file; /* its first member */

	return ++failing->calls == failing->fails ? NULL : failing->whole;
}

static int failing_read(struct book_file *file, uint64_t offset, void *buffer, size_t length)
{
	struct book_file *whole = failing_next(file);

	return whole ? whole->ops->read_at(whole, offset, buffer, length) : -EIO;
}

static int64_t failing_data(struct book_file *file, uint64_t offset)
{
	struct book_file *whole = failing_next(file);

	return whole ? whole->ops->next_data(whole, offset) : -EIO;
}

static int64_t failing_hole(struct book_file *file, uint64_t offset)
{
	struct book_file *whole = failing_next(file);

	return whole ? whole->ops->next_hole(whole, offset) : -EIO;
}

static const struct book_file_ops failing_ops = {failing_read, failing_data, failing_hole};

/* Each returns what is read as one number, or a negative errno. */
typedef int64_t read_fn(struct reader *reader);

static int64_t number_of(uint64_t hash)
{
	return (int64_t)(hash >> 1);
}

static int64_t read_refresh(struct reader *reader)
{
	int r = reader_refresh(reader);

	return r < 0 ? r : number_of(reader->header.incident_count[0]);
}

static int64_t read_shard(struct reader *reader)
{
	return reader_next_shard(reader, 1);
}

static int64_t read_device(struct reader *reader)
{
	struct book_device device;
	int r = reader_device(reader, 0, &device);

	return r < 0 ? r : number_of(hash_bytes((const char *)&device, sizeof(device)));
}

static int64_t read_declared(struct reader *reader)
{
	uint32_t devices;
	int r = reader_declared(reader, 0, 4, &devices);

	return r < 0 ? r : number_of(devices);
}

static int64_t read_incident(struct reader *reader)
{
	struct book_incident incident;
	int r = reader_incident(reader, BOOK_INCIDENT_DOUBLE_FREE, 0, &incident);

	return r < 0 ? r : number_of(hash_bytes((const char *)&incident, sizeof(incident)));
}

static int64_t read_mark(struct reader *reader)
{
	struct book_mark mark;
	int r = reader_mark(reader, 0, &mark);

	return r < 0 ? r : number_of(hash_bytes((const char *)&mark, sizeof(mark)));
}

static int64_t read_arena(struct reader *reader)
{
	struct book_arena arena;
	int r = reader_arena(reader, BOOK_ARENA_STRINGS, &arena);

	return r < 0 ? r : number_of(arena.used);
}

static int64_t read_view(struct reader *reader)
{
	struct view view = VIEW_NULL;
	int r = view_read(&view, reader, 0, VIEW_DEAD);
	int64_t number = r < 0 ? r : number_of(testing_digest(&view));

	view_deinit(&view);
	return number;
}

/* Of a living owner: what cannot be read of the rest is not known then. */
static int64_t number_of_counters(const struct view *view)
{
	return number_of(hash_bytes((const char *)view->hot, sizeof(view->hot)) ^ view->live);
}

static int64_t read_totals(struct reader *reader)
{
	struct view view = VIEW_NULL;
	int r = view_read_totals(&view, reader, 0, VIEW_LIVING);
	int64_t number = r < 0 ? r : number_of_counters(&view);

	view_deinit(&view);
	return number;
}

static int64_t read_part(struct reader *reader)
{
	struct view view = VIEW_NULL;
	int r = view_read_part(&view, reader, 0, VIEW_LIVING, 0, 1);
	int64_t number = r < 0 ? r : number_of_counters(&view);

	view_deinit(&view);
	return number;
}

static int64_t read_log(struct reader *reader)
{
	struct book_shard page;
	struct log_place place;
	struct log log = {.count = 0};
	int64_t number;
	int r = file_read(reader->file, book_shard_offset(0), &page, sizeof(page));

	if (r == 0)
		r = log_find(reader, &page, 0, &place);
	if (r == 0) {
		log_start(&log, &place, 1);
		r = log_drain(&log, reader);
	}
	number = r < 0 ? r
		       : number_of(hash_bytes((const char *)log.events,
					      log.count * sizeof(*log.events)));
	log_deinit(&log);
	return number;
}

/* What is read if that call fails; 0 = none does. @ret_calls: how many there were. */
static int64_t read_failing(struct book_file *whole, read_fn *fn, uint32_t fails,
			    uint32_t *ret_calls)
{
	struct failing failing = {.file = {&failing_ops, whole->size}, .whole = whole};
	struct reader reader;
	int64_t number;

	assert(reader_init(&reader, &failing.file) == 0);
	failing.calls = 0;
	failing.fails = fails;
	number = fn(&reader);
	*ret_calls = failing.calls;
	reader_deinit(&reader);
	return number;
}

UNIT(what_is_read_is_right_or_the_failure_is_told)
{
	static read_fn *const functions[] = {
		read_refresh, read_shard, read_device, read_declared, read_incident, read_mark,
		read_arena,   read_view,  read_totals, read_part,     read_log,
	};
	struct testing_memory memory;

	testing_memory_init(&memory, TESTING_MEMORY_SIZE);
	testing_memory_write(&memory, BOOK_RING_MIN);
	testing_memory_fill(&memory);
	for (size_t i = 0; i < ARRAY_SIZE(functions); i++) {
		uint32_t calls, again, told = 0;
		int64_t expected = read_failing(&memory.file, functions[i], 0, &calls);

		assert(expected >= 0 && calls > 0);
		for (uint32_t k = 1; k <= calls; k++) {
			int64_t number = read_failing(&memory.file, functions[i], k, &again);

			/* Some take it for a book that contradicts itself. */
			assert(number < 0 || number == expected);
			told += number < 0;
		}
		assert(told > 0);
	}
	testing_memory_deinit(&memory);
}

UNIT(a_reader_begins_with_a_whole_header_or_not_at_all)
{
	struct testing_memory memory;
	struct reader reader;

	testing_memory_init(&memory, TESTING_MEMORY_SIZE);
	testing_memory_write(&memory, BOOK_RING_MIN);
	for (uint32_t k = 1;; k++) {
		struct failing failing = {.file = {&failing_ops, memory.file.size},
					  .whole = &memory.file,
					  .fails = k};
		int r = reader_init(&reader, &failing.file);

		if (r == 0)
			reader_deinit(&reader);
		if (failing.calls < k) {
			assert(r == 0 && k > 1);
			break;
		}
		assert(r == -EIO);
	}
	testing_memory_deinit(&memory);
}
