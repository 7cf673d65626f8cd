/* SPDX-License-Identifier: Apache-2.0 */

/* Reading a book while one allocation fails: what is read is complete, or the failure is told. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/testing/unit-memory.h"
#include "base/testing/unit.h"
#include "book/read/view.h"
#include "book/testing/book-testing.h"
#include "book/write/intern.h"
#include "model/history.h"
#include "model/snapshot-request.h"
#include "model/snapshot.h"
#include "source/books/address-history.h"
#include "source/books/book-kept.h"
#include "source/books/book-source.h"
#include "source/books/scan.h"

#define DEVICES 3u
#define BUFFERS 40u

static struct testing_book book;
static struct scan_book scan;
static struct snapshot_request request;
static uint32_t passes;   /* a buffer comes and goes so often after all else */
static uint64_t expected; /* what a try finds; 0 = it is not known yet */

static void act(uint32_t kind, uint32_t device, uint32_t number)
{
	const struct book_frame frame = {.value = 0x1000 + 16 * (number % 5)};
	struct testing_op op = {
		.kind = kind,
		.device = device,
		.buffer = testing_buffer(number % 2, 0x1000 * (1 + (uint64_t)number), 64),
	};

	op.buffer.name = 1 + number % 3;
	op.buffer.stack = intern_stack_mixed(book.writer, &frame, 1, 0);
	testing_op_do(book.writer, &op);
}

/* Buffers come, some go, some frees are wrong, an allocation fails, and a device is closed. */
static void begin(void)
{
	testing_book_open(&book);
	for (uint32_t device = 0; device < DEVICES; device++) {
		for (uint32_t i = 0; i < BUFFERS; i++)
			act(TESTING_ALLOC, device, i);
		for (uint32_t i = 0; i < BUFFERS / 2; i++)
			act(TESTING_FREE, device, i);
		act(TESTING_FREE, device, 0);
		act(TESTING_FAILED, device, 1);
		act(TESTING_ALLOC, device, 0);
	}
	act(TESTING_END_SPACE, 2, 0);
	for (uint32_t i = 0; i < passes; i++) {
		act(TESTING_ALLOC, 0, 1000);
		act(TESTING_FREE, 0, 1000);
	}
	scan = (struct scan_book){.owner = {.id.pid = 77, .ns_pid = 1, .comm = "many"},
				  .id.inode = 100,
				  .alive = true};
	assert(reader_init(&scan.reader, &book.file.file) == 0);
}

static void end(void)
{
	scan.kept = book_kept_free(scan.kept);
	reader_deinit(&scan.reader);
	testing_book_deinit(&book);
}

/* Return: @r. */
static int found(int r, uint64_t what)
{
	if (r == 0 && expected == 0)
		expected = what;
	assert(r != 0 || what == expected);
	return r;
}

/* Notes and texts may be missing: those who show them bear that. */
static uint64_t sum_of(const struct snapshot *snapshot)
{
	uint64_t sum = snapshot->process_count + snapshot->incident_count;

	for (size_t i = 0; i < snapshot->process_count; i++) {
		const struct snapshot_process *process = &snapshot->processes[i];

		sum += 1000 * process->part_count;
		for (size_t k = 0; k < process->part_count; k++) {
			for (uint32_t type = 0; type < BOOK_TYPES; type++)
				sum += process->parts[k].memory[type].used +
				       process->parts[k].memory[type].frees;
		}
	}
	for (size_t i = 0; i < snapshot->buffer_count; i++)
		sum += hash_u64(snapshot->buffers[i].address ^ snapshot->buffers[i].device);
	return sum;
}

static int collect(void *context)
{
	struct snapshot *snapshot = snapshot_new(1);
	struct view view = VIEW_NULL;
	int r = snapshot ? book_collect(&scan, &request, &view, snapshot) : -ENOMEM;

	(void)context;
	if (r == 0)
		r = snapshot_finish(snapshot);
	r = found(r, r == 0 ? sum_of(snapshot) : 0);
	view_deinit(&view);
	snapshot_free(snapshot);
	return r;
}

static void sweep(unit_memory_fn *try)
{
	begin();
	expected = 0;
	assert(try(NULL) == 0 && expected != 0);
	assert(unit_memory_sweep(try, NULL) > 0);
	end();
}

UNIT(totals_are_whole)
{
	sweep(collect);
}

UNIT(buffers_and_incidents_are_whole)
{
	request = (struct snapshot_request){
		.buffers = true, .incidents = true, .explained = 2, .held_at_close = true};
	sweep(collect);
}

UNIT(closed_buffers_are_whole)
{
	request = (struct snapshot_request){.buffers = true, .closed = true};
	sweep(collect);
}

UNIT(a_page_is_whole)
{
	request = (struct snapshot_request){.buffers = true, .limit = 7};
	sweep(collect);
}

UNIT(the_largest_are_whole)
{
	request = (struct snapshot_request){
		.buffers = true, .limit = 7, .sorted = true, .order = SNAPSHOT_BY_SIZE};
	sweep(collect);
}

UNIT(the_peak_is_whole)
{
	request = (struct snapshot_request){.buffers = true, .at_peak = true};
	sweep(collect);
}

/* By the buffers that are still there, and by the graves of the others. */
UNIT(a_peak_that_the_log_has_forgotten_is_whole)
{
	request = (struct snapshot_request){.buffers = true, .at_peak = true};
	passes = BOOK_RING_MIN;
	sweep(collect);
}

/* What finds no memory is kept at the next look. */
static int keep(void *context)
{
	struct view view = VIEW_NULL;
	uint64_t sum = 0;
	int r = book_kept_look(&scan, &view);

	(void)context;
	unit_memory_spare();
	if (r == 0)
		r = book_kept_look(&scan, &view);
	assert(r == 0 || r == -ENOMEM);
	for (size_t i = 0; r == 0 && i < scan.kept->count; i++)
		sum += scan.kept->peaks[i].bytes + scan.kept->peaks[i].known +
		       scan.kept->peaks[i].count;
	r = found(r, sum);
	scan.kept = book_kept_free(scan.kept);
	view_deinit(&view);
	return r;
}

UNIT(peaks_are_kept_or_looked_at_again)
{
	sweep(keep);
}

static int tell_history(void *context)
{
	const struct snapshot_request wanted = {.filter = {.pid = 0}};
	struct snapshot *snapshot = snapshot_new(1);
	struct history history = HISTORY_NULL;
	struct view view = VIEW_NULL;
	uint64_t sum = 0;
	int r = snapshot
			? address_history_collect(&scan, 0x1000, &wanted, &view, snapshot, &history)
			: -ENOMEM;

	(void)context;
	for (size_t i = 0; r == 0 && i < history.count; i++)
		sum += 100 + history.lives[i].count;
	r = found(r, sum);
	history_deinit(&history);
	view_deinit(&view);
	snapshot_free(snapshot);
	return r;
}

UNIT(the_history_of_an_address_is_whole)
{
	sweep(tell_history);
}
