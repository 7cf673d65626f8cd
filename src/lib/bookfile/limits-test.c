/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Every limit that a process can be put under: the application survives, and the book says what it
 * could not record. Each case is a child, because limits cannot be lifted again.
 */

#include <ttmem/ttmem.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/testing/unit.h"
#include "book/testing/book-testing.h"
#include "lib/bookfile/limits.h"
#include "lib/testing/testing-observer.h"

#define LIMITS_MIB (UINT64_C(1) << 20)
#define LIMITS_MANY (testing_quick() ? 40000u : 200000u) /* either way more than fit into 1 MiB */

UNIT(parse)
{
	assert(limits_parse("1") == 1 && limits_parse("100000") == 100000);
	assert(limits_parse("64k") == 65536 && limits_parse("64K") == 65536);
	assert(limits_parse("3m") == 3 << 20 && limits_parse("2G") == UINT64_C(2) << 30);
	assert(limits_parse(NULL) == 0 && limits_parse("") == 0 && limits_parse("0") == 0);
	assert(limits_parse("-1") == 0 && limits_parse(" 1") == 0 && limits_parse("+1") == 0);
	assert(limits_parse("1x") == 0 && limits_parse("1kk") == 0 && limits_parse("k") == 0);
	assert(limits_parse("1 ") == 0 && limits_parse("0x10") == 0);
	assert(limits_parse("18446744073709551615") == UINT64_MAX);
	assert(limits_parse("18446744073709551616") == 0);
	assert(limits_parse("17179869183G") == UINT64_C(17179869183) << 30);
	assert(limits_parse("17179869184G") == 0);
}

static struct limits limits_here(void)
{
	struct limits limits;

	assert(limits_read(&limits) == 0);
	assert(limits.size % BOOK_UNIT == 0 && limits.size >= LIMITS_SIZE_MIN);
	assert((limits.ring_events & (limits.ring_events - 1)) == 0);
	return limits;
}

UNIT(settings)
{
	assert(setenv("TTMEM_ROOM", "64M", 1) == 0);
	assert(limits_here().room == 64 * LIMITS_MIB && limits_here().ring_events == 16384);
	assert(setenv("TTMEM_ROOM", "8M", 1) == 0);
	assert(limits_here().ring_events == 8192); /* four of them in a quarter of the room */
	assert(setenv("TTMEM_ROOM", "1", 1) == 0);
	assert(limits_here().room == 1 && limits_here().ring_events == BOOK_RING_MIN);
	assert(setenv("TTMEM_ROOM", "16777216T", 1) == 0); /* not a valid number: ignored */
	assert(limits_here().room > 64 * LIMITS_MIB || limits_cgroup() < 512 * LIMITS_MIB);
	assert(setenv("TTMEM_ROOM", "999G", 1) == 0);
	assert(limits_here().room <= limits_here().size);
	assert(setenv("TTMEM_HISTORY", "100000", 1) == 0);
	assert(limits_here().ring_events == 65536);
	assert(setenv("TTMEM_HISTORY", "1", 1) == 0);
	assert(limits_here().ring_events == BOOK_RING_MIN);
	assert(setenv("TTMEM_HISTORY", "999G", 1) == 0);
	assert(limits_here().ring_events == BOOK_RING_MAX);
}

/* Allocates and frees many buffers, then checks what the book says. */
static void limits_use(bool must_fit)
{
	struct book_cold cold;
	struct book_hot hot;
	struct observer w;

	for (uint64_t i = 0; i < LIMITS_MANY; i++)
		ttmem_alloc(0, TTMEM_DRAM, i * 32, 1, i % 100 ? NULL : "name");
	ttmem_alloc(0, TTMEM_L1, 1, 1, NULL);
	for (uint64_t i = 0; i < LIMITS_MANY; i++)
		ttmem_free(0, TTMEM_DRAM, i * 32);
	if (!observer_open(&w, getpid())) {
		assert(!must_fit && ttmem_enabled() == 0);
		return;
	}
	hot = observer_hot(&w, 0, TTMEM_DRAM);
	cold = w.view.cold[TTMEM_DRAM];
	assert(hot.allocs == LIMITS_MANY && hot.frees == LIMITS_MANY && w.view.adds_up);
	if (w.view.inexact) {
		assert(!must_fit && cold.overflow_frees > 0);
		assert(w.view.inexact & BOOK_INEXACT_LOW << TTMEM_DRAM);
	} else {
		assert(cold.overflow_frees == 0 && w.view.live == 1);
	}
	assert(cold.unknown_frees == 0 && cold.double_frees == 0);
	assert(observer_header(&w)->reserved_bytes <= observer_header(&w)->room + 64 * BOOK_PAGE);
	observer_close(&w);
}

static void limits_under(int resource, uint64_t limit, bool must_fit)
{
	pid_t child = fork();

	assert(child >= 0);
	if (child == 0) {
		struct rlimit rlimit = {.rlim_cur = limit, .rlim_max = limit};

		assert(setrlimit((__rlimit_resource_t)resource, &rlimit) == 0);
		limits_use(must_fit);
		_exit(0);
	}
	observer_wait(child);
}

UNIT(file_size)
{
	observer_track();
	unit_expect_fds(0);
	limits_under(RLIMIT_FSIZE, 0, false);
	limits_under(RLIMIT_FSIZE, LIMITS_MIB, false);
	limits_under(RLIMIT_FSIZE, LIMITS_SIZE_MIN - 1, false);
	limits_under(RLIMIT_FSIZE, LIMITS_SIZE_MIN, false);
	limits_under(RLIMIT_FSIZE, 20 * LIMITS_MIB, false);
	limits_under(RLIMIT_FSIZE, 64 * LIMITS_MIB, true);
	limits_under(RLIMIT_FSIZE, UINT64_C(8) << 30, true);
}

UNIT(address_space)
{
	if (OBSERVER_ASAN || OBSERVER_TSAN)
		unit_skip("sanitizers need address space without limit");
	observer_track();
	unit_expect_fds(0);
	limits_under(RLIMIT_AS, 64 * LIMITS_MIB, false);
	limits_under(RLIMIT_AS, 256 * LIMITS_MIB, true);
	limits_under(RLIMIT_AS, UINT64_C(1) << 30, true);
	limits_under(RLIMIT_DATA, 16 * LIMITS_MIB, false);
}

UNIT(room)
{
	static const char *const rooms[] = {"1", "100k", "400k", "1M", "4M", "8M", "64M"};

	observer_track();
	unit_expect_fds(0);
	for (uint32_t i = 0; i < ARRAY_SIZE(rooms); i++) {
		pid_t child;

		assert(setenv("TTMEM_ROOM", rooms[i], 1) == 0);
		child = fork();
		assert(child >= 0);
		if (child == 0) {
			struct observer w;

			if (i > 0) {
				limits_use(i + 1 == ARRAY_SIZE(rooms));
				_exit(0);
			}
			/* Not even one device fits: no shard, and the event is counted as lost. */
			ttmem_alloc(0, TTMEM_DRAM, 1, 1, NULL);
			assert(observer_open(&w, getpid()));
			assert(observer_header(&w)->rejected.room == 1);
			_exit(observer_look(&w, 0, VIEW_LIVING) ? 1 : 0);
		}
		observer_wait(child);
	}
}

/* Many devices in little room: each has a whole shard, or its events are counted as lost. */
UNIT(room_for_some_devices)
{
	uint32_t found = 0;
	struct observer w;

	observer_track();
	assert(setenv("TTMEM_ROOM", "4M", 1) == 0);
	for (uint32_t round = 0; round < 3; round++) {
		for (uint32_t device = 0; device < 1024; device++)
			ttmem_alloc(device, TTMEM_DRAM, round, 1, NULL);
	}
	assert(observer_open(&w, getpid()));
	for (uint32_t device = 0; device < 1024; device++) {
		if (!observer_look(&w, device, VIEW_LIVING))
			continue;
		found++;
		assert(w.view.hot[TTMEM_DRAM].allocs == 3);
	}
	assert(found >= 4 && found < 1024);
	assert(observer_header(&w)->rejected.room == 3 * (uint64_t)(1024 - found));
	observer_close(&w);
}

static uint64_t limits_status(const char *key)
{
	char line[256];
	unsigned long long kib = 0;
	FILE *file = fopen("/proc/self/status", "re");

	assert(file);
	while (fgets(line, sizeof(line), file)) {
		if (strncmp(line, key, strlen(key)) == 0)
			(void)sscanf(line + strlen(key), ": %llu", &kib);
	}
	fclose(file);
	return kib * 1024;
}

enum limits_lock {
	LIMITS_LOCK_BEFORE,
	LIMITS_LOCK_AFTER,
	LIMITS_LOCK_BOTH,
};

static _Noreturn void limits_locked(enum limits_lock when, bool as_nobody)
{
	uint64_t before;

	if (as_nobody && setresuid(65534, 65534, 65534) < 0)
		_exit(77);
	before = limits_status("VmRSS");
	/* May fail for lack of permission, as for any application. */
	if (when != LIMITS_LOCK_AFTER)
		(void)mlockall(MCL_CURRENT | MCL_FUTURE);
	ttmem_alloc(0, TTMEM_DRAM, 1, 1, "name");
	if (when != LIMITS_LOCK_BEFORE)
		(void)mlockall(MCL_CURRENT | MCL_FUTURE);
	for (uint64_t i = 0; i < 1000; i++)
		ttmem_alloc((uint32_t)i % 4, TTMEM_DRAM, i, 1, "name");
	printf("%d: %d KiB more\n", (int)when, (int)((limits_status("VmRSS") - before) / 1024));
	_exit(limits_status("VmRSS") < before + 48 * LIMITS_MIB ? 0 : 1);
}

/* The mapping is gigabytes of holes, and stays so when memory is locked. */
UNIT(locking_memory_does_not_fill_the_book)
{
	if (OBSERVER_ASAN || OBSERVER_TSAN)
		unit_skip("sanitizers map terabytes, which no lock should touch");
	observer_track();
	unit_expect_fds(0);
	for (int when = LIMITS_LOCK_BEFORE; when <= LIMITS_LOCK_BOTH; when++) {
		for (int as_nobody = 0; as_nobody <= 1; as_nobody++) {
			int status;
			pid_t child = fork();

			assert(child >= 0);
			if (child == 0)
				limits_locked((enum limits_lock)when, as_nobody != 0);
			assert(waitpid(child, &status, 0) == child);
			assert(status == 0 || status == 77 << 8);
		}
	}
}

/* The book's mappings must be neither dumped nor inherited. */
UNIT(the_mapping_is_not_dumped_nor_inherited)
{
	uint32_t parts = 0;
	char line[512];
	bool ours = false;
	FILE *file;

	observer_track();
	ttmem_alloc(0, TTMEM_DRAM, 1, 1, "name");
	file = fopen("/proc/self/smaps", "re");
	assert(file);
	while (fgets(line, sizeof(line), file)) {
		if (strstr(line, "ttmem-book")) /* a memfd, or the kernel's */
			ours = true;
		if (!ours || strncmp(line, "VmFlags:", 8) != 0)
			continue;
		ours = false;
		parts++;
		if (!strstr(line, " dd") || !strstr(line, " dc"))
			printf("%s", line);
		assert(strstr(line, " dd") && strstr(line, " dc"));
	}
	fclose(file);
	assert(parts > 0);
}

UNIT(a_core_dump_does_not_contain_the_book)
{
	struct rlimit limit = {.rlim_cur = RLIM_INFINITY, .rlim_max = RLIM_INFINITY};
	char pattern[128] = "", path[256];
	struct stat st;
	pid_t child;
	int status;
	int fd;

	if (OBSERVER_ASAN || OBSERVER_TSAN)
		unit_skip("sanitizers turn core dumps off");
	fd = open("/proc/sys/kernel/core_pattern", O_RDONLY | O_CLOEXEC);
	if (fd < 0 || read(fd, pattern, sizeof(pattern) - 1) <= 0 || strcmp(pattern, "core\n") != 0)
		unit_skip("core dumps do not end up as a file called core");
	close(fd);
	observer_track();
	unit_expect_fds(0);
	child = fork();
	assert(child >= 0);
	if (child == 0) {
		assert(chdir(unit_dir()) == 0);
		if (setrlimit(RLIMIT_CORE, &limit) < 0)
			_exit(77);
		ttmem_alloc(0, TTMEM_DRAM, 1, 1, "name");
		abort();
	}
	assert(waitpid(child, &status, 0) == child);
	if (WIFEXITED(status))
		unit_skip("core dumps cannot be turned on");
	assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
	snprintf(path, sizeof(path), "%s/core", unit_dir());
	if (stat(path, &st) < 0) {
		snprintf(path, sizeof(path), "%s/core.%d", unit_dir(), (int)child);
		assert(stat(path, &st) == 0);
	}
	assert(st.st_size < (off_t)(64 * LIMITS_MIB));
}

/* Writes @text to a file of a control group; false if that fails. */
static bool limits_write(const char *folder, const char *name, const char *text)
{
	char path[512];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = write(fd, text, strlen(text));
	close(fd);
	return n == (ssize_t)strlen(text);
}

/* Creates a group with a limit of @bytes, in whichever version this machine has. */
static bool limits_make_group(char *folder, size_t size, const char *bytes)
{
	snprintf(folder, size, "/sys/fs/cgroup/memory/ttmem-test-%d", (int)getpid());
	if (mkdir(folder, 0700) == 0) {
		if (limits_write(folder, "memory.limit_in_bytes", bytes))
			return true;
		rmdir(folder);
	}
	snprintf(folder, size, "/sys/fs/cgroup/ttmem-test-%d", (int)getpid());
	if (mkdir(folder, 0700) == 0) {
		if (limits_write(folder, "memory.max", bytes))
			return true;
		rmdir(folder);
	}
	return false;
}

static _Noreturn void limits_in_group(const char *folder, const char *bytes)
{
	const uint64_t each = testing_quick() ? 100000 : 1000000; /* for each of two devices */
	struct ttmem_stats stats;
	struct observer w;

	if (!limits_write(folder, "cgroup.procs", "0"))
		_exit(77);
	assert(limits_cgroup() == strtoull(bytes, NULL, 10));
	for (uint64_t i = 0; i < 2 * each; i++)
		ttmem_alloc((uint32_t)i % 2, TTMEM_DRAM, i * 32, 1, NULL);
	assert(ttmem_stats(0, TTMEM_DRAM, &stats) == 0 && stats.allocs == each);
	assert(stats.bytes < each);
	for (uint64_t i = 0; i < 2 * each; i++)
		ttmem_free((uint32_t)i % 2, TTMEM_DRAM, i * 32);
	assert(observer_open(&w, getpid()));
	for (uint32_t device = 0; device < 2; device++) {
		assert(observer_hot(&w, device, TTMEM_DRAM).frees == each);
		assert(w.view.inexact == BOOK_INEXACT_LOW << TTMEM_DRAM && w.view.live == 0);
		assert(w.view.cold[TTMEM_DRAM].overflow_frees == each - stats.bytes || device);
	}
	assert(observer_header(&w)->room == strtoull(bytes, NULL, 10) / 8);
	assert(observer_header(&w)->reserved_bytes <= observer_header(&w)->room + 64 * BOOK_PAGE);
	_exit(0);
}

/* fallocate() at the limit would kill the process: it survives millions of buffers in 32 MiB. */
UNIT(a_memory_group_limit_does_not_kill)
{
	const char *bytes = "33554432";
	char folder[128];
	pid_t child;
	int status;

	if (OBSERVER_ASAN || OBSERVER_TSAN)
		unit_skip("sanitizers need more memory than that");
	if (!limits_make_group(folder, sizeof(folder), bytes))
		unit_skip("no memory control group can be made here");
	observer_track();
	unit_expect_fds(0);
	child = fork();
	assert(child >= 0);
	if (child == 0)
		limits_in_group(folder, bytes);
	assert(waitpid(child, &status, 0) == child);
	for (int i = 0; i < 100 && rmdir(folder) < 0; i++)
		usleep(10000);
	if (status == 77 << 8)
		unit_skip("no process can be moved into a group here");
	if (status)
		printf("status %#x\n", (unsigned int)status);
	assert(status == 0);
}
