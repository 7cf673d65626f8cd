/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Books of other versions than the command's, in the kernel's memory: a container's library may be older or
 * newer than the machine's command and module. The module reads the same figures in all of them.
 */

#include "node.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ttmem/ttmem.h>

#include "base/testing/unit.h"
#include "book/format/layout.h"
#include "guest-command.h"

#define VERSION_DEVICE 41u
#define VERSION_SIZE 40961u
#define VERSION_OCCUPIES "49152" /* 12 banks of 4096 bytes */

/* Holds one buffer of which it is known what it occupies, in a book that says to be of that version. */
static _Noreturn void version_hold(uint32_t version, int ready)
{
	struct ttmem_alloc_args args = {.struct_size = sizeof(args),
					.device = VERSION_DEVICE,
					.type = TTMEM_L1,
					.address = 0x1000,
					.size = VERSION_SIZE,
					.size_per_bank = 4096,
					.banks = 12};
	struct book_header *header;
	uintptr_t start, end;

	setenv("TTMEM_SOCKET", "none", 1); /* NOLINT(concurrency-mt-unsafe): a child alone */
	ttmem_alloc_ex(&args);
	assert(node_find_mapping(&start, &end) > 0);
	header = (struct book_header *)start;
	assert(header->magic == BOOK_MAGIC && header->version == BOOK_VERSION);
	assert(mprotect(header, sizeof(*header), PROT_READ | PROT_WRITE) == 0);
	header->version = version;
	assert(write(ready, "r", 1) == 1);
	for (;;)
		(void)pause(); /* signals do not end it */
}

static pid_t version_start(uint32_t version)
{
	int ready[2];
	char byte;
	pid_t pid;

	assert(pipe2(ready, O_CLOEXEC) == 0);
	pid = fork();
	assert(pid >= 0);
	if (pid == 0)
		version_hold(version, ready[1]);
	close(ready[1]);
	assert(read(ready[0], &byte, 1) == 1);
	close(ready[0]);
	return pid;
}

/* What the command and the module say about such a process. */
static void version_check(uint32_t version, const char *occupied, bool is_read)
{
	pid_t pid = version_start(version);
	const char *text;
	char line[128];

	assert(node_becomes(VERSION_DEVICE, VERSION_SIZE, 1));
	text = command_output("TTMEM_SOCKET=none ttmem smi --json", NULL);
	printf("version %" PRIu32 ": %s", version, text);
	fflush(stdout);
	assert(is_read == (strstr(text, "\"notes\":[]") != NULL));
	assert(is_read == !strstr(text, "made by a later version of the library: update ttmem"));
	snprintf(line, sizeof(line), "{\"pid\":%d,", (int)pid);
	text = strstr(text, line); /* nobody else is there */
	snprintf(line, sizeof(line), "\"L1\":{\"used\":%u,\"occupied\":%s,\"buffers\":1,",
		 VERSION_SIZE, occupied);
	assert(text && strstr(text, line));

	snprintf(line, sizeof(line), "TTMEM_SOCKET=none ttmem buffers --pid %d --json", (int)pid);
	text = command_output(line, NULL);
	snprintf(line, sizeof(line), "\"size\":%u,", VERSION_SIZE);
	assert(is_read == (strstr(text, line) != NULL));
	assert(kill(pid, SIGKILL) == 0 && waitpid(pid, NULL, 0) == pid);
	assert(node_becomes(VERSION_DEVICE, 0, 0));
}

UNIT_LONG(a_book_of_our_version_says_what_buffers_occupy, 240)
{
	version_check(BOOK_VERSION, VERSION_OCCUPIES, true);
}

UNIT_LONG(a_book_of_an_older_version_is_read, 240)
{
	version_check(BOOK_VERSION_FIRST, "null", true);
}

/* The command cannot read it and says so, but has the module's figures. */
UNIT_LONG(a_book_of_a_newer_version_still_has_its_totals, 240)
{
	version_check(BOOK_VERSION + 1, "null", false);
}
