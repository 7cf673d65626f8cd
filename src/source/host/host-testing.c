/* SPDX-License-Identifier: Apache-2.0 */

/* Creates the files of a fake machine. */

#include "source/host/host-testing.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/testing/unit.h"
#include "model/snapshot.h"
#include "source/collect.h"
#include "source/proc/proc.h"
#include "source/source.h"

static void host_testing_folder(const char *variable, const char *name)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/%s", unit_dir(), name);
	assert(mkdir(path, 0755) == 0);
	assert(setenv(variable, path, 1) == 0);
}

void host_testing_start(void)
{
	host_testing_folder("TTMEM_PROC_ROOT", "proc");
	host_testing_folder("TTMEM_SYS_ROOT", "sys");
	host_testing_folder("TTMEM_SHM_DIR", "shm");
}

void host_testing_write(const char *path, const void *bytes, size_t length)
{
	char whole[1024];
	FILE *file;

	snprintf(whole, sizeof(whole), "%s/%s", unit_dir(), path);
	for (char *slash = strchr(whole + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		assert(mkdir(whole, 0755) == 0 || errno == EEXIST);
		*slash = '/';
	}
	file = fopen(whole, "we");
	assert(file && fwrite(bytes, 1, length, file) == length);
	assert(fclose(file) == 0);
	assert(chmod(whole, 0600) == 0);
}

void host_testing_text(const char *path, const char *text)
{
	host_testing_write(path, text, strlen(text));
}

void host_testing_process(uint32_t pid, const char *comm, uint64_t age_s)
{
	uint64_t hz = (uint64_t)sysconf(_SC_CLK_TCK);
	uint64_t now = clock_ns(CLOCK_BOOTTIME) / (1000000000u / hz);
	uint64_t age = age_s * hz < now ? age_s * hz : now;
	char path[64], text[256];

	snprintf(path, sizeof(path), "proc/%" PRIu32 "/stat", pid);
	snprintf(text, sizeof(text),
		 "%" PRIu32 " (%s) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 %" PRIu64
		 " 20 21\n",
		 pid, comm, now - age);
	host_testing_text(path, text);
	snprintf(path, sizeof(path), "proc/%" PRIu32 "/status", pid);
	snprintf(text, sizeof(text),
		 "Name:\t%s\nPid:\t%" PRIu32 "\nUid:\t%d\t%d\t%d\t%d\nNSpid:\t%" PRIu32 "\n", comm,
		 pid, (int)getuid(), (int)getuid(), (int)getuid(), (int)getuid(), pid);
	host_testing_text(path, text);
}

static int host_testing_books(struct source *source, const struct snapshot_request *request,
			      struct snapshot *snapshot)
{
	return 0;
}

static bool host_testing_knows(const void *context, const struct kernel_holder *book)
{
	return false;
}

struct snapshot *host_testing_look(void)
{
	static const struct source_ops ops = {.collect = host_testing_books};
	static const struct snapshot_request request = {0};
	struct source nobody = {.ops = &ops};
	struct proc proc;
	struct collect_sources sources = {
		.books = &nobody, .knows = host_testing_knows, .proc = &proc};
	struct snapshot *snapshot;

	assert(proc_open(&proc) == 0);
	assert(collect_machine(&sources, &request, &snapshot) == 0);
	proc_close(&proc);
	return snapshot;
}
