/* SPDX-License-Identifier: Apache-2.0 */

/* Records of all three logs, as they are in the files. */

#include "lib/api/debug-log.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <ttmem/ttmem.h>
#include <unistd.h>

#include "base/files/small-file.h"
#include "base/process/freeze.h"
#include "base/testing/unit.h"
#include "book/testing/book-testing.h"
#include "legacy/debug-log/debug-log-names.h"
#include "legacy/debug-log/debug-log-text.h"
#include "lib/process/thread.h"

static void set(const char *name, const char *value)
{
	assert(setenv(name, value, 1) == 0);
}

/* Turns on logs: 'b'uffers, 'd'etailed and 's'tacks, each in a file of that name. */
static void turn_on(const char *logs)
{
	set("TZ", "UTC");
	set("TT_BUFFER_DEBUG_LOG_FILE", unit_path("b"));
	set("TT_ALLOC_TRACKING_DETAILED_FILE", unit_path("d"));
	set("TT_ALLOC_STACK_TRACE_FILE", unit_path("s"));
	set("TT_BUFFER_DEBUG_LOG", strchr(logs, 'b') ? "1" : "0");
	set("TT_ALLOC_TRACKING_DETAILED", strchr(logs, 'd') ? "1" : "yes");
	set("TT_ALLOC_STACK_TRACE", strchr(logs, 's') ? "1" : "");
	debug_log_open();
}

/* The log, whose times are "T" instead. */
static const char *log_of(const char *name)
{
	static char text[1 << 20], settled[1 << 20];
	const char *at = text;
	char *to = settled, *times;

	if (small_file_read(AT_FDCWD, unit_path(name), text, sizeof(text)) < 0)
		return "";
	while ((times = strstr(at, "Time: "))) {
		memcpy(to, at, (size_t)(times - at));
		to += times - at;
		to = stpcpy(to, "Time: T");
		at = times + strcspn(times, "\n");
	}
	strcpy(to, at);
	return settled;
}

static unsigned int count(const char *text, const char *word)
{
	unsigned int found = 0;

	for (; (text = strstr(text, word)); text++)
		found++;
	return found;
}

/* Whether one of the logs has call stacks. */
static bool keeps_stacks(void)
{
	const uintptr_t address = (uintptr_t)getpid + 1;
	struct debug_log_frame frame;

	debug_log_new_stack(5, &address, 1, 0);
	return debug_log_names_find(5, &frame, 1) == 1;
}

static const struct debug_log_buffer buffer = {.address = 0x1000,
					       .size = 1536,
					       .owner = 0xabc,
					       .device = 3,
					       .type = TTMEM_DRAM,
					       .flags = TTMEM_FLAG_OWNS_DATA,
					       .has_flags = true};

UNIT(without_settings_nothing_is_logged)
{
	turn_on("");
	assert(!debug_log_is_on() && !keeps_stacks());
	debug_log_alloc(&buffer);
	assert(!*log_of("b") && !*log_of("d") && !*log_of("s"));
	/* It is decided once. */
	turn_on("bds");
	assert(!debug_log_is_on());
}

UNIT(the_buffer_log_has_a_record_of_each_event)
{
	struct debug_log_buffer other = buffer;
	struct testing_book book;

	turn_on("b");
	assert(debug_log_is_on() && keeps_stacks());
	debug_log_alloc(&buffer);
	assert(strcmp(log_of("b"), DEBUG_LOG_TEXT_DOUBLE_LINE
		      "\nBUFFER ALLOCATED\nTime: T\nDevice: 3\nAddress: 0x1000 (4096)\n"
		      "Size: 1536 bytes (1.5 KB)\nType: DRAM\nBuffer*: 0xabc\nOwns Data: yes\n"
		      "Hooked: no\nCall Stack:\n\n") == 0);
	assert(!*log_of("d") && !*log_of("s"));
	assert(unlink(unit_path("b")) == 0);
	/* What is not known, and what belongs to a program. */
	other = (struct debug_log_buffer){.address = 1, .type = TTMEM_CB, .owner = 5};
	debug_log_alloc(&other);
	assert(strstr(log_of("b"), "Size: unknown of CB\nType: OTHER\nBuffer*: unknown\nOwns Data: "
				   "unknown\nHooked: no\n"));
	other.type = TTMEM_KERNEL;
	other.size = 1;
	other.flags = TTMEM_FLAG_HOOKED;
	other.has_flags = true;
	debug_log_alloc(&other);
	assert(strstr(log_of("b"),
		      "Size: 1 bytes (0.000976562 KB) of KERNEL\nType: OTHER\nBuffer*: "
		      "unknown\nOwns Data: no\nHooked: yes\n"));
	other = buffer;
	other.owner = 0;
	debug_log_alloc(&other);
	assert(strstr(log_of("b"), "Type: DRAM\nBuffer*: unknown\n"));
	assert(unlink(unit_path("b")) == 0);
	/* A destructor has a record of its own before that of the free. */
	testing_book_open(&book);
	other = buffer;
	debug_log_free(book.writer, &other, NULL);
	assert(count(log_of("b"), "BUFFER DEALLOCATED\n") == 1);
	assert(count(log_of("b"), "BUFFER ") == 1 && !strstr(log_of("b"), "Owns Data"));
	other.flags |= TTMEM_FREE_DESTRUCTOR;
	debug_log_free(book.writer, &other, NULL);
	assert(count(log_of("b"), "BUFFER DESTRUCTOR (still ALLOCATED - will deallocate)\n") == 1);
	assert(count(log_of("b"), "BUFFER DEALLOCATED\n") == 2);
	testing_book_deinit(&book);
}

UNIT(devices_and_types_can_be_chosen)
{
	struct debug_log_buffer other = buffer;

	set("TT_BUFFER_DEBUG_DEVICE", "3");
	set("TT_BUFFER_DEBUG_TYPE", "DRAM");
	turn_on("bd");
	debug_log_alloc(&buffer);
	other.device = 2;
	debug_log_alloc(&other);
	other = buffer;
	other.type = TTMEM_L1;
	debug_log_alloc(&other);
	assert(count(log_of("b"), "BUFFER ") == 1);
	/* The other logs have all. */
	assert(count(log_of("d"), "ALLOC: ") == 3);
}

UNIT(the_detailed_log_has_a_line_for_each_allocation)
{
	struct debug_log_buffer other = buffer;
	struct testing_book book;
	char expected[128];

	turn_on("d");
	assert(debug_log_is_on() && !keeps_stacks());
	debug_log_alloc(&buffer);
	snprintf(expected, sizeof(expected),
		 "ALLOC: pid=%d device=3 size=1536 type=0 addr=0x1000 timestamp=", (int)getpid());
	assert(strncmp(log_of("d"), expected, strlen(expected)) == 0);
	other.flags |= TTMEM_FLAG_HOOKED;
	debug_log_alloc(&other);
	testing_book_open(&book);
	debug_log_free(book.writer, &buffer, NULL);
	testing_book_deinit(&book);
	assert(count(log_of("d"), "\n") == 1 && !*log_of("b") && !*log_of("s"));
}

UNIT(the_stack_log_counts_the_allocations_of_a_process)
{
	struct debug_log_buffer other = buffer;
	struct testing_book book;
	char expected[1024], header[512];
	int status;
	pid_t pid;

	turn_on("s");
	assert(debug_log_is_on() && keeps_stacks());
	debug_log_alloc(&buffer);
	snprintf(expected, sizeof(expected),
		 "=== TT-Metal Buffer Allocation Stack Traces ===\nPID: %d\n" DEBUG_LOG_TEXT_LINE
		 "\nAllocation #1\nTime: T\nDevice: 3\nType: DRAM\nSize: 1536 bytes (1.5 KB)\n"
		 "Address: 0x1000\nStack trace:\n\n",
		 (int)getpid());
	assert(strcmp(log_of("s"), expected) == 0);
	debug_log_alloc(&buffer);
	other.flags |= TTMEM_FLAG_HOOKED;
	debug_log_alloc(&other);
	testing_book_open(&book);
	debug_log_free(book.writer, &other, NULL);
	debug_log_free(book.writer, &buffer, NULL);
	testing_book_deinit(&book);
	assert(count(log_of("s"), "=== ") == 1 && count(log_of("s"), "Allocation #") == 2);
	assert(strstr(log_of("s"), "Allocation #2\n"));
	assert(count(log_of("s"), DEBUG_LOG_TEXT_LINE "\nDeallocation\n") == 1);
	/* A forked child begins its own. */
	pid = fork();
	assert(pid >= 0);
	if (pid == 0) {
		debug_log_alloc(&buffer);
		debug_log_alloc(&buffer);
		_exit(0);
	}
	assert(waitpid(pid, &status, 0) == pid && status == 0);
	snprintf(header, sizeof(header), "PID: %d\n" DEBUG_LOG_TEXT_LINE "\nAllocation #1\n",
		 (int)pid);
	assert(strstr(log_of("s"), header) && count(log_of("s"), "=== ") == 2);
	assert(count(log_of("s"), "Allocation #2\n") == 2);
}

UNIT(a_frozen_process_logs_nothing)
{
	turn_on("bds");
	freeze_flag = true;
	assert(!debug_log_is_on());
	freeze_flag = false;
	assert(debug_log_is_on());
}

/* The size of a buffer that is freed, and its type, are those in the book's ring. */
UNIT(a_free_tells_what_the_book_knows)
{
	struct debug_log_buffer freed = {.address = 0x1000, .device = 1, .type = TTMEM_ANY};
	struct shard_buffer own = testing_buffer(TTMEM_L1, 0x1000, 2048);
	const struct thread self = {.tid = 7};
	struct testing_book book;

	turn_on("s");
	testing_book_open(&book);
	writer_alloc(book.writer, 1, &own, 0);
	writer_free_buffer(book.writer, 1, &own);
	debug_log_free(book.writer, &freed, &self);
	assert(strstr(log_of("s"), "Type: L1\nSize: 2048 bytes (2 KB)\nAddress: 0x1000\n"));
	assert(unlink(unit_path("s")) == 0);
	/* Another type at that address, then another address, is not it. */
	freed.type = TTMEM_DRAM;
	debug_log_free(book.writer, &freed, &self);
	assert(strstr(log_of("s"), "Type: DRAM\nSize: unknown\n"));
	assert(unlink(unit_path("s")) == 0);
	freed = (struct debug_log_buffer){.address = 0x2000, .device = 1, .type = TTMEM_L1};
	debug_log_free(book.writer, &freed, &self);
	assert(strstr(log_of("s"), "Type: L1\nSize: unknown\n"));
	assert(unlink(unit_path("s")) == 0);
	/* 64 events are looked at. */
	freed.address = 0x1000;
	for (uint64_t i = 0; i < 63; i++) {
		const struct shard_buffer other =
			testing_buffer(TTMEM_L1, 0x100000 + 0x1000 * i, 1);

		writer_alloc(book.writer, 1, &other, 0);
	}
	debug_log_free(book.writer, &freed, &self);
	assert(strstr(log_of("s"), "Size: 2048 bytes"));
	assert(unlink(unit_path("s")) == 0);
	own.address = 0x9000;
	writer_alloc(book.writer, 1, &own, 0);
	debug_log_free(book.writer, &freed, &self);
	assert(strstr(log_of("s"), "Size: unknown\n"));
	testing_book_deinit(&book);
}

/* What other threads do there meanwhile, and what was freed there before, is something else. */
UNIT(a_free_tells_of_its_own_buffer)
{
	struct debug_log_buffer freed = {.address = 0x1000, .device = 1, .type = TTMEM_L1};
	struct shard_buffer one = testing_buffer(TTMEM_L1, 0x1000, 2048);
	struct shard_buffer other = testing_buffer(TTMEM_L1, 0x1000, 4096);
	const struct thread self = {.tid = 7};
	struct testing_book book;

	turn_on("bs");
	testing_book_open(&book);
	writer_alloc(book.writer, 1, &one, 0);
	writer_free_buffer(book.writer, 1, &one);
	/* Another thread has the address before the record is written; it has freed it already. */
	other.thread = 8;
	writer_alloc(book.writer, 1, &other, 0);
	writer_free_buffer(book.writer, 1, &other);
	writer_alloc(book.writer, 1, &other, 0);
	debug_log_free(book.writer, &freed, &self);
	assert(strstr(log_of("s"), "Size: 2048 bytes (2 KB)\nAddress: 0x1000\n"));
	assert(unlink(unit_path("s")) == 0);
	/* In a space that was not told. */
	one.space = 5;
	one.address = freed.address = 0x2000;
	writer_alloc(book.writer, 1, &one, 0);
	one.space = 0;
	writer_free_buffer(book.writer, 1, &one);
	assert(unlink(unit_path("b")) == 0);
	debug_log_free(book.writer, &freed, &self);
	assert(strstr(log_of("s"), "Size: 2048 bytes (2 KB)\nAddress: 0x2000 in space 5\n"));
	assert(strstr(log_of("b"), "Address: 0x2000 (8192) in space 5\nSize: 2048 bytes (2 KB)\n"));
	/* One that was freed is not there. */
	assert(unlink(unit_path("s")) == 0);
	one.address = freed.address = 0x3000;
	writer_free_buffer(book.writer, 1, &one);
	debug_log_free(book.writer, &freed, &self);
	assert(strstr(log_of("s"), "Size: unknown\nAddress: 0x3000\n"));
	/* What is put aside, or has no memory, is in no event. */
	assert(unlink(unit_path("s")) == 0);
	freed.address = 0x2000;
	debug_log_free(book.writer, &freed, NULL);
	assert(strstr(log_of("s"), "Size: unknown\nAddress: 0x2000\n"));
	freed.flags = TTMEM_FLAG_HOOKED;
	assert(unlink(unit_path("b")) == 0);
	debug_log_free(book.writer, &freed, &self);
	assert(strstr(log_of("b"), "Size: unknown\nType: L1\nBuffer*: unknown\nHooked: yes\n"));
	testing_book_deinit(&book);
}

UNIT(freeing_all_logs_what_this_thread_has_freed_since)
{
	const struct thread self = {.tid = 7}, another = {.tid = 8};
	struct shard_buffer who = {.type = TTMEM_ANY, .thread = 7};
	struct testing_book book;
	uint64_t mark;

	turn_on("s");
	testing_book_open(&book);
	assert(debug_log_mark(book.writer, 1) == 0);
	for (uint64_t i = 1; i <= 4; i++) {
		const struct shard_buffer one = testing_buffer(TTMEM_L1, 0x1000 * i, 1024 * i);

		writer_alloc(book.writer, 1, &one, 0);
		if (i == 1)
			writer_free_buffer(book.writer, 1, &one);
	}
	mark = debug_log_mark(book.writer, 1);
	assert(mark == 5);
	writer_end_space(book.writer, 1, &who);
	assert(debug_log_mark(book.writer, 1) == 8);
	debug_log_free_all(book.writer, 1, mark, &another);
	assert(!*log_of("s"));
	debug_log_free_all(book.writer, 2, 0, &self);
	assert(!*log_of("s"));
	debug_log_free_all(book.writer, 1, mark, &self);
	assert(count(log_of("s"), "Deallocation\n") == 3 && !strstr(log_of("s"), "0x1000\n"));
	for (int i = 2; i <= 4; i++) {
		char expected[64];

		snprintf(expected, sizeof(expected), "Size: %d bytes (%d KB)\nAddress: 0x%d000\n",
			 1024 * i, i, i);
		assert(strstr(log_of("s"), expected));
	}
	testing_book_deinit(&book);
}

UNIT(frames_of_a_stack_are_shown_by_their_names)
{
	/* In libc, whose functions have names; and nowhere. */
	const uintptr_t addresses[] = {(uintptr_t)getpid + 1, 16, (uintptr_t)strdup + 2,
				       (uintptr_t)getpid + 3};
	struct debug_log_frame frames[DEBUG_LOG_NAMES_FRAMES];
	struct debug_log_buffer traced = buffer;
	uintptr_t many[DEBUG_LOG_NAMES_FRAMES + 5];
	char expected[512];

	turn_on("bs");
	debug_log_names_learn(9, addresses, 4, 0);
	assert(debug_log_names_find(9, frames, 15) == 3 && debug_log_names_find(9, frames, 2) == 2);
	assert(strstr(frames[0].module, "libc") && strcmp(frames[0].symbol, frames[0].name) == 0);
	assert(frames[0].offset == 1 && frames[1].offset == 2);
	assert(debug_log_names_find(0, frames, 15) == 0 &&
	       debug_log_names_find(8, frames, 15) == 0);
	/* What is known of an id stays. */
	debug_log_names_learn(9, &addresses[2], 1, 0);
	debug_log_names_learn(0, addresses, 1, 0);
	assert(debug_log_names_find(9, frames, 15) == 3 &&
	       debug_log_names_find(0, frames, 15) == 0);
	traced.stack = 9;
	debug_log_alloc(&traced);
	snprintf(expected, sizeof(expected), "Call Stack:\n    %s: %s\n    %s: %s\n    %s: %s\n\n",
		 frames[0].module, frames[0].name, frames[1].module, frames[1].name,
		 frames[2].module, frames[2].name);
	assert(strstr(log_of("b"), expected));
	snprintf(expected, sizeof(expected),
		 "Stack trace:\n  %s : %s+0x1\n  %s : %s+0x2\n  %s : %s+0x3\n\n", frames[0].module,
		 frames[0].symbol, frames[1].module, frames[1].symbol, frames[2].module,
		 frames[2].symbol);
	assert(strstr(log_of("s"), expected));
	/* One log shows 15 frames of a long stack, the other 8. */
	for (size_t i = 0; i < DEBUG_LOG_NAMES_FRAMES + 5; i++)
		many[i] = (uintptr_t)getpid + 1;
	debug_log_names_learn(10, many, DEBUG_LOG_NAMES_FRAMES + 5, 0);
	assert(debug_log_names_find(10, frames, 15) == DEBUG_LOG_NAMES_FRAMES);
	assert(unlink(unit_path("b")) == 0 && unlink(unit_path("s")) == 0);
	traced.stack = 10;
	debug_log_alloc(&traced);
	assert(count(log_of("b"), "\n    libc") == 8);
	assert(count(log_of("s"), "\n  libc") == 15);
	debug_log_names_open();
	assert(debug_log_names_find(9, frames, 15) == 0);
}

UNIT(cxx_names_are_decoded_where_there_is_room)
{
	void *library = dlopen("libstdc++.so.6", RTLD_NOW | RTLD_LOCAL);
	uintptr_t address = library ? (uintptr_t)dlsym(library, "_ZSt9terminatev") + 1 : 0;
	const size_t rooms[] = {0, 65536, 1 << 20};
	static const char *const names[] = {"_ZSt9terminatev", "_ZSt9terminatev",
					    "std::terminate()"};
	struct debug_log_frame frame;

	if (!library)
		unit_skip("there is no libstdc++.so.6");
	for (uint32_t i = 0; i < 3; i++) {
		debug_log_names_learn(i + 1, &address, 1, rooms[i]);
		assert(debug_log_names_find(i + 1, &frame, 1) == 1);
		assert(strcmp(frame.symbol, names[0]) == 0 && strcmp(frame.name, names[i]) == 0);
	}
}
