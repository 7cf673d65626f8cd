/* SPDX-License-Identifier: Apache-2.0 */

/* A user who has used up his share of the module's memory: his next process is tracked all the same. */

#include "guest-command.h"
#include "node.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/testing/unit.h"

#define FULL_USER 6101
#define FULL_MIB (UINT64_C(1) << 20)
#define FULL_CAP "/sys/module/ttmem/parameters/user_mib"
#define FULL_MINE "\"totals\":{\"bytes\":6000,\"buffers\":3}"

static void full_set_cap(const char *text)
{
	int fd = open(FULL_CAP, O_WRONLY | O_CLOEXEC);

	assert(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
}

/* A process that has all of the user's share, until @go is closed. */
static pid_t full_take(const int go[2])
{
	struct node_book book;
	int ready[2];
	char byte;
	pid_t child;

	assert(pipe2(ready, O_CLOEXEC) == 0);
	child = fork();
	assert(child >= 0);
	if (child == 0) {
		close(go[1]);
		assert(setuid(FULL_USER) == 0);
		node_make_book(&book);
		assert(node_reserve(book.fd, 0, FULL_MIB) == 0);
		assert(write(ready[1], "r", 1) == 1);
		(void)!read(go[0], &byte, 1);
		_exit(0);
	}
	close(ready[1]);
	assert(read(ready[0], &byte, 1) == 1);
	close(ready[0]);
	return child;
}

/* Whether the module lists anything of a process. */
static bool full_is_listed(pid_t pid)
{
	char text[32];

	snprintf(text, sizeof(text), " %d %d ", (int)pid, FULL_USER);
	return strstr(node_text("/proc/driver/ttmem/totals"), text) != NULL;
}

UNIT_LONG(tracked_by_a_memory_file, 240)
{
	static const struct timespec pause = {.tv_nsec = 50000000};
	const char *sizes[3] = {"1000", "2000", "3000"};
	struct command_holder holder;
	int go[2], status;
	const char *text;
	char wanted[64];
	pid_t child;

	assert(pipe2(go, O_CLOEXEC) == 0);
	full_set_cap("1");
	child = full_take(go);
	assert(full_is_listed(child));
	command_hold(&holder, "book", sizes, FULL_USER); /* with nothing set */
	/* The book that got no memory is nobody's, and so is gone. */
	for (int i = 0; i < 200 && full_is_listed(holder.pid); i++)
		(void)nanosleep(&pause, NULL); /* shortened: then sooner */
	assert(!full_is_listed(holder.pid));
	text = command_output("TTMEM_SOCKET=none ttmem smi --json", NULL);
	snprintf(wanted, sizeof(wanted), "\"pid\":%d,", (int)holder.pid);
	if (!strstr(text, FULL_MINE) || !strstr(text, wanted))
		puts(text);
	assert(strstr(text, FULL_MINE) && strstr(text, wanted));
	text = command_output("TTMEM_SOCKET=none ttmem doctor --json", NULL);
	assert(strstr(text, "\"kernel-share\""));
	assert(strstr(text, "new processes of 6101 keep their books in a memfd"));
	command_release(&holder);

	full_set_cap("0");
	close(go[0]);
	close(go[1]);
	assert(waitpid(child, &status, 0) == child && status == 0);
	/* With a share again it is the kernel's book again. */
	command_hold(&holder, "book", sizes, FULL_USER);
	assert(full_is_listed(holder.pid) && node_becomes(COMMAND_DEVICE, 6000, 3));
	text = command_output("TTMEM_SOCKET=none ttmem doctor --json", NULL);
	assert(strstr(text, "\"kernel-ready\"") && !strstr(text, "\"kernel-share\""));
	command_release(&holder);
	assert(node_becomes(COMMAND_DEVICE, 0, 0));
}
