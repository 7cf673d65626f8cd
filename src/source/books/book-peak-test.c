/* SPDX-License-Identifier: Apache-2.0 */

/* What is known of a peak: by the log, by a later moment, by graves and stamps. See also book-peak-random-test.c. */

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/bits.h"
#include "base/testing/unit.h"
#include "book/testing/book-testing.h"
#include "model/snapshot-peak.h"
#include "model/snapshot-request.h"
#include "source/books/book-kept.h"
#include "source/books/book-peak.h"
#include "source/books/book-source.h"
#include "source/books/scan.h"

struct peak_test {
	struct testing_book book;
	struct book_peaks peaks;
	struct view view;
	uint32_t is_over; /* atomic */
};

static struct peak_test *peak_begin(uint32_t ring_events)
{
	struct peak_test *test = calloc(1, sizeof(*test));

	assert(test);
	testing_book_init(&test->book, TESTING_SIZE, ring_events);
	testing_book_write(&test->book);
	testing_book_read(&test->book);
	return test;
}

static void peak_end(struct peak_test *test)
{
	book_peaks_deinit(&test->peaks);
	view_deinit(&test->view);
	testing_book_deinit(&test->book);
	free(test);
}

static void peak_alloc(struct peak_test *test, uint32_t type, uint64_t address, uint32_t stack)
{
	struct shard_buffer buffer = testing_buffer(type, address, 100 + stack);

	buffer.stack = stack;
	writer_alloc(test->book.writer, 0, &buffer, 0);
}

static void peak_free(struct peak_test *test, uint32_t type, uint64_t address)
{
	const struct shard_buffer buffer = testing_buffer(type, address, 0);

	writer_free_buffer(test->book.writer, 0, &buffer);
}

/* @count buffers of another type come and go. */
static void peak_pass_time(struct peak_test *test, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		peak_alloc(test, 1, 0x8000, 50);
		peak_free(test, 1, 0x8000);
	}
}

/* Reads type 0. */
static const struct book_peak *peak_take(struct peak_test *test, uint64_t doubt)
{
	const struct book_peak_wish wish = {.types = 1, .doubt = doubt};

	assert(book_peaks_read(&test->peaks, &test->view, &test->book.reader, &wish) == 0);
	return &test->peaks.types[0];
}

/* Whether a buffer from this stack is among the records of the peak. */
static bool peak_shows(const struct peak_test *test, uint32_t stack)
{
	const struct book_peak *peak = &test->peaks.types[0];

	for (size_t i = 0; i < peak->count; i++) {
		if (test->peaks.records[peak->first + i].stack == stack)
			return true;
	}
	return false;
}

UNIT(a_buffer_freed_after_the_peak_is_found_in_the_log_then_in_the_graveyard_then_nowhere)
{
	struct peak_test *test = peak_begin(BOOK_RING_MIN);
	const struct book_peak *peak;

	peak_alloc(test, 0, 0x1000, 1);
	peak_alloc(test, 0, 0x2000, 2);
	peak_free(test, 0, 0x2000);
	peak = peak_take(test, 0);
	assert(peak->is_found && peak->exact && peak->number == 2 && peak->known == 203);
	assert(peak->moment == peak->time && peak->count == 2);
	peak_pass_time(test, BOOK_RING_MIN);
	peak = peak_take(test, 0);
	assert(!peak->is_found && peak->exact && peak->known == 203 && peak->count == 2);
	assert(peak_shows(test, 1) && peak_shows(test, 2));
	peak_pass_time(test, BOOK_GRAVES);
	peak = peak_take(test, 0);
	assert(!peak->is_found && !peak->exact && peak->known == 101 && peak->bytes == 203);
	assert(peak_shows(test, 1) && !peak_shows(test, 2));
	peak_end(test);
}

/* The usual life of a model: every round is as high as the first one, which is long forgotten. */
UNIT(a_peak_that_is_reached_again_is_explained_by_a_later_round)
{
	struct peak_test *test = peak_begin(BOOK_RING_MIN);
	const struct book_peak *peak;

	peak_alloc(test, 0, 0x1000, 1);
	for (uint32_t i = 0; i < BOOK_GRAVES; i++) {
		peak_alloc(test, 0, 0x2000, 2);
		peak_free(test, 0, 0x2000);
	}
	peak = peak_take(test, 0);
	assert(peak->is_found && peak->exact && peak->count == 2 && peak->moment > peak->time);
	assert(peak_shows(test, 1) && peak_shows(test, 2));
	peak_end(test);
}

UNIT(what_is_still_live_since_the_peak_needs_no_log)
{
	struct peak_test *test = peak_begin(BOOK_RING_MIN);
	const struct book_peak *peak;

	peak_alloc(test, 0, 0x1000, 1);
	peak_alloc(test, 0, 0x2000, 2);
	peak_pass_time(test, 3 * BOOK_GRAVES);
	peak = peak_take(test, 0);
	assert(peak->is_found && peak->exact && peak->count == 2 && peak->known == 203);
	assert(peak->moment == peak->time);
	peak_end(test);
}

/* After the peak has been freed, another thread comes with a stamp from before it. */
UNIT(a_stamp_that_was_taken_before_the_peak_and_logged_after_it_is_not_believed)
{
	struct peak_test *test = peak_begin(BOOK_RING_MIN);
	struct shard_buffer early = testing_buffer(0, 0x1000, 100),
			    peak = testing_buffer(0, 0x2000, 1000),
			    late = testing_buffer(0, 0x3000, 200);

	early.stack = 1, peak.stack = 2, late.stack = 3, late.thread = 8;
	writer_alloc_born(test->book.writer, 0, &early, 1000);
	writer_alloc_born(test->book.writer, 0, &peak, 5000);
	peak_free(test, 0, 0x2000);
	writer_alloc_born(test->book.writer, 0, &late, 4990);
	peak_pass_time(test, 3 * BOOK_GRAVES);
	assert(peak_take(test, 100)->known == 100);
	assert(peak_shows(test, 1) && !peak_shows(test, 3));
	peak_end(test);
}

/* A hundred rounds of one model, as fast as it can. */
static void *peak_write(void *context)
{
	struct peak_test *test = context;

	peak_alloc(test, 0, 0x1000, 1);
	while (!__atomic_load_n(&test->is_over, __ATOMIC_RELAXED)) {
		peak_alloc(test, 0, 0x2000, 2);
		peak_alloc(test, 0, 0x3000, 3);
		peak_free(test, 0, 0x2000);
		peak_alloc(test, 0, 0x4000, 4);
		peak_free(test, 0, 0x4000);
		peak_free(test, 0, 0x3000);
	}
	return NULL;
}

/* At the peak 1, 3 and 4 are live; before it 1, 2 and 3. */
UNIT(next_to_a_writer_at_full_speed_a_peak_is_right_or_a_bound)
{
	struct peak_test *test = peak_begin(BOOK_RING_SURE);
	pthread_t writer;
	int seen = 0;

	assert(pthread_create(&writer, NULL, peak_write, test) == 0);
	while (seen < 200) {
		const struct book_peak_wish wish = {.types = 1};
		const struct book_peak *peak = &test->peaks.types[0];

		if (book_peaks_read(&test->peaks, &test->view, &test->book.reader, &wish) < 0 ||
		    peak->bytes < 101 + 103 + 104)
			continue;
		assert(peak->bytes == 101 + 103 + 104 && peak->known <= peak->bytes);
		assert(!peak_shows(test, 2));
		assert(!peak->exact || (peak->count == 3 && peak_shows(test, 1) &&
					peak_shows(test, 3) && peak_shows(test, 4)));
		seen++;
	}
	__atomic_store_n(&test->is_over, 1, __ATOMIC_RELAXED);
	assert(pthread_join(writer, NULL) == 0);
	assert(peak_take(test, 0)->exact);
	peak_end(test);
}

/* On some clocks an event after the peak may have the stamp of the peak. */
UNIT(of_buffers_with_the_stamp_of_the_peak_none_is_believed_to_have_made_it)
{
	for (int i = 0; i < 2; i++) {
		struct peak_test *test = peak_begin(BOOK_RING_MIN);
		struct shard_buffer other = testing_buffer(0, 0x1000, 1000),
				    peak = testing_buffer(0, 0x2000, 300),
				    late = testing_buffer(0, 0x3000, 300);

		peak.stack = 2, late.stack = 3;
		if (i == 1) /* whose ticks are that long */
			test->book.writer->header->clock = BOOK_CLOCK_CNTVCT;
		reader_deinit(&test->book.reader);
		testing_book_read(&test->book);
		writer_alloc_born(test->book.writer, 0, &other, 1000);
		writer_alloc_born(test->book.writer, 0, &peak, 5000);
		peak_free(test, 0, other.address);
		writer_alloc_born(test->book.writer, 0, &late, 5000);
		if (i == 1)
			peak_free(test, 0, peak.address);
		peak_pass_time(test, 3 * BOOK_GRAVES);
		assert(peak_take(test, 0)->bytes == 1300);
		assert(test->peaks.types[0].known == 0);
		peak_end(test);
	}
}

/* On a busy machine one look may not be enough. */
static void peak_look(struct peak_test *test, struct scan_book *book)
{
	int r;

	do
		r = book_kept_look(book, &test->view);
	while (r == -EAGAIN);
	assert(r == 0);
}

/* Who looks soon after a peak knows it when the book has forgotten it, until there is another one. */
UNIT(what_was_kept_of_a_peak_is_shown_when_the_book_has_forgotten_it)
{
	struct peak_test *test = peak_begin(BOOK_RING_MIN);
	struct scan_book *book = calloc(1, sizeof(*book));
	const struct snapshot_request request = {.buffers = true, .at_peak = true};
	struct snapshot *snapshot;

	assert(book);
	*book = (struct scan_book){.owner = {.id.pid = 10, .ns_pid = 10, .comm = "kept"},
				   .alive = true};
	assert(reader_init(&book->reader, &test->book.file.file) == 0);
	peak_alloc(test, 0, 0x1000, 0);
	peak_alloc(test, 0, 0x2000, 0);
	peak_free(test, 0, 0x2000);
	peak_look(test, book);
	peak_pass_time(test, 3 * BOOK_GRAVES);
	for (int i = 0; i < 2; i++) {
		snapshot = snapshot_new(1);
		assert(snapshot && book_collect(book, &request, &test->view, snapshot) == 0);
		snapshot_sort_peaks(snapshot);
		assert(snapshot->peak_count == 2);
		assert(snapshot->peaks[0].bytes == 200 + (uint64_t)i * 100);
		assert(snapshot->peaks[0].exact == (i == 0));
		assert(snapshot->peaks[0].buffers == (i == 0 ? 2 : 1));
		snapshot_free(snapshot);
		/* A higher one, which nobody saw in time. */
		peak_alloc(test, 0, 0x3000, 100);
		peak_free(test, 0, 0x3000);
		peak_pass_time(test, 3 * BOOK_GRAVES);
	}
	totals_cache_deinit(&book->totals_cache);
	book_kept_free(book->kept);
	reader_deinit(&book->reader);
	free(book);
	peak_end(test);
}

/* Then they are told by their stacks alone, and all bytes stay known. */
UNIT(of_a_peak_with_very_many_names_the_call_sites_are_kept)
{
	struct peak_test *test = peak_begin(BOOK_RING_SURE);
	struct scan_book *book = calloc(1, sizeof(*book));

	assert(book);
	*book = (struct scan_book){.alive = true};
	assert(reader_init(&book->reader, &test->book.file.file) == 0);
	for (uint32_t i = 0; i < 2 * BOOK_KEPT_SITES_MAX; i++) {
		struct shard_buffer buffer = testing_buffer(0, 0x1000 + i * 0x1000, 100);

		buffer.stack = 1 + i % 3;
		buffer.name = i + 1;
		writer_alloc(test->book.writer, 0, &buffer, 0);
	}
	peak_look(test, book);
	assert(book->kept->count == 1);
	assert(book->kept->peaks[0].count == 3 && book->kept->peaks[0].exact);
	assert(book->kept->peaks[0].known == book->kept->peaks[0].bytes);
	book_kept_free(book->kept);
	reader_deinit(&book->reader);
	free(book);
	peak_end(test);
}

/* A process with many names on many devices takes no more than its share. */
UNIT(a_record_for_which_there_is_no_memory_is_not_counted)
{
	/* No array can be so large. */
	struct book_peaks peaks = {.count = SIZE_MAX / 2 + 1, .capacity = SIZE_MAX / 2 + 1};
	const struct book_record record = {.size = 1};
	struct book_peak peak = {.count = 7};

	assert(book_peaks_keep(&peaks, &peak, &record) == -ENOMEM);
	assert(peak.count == 7 && peaks.count == SIZE_MAX / 2 + 1 && !peaks.records);
}

UNIT(what_is_kept_of_a_book_is_bounded)
{
	struct peak_test *test = peak_begin(BOOK_RING_MIN);
	struct scan_book *book = calloc(1, sizeof(*book));
	uint32_t exact = 0;

	assert(book);
	*book = (struct scan_book){.alive = true};
	assert(reader_init(&book->reader, &test->book.file.file) == 0);
	for (uint32_t device = 0; device < 24; device++) {
		for (uint32_t i = 0; i < BOOK_KEPT_SITES_MAX; i++) {
			struct shard_buffer buffer = testing_buffer(0, 0x1000 + i * 0x1000, 100);

			buffer.name = i + 1;
			writer_alloc(test->book.writer, device, &buffer, 0);
		}
	}
	peak_look(test, book);
	assert(book->kept->sites * sizeof(struct book_site) <= BOOK_KEPT_BOOK_MAX);
	for (size_t i = 0; i < book->kept->count; i++) {
		assert(book->kept->peaks[i].known <= book->kept->peaks[i].bytes);
		exact += book->kept->peaks[i].exact;
	}
	assert(exact > 0 && exact < book->kept->count);
	book_kept_free(book->kept);
	reader_deinit(&book->reader);
	free(book);
	peak_end(test);
}

/* @per_bank 0: it is not told how it lies. */
static void peak_alloc_in(struct peak_test *test, uint32_t space, uint64_t address, uint64_t size,
			  uint64_t per_bank)
{
	struct shard_buffer buffer = testing_buffer(0, address, size);

	buffer.space = space;
	if (per_bank)
		buffer.shape = testing_interleaved(test->book.writer, per_bank);
	writer_alloc(test->book.writer, 0, &buffer, 0);
}

UNIT(a_bank_may_hold_the_most_at_another_moment_than_all_together)
{
	struct peak_test *test = peak_begin(BOOK_RING_MIN);
	const struct book_peak *peak;

	peak_alloc_in(test, 0, 0x1000, 4096, 512);
	peak = peak_take(test, 0);
	assert(peak->per_bank.is_known && peak->per_bank.is_all && peak->per_bank.bytes == 512);
	peak_free(test, 0, 0x1000);
	for (uint64_t i = 1; i <= 3; i++)
		peak_alloc_in(test, 0, i << 12, 32, 512);
	peak_free(test, 0, 0x2000);
	peak = peak_take(test, 0);
	assert(peak->bytes == 4096 && peak->per_bank.bytes == 3 * 512 && peak->per_bank.is_all);
	/* What the log has lost may have been more. */
	peak_pass_time(test, BOOK_RING_MIN);
	peak = peak_take(test, 0);
	assert(peak->per_bank.is_known && !peak->per_bank.is_all);
	assert(peak->per_bank.bytes == 2 * 512);
	peak_end(test);
}

UNIT(what_a_bank_held_is_not_known_of_several_allocators_or_without_a_shape)
{
	struct peak_test *test = peak_begin(BOOK_RING_MIN);

	peak_alloc_in(test, 0, 0x1000, 4096, 512);
	peak_alloc_in(test, 1, 0x1000, 4096, 512);
	assert(!peak_take(test, 0)->per_bank.is_known);
	peak_end(test);
	test = peak_begin(BOOK_RING_MIN);
	peak_alloc_in(test, 0, 0x1000, 4096, 512);
	peak_alloc_in(test, 0, 0x2000, 4096, 0);
	assert(!peak_take(test, 0)->per_bank.is_known);
	/* It was one that has ended since, too. */
	peak_free(test, 0, 0x2000);
	assert(!peak_take(test, 0)->per_bank.is_known);
	peak_end(test);
}
