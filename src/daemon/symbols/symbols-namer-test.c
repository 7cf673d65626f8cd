/* SPDX-License-Identifier: Apache-2.0 */

/* From a book with addresses to a leak report with functions, files and lines. */

#include "daemon/symbols/symbols-namer.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/pool.h"
#include "base/testing/unit.h"
#include "book/read/view.h"
#include "book/testing/book-testing.h"
#include "daemon/notify/notice.h"
#include "daemon/recorder/recorder-private.h"
#include "daemon/registry/tracked.h"
#include "model/snapshot-request.h"
#include "model/snapshot.h"
#include "model/testing/testing-stack.h"
#include "source/books/stacks.h"
#include "symbol/testing/symbol-testing.h"
#include "symbol/testing/testing-symbolizer.h"

static struct testing_book book;
static struct tracked *tracked;
static struct symbols *symbols;
static struct view view;

static struct book_frame frame_at(uint32_t module, const char *symbol)
{
	/* As if the call were one byte long: the stack records the return address. */
	return (struct book_frame){
		.value = testing_address("program", symbol) + 1,
		.module = module,
	};
}

static struct book_frame python_frame(const char *file, uint32_t line, const char *function)
{
	uint64_t id = intern_string(book.writer, function, BOOK_PATH_MAX);

	return (struct book_frame){
		.value = id << 32 | intern_string(book.writer, file, BOOK_PATH_MAX),
		.module = line,
		.flags = 1,
	};
}

/* An exited process that left one buffer, allocated by a Python script through C. */
static void begin(const char *path)
{
	const struct symbols_config config = {.symbolizer.timeout_ms = 20000};
	struct shard_buffer buffer = testing_buffer(0, 0x1000, 4096);
	struct book_module module = {.base = 0x400000, .size = 0x10000};
	struct book_frame frames[4];
	struct scan_book *found;
	char name[64];
	int fd;

	testing_sources();
	testing_run("gcc -g -O1 program.c -o program");
	testing_book_init(&book, TESTING_SIZE, 1024);
	testing_book_write(&book);
	module.path = intern_string(book.writer, path, BOOK_PATH_MAX);
	frames[0] = frame_at(intern_module(book.writer, &module), "at_inner");
	frames[1] = frame_at(intern_module(book.writer, &module), "at_plain");
	frames[2] = python_frame("model.py", 7, "forward");
	frames[3] = python_frame("main.py", 3, "run");
	buffer.stack = intern_stack_mixed(book.writer, frames, 2, 2);
	assert(buffer.stack);
	writer_alloc(book.writer, 0, &buffer, 0);
	(void)snprintf(name, sizeof(name), "/proc/self/fd/%d", book.fd);
	fd = open(name, O_RDONLY | O_CLOEXEC);
	assert(fd >= 0 && scan_book_new_consume(&found, fd) == 0);
	found->uid = geteuid();
	found->owner = (struct proc_facts){.id.pid = 77, .ns_pid = 77, .comm = "player"};
	tracked = tracked_new_consume(found, 0, "");
	assert(tracked);
	tracked->has_ended = true;
	assert(symbols_new(&symbols, &config) == 0);
}

static void end(void)
{
	symbols = symbols_free(symbols);
	view_deinit(&view);
	tracked_unref(tracked);
	testing_book_deinit(&book);
}

UNIT(a_leak_report_names_the_lines)
{
	const struct ending ending = {.ended_ns = 1};
	char expected[4096];
	const char *folder = unit_dir();
	struct snapshot *snapshot;
	struct notice *notice;

	begin(testing_path("program"));
	snapshot = recorder_read(tracked, true, &view, symbols);
	assert(snapshot && snapshot->buffer_count == 1);
	(void)snprintf(expected, sizeof(expected),
		       "main.py:3:run -> model.py:7:forward -> %s/program.c:%d:plain @ program -> "
		       "%s/program.c:%d:outer @ program -> %s/program.c:%d:middle @ program -> "
		       "%s/program.c:%d:inner @ program",
		       folder, TESTING_LINE_PLAIN, folder, TESTING_LINE_OUTER, folder,
		       TESTING_LINE_MIDDLE, folder, TESTING_LINE_INNER);
	assert(strcmp(testing_line(snapshot->buffers[0].stack), expected) == 0);
	notice = notice_new_leak(snapshot, 0, &ending);
	assert(notice);
	(void)snprintf(expected, sizeof(expected),
		       "\"stack\":[{\"function\":\"inner\",\"file\":\"%s/program.c\",\"line\":%d,"
		       "\"module\":\"program\",\"python\":false},",
		       folder, TESTING_LINE_INNER);
	assert(strstr(notice->json, expected));
	assert(strstr(notice->json, "{\"function\":\"run\",\"file\":\"main.py\",\"line\":3,"
				    "\"module\":null,\"python\":true}]"));
	notice_free(notice);
	snapshot_free(snapshot);
	end();
}

UNIT(without_the_file_there_is_the_address)
{
	char expected[256];
	struct snapshot *snapshot;

	begin("/nowhere/libplay.so");
	(void)snprintf(expected, sizeof(expected),
		       "main.py:3:run -> model.py:7:forward -> libplay.so+0x%" PRIx64
		       " @ libplay.so -> libplay.so+0x%" PRIx64 " @ libplay.so",
		       testing_address("program", "at_plain") + 1,
		       testing_address("program", "at_inner") + 1);
	snapshot = recorder_read(tracked, true, &view, symbols);
	assert(snapshot && strcmp(testing_line(snapshot->buffers[0].stack), expected) == 0);
	snapshot_free(snapshot);
	/* Likewise without a symbols thread. */
	snapshot = recorder_read(tracked, true, &view, NULL);
	assert(snapshot && strcmp(testing_line(snapshot->buffers[0].stack), expected) == 0);
	snapshot_free(snapshot);
	end();
}

/* A line is limited; the outermost frames are cut. */
UNIT(long_stacks_lose_their_outermost_frames)
{
	struct shard_buffer buffer = testing_buffer(0, 0x2000, 8192);
	struct book_frame frames[INTERN_FRAMES_MAX];
	char function[1000];
	struct snapshot *snapshot;
	const char *stack;

	begin("/nowhere/libplay.so");
	for (uint32_t i = 0; i < INTERN_FRAMES_MAX; i++) {
		(void)snprintf(function, sizeof(function), "%0900u", i);
		frames[i] = python_frame("a.py", i, function);
	}
	buffer.stack = intern_stack(book.writer, frames, INTERN_FRAMES_MAX);
	writer_alloc(book.writer, 0, &buffer, 0);
	snapshot = recorder_read(tracked, true, &view, symbols);
	assert(snapshot && snapshot->buffer_count == 2);
	stack = testing_line(snapshot->buffers[snapshot->buffers[0].size != 8192].stack);
	assert(strlen(stack) > 3000 && strlen(stack) <= 4096);
	assert(strncmp(stack, "... -> a.py:3:0", 15) == 0);
	assert(strcmp(stack + strlen(stack) - 4, "0000") == 0);
	snapshot_free(snapshot);
	end();
}

/* As the learner does. */
static void learn(void)
{
	struct symbols_namer namer;
	struct pool texts = POOL_NULL;

	symbols_namer_init(&namer, symbols, false);
	assert(stacks_tour(tracked->book, &namer.namer, &texts, 64, &tracked->stacks_seen) == 1);
	assert(namer.count == 2 && symbols_namer_learn(&namer, 64));
	assert(namer.count == 0 && namer.asked == 2);
	/* Nothing is new. */
	assert(stacks_tour(tracked->book, &namer.namer, &texts, 64, &tracked->stacks_seen) == 0);
	symbols_namer_deinit(&namer);
	pool_deinit(&texts);
}

UNIT(learnt_names_outlive_the_file)
{
	struct symbols_counts before, after;
	struct snapshot *snapshot;

	begin(testing_path("program"));
	learn();
	symbols_counts(symbols, &before);
	testing_run("rm program");
	snapshot = recorder_read(tracked, true, &view, symbols);
	assert(snapshot && strstr(testing_line(snapshot->buffers[0].stack), "program.c:"));
	assert(strstr(testing_line(snapshot->buffers[0].stack), ":inner @ program"));
	symbols_counts(symbols, &after);
	assert(after.asked == before.asked); /* no query was made */
	snapshot_free(snapshot);
	end();
}

/* A name learnt for one book is not used for another, even with the same path and user. */
UNIT(learnt_names_belong_to_one_book)
{
	struct snapshot *snapshot;

	begin(testing_path("program"));
	learn();
	testing_run("rm program");
	tracked->book->id.inode++;
	snapshot = recorder_read(tracked, true, &view, symbols);
	assert(snapshot && strstr(testing_line(snapshot->buffers[0].stack), "-> program+0x"));
	snapshot_free(snapshot);
	end();
}

UNIT(names_are_learnt_later_where_waiting_is_forbidden)
{
	struct snapshot_request request = {.buffers = true};
	struct symbols_namer namer;
	struct snapshot *snapshot = snapshot_new(1);
	struct symbols_counts counts;

	begin(testing_path("program"));
	symbols_namer_init(&namer, symbols, false);
	request.namer = &namer.namer;
	assert(tracked_collect(tracked, &request, &view, snapshot) == 0);
	symbols_counts(symbols, &counts);
	assert(counts.asked == 0 && namer.count == 2);
	assert(strstr(testing_line(snapshot->buffers[0].stack), "-> program+0x"));
	assert(symbols_namer_learn(&namer, 1) && namer.count == 1);
	assert(symbols_namer_learn(&namer, 1) && namer.count == 0);
	snapshot_free(snapshot);
	snapshot = snapshot_new(1);
	assert(tracked_collect(tracked, &request, &view, snapshot) == 0);
	assert(namer.count == 0 &&
	       strstr(testing_line(snapshot->buffers[0].stack), ":inner @ program"));
	assert(!symbols_namer_learn(&namer, 1));
	snapshot_free(snapshot);
	symbols_namer_deinit(&namer);
	end();
}

/* Without a build id the file of a vanished container cannot be told from ours. */
UNIT(a_dead_containers_file_is_not_looked_for_here)
{
	struct snapshot *snapshot;

	begin(testing_path("program"));
	(void)snprintf(tracked->book->container, sizeof(tracked->book->container), "docker-1");
	snapshot = recorder_read(tracked, true, &view, symbols);
	assert(snapshot && strstr(testing_line(snapshot->buffers[0].stack), "-> program+0x"));
	snapshot_free(snapshot);
	/* But what was learnt while the process lived is known. */
	tracked->book->alive = true;
	tracked->book->owner.id.pid = (uint32_t)getpid();
	learn();
	snapshot = recorder_read(tracked, true, &view, symbols);
	assert(snapshot && strstr(testing_line(snapshot->buffers[0].stack), ":inner @ program"));
	snapshot_free(snapshot);
	end();
}
