/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The module and the daemon together: in every view each process counts once, however it is known, and what
 * the dead have left is told. Little of that depends on the kernel: it is tried on one of them.
 */

#include "guest-command.h"
#include "node.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/testing/unit.h"

/* NOLINTBEGIN(concurrency-mt-unsafe): these tests have no threads */

#define DAEMON_OTHER 5555 /* who "su other" becomes */
#define DAEMON_MINE "\"totals\":{\"bytes\":6000,\"buffers\":3}"
#define DAEMON_OLD_SOCKET "/tmp/view-old.sock"
#define DAEMON_GET "wget -q -O - http://127.0.0.1:8123"

static pid_t daemon_start_with(const char *keeper)
{
	int ready[2];
	char byte;
	pid_t pid;

	assert(pipe2(ready, O_CLOEXEC) == 0);
	pid = fork();
	assert(pid >= 0);
	if (pid == 0) {
		char number[12];

		close(ready[0]);
		assert(fcntl(ready[1], F_SETFD, 0) == 0); /* goes along */
		snprintf(number, sizeof(number), "%d", ready[1]);
		execl("/bin/ttmemd", "ttmemd", "--socket", "/tmp/ttmemd.sock", "--legacy-socket",
		      DAEMON_OLD_SOCKET, "--http", "127.0.0.1:8123", "--state", unit_dir(),
		      "--config", "none", "-q", "--keeper", keeper, "--ready-fd", number,
		      (char *)NULL);
		_exit(1);
	}
	close(ready[1]);
	assert(read(ready[0], &byte, 1) == 1);
	close(ready[0]);
	return pid;
}

static pid_t daemon_start(void)
{
	return daemon_start_with("no");
}

/* Tries for a while: the daemon looks at the dead a moment later. */
static bool daemon_tells(const char *command, const char *wanted)
{
	static const struct timespec pause = {.tv_nsec = 200000000};

	for (int i = 0; i < 150; i++) {
		if (strstr(command_output(command, NULL), wanted))
			return true;
		(void)nanosleep(&pause, NULL); /* shortened: then sooner */
	}
	puts(command_output(command, NULL));
	fflush(stdout);
	return false;
}

UNIT_LONG(with_a_daemon_nothing_counts_twice, 240)
{
	const char *sizes[3] = {"1000", "2000", "3000"};
	pid_t daemon = daemon_start();
	struct command_holder holder;
	char wanted[64];
	int status;

	setenv("TTMEM_SOCKET", "/tmp/ttmemd.sock", 1);
	command_hold(&holder, "book", sizes, 4321);
	assert(node_becomes(30, 6000, 3));
	assert(daemon_tells("su other -c 'ttmem smi --json'", DAEMON_MINE));
	assert(daemon_tells("ttmem smi --json", DAEMON_MINE));
	/* It dies, and the daemon has its last state. */
	assert(kill(holder.pid, SIGKILL) == 0);
	close(holder.input);
	assert(waitpid(holder.pid, &status, 0) == holder.pid);
	assert(node_becomes(30, 0, 0));
	snprintf(wanted, sizeof(wanted), "\"pid\":%d,", (int)holder.pid);
	assert(daemon_tells("ttmem leaks --json", wanted));
	assert(strstr(command_output("ttmem leaks --json", NULL), "\"bytes\":6000"));
	assert(kill(daemon, SIGTERM) == 0);
	assert(waitpid(daemon, &status, 0) == daemon);
}

static size_t daemon_count(const char *text, const char *word)
{
	size_t count = 0;

	for (; (text = strstr(text, word)); text++)
		count++;
	return count;
}

/* A book, a client of the plain ioctls and one of the old protocol: in every view each of them once. */
UNIT_LONG(each_kind_of_client_counts_once_in_every_view, 240)
{
	static const char *const without = "TTMEM_SOCKET=none ttmem smi --json";
	static const char all[] = "\"totals\":{\"bytes\":7730,\"buffers\":9}";
	static const char kernels[] = "\"totals\":{\"bytes\":7700,\"buffers\":6}";
	const char *sizes[3] = {"1000", "2000", "3000"}, *plain[3] = {"500", "600", "600"},
		   *old[3] = {"10", "10", "10"};
	pid_t daemon = daemon_start();
	struct command_holder holders[3];
	char wanted[64];
	int status;

	setenv("TTMEM_SOCKET", "/tmp/ttmemd.sock", 1);
	command_hold(&holders[0], "book", sizes, 4321);
	command_hold(&holders[1], "plain", plain, 4321);
	command_hold(&holders[2], DAEMON_OLD_SOCKET, old, 4321);
	/* The daemon's: for root, for everybody, for the network. */
	assert(daemon_tells("ttmem smi --json", all));
	assert(daemon_tells("su other -c 'ttmem smi --json'", all));
	assert(daemon_tells(DAEMON_GET "/api/v1/smi", all));
	assert(daemon_tells(DAEMON_GET "/metrics",
			    "ttmem_device_bytes{device=\"30\",uid=\"\",type=\"DRAM\"} 7730\n"));
	assert(daemon_tells("ttmem smi --json --host 127.0.0.1:8123", "7730"));
	/*
	 * Without it everybody sees what the kernel knows: all but who speaks with the daemon only. (Before
	 * Linux 5.14 root finds that book in the daemon's hands.)
	 */
	assert(strstr(command_output(without, NULL), kernels) ||
	       strstr(command_output(without, NULL), all));
	assert(daemon_tells("TTMEM_SOCKET=none su other -c 'ttmem smi --json'", kernels));
	for (int i = 0; i < 3; i++) {
		snprintf(wanted, sizeof(wanted), "\"pid\":%d,", (int)holders[i].pid);
		assert(daemon_count(command_output("ttmem smi --json", NULL), wanted) == 1);
		assert(i == 2 || daemon_count(command_output(without, NULL), wanted) == 1);
		assert(daemon_count(command_output(DAEMON_GET "/api/v1/ps", NULL), wanted) == 1);
	}
	/* The past has it too. */
	assert(daemon_tells(DAEMON_GET "'/api/v1/series?device=30'", "7730"));
	for (int i = 0; i < 3; i++)
		command_release(&holders[i]);
	assert(daemon_tells("ttmem smi --json", "\"totals\":{\"bytes\":0,\"buffers\":0}"));
	assert(kill(daemon, SIGTERM) == 0);
	assert(waitpid(daemon, &status, 0) == daemon);
}

/* A program that closes what it does not know keeps its book, and others get at it by the module. */
UNIT_LONG(the_owner_closed_its_descriptor, 240)
{
	const char *sizes[3] = {"1000", "2000", "3000"};
	struct command_holder holder;
	char wanted[64];
	pid_t daemon;
	int status;

	setenv("TTMEM_SOCKET", "none", 1);
	command_hold(&holder, "closed", sizes, DAEMON_OTHER);
	assert(daemon_tells("ttmem smi --json", DAEMON_MINE));
	assert(daemon_tells("ttmem buffers --json", "\"name\":\"held\""));
	assert(daemon_tells("su other -c 'ttmem buffers --json'", "\"name\":\"held\""));
	/* One who has come late, too: so it is there when the process dies. */
	daemon = daemon_start();
	setenv("TTMEM_SOCKET", "/tmp/ttmemd.sock", 1);
	assert(daemon_tells("ttmem status --json", "\"books\":1"));
	assert(daemon_tells("ttmem smi --json", DAEMON_MINE));
	assert(daemon_tells(DAEMON_GET "/api/v1/smi", DAEMON_MINE));
	assert(kill(holder.pid, SIGKILL) == 0);
	close(holder.input);
	assert(waitpid(holder.pid, &status, 0) == holder.pid);
	snprintf(wanted, sizeof(wanted), "\"pid\":%d,", (int)holder.pid);
	assert(daemon_tells("ttmem leaks --json", wanted));
	assert(kill(daemon, SIGTERM) == 0);
	assert(waitpid(daemon, &status, 0) == daemon);
}

#define DAEMON_BOOKS 6

/* Each of them once, and what it left; in the end nobody is left, and the daemon holds no book. */
static void daemon_watches_books_end(void)
{
	const char *sizes[3] = {"1000", "2000", "3000"};
	struct command_holder holders[DAEMON_BOOKS];
	char wanted[64];
	int status;

	for (int i = 0; i < DAEMON_BOOKS; i++)
		command_hold(&holders[i], "book", sizes, 4321);
	snprintf(wanted, sizeof(wanted), "\"books\":%d,", DAEMON_BOOKS);
	assert(daemon_tells("ttmem status --json", wanted));
	for (int i = 0; i < DAEMON_BOOKS; i++) {
		assert(kill(holders[i].pid, SIGKILL) == 0);
		close(holders[i].input);
		assert(waitpid(holders[i].pid, &status, 0) == holders[i].pid);
		snprintf(wanted, sizeof(wanted), "\"pid\":%d,", (int)holders[i].pid);
		assert(daemon_tells("ttmem leaks --json", wanted));
	}
	assert(daemon_tells("ttmem status --json", "\"books\":0,"));
}

/* The last book's file system ends a moment after it, and the daemon may be looking at /proc. */
static void daemon_reload_module(void)
{
	static const struct timespec pause = {.tv_nsec = 50000000};
	int module = open("/ttmem.ko", O_RDONLY | O_CLOEXEC);
	int tries = 0;

	assert(module >= 0);
	while (syscall(SYS_delete_module, "ttmem", O_NONBLOCK) < 0) {
		assert(tries++ < 600);
		(void)nanosleep(&pause, NULL); /* shortened: then sooner */
	}
	assert(syscall(SYS_finit_module, module, "", 0) == 0);
	close(module);
}

/*
 * A daemon knows books by the numbers of their files, and remembers those that have ended. After a reload
 * the file system may have its old number again, so the books must not have theirs.
 */
UNIT_LONG(the_module_is_reloaded_under_a_daemon, 300)
{
	pid_t daemon;
	int status;

	daemon_reload_module(); /* both times the same from its start on */
	daemon = daemon_start();
	setenv("TTMEM_SOCKET", "/tmp/ttmemd.sock", 1);
	daemon_watches_books_end();
	daemon_reload_module();
	daemon_watches_books_end();
	assert(kill(daemon, SIGTERM) == 0);
	assert(waitpid(daemon, &status, 0) == daemon);
}

/*
 * A keeper that held a kernel's book would keep the module in use for a day. The book is not lost: its owner has it
 * until it exits, and an exit before the next daemon is counted.
 */
UNIT_LONG(a_stopped_daemon_leaves_the_module_unused, 300)
{
	const char *sizes[3] = {"1000", "2000", "3000"};
	pid_t daemon = daemon_start_with("yes");
	struct command_holder lives, ends;
	int status;

	setenv("TTMEM_SOCKET", "/tmp/ttmemd.sock", 1);
	command_hold(&lives, "book", sizes, 4321);
	command_hold(&ends, "book", sizes, 4321);
	assert(daemon_tells("ttmem status --json", "\"books\":2,"));
	assert(kill(daemon, SIGTERM) == 0);
	assert(waitpid(daemon, &status, 0) == daemon);
	assert(kill(ends.pid, SIGKILL) == 0);
	close(ends.input);
	assert(waitpid(ends.pid, &status, 0) == ends.pid);
	daemon = daemon_start_with("yes");
	assert(daemon_tells("ttmem status --json", "\"unobserved_exits\":1,"));
	assert(daemon_tells("ttmem smi --json", DAEMON_MINE));
	assert(kill(daemon, SIGTERM) == 0);
	assert(waitpid(daemon, &status, 0) == daemon);
	command_release(&lives);
	daemon_reload_module();
}

/* NOLINTEND(concurrency-mt-unsafe) */
