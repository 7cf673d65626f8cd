/* SPDX-License-Identifier: Apache-2.0 */

/* Books kept for clients: valid, readable like any other, and bounded in total. */

#include "legacy/server/legacy-book.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/quota.h"
#include "base/testing/unit.h"
#include "book/read/view.h"
#include "book/write/writer.h"
#include "source/books/scan.h"
#include "source/books/verify-book.h"
#include "source/proc/owner.h"
#include "source/proc/proc.h"

struct ktest {
	struct proc proc;
	struct proc_facts facts;
	struct quota budget;
	struct legacy_book *keep;
	struct scan_book *book;
};

static int ktest_open(struct ktest *test, uint64_t budget)
{
	*test = (struct ktest){.budget = {.total = budget}};
	assert(proc_open(&test->proc) == 0);
	assert(proc_read(&test->proc, (uint32_t)getpid(), &test->facts) == 0);
	return legacy_book_new(&test->keep, &test->budget, &test->proc, &test->facts, NULL,
			       &test->book);
}

static void ktest_close(struct ktest *test)
{
	legacy_book_free(test->keep);
	scan_book_free(test->book);
	proc_close(&test->proc);
	quota_deinit(&test->budget);
}

UNIT(is_a_book_like_any_other)
{
	struct shard_buffer buffer = {.address = 1, .size = 2, .type = 1};
	struct view view = VIEW_NULL;
	struct ktest test;
	int flags;

	assert(ktest_open(&test, 1 << 30) == 0);
	assert(verify_book_check(test.book->file.fd) == 0);
	flags = fcntl(test.book->file.fd, F_GETFL);
	assert(flags >= 0 && (flags & O_ACCMODE) == O_RDONLY);
	assert(test.book->reader.header.source == BOOK_SOURCE_SOCKET);
	assert(test.book->reader.header.keeper == (uint32_t)getpid());
	assert(owner_judge(NULL, &test.book->reader.header, test.book->uid, &test.facts) ==
	       OWNER_YES);
	writer_alloc(legacy_book_writer(test.keep), 5, &buffer, 0);
	assert(view_read(&view, &test.book->reader, 5, VIEW_LIVING) == 0);
	assert(view.live == 1 && view.hot[1].bytes == 2);
	/* The rest can still be read after the writer is gone. */
	test.keep = legacy_book_free(test.keep);
	assert(view_read(&view, &test.book->reader, 5, VIEW_DEAD) == 0 && view.live == 1);
	view_deinit(&view);
	assert(test.budget.used == 0 && test.budget.count == 0);
	ktest_close(&test);
}

UNIT(without_budget_there_is_no_book)
{
	struct ktest test;

	assert(ktest_open(&test, 4096) == -ENOSPC);
	assert(test.budget.used == 0 && test.budget.count == 0);
	ktest_close(&test);
}

/* Records that do not fit are counted, and the totals are marked as a bound. */
UNIT(a_budget_that_runs_out)
{
	struct view view = VIEW_NULL;
	struct ktest test;

	assert(ktest_open(&test, 2 << 20) == 0);
	for (uint64_t i = 0; i < 100000; i++) {
		struct shard_buffer buffer = {.address = i, .size = 1, .type = 0};

		writer_alloc(legacy_book_writer(test.keep), 0, &buffer, 0);
	}
	assert(view_read(&view, &test.book->reader, 0, VIEW_LIVING) == 0);
	assert(view.hot[0].allocs == 100000 && view.live < 100000 && view.live > 1000);
	assert(view.inexact & BOOK_INEXACT_LOW);
	view_deinit(&view);
	ktest_close(&test);
}

UNIT(a_book_goes_on_from_an_older_one)
{
	struct ktest test;
	struct legacy_book *second;
	struct scan_book *book;
	const struct book_header *header;

	assert(ktest_open(&test, 1 << 30) == 0);
	header = &test.book->reader.header;
	assert(legacy_book_new(&second, &test.budget, &test.proc, &test.facts, header, &book) == 0);
	assert(book->reader.header.clock_start == header->clock_start);
	assert(book->reader.header.monotonic_start == header->monotonic_start);
	assert(book->id.inode != test.book->id.inode);
	legacy_book_free(second);
	scan_book_free(book);
	ktest_close(&test);
}
