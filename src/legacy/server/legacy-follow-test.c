/* SPDX-License-Identifier: Apache-2.0 */

/* The old lines for a process that keeps its own book. */

#include "legacy/server/legacy-follow.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/testing/unit.h"
#include "base/threads/loop.h"
#include "book/testing/book-testing.h"
#include "book/write/writer.h"
#include "daemon/registry/registry.h"
#include "legacy/server/testing/legacy-server-testing.h"
#include "source/books/scan.h"

/* A book of this process, as if that process had handed it over. */
static void ftest_add_of(struct legacy_testing_world *world, struct testing_book *book, pid_t pid)
{
	struct scan_book *scanned;
	char path[64];
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", book->fd);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert(fd >= 0 && scan_book_new_consume(&scanned, fd) == 0);
	assert(proc_read(registry_proc(world->registry), (uint32_t)pid, &scanned->owner) == 0);
	scanned->alive = true;
	assert(registry_add_consume(world->registry, scanned, (int)syscall(SYS_pidfd_open, pid, 0),
				    NULL, NULL) == 0);
}

static void ftest_add(struct legacy_testing_world *world, struct testing_book *book)
{
	ftest_add_of(world, book, getpid());
}

static void ftest_alloc(struct testing_book *book, uint32_t type, uint64_t address, uint64_t size)
{
	struct shard_buffer buffer = {.address = address, .size = size, .type = type};

	writer_alloc(book->writer, 1, &buffer, 0);
}

static void ftest_first_round(struct legacy_testing_world *world)
{
	legacy_testing_until_printed(world, "Allocation Server started");
	for (int i = 0; i < 300; i++)
		assert(loop_turn(world->loop, 1) == 0);
}

UNIT(lines_of_native_processes)
{
	struct legacy_config config = {.fd = -1, .log_events = true};
	struct legacy_testing_world world;
	struct testing_book early, late;
	char text[512];
	int pid = (int)getpid();

	testing_book_open(&early);
	legacy_testing_open(&world, &config);
	/* What a process did before it was found is not printed if it is older than the daemon. */
	ftest_alloc(&early, 0, 0x1000, 64);
	ftest_add(&world, &early);
	ftest_first_round(&world);
	ftest_alloc(&early, 0, 0x1000, 64);
	ftest_alloc(&early, 5, 0x3000, 1 << 20);
	(void)snprintf(text, sizeof(text),
		       "✓ [PID %d] Allocated 64 bytes of DRAM on device 1 (buffer_id=0x1000, "
		       "ref_count=2)\n"
		       "✓ [CB_ALLOC] Device 1: +1 MB (Total: 1 MB)\n",
		       pid);
	legacy_testing_until_printed(&world, text);
	/* Of a process that has begun since, all events are printed. */
	testing_book_open(&late);
	ftest_alloc(&late, 1, 0x2000, 65);
	ftest_add(&world, &late);
	(void)snprintf(text, sizeof(text),
		       "✓ [PID %d] Allocated 65 bytes of L1 on device 1 (buffer_id=0x2000)\n", pid);
	legacy_testing_until_printed(&world, text);
	(void)snprintf(text, sizeof(text), "(buffer_id=0x1000)");
	assert(!legacy_testing_printed(&world, text));
	legacy_testing_close(&world);
	testing_book_deinit(&early);
	testing_book_deinit(&late);
}

/* Found in the first round, it is not taken for one that was there before the daemon. */
UNIT(all_events_of_a_process_that_begins_with_the_daemon)
{
	struct legacy_config config = {.fd = -1, .log_events = true};
	struct legacy_testing_world world;
	struct testing_book book;

	legacy_testing_open(&world, &config);
	testing_book_open(&book);
	ftest_alloc(&book, 0, 0x1000, 64);
	ftest_add(&world, &book);
	legacy_testing_until_printed(&world, "on device 1 (buffer_id=0x1000)");
	legacy_testing_close(&world);
	testing_book_deinit(&book);
}

/* Its entry is there until the next round has ended, but its end is in the log already. */
UNIT(totals_are_without_what_an_ended_process_held)
{
	struct legacy_config config = {.fd = -1, .log_events = true};
	struct legacy_testing_world world;
	struct testing_book ends, lives;
	pid_t child = fork();

	assert(child >= 0);
	if (child == 0) {
		for (;;)
			pause();
	}
	legacy_testing_open(&world, &config);
	ftest_first_round(&world);
	testing_book_open(&ends);
	testing_book_open(&lives);
	ftest_add_of(&world, &ends, child);
	ftest_add(&world, &lives);
	ftest_alloc(&ends, 5, 0x3000, 1 << 20);
	legacy_testing_until_printed(&world, "✓ [CB_ALLOC] Device 1: +1 MB (Total: 1 MB)\n");
	ftest_alloc(&lives, 5, 0x3000, 2 << 20);
	legacy_testing_until_printed(&world, "✓ [CB_ALLOC] Device 1: +2 MB (Total: 3 MB)\n");
	assert(kill(child, SIGKILL) == 0 && waitpid(child, NULL, 0) == child);
	legacy_testing_until_ended(&world, 1);
	ftest_alloc(&lives, 5, 0x4000, 4 << 20);
	legacy_testing_until_printed(&world, "✓ [CB_ALLOC] Device 1: +4 MB (Total: 6 MB)\n");
	legacy_testing_close(&world);
	testing_book_deinit(&ends);
	testing_book_deinit(&lives);
}

/* Even where no round comes any more: the last one is made at the end. */
UNIT(text_comes_after_the_lines_of_what_happened_before)
{
	struct legacy_config config = {.fd = -1, .log_events = true};
	struct legacy_testing_world world;
	struct testing_book book;
	char text[512];

	legacy_testing_open(&world, &config);
	ftest_first_round(&world);
	testing_book_open(&book);
	ftest_alloc(&book, 0, 0x1000, 64);
	ftest_add(&world, &book);
	legacy_server_lines_consume(world.server, strdup("it has ended\n"), 13);
	legacy_testing_close(&world);
	(void)snprintf(text, sizeof(text),
		       "✓ [PID %d] Allocated 64 bytes of DRAM on device 1 (buffer_id=0x1000)\n"
		       "it has ended\n",
		       (int)getpid());
	assert(legacy_testing_printed(&world, text));
	testing_book_deinit(&book);
}
