/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What is shown: the files under /proc/driver/ttmem and fdinfo, byte by byte; and what the command makes of
 * them, with and without the daemon, for another user than the one who holds the memory.
 */

#include "node.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/unit.h"

/* NOLINTBEGIN(concurrency-mt-unsafe): these tests have no threads */

static const char view_stats[] = "holders 1\n"
				 "DRAM bytes 1000 buffers 1 allocs 1 frees 0\n"
				 "L1 bytes 200 buffers 2 allocs 1 frees 0\n"
				 "SYSTEM_MEMORY bytes 9999 buffers 9 allocs 1 frees 0\n"
				 "L1_SMALL bytes 30 buffers 3 allocs 1 frees 0\n"
				 "TRACE bytes 4 buffers 4 allocs 1 frees 0\n"
				 "CB bytes 50 buffers 5 allocs 1 frees 0\n"
				 "KERNEL bytes 60 buffers 6 allocs 1 frees 0\n";

UNIT(the_table)
{
	unsigned long long buffers, bytes;
	const char *stats;
	char wanted[1024];
	int length = 0;
	struct node_book book;

	assert(prctl(PR_SET_NAME, "a b\\\x1b[31m") == 0);
	node_make_book(&book);
	node_write(&book, 20, 0, 1000, 1); /* DRAM */
	node_write(&book, 20, 1, 200, 2);  /* L1 */
	node_write(&book, 20, 2, 9999, 9); /* the host's: no column */
	node_write(&book, 20, 3, 30, 3);
	node_write(&book, 20, 4, 4, 4);
	node_write(&book, 20, 5, 50, 5);
	node_write(&book, 20, 6, 60, 6);
	snprintf(wanted, sizeof(wanted),
		 "%-8s %-16s %-10s %-10s %-10s %-10s %-10s %-10s %-10s\n"
		 "%-8s %-16s %-10s %-10s %-10s %-10s %-10s %-10s %-10s\n"
		 "%-8d %-16s %-10d %-10d %-10d %-10d %-10d %-10d %-10d\n"
		 "\n"
		 "%-8s %-16s %-10d %-10d %-10d %-10d %-10d %-10d %-10d\n",
		 "PID", "Comm", "DRAM", "L1", "L1_SMALL", "TRACE", "BUFFERS", "CB", "KERNEL",
		 "----", "----", "----", "--", "--------", "-----", "-------", "--", "------",
		 (int)getpid(), "a\\040b\\134\\033[31m", 1000, 200, 30, 4, 21, 50, 60, "TOTAL", "",
		 1000, 200, 30, 4, 21, 50, 60);
	assert(strcmp(node_text("/proc/driver/ttmem/20/allocations"), wanted) == 0);
	snprintf(wanted, sizeof(wanted), "%d\n", (int)getpid());
	assert(strcmp(node_text("/proc/driver/ttmem/20/pids"), wanted) == 0);
	/* What others left before us is the one line that may be anything. */
	stats = node_text("/proc/driver/ttmem/20/stats");
	assert(strncmp(stats, view_stats, strlen(view_stats)) == 0);
	assert(sscanf(stats + strlen(view_stats), "leaked buffers %llu bytes %llu%n", &buffers,
		      &bytes, &length) == 2);
	assert(strcmp(stats + strlen(view_stats) + length, "\n") == 0);
	node_drop_book(&book);
}

UNIT(the_modes_of_the_files)
{
	static const char *const names[] = {"totals", "stats", "20/allocations", "20/pids",
					    "20/stats"};
	struct node_book book;
	char path[64];
	struct stat st;

	node_make_book(&book);
	node_write(&book, 20, 0, 1, 1);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(path, sizeof(path), "/proc/driver/ttmem/%s", names[i]);
		assert(stat(path, &st) == 0 && (st.st_mode & 0777) == 0444);
	}
	node_drop_book(&book);
}

/* Whoever ended a moment ago may still be on the way out. */
static bool view_unload(const char *module)
{
	static const struct timespec pause = {.tv_nsec = 50000000};

	for (int i = 0; i < 600; i++) {
		if (syscall(SYS_delete_module, module, O_NONBLOCK) == 0)
			return true;
		(void)nanosleep(&pause, NULL); /* shortened: then sooner */
	}
	return false;
}

/*
 * What the driver would show in its own folder is the same to the byte, and empty while ttmem.ko is not
 * there.
 */
UNIT(a_driver_beside_it)
{
	int module = open("/ttmem.ko", O_RDONLY | O_CLOEXEC);
	int beside = open("/beside.ko", O_RDONLY | O_CLOEXEC);
	struct node_book book;
	char text[1024];

	assert(module >= 0 && beside >= 0);
	assert(syscall(SYS_finit_module, beside, "", 0) == 0);
	assert(view_unload("ttmem")); /* the bond is weak */
	assert(strcmp(node_text("/proc/driver/beside/20"), "") == 0);
	assert(syscall(SYS_finit_module, module, "", 0) == 0);
	node_make_book(&book);
	node_write(&book, 20, 0, 1000, 1);
	snprintf(text, sizeof(text), "%s", node_text("/proc/driver/ttmem/20/allocations"));
	assert(strstr(text, "1000") && strcmp(node_text("/proc/driver/beside/20"), text) == 0);
	node_drop_book(&book);
	assert(view_unload("beside"));
	close(module);
	close(beside);
}

UNIT(usage_of_a_descriptor)
{
	struct node_book book;
	char path[64], wanted[64];
	const char *text;

	node_make_book(&book);
	node_write(&book, 21, 0, 1000, 1);
	node_write(&book, 22, 0, 500, 1);
	node_write(&book, 22, 3, 7, 1);
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", book.fd);
	text = node_text(path);
	assert(strstr(text, "drm-driver:\tttmem\n"));
	snprintf(wanted, sizeof(wanted), "drm-client-id:\t%llu\n", (unsigned long long)book.id);
	assert(strstr(text, wanted));
	assert(strstr(text, "drm-total-dram:\t1500\n"));
	assert(strstr(text, "drm-resident-dram:\t1500\n"));
	assert(strstr(text, "drm-total-l1-small:\t7\n"));
	assert(strstr(text, "drm-total-kernel:\t0\n"));
	node_drop_book(&book);
}

/*
 * A living process that holds three buffers on device 30, in one of the ways of holder.c. With the library
 * and nothing set: the module is all it takes.
 */
struct view_holder {
	pid_t pid;
	int input;
};

#define VIEW_OTHER 5555 /* who "su other" becomes */

static void view_start(struct view_holder *ret_holder, const char *how, const char *sizes[3],
		       uid_t user)
{
	int input[2], output[2];
	char line[16] = "";

	assert(pipe2(input, O_CLOEXEC) == 0 && pipe2(output, O_CLOEXEC) == 0);
	ret_holder->pid = fork();
	assert(ret_holder->pid >= 0);
	if (ret_holder->pid == 0) {
		assert(dup2(input[0], 0) == 0 && dup2(output[1], 1) == 1);
		assert(setgid(user) == 0 && setuid(user) == 0);
		execl("/bin/kernel-holder", "kernel-holder", how, "30", "0", sizes[0], sizes[1],
		      sizes[2], (char *)NULL);
		_exit(1);
	}
	close(input[0]);
	close(output[1]);
	assert(read(output[0], line, 5) == 5 && strncmp(line, "ready", 5) == 0);
	close(output[0]);
	ret_holder->input = input[1];
}

static void view_stop(struct view_holder *holder)
{
	int status;

	close(holder->input);
	assert(waitpid(holder->pid, &status, 0) == holder->pid && status == 0);
}

/* What a shell command prints; valid until the next call. */
static const char *view_output(const char *command)
{
	static char text[1 << 18];
	FILE *file = popen(command, "re");
	size_t n;

	assert(file);
	n = fread(text, 1, sizeof(text) - 1, file);
	text[n] = '\0';
	(void)pclose(file); /* judged by what it printed */
	return text;
}

#define VIEW_MINE "\"totals\":{\"bytes\":6000,\"buffers\":3}"

UNIT_LONG(anybody_sees_everybody_without_a_daemon, 120)
{
	const char *sizes[3] = {"1000", "2000", "3000"};
	struct view_holder holder;
	const char *text;
	char wanted[64];

	view_start(&holder, "book", sizes, 4321);
	assert(node_becomes(30, 6000, 3));
	text = view_output("TTMEM_SOCKET=none su other -c 'ttmem smi --json'");
	snprintf(wanted, sizeof(wanted), "\"pid\":%d,", (int)holder.pid);
	if (!strstr(text, VIEW_MINE) || !strstr(text, wanted))
		puts(text);
	assert(strstr(text, VIEW_MINE) && strstr(text, wanted));
	assert(strstr(text, "\"source\":\"kernel\"") && strstr(text, "\"user_id\":4321"));
	/* Root finds the book itself; it counts once. */
	text = view_output("TTMEM_SOCKET=none ttmem smi --json");
	assert(strstr(text, VIEW_MINE) && strstr(text, "\"source\":\"kernel\""));
	/* And sees what is in it. */
	text = view_output("TTMEM_SOCKET=none ttmem buffers --json");
	assert(strstr(text, "\"name\":\"held\"") && strstr(text, "\"size\":3000"));
	/* Others do not. */
	text = view_output("TTMEM_SOCKET=none su other -c 'ttmem buffers --json' 2>/dev/null");
	assert(!strstr(text, "held"));
	/* The doctor knows why nobody had to turn anything on. */
	text = view_output("TTMEM_SOCKET=none ttmem doctor --json");
	assert(strstr(text, "\"kernel-ready\"") && !strstr(text, "\"kernel-node\""));
	view_stop(&holder);
	assert(node_becomes(30, 0, 0));
}

#define VIEW_OLD_SOCKET "/tmp/view-old.sock"
#define VIEW_GET "wget -q -O - http://127.0.0.1:8123"

static pid_t view_start_daemon(void)
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
		      VIEW_OLD_SOCKET, "--http", "127.0.0.1:8123", "--state", unit_dir(),
		      "--config", "none", "-q", "--keeper", "no", "--ready-fd", number,
		      (char *)NULL);
		_exit(1);
	}
	close(ready[1]);
	assert(read(ready[0], &byte, 1) == 1);
	close(ready[0]);
	return pid;
}

/* Tries for a while: the daemon looks at the dead a moment later. */
static bool view_tells(const char *command, const char *wanted)
{
	static const struct timespec pause = {.tv_nsec = 200000000};

	for (int i = 0; i < 150; i++) {
		if (strstr(view_output(command), wanted))
			return true;
		(void)nanosleep(&pause, NULL); /* shortened: then sooner */
	}
	puts(view_output(command));
	fflush(stdout);
	return false;
}

UNIT_LONG(with_a_daemon_nothing_counts_twice, 240)
{
	const char *sizes[3] = {"1000", "2000", "3000"};
	pid_t daemon = view_start_daemon();
	struct view_holder holder;
	char wanted[64];
	int status;

	setenv("TTMEM_SOCKET", "/tmp/ttmemd.sock", 1);
	view_start(&holder, "book", sizes, 4321);
	assert(node_becomes(30, 6000, 3));
	assert(view_tells("su other -c 'ttmem smi --json'", VIEW_MINE));
	assert(view_tells("ttmem smi --json", VIEW_MINE));
	/* It dies, and the daemon has its last state. */
	assert(kill(holder.pid, SIGKILL) == 0);
	close(holder.input);
	assert(waitpid(holder.pid, &status, 0) == holder.pid);
	assert(node_becomes(30, 0, 0));
	snprintf(wanted, sizeof(wanted), "\"pid\":%d,", (int)holder.pid);
	assert(view_tells("ttmem leaks --json", wanted));
	assert(strstr(view_output("ttmem leaks --json"), "\"bytes\":6000"));
	assert(kill(daemon, SIGTERM) == 0);
	assert(waitpid(daemon, &status, 0) == daemon);
}

static size_t view_count(const char *text, const char *word)
{
	size_t count = 0;

	for (; (text = strstr(text, word)); text++)
		count++;
	return count;
}

/* A book, a client of the plain ioctls and one of the old protocol: in every view each of them once. */
UNIT_LONG(three_ways_and_every_view, 240)
{
	static const char *const without = "TTMEM_SOCKET=none ttmem smi --json";
	static const char all[] = "\"totals\":{\"bytes\":7730,\"buffers\":9}";
	static const char kernels[] = "\"totals\":{\"bytes\":7700,\"buffers\":6}";
	const char *sizes[3] = {"1000", "2000", "3000"}, *plain[3] = {"500", "600", "600"},
		   *old[3] = {"10", "10", "10"};
	pid_t daemon = view_start_daemon();
	struct view_holder holders[3];
	char wanted[64];
	int status;

	setenv("TTMEM_SOCKET", "/tmp/ttmemd.sock", 1);
	view_start(&holders[0], "book", sizes, 4321);
	view_start(&holders[1], "plain", plain, 4321);
	view_start(&holders[2], VIEW_OLD_SOCKET, old, 4321);
	/* The daemon's: for root, for everybody, for the network. */
	assert(view_tells("ttmem smi --json", all));
	assert(view_tells("su other -c 'ttmem smi --json'", all));
	assert(view_tells(VIEW_GET "/api/v1/smi", all));
	assert(view_tells(VIEW_GET "/metrics",
			  "ttmem_device_bytes{device=\"30\",uid=\"\",type=\"DRAM\"} 7730\n"));
	assert(view_tells("ttmem smi --json --host 127.0.0.1:8123", "7730"));
	/*
	 * Without it everybody sees what the kernel knows: all but who speaks with the daemon only. (Before
	 * Linux 5.14 root finds that book in the daemon's hands.)
	 */
	assert(strstr(view_output(without), kernels) || strstr(view_output(without), all));
	assert(view_tells("TTMEM_SOCKET=none su other -c 'ttmem smi --json'", kernels));
	for (int i = 0; i < 3; i++) {
		snprintf(wanted, sizeof(wanted), "\"pid\":%d,", (int)holders[i].pid);
		assert(view_count(view_output("ttmem smi --json"), wanted) == 1);
		assert(i == 2 || view_count(view_output(without), wanted) == 1);
		assert(view_count(view_output(VIEW_GET "/api/v1/ps"), wanted) == 1);
	}
	/* The past has it too. */
	assert(view_tells(VIEW_GET "'/api/v1/series?device=30'", "7730"));
	for (int i = 0; i < 3; i++)
		view_stop(&holders[i]);
	assert(view_tells("ttmem smi --json", "\"totals\":{\"bytes\":0,\"buffers\":0}"));
	assert(kill(daemon, SIGTERM) == 0);
	assert(waitpid(daemon, &status, 0) == daemon);
}

/* A program that closes what it does not know keeps its book, and others get at it by the module. */
UNIT_LONG(the_owner_closed_its_descriptor, 240)
{
	const char *sizes[3] = {"1000", "2000", "3000"};
	struct view_holder holder;
	char wanted[64];
	pid_t daemon;
	int status;

	setenv("TTMEM_SOCKET", "none", 1);
	view_start(&holder, "closed", sizes, VIEW_OTHER);
	assert(view_tells("ttmem smi --json", VIEW_MINE));
	assert(view_tells("ttmem buffers --json", "\"name\":\"held\""));
	assert(view_tells("su other -c 'ttmem buffers --json'", "\"name\":\"held\""));
	/* One who has come late, too: so it is there when the process dies. */
	daemon = view_start_daemon();
	setenv("TTMEM_SOCKET", "/tmp/ttmemd.sock", 1);
	assert(view_tells("ttmem status --json", "\"books\":1"));
	assert(view_tells("ttmem smi --json", VIEW_MINE));
	assert(view_tells(VIEW_GET "/api/v1/smi", VIEW_MINE));
	assert(kill(holder.pid, SIGKILL) == 0);
	close(holder.input);
	assert(waitpid(holder.pid, &status, 0) == holder.pid);
	snprintf(wanted, sizeof(wanted), "\"pid\":%d,", (int)holder.pid);
	assert(view_tells("ttmem leaks --json", wanted));
	assert(kill(daemon, SIGTERM) == 0);
	assert(waitpid(daemon, &status, 0) == daemon);
}

/* NOLINTEND(concurrency-mt-unsafe) */
