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

#include "base/unit.h"
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

	*ret_seen = (struct kernel_seen){0};
	return kernel_parse(text, strlen(text), &parser);
}

UNIT(a_sample_of_kernel_rows_is_parsed)
{
	struct kernel_seen seen;

	assert(kernel_see(kernel_sample, &seen) == 0 && seen.count == 3);
	assert(seen.holders[0].id == 7 && seen.holders[0].is_book && seen.holders[0].device == 38);
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

UNIT(lines_of_later_versions_are_skipped)
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
		"ttmem 2\n",
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
	return context && book->device == 38 && book->id == *(const uint64_t *)context;
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
	assert(snapshot->processes[0].pid == 100 && snapshot->processes[0].user_id == 1000);
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
	       strncmp(snapshot->notes[0], "1 processes outside", 19) == 0);
	assert(strncmp(snapshot->notes[1], "550 bytes of 1 processes that have ended", 40) == 0);
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
		assert(snapshot->processes[i ? 0 : 1].pid == 200);
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

/* Generates the lines of one user's holders, with so many devices and types of memory each. */
struct kernel_flood {
	uint32_t uid;
	uint32_t pid; /* of the first; the others follow, or have the same */
	bool is_one_process;
	uint32_t holders, devices, types;
};

static void kernel_write_flood(FILE *file, const struct kernel_flood *flood)
{
	for (uint32_t i = 0; i < flood->holders; i++) {
		uint32_t pid = flood->pid + (flood->is_one_process ? 0 : i);

		fprintf(file, "holder %u plain 0 %u %u some\n", i, pid, flood->uid);
		for (uint32_t device = 0; device < flood->devices; device++) {
			for (uint32_t type = 0; type < flood->types; type++)
				fprintf(file, "memory %u %u 1024 1 1 1 0 0\n", device, type);
		}
	}
}

static struct snapshot *kernel_snapshot_of(const struct kernel_flood *floods, size_t count)
{
	struct snapshot *snapshot = snapshot_new(1);
	struct proc proc;
	size_t length;
	char *text;
	FILE *file = open_memstream(&text, &length);

	assert(snapshot && file && fputs("ttmem 1\n", file) >= 0);
	for (size_t i = 0; i < count; i++)
		kernel_write_flood(file, &floods[i]);
	assert(fclose(file) == 0);
	kernel_make_machine(text);
	free(text);
	assert(proc_open(&proc) == 0);
	assert(kernel_collect(&proc, kernel_knows, NULL, snapshot) == 0);
	assert(snapshot_finish(snapshot) == 0);
	proc_close(&proc);
	return snapshot;
}

/* Devices of a process; the model may have summed some up. */
static size_t kernel_devices(const struct snapshot_process *process)
{
	size_t count = process->part_count;

	for (size_t i = 0; i < process->part_count; i++)
		count += process->parts[i].summed ? process->parts[i].summed - 1 : 0;
	return count;
}

/* Notes about lines that were not read; @ret_note: the last of them. */
static size_t kernel_notes(const struct snapshot *snapshot, const char **ret_note)
{
	size_t count = 0;

	for (size_t i = 0; i < snapshot->note_count; i++) {
		if (!strstr(snapshot->notes[i], "more lines"))
			continue;
		*ret_note = snapshot->notes[i];
		count++;
	}
	return count;
}

/* The last process is complete, and has nothing else. */
static void kernel_check_last(const struct snapshot *snapshot, const struct kernel_flood *flood)
{
	const struct snapshot_process *process = &snapshot->processes[snapshot->process_count - 1];
	uint64_t bytes, buffers;

	snapshot_process_totals(process, &bytes, &buffers);
	assert(process->pid == flood->pid && process->user_id == flood->uid && process->exact);
	assert(process->part_count == flood->devices);
	assert(bytes == UINT64_C(1024) * flood->devices * flood->types * flood->holders);
}

UNIT_LONG(a_flood_costs_only_its_user, 120)
{
	static const struct kernel_flood floods[] = {
		{.uid = 3000001, .pid = 1000, .holders = 40, .devices = 1024, .types = 1},
		{.uid = 3000002, .pid = 2000, .holders = 1, .devices = 3, .types = 2},
	};
	struct snapshot *snapshot = kernel_snapshot_of(floods, 2);
	uint32_t full = KERNEL_USER_ROWS / 1025, left = 40 * 1025 - KERNEL_USER_ROWS;
	const char *note = NULL;
	char wanted[64];

	kernel_check_last(snapshot, &floods[1]);
	assert(snapshot->process_count == full + 2 && !snapshot->exact);
	/* A process that is shown in part is marked inexact. */
	assert(snapshot->processes[full - 1].exact && !snapshot->processes[full].exact);
	assert(kernel_devices(&snapshot->processes[full]) == KERNEL_USER_ROWS % 1025 - 1);
	snprintf(wanted, sizeof(wanted), "user 3000001: %u more lines", left);
	assert(kernel_notes(snapshot, &note) == 1 && strncmp(note, wanted, strlen(wanted)) == 0);
	assert(strstr(note, "with 8.0 MiB,")); /* 8224 KiB */
	snapshot_free(snapshot);
}

/* What an honest user may need; there is no note. */
UNIT_LONG(many_honest_kernel_rows_are_read, 120)
{
	static const struct kernel_flood flood = {
		.uid = 3000001, .pid = 1000, .holders = 500, .devices = 64, .types = BOOK_TYPES};
	struct snapshot *snapshot = kernel_snapshot_of(&flood, 1);
	const char *note;

	assert(snapshot->process_count == 500 && snapshot->exact);
	assert(kernel_notes(snapshot, &note) == 0);
	for (size_t i = 0; i < 500; i++)
		assert(kernel_devices(&snapshot->processes[i]) == 64);
	snapshot_free(snapshot);
}

/* A process that opens the node many times has few rows, but costs time. */
UNIT_LONG(lines_are_bounded_where_rows_are_few, 120)
{
	static const struct kernel_flood floods[] = {
		{.uid = 3000001,
		 .pid = 1000,
		 .is_one_process = true,
		 .holders = 40,
		 .devices = 1024,
		 .types = BOOK_TYPES},
		{.uid = 3000001, .pid = 2000, .holders = 1, .devices = 1, .types = 1},
		{.uid = 3000002, .pid = 3000, .holders = 1, .devices = 1, .types = 1},
	};
	struct snapshot *snapshot = kernel_snapshot_of(floods, 3);
	uint32_t lines = 40 * (1 + 1024 * BOOK_TYPES) + 2;
	char wanted[64];

	kernel_check_last(snapshot, &floods[2]);
	assert(snapshot->process_count == 2 && kernel_devices(&snapshot->processes[0]) == 1024);
	snprintf(wanted, sizeof(wanted), "user 3000001: %u more lines", lines - KERNEL_USER_LINES);
	assert(snapshot->note_count == 1 && strstr(snapshot->notes[0], wanted));
	snapshot_free(snapshot);
}

/* Several users who exhaust the common budget leave a little for the next. */
UNIT_LONG(all_users_together_are_bounded, 240)
{
	struct kernel_flood floods[4];
	struct snapshot *snapshot;
	const char *note;
	size_t rows = 0;

	for (uint32_t i = 0; i < 3; i++)
		floods[i] = (struct kernel_flood){.uid = 3000001 + i,
						  .pid = 1000 * (i + 1),
						  .holders = 32,
						  .devices = 1024,
						  .types = 1};
	floods[3] = (struct kernel_flood){
		.uid = 3000004, .pid = 9000, .holders = 1, .devices = 63, .types = 1};
	snapshot = kernel_snapshot_of(floods, 4);
	kernel_check_last(snapshot, &floods[3]);
	for (size_t i = 0; i < snapshot->process_count; i++)
		rows += 1 + kernel_devices(&snapshot->processes[i]);
	assert(rows == KERNEL_ROWS_MAX + 2 * KERNEL_USER_ROWS_KEPT);
	assert(kernel_notes(snapshot, &note) == 3);
	snapshot_free(snapshot);
}

/*
 * With more users than are counted separately, none is dropped for that alone, and notes stay few.
 */
UNIT_LONG(rows_of_many_users_are_kept, 120)
{
	size_t count = KERNEL_USERS_MAX + 10;
	struct kernel_flood *floods = calloc(count, sizeof(*floods));
	struct snapshot *snapshot;

	assert(floods);
	for (uint32_t i = 0; i < count; i++)
		floods[i] = (struct kernel_flood){.uid = 3000001 + i,
						  .pid = 1000 + i,
						  .holders = 1,
						  .devices = 1,
						  .types = 1};
	snapshot = kernel_snapshot_of(floods, count);
	kernel_check_last(snapshot, &floods[count - 1]);
	assert(snapshot->process_count == count && snapshot->note_count == 0);
	snapshot_free(snapshot);
	free(floods);
}
