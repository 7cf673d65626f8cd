/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What is shown: the files under /proc/driver/ttmem and fdinfo, byte by byte; and what the command makes of
 * them without a daemon, for another user than the one who holds the memory.
 */

#include "guest-command.h"
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

#include "base/testing/unit.h"

/* NOLINTBEGIN(concurrency-mt-unsafe): these tests have no threads */

static const char view_stats[] = "holders 1\n"
				 "DRAM bytes 1000 buffers 1 allocs 1 frees 0\n"
				 "L1 bytes 200 buffers 2 allocs 1 frees 0\n"
				 "SYSTEM_MEMORY bytes 9999 buffers 9 allocs 1 frees 0\n"
				 "L1_SMALL bytes 30 buffers 3 allocs 1 frees 0\n"
				 "TRACE bytes 4 buffers 4 allocs 1 frees 0\n"
				 "CB bytes 50 buffers 5 allocs 1 frees 0\n"
				 "KERNEL bytes 60 buffers 6 allocs 1 frees 0\n";

UNIT(the_procfs_table_has_its_columns)
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
UNIT(the_drivers_folder_shows_the_same_text)
{
	int module = open("/ttmem.ko", O_RDONLY | O_CLOEXEC);
	int beside = open("/beside.ko", O_RDONLY | O_CLOEXEC);
	struct node_book book;
	char text[1024];
	int node;

	assert(module >= 0 && beside >= 0);
	assert(syscall(SYS_finit_module, beside, "", 0) == 0);
	assert(view_unload("ttmem")); /* the bond is weak */
	assert(strcmp(node_text("/proc/driver/beside/20"), "") == 0);
	assert(syscall(SYS_finit_module, module, "", 0) == 0);
	node_make_book(&book);
	node_write(&book, 20, 0, 1000, 1);
	snprintf(text, sizeof(text), "%s", node_text("/proc/driver/ttmem/20/allocations"));
	node = open("/dev/beside", O_RDONLY | O_CLOEXEC);
	assert(node >= 0 && strstr(text, "1000"));
	assert(strcmp(node_text("/proc/driver/beside/20"), text) == 0);
	close(node);
	node_drop_book(&book);
	assert(view_unload("beside"));
	close(module);
	close(beside);
}

static bool view_has(unsigned int device)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/driver/ttmem/%u/allocations", device);
	return access(path, R_OK) == 0;
}

/* The cards of the PCI bus have their files before the first process and after the last one, as empty tables. */
UNIT_LONG(idle_cards_have_empty_files, 120)
{
	static const struct timespec pause = {.tv_nsec = 10000000};
	int module = open("/ttmem.ko", O_RDONLY | O_CLOEXEC);
	int beside = open("/beside.ko", O_RDONLY | O_CLOEXEC);
	char idle[1024];
	int node;

	assert(module >= 0 && beside >= 0 && view_unload("ttmem"));
	assert(syscall(SYS_finit_module, beside, "cards=2", 0) == 0);
	assert(syscall(SYS_finit_module, module, "", 0) == 0);
	assert(view_has(0) && view_has(1) && !view_has(2));
	snprintf(idle, sizeof(idle), "%s", node_text("/proc/driver/ttmem/1/allocations"));
	/* Two lines of titles, a blank one, and a sum of nothing. */
	assert(strstr(idle, "\n\nTOTAL ") == strchr(strchr(idle, '\n') + 1, '\n'));
	assert(strspn(strstr(idle, "TOTAL") + 5, " 0") == strlen(strstr(idle, "TOTAL")) - 6);
	assert(strcmp(node_text("/proc/driver/ttmem/0/pids"), "") == 0);
	node = node_open();
	assert(node_alloc(node, 1, 0, 0, 1000) == 1 && node_alloc(node, 2, 0, 0, 1000) == 1);
	assert(strstr(node_text("/proc/driver/ttmem/1/allocations"), " 1000 ") && view_has(2));
	close(node);
	/* Of a device that is not a card the folder goes, which shows that folders were looked after. */
	while (view_has(2))
		(void)nanosleep(&pause, NULL); /* shortened: then sooner */
	assert(strcmp(node_text("/proc/driver/ttmem/1/allocations"), idle) == 0);
	/* With remote chips there are more devices than cards. */
	assert(view_unload("ttmem") && syscall(SYS_finit_module, module, "cards=3", 0) == 0);
	assert(view_has(2) && !view_has(3));
	assert(view_unload("ttmem") && syscall(SYS_finit_module, module, "cards=0", 0) == 0);
	assert(!view_has(0));
	assert(view_unload("beside"));
	assert(view_unload("ttmem") && syscall(SYS_finit_module, module, "", 0) == 0);
	assert(!view_has(0));
	close(module);
	close(beside);
}

/* A process may number its devices otherwise than the driver does: who does not have the node open is not in its table. */
UNIT(the_drivers_folder_shows_only_those_who_have_its_node_open)
{
	int beside = open("/beside.ko", O_RDONLY | O_CLOEXEC);
	int driver, node = node_open(), status;
	char mine[64], text[1024];
	pid_t child;

	assert(beside >= 0 && syscall(SYS_finit_module, beside, "", 0) == 0);
	assert(node_alloc(node, 20, 0, 1, 4711) == 1);
	driver = open("/dev/beside", O_RDONLY | O_CLOEXEC);
	assert(driver >= 0);
	child = fork();
	assert(child >= 0);
	if (child == 0) {
		/* A descriptor of its own for the memory, none for the driver's node. */
		int own = node_open();

		assert(node_alloc(own, 20, 0, 1, 8888) == 1);
		assert(strstr(node_text("/proc/driver/ttmem/20/allocations"), "8888"));
		snprintf(text, sizeof(text), "%s", node_text("/proc/driver/beside/20"));
		snprintf(mine, sizeof(mine), "%-8d ", (int)getppid());
		assert(!strstr(text, "8888") && strstr(text, mine));
		/* The sums are those of the rows. */
		assert(strstr(text, "\n\nTOTAL                     4711 "));
		_exit(0);
	}
	assert(waitpid(child, &status, 0) == child && status == 0);
	close(driver);
	assert(!strstr(node_text("/proc/driver/beside/20"), "4711"));
	close(node);
	assert(view_unload("beside"));
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

#define VIEW_MINE "\"totals\":{\"bytes\":6000,\"buffers\":3}"

UNIT_LONG(every_user_sees_all_totals_without_a_daemon, 120)
{
	const char *sizes[3] = {"1000", "2000", "3000"};
	struct command_holder holder;
	const char *text;
	char wanted[64];

	command_hold(&holder, "book", sizes, 4321);
	assert(node_becomes(30, 6000, 3));
	text = command_output("TTMEM_SOCKET=none su other -c 'ttmem smi --json'", NULL);
	snprintf(wanted, sizeof(wanted), "\"pid\":%d,", (int)holder.pid);
	if (!strstr(text, VIEW_MINE) || !strstr(text, wanted))
		puts(text);
	assert(strstr(text, VIEW_MINE) && strstr(text, wanted));
	assert(strstr(text, "\"source\":\"kernel\"") && strstr(text, "\"user_id\":4321"));
	/* Root finds the book itself; it counts once. */
	text = command_output("TTMEM_SOCKET=none ttmem smi --json", NULL);
	assert(strstr(text, VIEW_MINE) && strstr(text, "\"source\":\"kernel\""));
	/* And sees what is in it. */
	text = command_output("TTMEM_SOCKET=none ttmem buffers --json", NULL);
	assert(strstr(text, "\"name\":\"held\"") && strstr(text, "\"size\":3000"));
	/* Others do not. */
	text = command_output("TTMEM_SOCKET=none su other -c 'ttmem buffers --json' 2>/dev/null",
			      NULL);
	assert(!strstr(text, "held"));
	/* The doctor knows why nobody had to turn anything on. */
	text = command_output("TTMEM_SOCKET=none ttmem doctor --json", NULL);
	assert(strstr(text, "\"kernel-ready\"") && !strstr(text, "\"kernel-node\""));
	command_release(&holder);
	assert(node_becomes(30, 0, 0));
}

/* NOLINTEND(concurrency-mt-unsafe) */
