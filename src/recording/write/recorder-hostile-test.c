/* SPDX-License-Identifier: Apache-2.0 */

/* Books whose owners write what no owner writes: they cost their own recording and nothing else. */

#include "recording/write/recorder.h"

#include <stdio.h>

#include "base/testing/unit.h"
#include "book/format/event.h"
#include "recording/testing/testing-recording.h"

#define TEST_RING 16384u

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
static void test_put(struct testing_recording *recording, uint32_t op_slot, uint32_t stack)
{
	struct book_shard *page = test_page(recording);
	struct book_event *ring =
		(void *)(recording->book.base + book_unit_offset(page->ring_unit));
	uint64_t number = page->head + 1;

	ring[number & (page->ring_events - 1)] = (struct book_event){
		.time = number,
		.op_slot = op_slot,
		.record = {.size = 32, .stack = stack, .meta = book_meta(0, 0, 1)},
	};
	__atomic_store_n(&page->head, number, __ATOMIC_RELEASE);
}

static void test_round(struct testing_recording *recording)
{
	unsigned int wait_ms;

	assert(recorder_round(recording->recorder, &wait_ms) == 0);
}

/* More call sites than fit into a chunk. */
UNIT(a_book_with_endless_call_sites_does_not_end_the_recording)
{
	struct testing_recording recording;

	testing_recording_start(&recording, test_path(), TEST_RING, true);
	testing_recording_act(&recording, 100);
	test_round(&recording);
	for (uint32_t stack = 1; stack < 300000; stack++) {
		test_put(&recording, BOOK_OP_ALLOC, stack);
		if (stack % 8192 == 0)
			test_round(&recording);
	}
	testing_recording_finish(&recording, false);
	testing_recording_deinit(&recording);
}
