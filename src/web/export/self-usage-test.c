/* SPDX-License-Identifier: Apache-2.0 */

/* The numbers of this process, compared with what it knows of itself. */

#include "web/export/self-usage.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/testing/unit.h"

static uint64_t cpu_ns(void)
{
	struct rusage usage;
	struct timeval sum;

	assert(getrusage(RUSAGE_SELF, &usage) == 0);
	timeradd(&usage.ru_utime, &usage.ru_stime, &sum);
	return (uint64_t)sum.tv_sec * NS_PER_S + (uint64_t)sum.tv_usec * 1000;
}

UNIT(the_time_is_between_that_before_and_after)
{
	struct self_usage usage;
	uint64_t before;

	while (cpu_ns() < 5000000) /* so that there are microseconds */
		;
	before = cpu_ns();
	self_usage_read(&usage);
	assert(usage.cpu_ns >= before && usage.cpu_ns <= cpu_ns());
}

UNIT(a_further_descriptor_counts_as_one)
{
	struct self_usage before, after;
	int fd;

	self_usage_read(&before);
	assert(before.open_fds >= 3);
	fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	assert(fd >= 0);
	self_usage_read(&after);
	assert(after.open_fds == before.open_fds + 1 && close(fd) == 0);
}

UNIT(the_limit_of_descriptors_is_the_soft_one)
{
	struct self_usage usage;
	struct rlimit files;

	assert(getrlimit(RLIMIT_NOFILE, &files) == 0);
	files.rlim_cur = files.rlim_max < 77 ? files.rlim_max : 77;
	assert(setrlimit(RLIMIT_NOFILE, &files) == 0);
	self_usage_read(&usage);
	assert(usage.max_fds == files.rlim_cur);
}

UNIT(touched_memory_is_resident)
{
	const size_t size = 32 << 20;
	struct self_usage before, after;
	char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert(memory != MAP_FAILED);
	self_usage_read(&before);
	assert(before.resident_bytes > 0);
	memset(memory, 1, size);
	self_usage_read(&after);
	/* The kernel counts in steps of a few pages for each thread. */
	assert(after.resident_bytes > before.resident_bytes + size / 2);
	assert(after.resident_bytes < before.resident_bytes + 2 * size);
	assert(munmap(memory, size) == 0);
}
