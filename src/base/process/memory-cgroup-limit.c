/* SPDX-License-Identifier: Apache-2.0 */

/* The files of groups; not for the library, which has its own limits (lib/bookfile/limits.c). */

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/files/small-file.h"
#include "base/process/memory-cgroup.h"

#define MEMORY_CGROUP_UNLIMITED (UINT64_C(1) << 62) /* v1 has a number where v2 has "max" */

/* @folder: of the group. */
static bool memory_cgroup_read(const char *folder, bool is_v1, struct memory_cgroup *ret_group)
{
	char file[MEMORY_CGROUP_PATH + 64], text[64];
	struct stat st;

	if (snprintf(file, sizeof(file), "%s/%s", folder,
		     is_v1 ? "memory.limit_in_bytes" : "memory.max") >= (int)sizeof(file) ||
	    small_file_read(AT_FDCWD, file, text, sizeof(text)) <= 0 || text[0] < '0' ||
	    text[0] > '9')
		return false;
	ret_group->limit = strtoull(text, NULL, 10);
	if (ret_group->limit >= MEMORY_CGROUP_UNLIMITED || stat(folder, &st) < 0)
		return false;
	ret_group->device = st.st_dev;
	ret_group->inode = st.st_ino;
	return true;
}

bool memory_cgroup_limited(const char *path, bool is_v1, struct memory_cgroup *ret_group)
{
	const char *mount = is_v1 ? "/sys/fs/cgroup/memory" : "/sys/fs/cgroup";
	char folder[MEMORY_CGROUP_PATH];

	/* A path with "..": the group is outside of what our own namespace shows. */
	if (strstr(path, "/..") ||
	    snprintf(folder, sizeof(folder), "%s%s", mount, path) >= (int)sizeof(folder))
		return false;
	for (int level = 0; level < MEMORY_CGROUP_LEVELS && strlen(folder) > strlen(mount);
	     level++) {
		if (memory_cgroup_read(folder, is_v1, ret_group))
			return true;
		*strrchr(folder, '/') = '\0';
	}
	/* In a container the mount is its own group, which may have a limit. */
	return memory_cgroup_read(mount, is_v1, ret_group);
}
