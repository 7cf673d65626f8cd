/* SPDX-License-Identifier: Apache-2.0 */

/* The old lines for a process that keeps its own book. */

#include "compat/server/legacy-follow.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/testing/unit.h"
#include "base/threads/loop.h"
#include "book/testing/book-testing.h"
#include "book/write/writer.h"
#include "compat/server/legacy-server-testing.h"
#include "daemon/registry/registry.h"
#include "source/books/scan.h"

/* This process's own book, as if it had been handed over. */
static void ftest_add(struct legacy_testing_world *world, struct testing_book *book)
{
	struct scan_book *scanned;
	char path[64];
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", book->fd);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert(fd >= 0 && scan_book_new_consume(&scanned, fd) == 0);
	assert(proc_read(registry_proc(world->registry), (uint32_t)getpid(), &scanned->owner) == 0);
	scanned->alive = true;
	assert(registry_add_consume(world->registry, scanned,
				    (int)syscall(SYS_pidfd_open, getpid(), 0), NULL, NULL) == 0);
}

static void ftest_alloc(struct testing_book *book, uint32_t type, uint64_t address, uint64_t size)
{
	struct shard_buffer buffer = {.address = address, .size = size, .type = type};

	writer_alloc(book->writer, 1, &buffer, 0);
}

UNIT(lines_of_native_processes)
{
	struct legacy_config config = {.fd = -1, .log_events = true};
	struct legacy_testing_world world;
	struct testing_book early, late;
	char text[512];
	int pid = (int)getpid();

	testing_book_open(&early);
	testing_book_open(&late);
	legacy_testing_open(&world, &config);
	/* Events from before the log are not printed again. */
	ftest_alloc(&early, 0, 0x1000, 64);
	ftest_add(&world, &early);
	legacy_testing_until_printed(&world, "Allocation Server started");
	for (int i = 0; i < 300; i++)
		assert(loop_turn(world.loop, 1) == 0);
	ftest_alloc(&early, 0, 0x1000, 64);
	ftest_alloc(&early, 5, 0x3000, 1 << 20);
	(void)snprintf(text, sizeof(text),
		       "✓ [PID %d] Allocated 64 bytes of DRAM on device 1 (buffer_id=0x1000, "
		       "ref_count=2)\n"
		       "✓ [CB_ALLOC] Device 1: +1 MB (Total: 1 MB)\n",
		       pid);
	legacy_testing_until_printed(&world, text);
	/* Of a process that arrives later, all events are printed. */
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
