/* SPDX-License-Identifier: Apache-2.0 */

/* Events of a book as they are passed on: each once, or as missed, with exact totals. */

#include "source/books/follow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/testing/unit-memory.h"
#include "base/testing/unit.h"
#include "book/read/view.h"
#include "book/testing/book-testing.h"
#include "source/books/scan.h"
#include "source/proc/proc.h"

static struct proc proc;
static struct testing_book book;
static struct scan_book scan;
static struct view view;
static struct log events_log;
static struct follow *follow;
static unsigned int seen; /* events */
static uint64_t missed;
static struct follow_event last;
static int result; /* of the function that is called */

static void alloc(uint32_t device, uint64_t address, uint64_t size)
{
	const struct testing_op op = {.kind = TESTING_ALLOC,
				      .device = device,
				      .buffer = testing_buffer(1, address, size)};

	testing_op_do(book.writer, &op);
}

static void begin(uint32_t ring_events)
{
	assert(proc_open(&proc) == 0);
	testing_book_init(&book, TESTING_SIZE, ring_events);
	testing_book_write(&book);
	testing_book_read(&book);
	scan = (struct scan_book){
		.owner.id = {(uint32_t)getpid(), proc_start_ticks(&proc, (uint32_t)getpid())},
		.alive = true,
	};
	assert(reader_init(&scan.reader, &book.file.file) == 0);
}

static void end(void)
{
	follow = follow_free(follow);
	log_deinit(&events_log);
	view_deinit(&view);
	reader_deinit(&scan.reader);
	testing_book_deinit(&book);
	proc_close(&proc);
}

static int take(void *context, const struct follow_event *event)
{
	assert(context == &seen && event->follow == follow);
	if (result)
		return result;
	assert(event->time_ns >= last.time_ns || event->shard != last.shard);
	follow_apply(event);
	seen += event->missed == 0;
	missed += event->missed;
	last = *event;
	return 0;
}

static int poll_it(void)
{
	return follow_poll(follow, &view, &events_log, take, &seen);
}

/* The totals of a device are those of the book. */
static void assert_exact(uint32_t index)
{
	const struct follow_shard *shard = &follow->shards[index];
	struct view own = VIEW_NULL;

	assert(view_read(&own, &book.reader, shard->device, VIEW_LIVING) == 0);
	for (uint32_t type = 0; type < BOOK_TYPES; type++) {
		assert(shard->hot[type].bytes == own.hot[type].bytes);
		assert(shard->hot[type].buffers == own.hot[type].buffers);
	}
	view_deinit(&own);
}

UNIT(from_the_start_every_event_is_passed_on)
{
	begin(1024);
	alloc(0, 0x1000, 10);
	alloc(3, 0x1000, 20);
	alloc(3, 0x2000, 30);
	assert(follow_new(&follow, &scan, &proc, true) == 0 && follow->pid_fd >= 0);
	assert(poll_it() == 0 && seen == 3 && missed == 0 && !follow->is_over);
	assert(follow->count == 2 && follow->shards[0].device == 0);
	assert(follow->shards[1].device == 3 && last.number == 2 && last.shard == 1);
	assert_exact(0);
	assert_exact(1);
	assert(poll_it() == 0 && seen == 3);
	alloc(0, 0x2000, 40);
	alloc(5, 0x1000, 50); /* a device that comes later */
	assert(poll_it() == 0 && seen == 5 && follow->count == 3);
	for (uint32_t i = 0; i < 3; i++)
		assert_exact(i);
	end();
}

UNIT(from_now_on_only_new_events_are_passed_on)
{
	begin(1024);
	alloc(0, 0x1000, 10);
	alloc(1, 0x1000, 10);
	assert(follow_new(&follow, &scan, &proc, false) == 0);
	assert(follow_begin(follow, &view) == 0 && follow->count == 2);
	assert_exact(0); /* totals are there from the beginning */
	alloc(1, 0x2000, 20);
	alloc(2, 0x1000, 30);
	assert(poll_it() == 0 && seen == 2 && missed == 0 && last.number == 1);
	for (uint32_t i = 0; i < 3; i++)
		assert_exact(i);
	end();
}

UNIT(missed_events_are_counted_and_totals_stay_exact)
{
	begin(BOOK_RING_MIN);
	alloc(0, 0x1000, 10);
	assert(follow_new(&follow, &scan, &proc, true) == 0);
	assert(poll_it() == 0 && seen == 1);
	for (uint64_t i = 2; i <= 2 * BOOK_RING_MIN; i++)
		alloc(0, 0x1000 * i, 10);
	assert(poll_it() == 0 && seen == 1);
	assert(missed == 2 * BOOK_RING_MIN - 1 && last.number == 2 * BOOK_RING_MIN);
	assert_exact(0);
	alloc(0, 0x800, 10);
	assert(poll_it() == 0 && seen == 2 && last.missed == 0);
	assert_exact(0);
	end();
}

UNIT(the_function_can_end_the_round)
{
	begin(1024);
	alloc(0, 0x1000, 10);
	alloc(1, 0x1000, 10);
	assert(follow_new(&follow, &scan, &proc, true) == 0);
	result = -ECANCELED;
	assert(poll_it() == -ECANCELED && seen == 0);
	end();
}

UNIT(it_is_over_when_the_owner_has_ended_and_all_is_read)
{
	begin(1024);
	alloc(0, 0x1000, 10);
	scan.alive = false;
	assert(follow_open_owner(&scan, &proc) == -1);
	assert(follow_new(&follow, &scan, &proc, true) == 0 && follow->pid_fd == -1);
	assert(!follow->is_over && poll_it() == 0 && seen == 1 && follow->is_over);
	follow = follow_free(follow);
	/* Another process has its pid. */
	scan.alive = true;
	scan.owner.id.start_ticks++;
	assert(follow_open_owner(&scan, &proc) < 0);
	end();
}

static int sign(int value)
{
	return (value > 0) - (value < 0);
}

/* Each but the last differs in the member that counts before those that are equal. */
UNIT(events_are_ordered_by_time_then_by_place)
{
	struct follow pair[2];
	const struct follow_event events[] = {
		{.time_ns = 1, .follow = &pair[1], .shard = 9, .number = 9},
		{.time_ns = 2, .follow = &pair[0], .shard = 9, .number = 9},
		{.time_ns = 2, .follow = &pair[1], .shard = 1, .number = 9},
		{.time_ns = 2, .follow = &pair[1], .shard = 2, .number = 1},
		{.time_ns = 2, .follow = &pair[1], .shard = 2, .number = 2},
	};

	for (int i = 0; i < 5; i++) {
		for (int k = 0; k < 5; k++)
			assert(sign(follow_compare(&events[i], &events[k])) == sign(i - k));
	}
}

static int try_to_follow(void *context)
{
	int r;

	(void)context;
	follow = NULL;
	seen = 0;
	last = (struct follow_event){.shard = 0};
	r = follow_new(&follow, &scan, &proc, true);
	if (r == 0)
		r = poll_it();
	assert(r < 0 || (seen == 3 && missed == 0));
	follow = follow_free(follow);
	log_deinit(&events_log);
	view_deinit(&view);
	return r;
}

UNIT(without_memory_the_failure_is_told)
{
	begin(1024);
	for (uint32_t i = 0; i < 3; i++)
		alloc(i, 0x1000, 10);
	assert(unit_memory_sweep(try_to_follow, NULL) > 1);
	end();
}
