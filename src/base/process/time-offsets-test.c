/* SPDX-License-Identifier: Apache-2.0 */

/* Offsets of time namespaces, as the kernel writes and applies them. */

#include "base/process/time-offsets.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/testing/unit.h"

static int read_text(const char *text, struct time_offsets *ret_offsets)
{
	char path[512];
	FILE *file;

	snprintf(path, sizeof(path), "%s/timens_offsets", unit_dir());
	file = fopen(path, "we");
	fputs(text, file);
	assert(fclose(file) == 0);
	return time_offsets_read(AT_FDCWD, path, ret_offsets);
}

UNIT(offsets_are_read_as_the_kernel_writes_them)
{
	struct time_offsets offsets;

	assert(read_text("monotonic          -3 500000000\nboottime       100000         7\n",
			 &offsets) == 0);
	assert(offsets.monotonic_ns == INT64_C(-2500000000));
	assert(offsets.boottime_ns == INT64_C(100000000000007));
}

UNIT(what_is_not_understood_shifts_nothing)
{
	static const char *const texts[] = {
		"",
		"monotonic 5 0\n",
		"monotonic 5 0\nboottime\n",
		"monotonic 5 0\nboottime 5\n",
		"monotonic 5 0\nboottime 9223372036854775807 0\n",
	};
	struct time_offsets offsets;

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		assert(read_text(texts[i], &offsets) < 0);
		assert(offsets.monotonic_ns == 0 && offsets.boottime_ns == 0);
	}
	assert(time_offsets_read(AT_FDCWD, "/nonexistent", &offsets) < 0);
}

UNIT(both_clocks_are_needed)
{
	static const char *const texts[] = {
		"boottime 5 0\n",
		"boottime 5 0\nmonotonic\n",
		"boottime 5 0\nmonotonic 9223372036 854775808\n",
		"boottime 5 0\nmonotonic -9223372036 -854775809\n",
	};
	struct time_offsets offsets;

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		assert(read_text(texts[i], &offsets) == -EBADMSG);
		assert(offsets.monotonic_ns == 0 && offsets.boottime_ns == 0);
	}
	assert(read_text("boottime 5 0\nmonotonic 9223372036 854775807\n", &offsets) == 0);
	assert(offsets.monotonic_ns == INT64_MAX && offsets.boottime_ns == 5 * (int64_t)NS_PER_S);
	assert(time_offsets_read(AT_FDCWD, "/nonexistent", &offsets) == -ENOENT);
}

/* Of a namespace for children with that offset, and in it. */
static void assert_offsets(const char *text, int64_t monotonic_s, int64_t boottime_s)
{
	struct time_offsets offsets;
	int fd, status;
	pid_t pid;

	time_offsets_own(&offsets);
	if (offsets.monotonic_ns || offsets.boottime_ns)
		unit_skip("this is a time namespace with offsets");
	if (unshare(CLONE_NEWTIME) < 0)
		unit_skip("no time namespace can be made here");
	fd = open("/proc/self/timens_offsets", O_WRONLY | O_CLOEXEC);
	assert(fd >= 0 && write(fd, text, strlen(text)) > 0 && close(fd) == 0);
	time_offsets_own(&offsets);
	assert(offsets.monotonic_ns == 0 && offsets.boottime_ns == 0);
	pid = fork();
	assert(pid >= 0);
	if (pid == 0) {
		time_offsets_own(&offsets);
		_exit(offsets.monotonic_ns == monotonic_s * (int64_t)NS_PER_S &&
				      offsets.boottime_ns == boottime_s * (int64_t)NS_PER_S
			      ? 7
			      : 1);
	}
	assert(waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == 7);
}

UNIT(only_children_have_the_monotonic_offset_of_their_namespace)
{
	assert_offsets("monotonic 77 0\n", 77, 0);
}

UNIT(only_children_have_the_boottime_offset_of_their_namespace)
{
	assert_offsets("boottime 88 0\n", 0, 88);
}

/* As the kernel does: the offset is added before the time is cut to ticks. */
static uint64_t shown(uint64_t boottime_ns, int64_t offset_ns)
{
	return (boottime_ns + (uint64_t)offset_ns) / (NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK));
}

UNIT(start_times_become_those_of_the_machine)
{
	static const int64_t offsets[] = {0, 100000 * (int64_t)NS_PER_S, -20 * (int64_t)NS_PER_S};

	for (size_t i = 0; i < sizeof(offsets) / sizeof(*offsets); i++) {
		assert(time_offsets_slack(offsets[i]) == 0);
		for (uint64_t start = 50 * NS_PER_S; start < 51 * NS_PER_S; start += 1234567)
			assert(time_offsets_ticks(shown(start, offsets[i]), offsets[i]) ==
			       shown(start, 0));
	}
}

UNIT(an_offset_within_a_tick_costs_one_tick_at_most)
{
	static const int64_t offsets[] = {1, 9999999, 123456789, -1, -9999999, -1234567891};

	for (size_t i = 0; i < sizeof(offsets) / sizeof(*offsets); i++) {
		assert(time_offsets_slack(offsets[i]) == 1);
		for (uint64_t start = 50 * NS_PER_S; start < 51 * NS_PER_S; start += 1234567) {
			uint64_t ticks = time_offsets_ticks(shown(start, offsets[i]), offsets[i]);

			assert(ticks == shown(start, 0) || ticks + 1 == shown(start, 0));
		}
	}
}
