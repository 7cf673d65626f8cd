/* SPDX-License-Identifier: Apache-2.0 */

/* When the module can be unloaded, and what becomes of what is open then. storm-test.c does it in a crowd. */

#include "node.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/testing/unit.h"

#define UNLOAD_DEVICE 120u
#define UNLOAD_STATS "/proc/driver/ttmem/120/stats"

UNIT(the_module_stays_while_it_is_used)
{
	struct node_book book;
	int node = node_open();

	assert(syscall(SYS_delete_module, "ttmem", O_NONBLOCK) == -1 && errno == EWOULDBLOCK);
	close(node);
	node_make_book(&book);
	close(book.fd);
	assert(syscall(SYS_delete_module, "ttmem", O_NONBLOCK) == -1 && errno == EWOULDBLOCK);
	assert(munmap(book.base, book.size) == 0);
	assert(syscall(SYS_delete_module, "ttmem", O_NONBLOCK) == -1 && errno == EWOULDBLOCK);
}

/* Tries for a while: the file system of the last book ends a moment after it. */
static void unload_now(void)
{
	static const struct timespec pause = {.tv_nsec = 10000000};
	long r = -1;

	for (int i = 0; r < 0 && i < 1000; i++) {
		r = syscall(SYS_delete_module, "ttmem", O_NONBLOCK);
		assert(r == 0 || errno == EWOULDBLOCK);
		if (r < 0)
			(void)nanosleep(&pause, NULL); /* shortened: then sooner */
	}
	assert(r == 0);
}

/* A file of a folder keeps the folder, but not the module: from then on nothing can be read from it. */
UNIT_LONG(a_view_is_open, 120)
{
	int module = open("/ttmem.ko", O_RDONLY | O_CLOEXEC);
	int node, before, after;
	char text[256] = "";

	if (module < 0)
		unit_skip("no module to load");
	node = node_open();
	assert(node_alloc(node, UNLOAD_DEVICE, 0, 0, 1) == 1);
	before = open(UNLOAD_STATS, O_RDONLY | O_CLOEXEC);
	assert(before >= 0 && read(before, text, 1) == 1);
	close(node);
	unload_now();
	assert(access("/proc/driver/ttmem", F_OK) == -1 && errno == ENOENT);
	assert(pread(before, text, 1, 0) == -1 && errno == EIO);
	assert(syscall(SYS_finit_module, module, "", 0) == 0);
	/* A folder of the same name has nothing to do with the one before. */
	node = node_open();
	assert(node_alloc(node, UNLOAD_DEVICE, 0, 0, 1) == 1);
	after = open(UNLOAD_STATS, O_RDONLY | O_CLOEXEC);
	assert(after >= 0 && pread(before, text, 1, 0) == -1 && errno == EIO);
	close(before);
	assert(pread(after, text, sizeof(text) - 1, 0) > 0 &&
	       strncmp(text, "holders 1\n", 10) == 0);
	close(after);
	close(node);
	close(module);
}
