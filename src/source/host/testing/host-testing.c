/* SPDX-License-Identifier: Apache-2.0 */

/* Creates the files of a fake machine. */

#include "source/host/testing/host-testing.h"

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
#include "model/types.h"
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

uint64_t host_testing_total(const struct snapshot *snapshot)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < snapshot->device_count; i++)
		sum += snapshot->devices[i].memory[TYPES_DRAM].used;
	return sum;
}

unsigned char host_testing_bytes[HOST_TESTING_WIDE];

bool host_testing_is_wide(uint32_t version)
{
	return version == 1;
}

void host_testing_put32(size_t at, uint32_t value)
{
	memcpy(host_testing_bytes + at, &value, sizeof(value));
}

void host_testing_put64(size_t at, uint64_t value)
{
	memcpy(host_testing_bytes + at, &value, sizeof(value));
}

void host_testing_region(uint32_t version, uint64_t id, uint32_t device)
{
	memset(host_testing_bytes, 0, sizeof(host_testing_bytes));
	host_testing_put32(0, version);
	host_testing_put64(32, id);
	host_testing_put32(40, device);
	for (size_t i = 1; i < 16 && version > 1; i++)
		host_testing_put32(88 + i * 48, UINT32_MAX);
	host_testing_put32(host_testing_is_wide(version) ? 96 : 88, device);
	if (version == 4)
		host_testing_put32(8536, 0x52454459);
}

void host_testing_row(uint32_t version, size_t slot, uint32_t pid, uint64_t dram, uint64_t stamp)
{
	bool is_wide = host_testing_is_wide(version);
	size_t at = is_wide ? 992 + slot * 128 : 856 + slot * 120;

	host_testing_put32(at, pid);
	host_testing_put64(at + 8, dram);
	host_testing_put64(at + (is_wide ? 56 : 48), stamp);
	memcpy(host_testing_bytes + at + (is_wide ? 64 : 56), "python3", 8);
	host_testing_put64(48, dram);
}
