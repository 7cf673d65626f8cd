/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Which devices a book makes: those that its owner used, not those that a wrong number names. And what
 * remains of a book that cannot be read.
 */

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "base/bits.h"
#include "base/testing/unit.h"
#include "book/read/view.h"
#include "book/testing/book-testing.h"
#include "model/snapshot-request.h"
#include "model/snapshot.h"
#include "source/books/book-source.h"
#include "source/books/scan.h"

struct read_test {
	struct testing_book book;
	struct scan_book scan;
	struct view view;
};

static struct read_test *read_begin(void)
{
	struct read_test *test = calloc(1, sizeof(*test));

	assert(test);
	testing_book_open(&test->book);
	test->scan = (struct scan_book){.owner = {.id.pid = 10, .ns_pid = 1, .comm = "read"},
					.id.inode = 100,
					.alive = true};
	assert(reader_init(&test->scan.reader, &test->book.file.file) == 0);
	return test;
}

static void read_end(struct read_test *test)
{
	totals_cache_deinit(&test->scan.totals_cache);
	reader_deinit(&test->scan.reader);
	testing_book_deinit(&test->book);
	view_deinit(&test->view);
	free(test);
}

static struct snapshot *read_take(struct read_test *test, bool buffers)
{
	const struct snapshot_request request = {.buffers = buffers, .incidents = true};
	struct snapshot *snapshot = snapshot_new(1);

	assert(snapshot && book_collect(&test->scan, &request, &test->view, snapshot) == 0);
	assert(snapshot_finish(snapshot) == 0 && snapshot->process_count == 1);
	return snapshot;
}

/* Devices and stray frees, whichever way the book is read. */
static void read_check(struct read_test *test, size_t devices, uint64_t stray)
{
	for (int i = 0; i < 6; i++) {
		struct snapshot *snapshot;

		test->scan.alive = i < 4; /* totals from the cache the second time */
		snapshot = read_take(test, i % 2);
		assert(snapshot->device_count == devices);
		assert(snapshot->processes[0].part_count == devices);
		assert(snapshot->processes[0].stray_frees == stray);
		snapshot_free(snapshot);
	}
	test->scan.alive = true;
}

UNIT(a_free_on_a_device_that_was_never_used_makes_no_device)
{
	struct shard_buffer buffer = testing_buffer(0, 0x1000, 64);
	struct read_test *test = read_begin();
	const struct snapshot_part *part;
	struct snapshot *snapshot;

	writer_alloc(test->book.writer, 3, &buffer, 0);
	read_check(test, 1, 0);
	writer_free_buffer(test->book.writer, 1023, &buffer);
	read_check(test, 1, 1);
	buffer.type = 1;
	writer_free_buffer(test->book.writer, 1023, &buffer);
	writer_free_buffer(test->book.writer, 5, &buffer);
	read_check(test, 1, 3);
	/* They are incidents like any other. */
	snapshot = read_take(test, false);
	assert(snapshot->incident_count == 3 && snapshot->processes[0].exact);
	snapshot_free(snapshot);
	/* Used after all: from then on it is a device, with all that was counted on it. */
	writer_alloc(test->book.writer, 1023, &buffer, 0);
	read_check(test, 2, 1);
	snapshot = read_take(test, false);
	part = snapshot_find_part(snapshot, 0, 1023);
	assert(part && part->memory[0].unknown_frees == 1 && part->memory[1].unknown_frees == 1);
	assert(part->memory[1].used == 64);
	snapshot_free(snapshot);
	read_end(test);
}

static void read_forbid(int error)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pread64, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {.len = ARRAY_SIZE(filter), .filter = filter};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
		unit_skip("no seccomp here");
}

/* Who leaves no memory for swapped pages makes reading them fail with ENOMEM: we have enough. */
UNIT(a_book_that_its_owner_starves_is_only_not_read)
{
	struct read_test *test = read_begin();
	struct snapshot *snapshot;

	read_forbid(ENOMEM);
	snapshot = read_take(test, false);
	assert(!snapshot->processes[0].exact && snapshot->note_count == 1);
	snapshot_free(snapshot);
	read_end(test);
}
