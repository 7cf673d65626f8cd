/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Pages of buffers over several books: every buffer appears once, whatever the size of a page, in
 * books with several segments, with free slots in them, and with books that come and go in between.
 */

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/testing/unit.h"
#include "book/testing/book-testing.h"
#include "model/snapshot-request.h"
#include "model/snapshot.h"
#include "source/books/book-source.h"
#include "source/books/scan.h"

#define BOOKS 3u
#define MANY (2 * BOOK_SEGMENT_SLOTS + 1000u)

struct page_test {
	struct testing_book books[BOOKS];
	struct scan_book scans[BOOKS];
	struct view view;
	size_t buffers;
};

static void page_alloc(struct page_test *test, uint32_t book, uint32_t device, uint32_t type,
		       uint64_t address)
{
	struct shard_buffer buffer = testing_buffer(type, address, address % 977 + 1);

	writer_alloc(test->books[book].writer, device, &buffer, 0);
	test->buffers++;
}

static void page_free(struct page_test *test, uint32_t book, uint32_t device, uint32_t type,
		      uint64_t address)
{
	struct shard_buffer buffer = testing_buffer(type, address, 0);

	writer_free_buffer(test->books[book].writer, device, &buffer);
	test->buffers--;
}

static struct page_test *page_begin(void)
{
	struct page_test *test = calloc(1, sizeof(*test));

	assert(test);
	for (uint32_t i = 0; i < BOOKS; i++) {
		testing_book_open(&test->books[i]);
		test->scans[i] = (struct scan_book){
			.owner = {.id.pid = 10 + i / 2, .ns_pid = 1, .comm = "page"},
			.id.inode = 100 + i,
			.alive = true,
		};
		assert(reader_init(&test->scans[i].reader, &test->books[i].file.file) == 0);
	}
	for (uint64_t i = 0; i < MANY; i++)
		page_alloc(test, 0, 5, i % 7 == 0, 0x1000 * (i + 1));
	/* A whole empty segment, and free slots elsewhere. */
	for (uint64_t i = BOOK_SEGMENT_SLOTS / 2; i < 7 * BOOK_SEGMENT_SLOTS / 4; i++)
		page_free(test, 0, 5, i % 7 == 0, 0x1000 * (i + 1));
	for (uint64_t i = 0; i < 100; i++)
		page_alloc(test, 0, 900, 1, 0x1000 * (i + 1));
	for (uint64_t i = 0; i < 321; i++)
		page_alloc(test, 2, (uint32_t)i % 3, 0, 0x1000 * (i + 1));
	return test;
}

static void page_end(struct page_test *test)
{
	for (uint32_t i = 0; i < BOOKS; i++) {
		totals_cache_deinit(&test->scans[i].totals_cache);
		reader_deinit(&test->scans[i].reader);
		testing_book_deinit(&test->books[i]);
	}
	view_deinit(&test->view);
	free(test);
}

static struct snapshot *page_take(struct page_test *test, const struct snapshot_request *request,
				  uint32_t without)
{
	struct snapshot *snapshot = snapshot_new(1);

	assert(snapshot);
	for (uint32_t i = 0; i < BOOKS; i++) {
		if (i != without)
			assert(book_collect(&test->scans[i], request, &test->view, snapshot) == 0);
	}
	assert(snapshot_finish(snapshot) == 0 && snapshot->exact && snapshot->note_count == 0);
	return snapshot;
}

/* A unique number for a buffer. */
static uint64_t page_key(const struct snapshot *snapshot, const struct snapshot_buffer *buffer)
{
	return (uint64_t)snapshot->processes[buffer->process].id.pid << 56 |
	       (uint64_t)buffer->device << 40 | buffer->address | buffer->type;
}

static size_t page_walk(struct page_test *test, struct snapshot_request request,
			uint64_t **ret_keys)
{
	uint64_t *keys = calloc(2 * test->buffers + request.limit, sizeof(*keys));
	size_t count = 0;
	bool more = true;

	assert(keys);
	while (more) {
		struct snapshot *page = page_take(test, &request, BOOKS);

		assert(page->buffer_count <= request.limit);
		assert(!page->has_next || page->buffer_count == request.limit);
		assert(count + page->buffer_count <= 2 * test->buffers);
		for (size_t i = 0; i < page->buffer_count; i++)
			keys[count++] = page_key(page, &page->buffers[i]);
		more = page->has_next;
		request.after = page->next;
		request.has_after = true;
		snapshot_free(page);
	}
	*ret_keys = keys;
	return count;
}

static int page_compare(const void *left, const void *right)
{
	const uint64_t *a = left, *b = right;

	return (*a > *b) - (*a < *b);
}

/* The pages together equal one list without a limit. */
static void page_check(struct page_test *test, struct snapshot_request request)
{
	struct snapshot_request all_of_it = {.buffers = true, .filter = request.filter};
	struct snapshot *all = page_take(test, &all_of_it, BOOKS);
	uint64_t *keys = NULL;
	size_t count = page_walk(test, request, &keys);

	assert(count == all->buffer_count);
	qsort(keys, count, sizeof(*keys), page_compare);
	for (size_t i = 1; i < count; i++)
		assert(keys[i - 1] < keys[i]);
	for (size_t i = 0; i < all->buffer_count; i++) {
		uint64_t key = page_key(all, &all->buffers[i]);

		assert(bsearch(&key, keys, count, sizeof(key), page_compare));
	}
	free(keys);
	snapshot_free(all);
}

UNIT(all_pages_together_are_the_list)
{
	struct page_test *test = page_begin();
	const size_t limits[] = {97, 1000, 10000, 10000000};

	for (size_t i = 0; i < sizeof(limits) / sizeof(*limits); i++)
		page_check(test, (struct snapshot_request){.buffers = true, .limit = limits[i]});
	page_end(test);
}

UNIT(pages_follow_a_filter)
{
	struct page_test *test = page_begin();
	struct snapshot_request request = {.buffers = true, .limit = 10};

	request.filter = (struct filter){.pid = 11};
	page_check(test, request);
	request.filter = (struct filter){.device_count = 1, .devices = {{.value = 900}}};
	page_check(test, request);
	request.filter = (struct filter){.has_type = true, .type = 1};
	request.limit = 500;
	page_check(test, request);
	request.filter = (struct filter){.pid = 99};
	page_check(test, request);
	page_end(test);
}

UNIT(a_page_that_is_just_full_is_the_last)
{
	struct page_test *test = page_begin();
	struct snapshot_request request = {.buffers = true, .limit = test->buffers};
	struct snapshot *page = page_take(test, &request, BOOKS);

	assert(page->buffer_count == test->buffers && !page->has_next);
	snapshot_free(page);
	request.limit--;
	page = page_take(test, &request, BOOKS);
	assert(page->buffer_count == test->buffers - 1 && page->has_next);
	snapshot_free(page);
	page_end(test);
}

UNIT(a_page_reads_only_the_books_it_needs)
{
	struct page_test *test = page_begin();
	struct snapshot_request request = {.buffers = true, .limit = 10};
	struct snapshot *page = page_take(test, &request, BOOKS);

	assert(page->process_count == 1 && page->processes[0].id.pid == 10);
	request.has_after = true;
	request.after = (struct page_cursor){.pid = 10, .inode = 100, .device = 900, .slot = 99};
	snapshot_free(page);
	page = page_take(test, &request, BOOKS);
	assert(page->buffer_count == 10 && page->buffers[0].address == 0x1000);
	assert(page->processes[page->buffers[0].process].id.pid == 11);
	snapshot_free(page);
	page_end(test);
}

UNIT(paging_goes_on_after_a_book_has_gone)
{
	struct page_test *test = page_begin();
	struct snapshot_request request = {.buffers = true, .limit = 500};
	struct snapshot *page = page_take(test, &request, BOOKS);

	request.after = page->next;
	request.has_after = true;
	assert(page->has_next);
	snapshot_free(page);
	page = page_take(test, &request, 0);
	assert(page->buffer_count == 321 && !page->has_next);
	snapshot_free(page);
	/* The same for a cursor whose slot is beyond the book's last one. */
	request.after = (struct page_cursor){
		.pid = 10, .inode = 100, .device = 900, .slot = BOOK_SLOTS_MAX - 1};
	page = page_take(test, &request, BOOKS);
	assert(page->buffer_count == 321 && !page->has_next);
	snapshot_free(page);
	page_end(test);
}

UNIT(the_first_rows_can_be_sorted)
{
	struct page_test *test = page_begin();
	struct snapshot_request all_of_it = {.buffers = true};
	struct snapshot_request request = {.buffers = true, .limit = 50, .sorted = true};
	struct snapshot *all = page_take(test, &all_of_it, BOOKS);

	for (int order = 0; order < 2; order++) {
		struct snapshot *few;

		request.order = (enum snapshot_order)order;
		few = page_take(test, &request, BOOKS);
		snapshot_sort_buffers(all, request.order);
		snapshot_sort_buffers(few, request.order);
		assert(few->buffer_count == 50 && !few->has_next);
		for (size_t i = 0; i < 50; i++) {
			struct snapshot_buffer *buffer = &few->buffers[i];

			if (order == SNAPSHOT_BY_SIZE)
				assert(page_key(few, buffer) == page_key(all, &all->buffers[i]));
			else /* times are converted each time; the oldest still come first */
				assert(buffer->device == 5 && buffer->address < 0x1000 * 1000);
		}
		snapshot_free(few);
	}
	snapshot_free(all);
	page_end(test);
}

struct page_writer {
	struct page_test *test;
	bool stop; /* atomic */
};

/* Allocates and frees beside what stays, now and then in new segments. */
static void *page_write(void *context)
{
	struct page_writer *writer = context;
	struct writer *book = writer->test->books[0].writer;

	for (uint64_t i = 0; !__atomic_load_n(&writer->stop, __ATOMIC_RELAXED); i++) {
		struct shard_buffer buffer =
			testing_buffer(2, UINT64_C(0x80000000) + 0x10 * (i % 50000), 8);

		if (i % 100000 < 50000)
			writer_alloc(book, 5, &buffer, 0);
		else
			writer_free_buffer(book, 5, &buffer);
		if (i % 16 == 0)
			usleep(100);
	}
	return NULL;
}

UNIT(lasting_buffers_are_paged_exactly_once_while_others_change)
{
	struct page_test *test = page_begin();
	struct page_writer writer = {.test = test};
	struct snapshot_request request = {.buffers = true, .limit = 1000};
	size_t expected = test->buffers;
	pthread_t thread;

	assert(pthread_create(&thread, NULL, page_write, &writer) == 0);
	test->buffers += 50000; /* at most */
	for (int round = 0; round < 10; round++) {
		uint64_t *keys = NULL;
		size_t count = page_walk(test, request, &keys), stayed = 0;

		qsort(keys, count, sizeof(*keys), page_compare);
		for (size_t i = 0; i < count; i++) {
			bool comes_and_goes = (keys[i] & 0xffffffff) >= 0x80000000;

			if (comes_and_goes)
				continue;
			assert(i == 0 || keys[i - 1] != keys[i]);
			stayed++;
		}
		assert(stayed == expected);
		free(keys);
	}
	__atomic_store_n(&writer.stop, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	page_end(test);
}
