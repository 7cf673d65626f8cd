/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What the kernel module reports, from sample files; and that its layout of the book is the
 * library's.
 */

#include "source/host/kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <uapi/ttmem.h>

#include "base/testing/unit.h"
#include "book/format/layout.h"
#include "kernel/block.h"
#include "kernel/book-layout.h"
#include "model/snapshot.h"
#include "source/books/scan.h"
#include "source/proc/proc.h"

_Static_assert(LAYOUT_UNIT == BOOK_UNIT && LAYOUT_SIZE_MIN == BOOK_SIZE_MIN &&
		       LAYOUT_SIZE_MAX == BOOK_SIZE_MAX && LAYOUT_SHARDS == BOOK_SHARDS_OFFSET &&
		       LAYOUT_SHARD_SIZE == sizeof(struct book_shard),
	       "the module's places are the library's");
BOOK_ASSERT_AT(book_shard, inexact, LAYOUT_INEXACT);
BOOK_ASSERT_AT(book_shard, state, LAYOUT_STATE);
BOOK_ASSERT_AT(book_shard, hot, LAYOUT_HOT);
BOOK_ASSERT_SIZE(book_hot, LAYOUT_HOT_SIZE);
BOOK_ASSERT_AT(book_hot, bytes, LAYOUT_BYTES * 8);
BOOK_ASSERT_AT(book_hot, buffers, LAYOUT_BUFFERS * 8);
BOOK_ASSERT_AT(book_hot, peak, LAYOUT_PEAK * 8);
BOOK_ASSERT_AT(book_hot, allocs, LAYOUT_ALLOCS * 8);
BOOK_ASSERT_AT(book_hot, frees, LAYOUT_FREES * 8);
BOOK_ASSERT_AT(book_hot, number, BLOCK_NUMBER * 8);
_Static_assert(BLOCK_WORDS * 8 == LAYOUT_HOT_SIZE, "a block is one of the pair");
_Static_assert(TTMEM_UAPI_TYPES == BOOK_TYPES && TTMEM_UAPI_DEVICES == BOOK_DEVICES, "as many");

static const char kernel_sample[] = "ttmem 1\n"
				    "holder 7 book 38 100 1000 python3\n"
				    "memory 0 0 4096 2 8192 5 3 0\n"
				    "memory 3 6 10 1 10 1 0 2\n"
				    "holder 8 plain 0 200 0 a\\040name\\134\n"
				    "memory 3 1 77 1 77 1 0 0\n"
				    "holder 9 book 38 0 0 elsewhere\n"
				    "memory 0 0 1 1 1 1 0 0\n";

struct kernel_seen {
	struct kernel_holder holders[8];
	size_t count;
	uint64_t used[8];
	uint32_t torn; /* lines */
};

static int kernel_see_holder(void *context, const struct kernel_holder *holder)
{
	struct kernel_seen *seen = context;

	assert(seen->count < 8);
	seen->holders[seen->count++] = *holder;
	return 0;
}

static int kernel_see_memory(void *context, uint32_t device, uint32_t type,
			     const struct snapshot_memory *memory, bool is_torn)
{
	struct kernel_seen *seen = context;

	assert(device < BOOK_DEVICES && type < BOOK_TYPES);
	seen->used[seen->count - 1] += memory->used;
	seen->torn += is_torn;
	return 0;
}

static int kernel_see(const char *text, struct kernel_seen *ret_seen)
{
	struct kernel_parser parser = {
		.holder = kernel_see_holder, .memory = kernel_see_memory, .context = ret_seen};
	struct kernel_text state = {0};
	size_t used = 0;
	int r;

	*ret_seen = (struct kernel_seen){0};
	r = kernel_parse_more(&state, text, strlen(text), &parser, &used);
	if (r == 0 && (used != strlen(text) || !state.has_version))
		r = -EBADMSG;
	return r;
}

UNIT(a_sample_of_kernel_rows_is_parsed)
{
	struct kernel_seen seen;

	assert(kernel_see(kernel_sample, &seen) == 0 && seen.count == 3);
	assert(seen.holders[0].book.inode == 7 && seen.holders[0].is_book &&
	       seen.holders[0].book.device == 38);
	assert(seen.holders[0].pid == 100 && seen.holders[0].uid == 1000);
	assert(strcmp(seen.holders[0].comm, "python3") == 0 && seen.used[0] == 4106);
	assert(!seen.holders[1].is_book && strcmp(seen.holders[1].comm, "a name\\") == 0);
	assert(seen.holders[2].pid == 0);
}

/* However the text is split: the unused rest of a piece begins the next. */
UNIT(kernel_rows_are_parsed_in_pieces_of_any_size)
{
	size_t length = strlen(kernel_sample);

	for (size_t cut = 0; cut <= length; cut++) {
		struct kernel_seen seen = {0};
		struct kernel_parser parser = {
			.holder = kernel_see_holder, .memory = kernel_see_memory, .context = &seen};
		struct kernel_text state = {0};
		size_t used, more;

		assert(kernel_parse_more(&state, kernel_sample, cut, &parser, &used) == 0);
		assert(used <= cut && (used == 0 || kernel_sample[used - 1] == '\n'));
		assert(kernel_parse_more(&state, kernel_sample + used, length - used, &parser,
					 &more) == 0);
		assert(used + more == length && seen.count == 3 && seen.used[0] == 4106);
	}
}

UNIT(unknown_lines_and_words_are_skipped)
{
	struct kernel_seen seen;

	assert(kernel_see("ttmem 1\n", &seen) == 0 && seen.count == 0);
	assert(kernel_see("ttmem 1\nweather fine\n\nholder 1 book 2 3 4 x more words\n", &seen) ==
	       0);
	assert(seen.count == 1 && strcmp(seen.holders[0].comm, "x") == 0);
}

UNIT(only_a_last_word_says_that_figures_are_torn)
{
	static const char text[] = "ttmem 1\n"
				   "holder 1 book 2 3 4 torn\n"
				   "memory 0 0 1 1 1 1 0 0\n"
				   "memory 0 1 1 1 1 1 0 2 torn\n"
				   "memory 0 2 1 1 1 1 0 0 tornado\n";
	struct kernel_seen seen;

	assert(kernel_see(text, &seen) == 0 && seen.used[0] == 3 && seen.torn == 1);
}

UNIT(malformed_kernel_rows_are_refused)
{
	static const char *const texts[] = {
		"",
		"ttmem",
		"ttmem 0\n",
		"ttmem 1 2\n",
		"ttmem x\n",
		"other 1\n",
		"ttmem 1\nholder 1 book 2 3 4 x", /* cut off */
		"ttmem 1\nholder\n",
		"ttmem 1\nholder x book 2 3 4 x\n",
		"ttmem 1\nholder 1 book 4294967296 3 4 x\n",
		"ttmem 1\nholder 1 book 2 -3 4 x\n",
		"ttmem 1\nholder 1 book 2 2147483648 4 x\n",
		"ttmem 1\nholder 1 book 2 3\n",
		"ttmem 1\nmemory 0 0 1 1 1 1 0 0\n", /* without a holder */
		"ttmem 1\nholder 1 book 2 3 4 x\nmemory 1024 0 1 1 1 1 0 0\n",
		"ttmem 1\nholder 1 book 2 3 4 x\nmemory 0 7 1 1 1 1 0 0\n",
		"ttmem 1\nholder 1 book 2 3 4 x\nmemory 0 0 18446744073709551616 1 1 1 0 0\n",
		"ttmem 1\nholder 1 book 2 3 4 x\nmemory 0 0 1 1 1 1 0 3\n",
		"ttmem 1\nholder 1 book 2 3 4 x\nmemory 0 0 1 1 1 1 0\n",
	};
	struct kernel_seen seen;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		assert(kernel_see(texts[i], &seen) == -EBADMSG);
}

UNIT(shares_of_users_are_parsed)
{
	static const char all[] = "all bytes 12 limit 34 user_limit 17";
	static const char user[] = "user 6001 books 2 clients 1 bytes 16";
	static const char *const others[] = {"",
					     "all",
					     "user",
					     "user 1 books 2 clients 3 bytes",
					     "user x books 2 clients 3 bytes 4",
					     "user 4294967296 books 2 clients 3 bytes 4",
					     "leaked clients 1 buffers 2 bytes 3",
					     "all bytes 2 limit 3"};
	struct kernel_share share = {.uid = 77};

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert(!kernel_parse_share(others[i], strlen(others[i]), &share));
	assert(share.uid == 77);
	assert(kernel_parse_share(all, strlen(all), &share));
	assert(share.is_of_all && share.bytes == 12 && share.limit == 34 && share.user_limit == 17);
	assert(kernel_parse_share(user, strlen(user), &share));
	assert(!share.is_of_all && share.uid == 6001 && share.bytes == 16 && share.limit == 17);
}

/* A fake machine: only the kernel knows these processes. */
static void kernel_make_machine(const char *totals)
{
	char path[256];
	FILE *file;

	assert(setenv("TTMEM_PROC_ROOT", unit_dir(), 1) == 0); /* NOLINT(concurrency-mt-unsafe) */
	snprintf(path, sizeof(path), "%s/driver", unit_dir());
	assert(mkdir(path, 0755) == 0 || errno == EEXIST);
	snprintf(path, sizeof(path), "%s/driver/ttmem", unit_dir());
	assert(mkdir(path, 0755) == 0 || errno == EEXIST);
	snprintf(path, sizeof(path), "%s/driver/ttmem/totals", unit_dir());
	file = fopen(path, "we");
	assert(file && fputs(totals, file) >= 0 && fclose(file) == 0);
}

/* Knows the book with that number; none without a context. */
static bool kernel_knows(const void *context, const struct kernel_holder *book)
{
	return context && book->book.device == 38 && book->book.inode == *(const uint64_t *)context;
}

UNIT(a_process_with_torn_figures_is_not_exact)
{
	struct snapshot *snapshot = snapshot_new(1);
	struct scan *scan;

	assert(snapshot);
	kernel_make_machine("ttmem 1\n"
			    "holder 1 book 38 100 1000 quiet\n"
			    "memory 0 0 10 1 10 1 0 0\n"
			    "holder 2 book 38 101 1000 busy\n"
			    "memory 0 0 20 1 20 1 0 0 torn\n");
	assert(scan_new(&scan) == 0);
	assert(scan_run(scan) == 0);
	assert(kernel_collect(&scan->proc, kernel_knows, NULL, snapshot) == 0);
	assert(snapshot_finish(snapshot) == 0 && snapshot->process_count == 2);
	assert(!snapshot->exact && snapshot->processes[0].exact && !snapshot->processes[1].exact);
	assert(snapshot_find_part(snapshot, 1, 0)->memory[0].used == 20);
	snapshot_free(snapshot);
	scan_free(scan);
}

UNIT(everybody_is_in_the_snapshot)
{
	struct snapshot *snapshot = snapshot_new(1);
	struct scan *scan;

	assert(snapshot);
	kernel_make_machine(kernel_sample);
	assert(scan_new(&scan) == 0);
	assert(scan_run(scan) == 0);
	assert(kernel_collect(&scan->proc, kernel_knows, NULL, snapshot) == 0);
	assert(snapshot_finish(snapshot) == 0 && snapshot->process_count == 2);
	assert(snapshot->processes[0].id.pid == 100 && snapshot->processes[0].user_id == 1000);
	assert(strcmp(snapshot->processes[0].source, "kernel") == 0);
	assert(snapshot_find_part(snapshot, 0, 0)->memory[0].used == 4096);
	assert(snapshot_find_part(snapshot, 0, 3)->memory[6].bound == SNAPSHOT_AT_MOST);
	assert(snapshot_find_part(snapshot, 1, 3)->memory[1].used == 77);
	assert(snapshot->note_count == 1); /* about the one that has no pid here */
	snapshot_free(snapshot);
	scan_free(scan);
}

/*
 * A holder with pid 0 is either outside our namespace, or has exited while others keep its
 * descriptor: two notes.
 */
UNIT(dead_holders_are_told_from_other_pid_namespaces)
{
	static const uint64_t known = 11;
	struct snapshot *snapshot = snapshot_new(1);
	struct kernel_seen seen;
	struct scan *scan;
	char text[512];

	snprintf(text, sizeof(text), "%s%s", kernel_sample,
		 "holder 10 plain 0 0 1000 gone gone\n"
		 "memory 0 0 500 1 1 1 0 0\n"
		 "memory 0 1 50 1 1 1 0 0\n"
		 "holder 11 book 38 0 1000 shared gone\n"
		 "memory 0 0 1 1 1 1 0 0\n"
		 "holder 12 plain 0 300 1000 gone\n");
	assert(kernel_see(text, &seen) == 0 && seen.count == 6);
	assert(!seen.holders[2].is_gone && seen.holders[3].is_gone && seen.holders[4].is_gone);
	assert(strcmp(seen.holders[5].comm, "gone") == 0 && !seen.holders[5].is_gone);
	kernel_make_machine(text);
	assert(snapshot && scan_new(&scan) == 0);
	assert(kernel_collect(&scan->proc, kernel_knows, &known, snapshot) == 0);
	assert(snapshot_finish(snapshot) == 0 && snapshot->process_count == 3);
	assert(snapshot->note_count == 2 &&
	       strncmp(snapshot->notes[0], "1 process outside", 17) == 0);
	assert(strncmp(snapshot->notes[1], "550 bytes of 1 ended process are", 32) == 0);
	snapshot_free(snapshot);
	scan_free(scan);
}

/* Books known from elsewhere are left out; a client of the plain ioctls is known only from here. */
UNIT(processes_known_from_books_are_not_counted_twice)
{
	static const uint64_t known = 7, plain = 8;
	struct scan *scan;

	kernel_make_machine(kernel_sample);
	assert(scan_new(&scan) == 0 && scan_run(scan) == 0);
	for (int i = 0; i < 2; i++) {
		struct snapshot *snapshot = snapshot_new(1);

		assert(kernel_collect(&scan->proc, kernel_knows, i ? &known : &plain, snapshot) ==
		       0);
		assert(snapshot_finish(snapshot) == 0);
		assert(snapshot->process_count == (i ? 1 : 2));
		assert(snapshot->processes[i ? 0 : 1].id.pid == 200);
		assert(snapshot->processes[0].books == 0);
		snapshot_free(snapshot);
	}
	/* A process that only the kernel knows stays as reported. */
	assert(kernel_attach_books(scan) == 0 && scan->count == 0);
	scan_free(scan);
}

UNIT(without_the_kernel_module_nothing_is_added)
{
	struct snapshot *snapshot = snapshot_new(1);
	struct scan *scan;

	assert(setenv("TTMEM_PROC_ROOT", unit_dir(), 1) == 0); /* NOLINT(concurrency-mt-unsafe) */
	assert(snapshot && scan_new(&scan) == 0);
	assert(kernel_collect(&scan->proc, kernel_knows, NULL, snapshot) == 0);
	assert(snapshot->process_count == 0 && snapshot->note_count == 0);
	assert(kernel_look(&scan->proc, "/dev/null") == KERNEL_NOT_LOADED);
	snapshot_free(snapshot);
	scan_free(scan);
}

/* A file larger than the read buffer; and a line of the maximum length, and one byte longer. */
UNIT(a_file_of_any_size)
{
	struct kernel_seen seen = {0};
	struct kernel_parser parser = {
		.holder = kernel_see_holder, .memory = kernel_see_memory, .context = &seen};
	size_t room = 8 * KERNEL_LINE_MAX, length;
	char *text = malloc(room);
	struct proc proc;

	assert(text);
	length = (size_t)snprintf(text, room, "ttmem 1\nholder 7 book 38 100 1000 python3\n");
	for (uint64_t i = 0; i < 10000; i++)
		length +=
			(size_t)snprintf(text + length, room - length, "memory %u 0 %u 1 1 1 0 0\n",
					 (unsigned int)i % 1024, (unsigned int)i);
	assert(length > 3 * KERNEL_LINE_MAX && length < room - 2 * KERNEL_LINE_MAX);
	memset(text + length, 'x', KERNEL_LINE_MAX);
	length += KERNEL_LINE_MAX;
	memcpy(text + length - 1, "\n", 2);
	kernel_make_machine(text);
	assert(proc_open(&proc) == 0);
	assert(kernel_read(&proc, &parser) == 0);
	assert(seen.count == 1 && seen.used[0] == 49995000);

	memcpy(text + length - 1, "x\n", 3);
	kernel_make_machine(text);
	assert(kernel_read(&proc, &parser) == -EBADMSG);
	kernel_make_machine("");
	assert(kernel_read(&proc, &parser) == -EBADMSG);
	proc_close(&proc);
	free(text);
}

UNIT(unreadable_kernel_rows_are_noted)
{
	struct snapshot *snapshot = snapshot_new(1);
	struct scan *scan;

	assert(snapshot);
	kernel_make_machine("ttmem 1\nholder 5 book 1 100 0 first\nholder nonsense\n");
	assert(scan_new(&scan) == 0);
	assert(kernel_collect(&scan->proc, kernel_knows, NULL, snapshot) == 0);
	assert(snapshot->process_count == 1 && snapshot->note_count == 1);
	assert(kernel_look(&scan->proc, "/nonexistent") == KERNEL_NO_NODE);
	assert(kernel_look(&scan->proc, unit_dir()) == KERNEL_NO_NODE);
	assert(kernel_look(&scan->proc, "/dev/null") == KERNEL_READY);
	assert(strstr(kernel_explain(KERNEL_NO_RIGHTS), "udev"));
	snapshot_free(snapshot);
	scan_free(scan);
}

/* Its lines may mean anything, so none of them is used. */
UNIT(a_newer_kernel_module_is_noted)
{
	static const char text[] = "ttmem 2\nholder 5 book 1 100 0 first\n";
	struct snapshot *snapshot = snapshot_new(1);
	struct kernel_seen seen;
	struct scan *scan;

	assert(kernel_see(text, &seen) == -EPROTONOSUPPORT && seen.count == 0);
	assert(kernel_see("ttmem 18446744073709551616\n", &seen) == -EBADMSG);
	kernel_make_machine(text);
	assert(snapshot && scan_new(&scan) == 0);
	assert(kernel_collect(&scan->proc, kernel_knows, NULL, snapshot) == 0);
	assert(snapshot->process_count == 0 && snapshot->note_count == 1);
	assert(strstr(snapshot->notes[0], "kernel module is newer than this ttmem"));
	snapshot_free(snapshot);
	scan_free(scan);
}
