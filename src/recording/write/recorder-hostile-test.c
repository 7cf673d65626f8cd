/* SPDX-License-Identifier: Apache-2.0 */

/* Books whose owners write what no owner writes: they cost their own recording and nothing else. */

#include "recording/write/recorder.h"

#include <stdio.h>

#include "base/bits.h"
#include "base/testing/unit.h"
#include "book/format/event.h"
#include "recording/testing/testing-recording.h"
#include "source/books/scan.h"

#define TEST_RING 16384u
#define TEST_READS 100000u /* of a head; so many are needed by no ring */

static const char *test_path(void)
{
	static char path[4096];

	(void)snprintf(path, sizeof(path), "%s/test.ttrec", unit_dir());
	return path;
}

static struct book_shard *test_page(struct testing_recording *recording)
{
	return (void *)(recording->book.base + book_shard_offset(0));
}

/* Publishes an event that no operation has made. */
static void test_put(struct testing_recording *recording, uint32_t op_slot,
		     const struct book_record *record)
{
	struct book_shard *page = test_page(recording);
	struct book_event *ring =
		(void *)(recording->book.base + book_unit_offset(page->ring_unit));
	uint64_t number = page->head + 1;

	ring[number & (page->ring_events - 1)] = (struct book_event){
		.time = number,
		.op_slot = op_slot,
		.record = *record,
	};
	__atomic_store_n(&page->head, number, __ATOMIC_RELEASE);
}

static void test_round(struct testing_recording *recording)
{
	unsigned int wait_ms;

	assert(recorder_round(recording->recorder, &wait_ms) == 0);
}

/* More call sites than any book has. */
UNIT(a_book_with_endless_call_sites_does_not_end_the_recording)
{
	struct testing_recording recording;

	testing_recording_start(&recording, test_path(), TEST_RING, true);
	testing_recording_act(&recording, 100);
	test_round(&recording);
	for (uint32_t stack = 1; stack < 300000; stack++) {
		test_put(&recording, BOOK_OP_ALLOC,
			 &(struct book_record){.stack = stack, .meta = book_meta(0, 0, 1)});
		if (stack % 8192 == 0)
			test_round(&recording);
	}
	assert(recorder_book_size(recording.recorder, recording.scan) < UINT64_C(100) << 20);
	testing_recording_finish(&recording, false);
	testing_recording_deinit(&recording);
}

/* Events wait to be written; what they say shows only when the ring has run over. */
UNIT(a_device_that_failed_is_not_continued_after_a_gap)
{
	struct testing_recording recording;

	testing_recording_start(&recording, test_path(), BOOK_RING_MIN, true);
	recording.devices = 1;
	testing_recording_act(&recording, 100);
	test_round(&recording);
	test_put(&recording, UINT32_MAX << 8 | BOOK_OP_ALLOC,
		 &(struct book_record){.meta = book_meta(0, 0, 1)});
	test_round(&recording);
	testing_recording_act(&recording, 4 * BOOK_RING_MIN);
	test_round(&recording);
	assert(recorder_sums(recording.recorder)->unreadable == 1);
	assert(recorder_sums(recording.recorder)->gaps == 0);
	testing_recording_finish(&recording, false);
	testing_recording_deinit(&recording);
}

/* More that lives than fits into a chunk. */
UNIT(a_device_with_endless_buffers_does_not_end_the_recording)
{
	struct testing_recording recording;
	struct testing_rng *rng = &recording.rng;
	struct book_record record;
	uint32_t first;

	testing_recording_start(&recording, test_path(), TEST_RING, true);
	testing_recording_act(&recording, 100);
	test_round(&recording);
	first = (uint32_t)test_page(&recording)->slots;
	for (uint32_t i = 0; i < 1500000; i++) {
		record = (struct book_record){
			.address = testing_random(rng),
			.size = testing_random(rng),
			.birth = testing_random(rng),
			.stack = (uint32_t)testing_random(rng),
			.name = (uint32_t)testing_random(rng),
			.phase = (uint32_t)testing_random(rng),
			.thread_space = (uint32_t)testing_random(rng),
			.meta = book_meta(0, 0, 1),
			.shape = (uint32_t)testing_random(rng),
		};
		test_put(&recording, (first + i) << 8 | BOOK_OP_ALLOC, &record);
		if (i % 8192 == 0)
			test_round(&recording);
	}
	testing_recording_finish(&recording, false);
	testing_recording_deinit(&recording);
}

/* A book with which something happens whenever its head is read. */
struct test_ghost {
	struct book_file file;
	struct testing_recording *recording;
	uint32_t reads;
};

static int ghost_read(struct book_file *file, uint64_t offset, void *buffer, size_t length)
{
	struct test_ghost *ghost = container_of(file, struct test_ghost, file);
	struct book_file *real = &ghost->recording->scan->file.file;

	if (offset == book_shard_offset(0) + offsetof(struct book_shard, head)) {
		assert(ghost->reads++ < TEST_READS);
		test_put(ghost->recording, BOOK_OP_ALLOC,
			 &(struct book_record){.meta = book_meta(0, 0, 1)});
	}
	return real->ops->read_at(real, offset, buffer, length);
}

static int64_t ghost_next_data(struct book_file *file, uint64_t offset)
{
	struct test_ghost *ghost = container_of(file, struct test_ghost, file);

	return file_next_data(&ghost->recording->scan->file.file, offset);
}

static int64_t ghost_next_hole(struct book_file *file, uint64_t offset)
{
	struct test_ghost *ghost = container_of(file, struct test_ghost, file);

	return file_next_hole(&ghost->recording->scan->file.file, offset);
}

/* A child has the book's memory too, and goes on when the owner has ended. */
UNIT(the_ring_of_a_dead_owner_has_an_end)
{
	static const struct book_file_ops ops = {ghost_read, ghost_next_data, ghost_next_hole};
	struct testing_recording recording;
	struct test_ghost ghost = {.recording = &recording};

	testing_recording_start(&recording, test_path(), TEST_RING, true);
	testing_recording_act(&recording, 100);
	test_round(&recording);
	ghost.file = (struct book_file){.ops = &ops, .size = recording.scan->file.file.size};
	recording.scan->reader.file = &ghost.file;
	testing_recording_finish(&recording, true);
	testing_recording_deinit(&recording);
}

/* Events that cost their owner no memory would cost us some. */
UNIT(a_ring_that_was_never_written_is_not_read)
{
	const uint32_t units = TEST_RING / (BOOK_UNIT / (uint32_t)sizeof(struct book_event));
	struct testing_recording recording;
	struct book_segment *segments;
	struct book_shard *page;

	testing_recording_start(&recording, test_path(), TEST_RING, true);
	testing_recording_act(&recording, 100);
	page = test_page(&recording);
	segments = (void *)(recording.book.base + BOOK_SEGMENTS_OFFSET);
	segments[recording.book.size / BOOK_UNIT - units] = segments[page->ring_unit];
	page->ring_unit = (uint32_t)(recording.book.size / BOOK_UNIT - units);
	page->head = TEST_RING / 2;
	test_round(&recording);
	testing_recording_finish(&recording, false);
	assert(recorder_sums(recording.recorder)->unreadable == 1);
	testing_recording_deinit(&recording);
}
