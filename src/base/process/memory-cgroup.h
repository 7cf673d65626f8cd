/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Memory cgroups of v1 and v2, at their usual mount points.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define MEMORY_CGROUP_LEVELS 16
#define MEMORY_CGROUP_PATH 1024 /* longer ones are not looked at */

/*
 * The path in a line "number:names:path" of /proc/PID/cgroup, NUL-terminated: that of v1's memory
 * controller, which is then not part of v2, or that of v2. NULL if there is neither. @text is changed.
 */
char *memory_cgroup_path(char *text, bool *ret_is_v1);

/* A group with a limit of its own. */
struct memory_cgroup {
	dev_t device;
	ino_t inode;
	uint64_t limit; /* in bytes */
};

/*
 * The nearest one with a limit: the group with that path, or one above it. A group that has been removed is
 * passed over, as its memory then counts for the one above. False: there is none, or none can be seen.
 */
bool memory_cgroup_limited(const char *path, bool is_v1, struct memory_cgroup *ret_group);
