/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Limits on the size of a book. cgroup v2 has a memory.max in each folder above the process; v1
 * gives the smallest of them in memory.stat. Both are looked up at their usual mount points; if
 * nothing is found there is no limit.
 */

#include "lib/bookfile/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/bits.h"
#include "base/files/small-file.h"
#include "base/process/memory-cgroup.h"

#define LIMITS_SIZE (UINT64_C(2) << 30) /* 16M records and the rings of all devices */
#define LIMITS_SHARE 8                  /* of a memory cgroup, and of a limited address space */

/* Not on the stack: the first event may be on a signal handler's small one. The gate is held. */
static char limits_text[8192]; /* a pod has a dozen lines of 200 bytes */
static char limits_file[1024];

/* v2: memory.max of this group and of each above it. */
static uint64_t limits_v2(char *path)
{
	uint64_t smallest = UINT64_MAX;
	char text[64];

	for (int level = 0; level < MEMORY_CGROUP_LEVELS; level++) {
		char *slash = strrchr(path, '/');

		if (snprintf(limits_file, sizeof(limits_file), "/sys/fs/cgroup%s/memory.max",
			     path) >= (int)sizeof(limits_file))
			break;
		if (small_file_read(AT_FDCWD, limits_file, text, sizeof(text)) > 0 &&
		    text[0] >= '0' && text[0] <= '9')
			smallest = bits_min(smallest, strtoull(text, NULL, 10));
		if (!slash)
			break;
		*slash = '\0'; /* the parent group; finally "", the root */
	}
	return smallest;
}

static uint64_t limits_v1_stat(const char *path)
{
	static const char key[] = "hierarchical_memory_limit ";
	static char text[4096];
	const char *found;

	if (snprintf(limits_file, sizeof(limits_file), "/sys/fs/cgroup/memory%s/memory.stat",
		     path) >= (int)sizeof(limits_file))
		return UINT64_MAX;
	if (small_file_read(AT_FDCWD, limits_file, text, sizeof(text)) < 0)
		return UINT64_MAX;
	found = strstr(text, key);
	return found ? strtoull(found + sizeof(key) - 1, NULL, 10) : UINT64_MAX;
}

uint64_t limits_cgroup(void)
{
	uint64_t limit;
	bool is_v1;
	char *path;

	if (small_file_read(AT_FDCWD, "/proc/self/cgroup", limits_text, sizeof(limits_text)) < 0)
		return UINT64_MAX;
	path = memory_cgroup_path(limits_text, &is_v1);
	if (!path)
		return UINT64_MAX;
	if (!is_v1)
		return limits_v2(strcmp(path, "/") == 0 ? path + 1 : path);
	limit = limits_v1_stat(path);
	/* Inside a container the path is the host's, but the mount is our own group. */
	if (limit == UINT64_MAX && strcmp(path, "/") != 0)
		limit = limits_v1_stat("");
	return limit;
}

uint64_t limits_parse(const char *text)
{
	char *end;
	uint64_t value;
	int shift;

	if (!text || *text < '0' || *text > '9')
		return 0;
	errno = 0;
	value = strtoull(text, &end, 10);
	switch (*end) {
	case '\0':
		return errno ? 0 : value;
	case 'k':
	case 'K':
		shift = 10;
		break;
	case 'm':
	case 'M':
		shift = 20;
		break;
	case 'g':
	case 'G':
		shift = 30;
		break;
	default:
		return 0;
	}
	return errno || end[1] || value > UINT64_MAX >> shift ? 0 : value << shift;
}

static uint64_t limits_rlimit(int resource)
{
	struct rlimit limit;

	if (getrlimit((__rlimit_resource_t)resource, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY)
		return UINT64_MAX;
	return limit.rlim_cur;
}

int limits_read(struct limits *ret_limits)
{
	uint64_t size = bits_min(LIMITS_SIZE, limits_rlimit(RLIMIT_FSIZE));
	uint64_t space = limits_rlimit(RLIMIT_AS);
	uint64_t asked = limits_parse(secure_getenv("TTMEM_ROOM"));
	uint64_t history = limits_parse(secure_getenv("TTMEM_HISTORY"));
	uint64_t cgroup = UINT64_MAX;
	uint64_t ring = BOOK_RING_SURE;
	uint64_t room, most;

	if (space != UINT64_MAX)
		size = bits_min(size, bits_max(space / LIMITS_SHARE, LIMITS_SIZE_MIN));
	if (!asked) {
		cgroup = limits_cgroup();
		room = bits_min(size, cgroup / LIMITS_SHARE);
	} else {
		room = bits_min(size, asked);
	}
	size &= ~(uint64_t)(BOOK_UNIT - 1);
	if (size < LIMITS_SIZE_MIN)
		return -ENOSPC;
	if (history)
		ring = history;
	/* The rings of four devices should not take more than a quarter of the room. */
	most = bits_min(room, size - BOOK_POOL_OFFSET) / 16 / sizeof(struct book_event);
	ring = bits_min(ring, bits_max(most, BOOK_RING_MIN));
	ring = bits_min(bits_max(ring, BOOK_RING_MIN), BOOK_RING_MAX);
	*ret_limits = (struct limits){
		.size = size,
		.room = room,
		.ring_events = (uint32_t)bits_floor_pow2(ring),
	};
	return 0;
}
