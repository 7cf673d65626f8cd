/* SPDX-License-Identifier: Apache-2.0 */

/* Reading books that take too long. */

#include "daemon/registry/tracked.h"

#include <fcntl.h>
#include <stdio.h>

#include "base/testing/unit.h"
#include "book/testing/book-testing.h"
#include "model/snapshot-request.h"
#include "model/snapshot.h"

static struct tracked *track_since(struct testing_book *book, uint64_t since)
{
	struct testing_op op = {.kind = TESTING_ALLOC, .buffer = testing_buffer(0, 0x1000, 4096)};
	struct scan_book *found;
	struct tracked *tracked;
	char path[64];

	testing_book_init(book, TESTING_SIZE, 1024);
	testing_book_write(book);
	testing_op_do(book->writer, &op);
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", book->fd);
	assert(scan_book_new_consume(&found, open(path, O_RDONLY | O_CLOEXEC)) == 0);
	found->owner = (struct proc_facts){.id.pid = 77, .ns_pid = 77, .comm = "player"};
	tracked = tracked_new_consume(found, since, "");
	assert(tracked);
	return tracked;
}

static struct tracked *track(struct testing_book *book)
{
	return track_since(book, 0);
}

static struct snapshot *collect(struct tracked *tracked, bool buffers)
{
	const struct snapshot_request request = {.buffers = buffers};
	struct view view = VIEW_NULL;
	struct snapshot *snapshot = snapshot_new(1);

	assert(snapshot && tracked_collect(tracked, &request, &view, snapshot) == 0);
	assert(snapshot->process_count == 1 && snapshot->processes[0].id.pid == 77);
	view_deinit(&view);
	return snapshot;
}

/* Whether the totals were read. */
static bool has_totals(struct tracked *tracked, bool buffers)
{
	struct snapshot *snapshot = collect(tracked, buffers);
	const struct snapshot_process *process = &snapshot->processes[0];
	bool has = process->part_count == 1 && process->parts[0].memory[0].used == 4096;

	assert(has ? process->exact && snapshot->note_count == 0
		   : process->part_count == 0 && !process->exact && snapshot->note_count == 1);
	snapshot_free(snapshot);
	return has;
}

UNIT(a_book_that_rests_is_listed_without_totals)
{
	struct testing_book book;
	struct tracked *tracked = track(&book);

	assert(has_totals(tracked, false));
	tracked->rest_until = UINT64_MAX;
	assert(!has_totals(tracked, false));
	/* A request for buffers has time. */
	assert(has_totals(tracked, true));
	tracked->rest_until = 1;
	assert(has_totals(tracked, false));
	tracked_unref(tracked);
	testing_book_deinit(&book);
}

UNIT(the_book_of_a_dead_process_is_always_read)
{
	struct testing_book book;
	struct tracked *tracked = track(&book);
	struct snapshot *snapshot;

	tracked->rest_until = UINT64_MAX;
	tracked->has_ended = true;
	snapshot = collect(tracked, false);
	assert(snapshot->processes[0].part_count == 1 && !snapshot->processes[0].alive);
	snapshot_free(snapshot);
	tracked_unref(tracked);
	testing_book_deinit(&book);
}

/* Total allocations, and those that are not new. */
static void check_counts(struct tracked *tracked, bool buffers, uint64_t allocs, uint64_t before)
{
	struct snapshot *snapshot = collect(tracked, buffers);
	const struct snapshot_memory *memory = &snapshot->processes[0].parts[0].memory[0];

	assert(snapshot->processes[0].part_count == 1);
	assert(memory->allocs == allocs && memory->allocs_before == before);
	assert(memory->frees_before == 0);
	snapshot_free(snapshot);
}

UNIT(counts_from_before_the_daemon_are_kept_apart)
{
	struct testing_op op = {.kind = TESTING_ALLOC, .buffer = testing_buffer(0, 0x8000, 64)};
	struct testing_book book;
	struct tracked *tracked = track_since(&book, UINT64_MAX);

	check_counts(tracked, false, 1, 1);
	testing_op_do(book.writer, &op);
	check_counts(tracked, false, 2, 1);
	check_counts(tracked, true, 2, 1);
	tracked_unref(tracked);
	testing_book_deinit(&book);
}

UNIT(all_counts_of_a_new_book_are_new)
{
	struct testing_book book;
	struct tracked *tracked = track_since(&book, 1);

	check_counts(tracked, false, 1, 0);
	tracked_unref(tracked);
	testing_book_deinit(&book);
}
