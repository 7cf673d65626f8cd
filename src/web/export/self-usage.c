/* SPDX-License-Identifier: Apache-2.0 */

/* From getrusage() and /proc/self. */

#include "web/export/self-usage.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"

static uint64_t self_usage_time(struct timeval time)
{
	return (uint64_t)time.tv_sec * NS_PER_S + (uint64_t)time.tv_usec * 1000;
}

static uint64_t self_usage_resident(void)
{
	CLEANUP_FCLOSE FILE *file = fopen("/proc/self/statm", "re");
	uint64_t size = 0, resident = 0;

	if (!file || fscanf(file, "%" SCNu64 " %" SCNu64, &size, &resident) != 2)
		return 0;
	return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

static uint64_t self_usage_open_fds(void)
{
	CLEANUP_CLOSEDIR DIR *dir = opendir("/proc/self/fd");
	const struct dirent *entry;
	uint64_t count = 0;

	while (dir && (entry = readdir(dir)))
		count += entry->d_name[0] != '.';
	return count ? count - 1 : 0; /* without the one for this directory */
}

void self_usage_read(struct self_usage *ret_cost)
{
	struct rusage usage = {0};
	struct rlimit files = {0};

	(void)getrusage(RUSAGE_SELF, &usage);   /* stays 0 on failure */
	(void)getrlimit(RLIMIT_NOFILE, &files); /* likewise */
	*ret_cost = (struct self_usage){
		.cpu_ns = self_usage_time(usage.ru_utime) + self_usage_time(usage.ru_stime),
		.resident_bytes = self_usage_resident(),
		.open_fds = self_usage_open_fds(),
		.max_fds = files.rlim_cur,
	};
}
