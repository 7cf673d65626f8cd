/* SPDX-License-Identifier: Apache-2.0 */

/* Texts of /proc/PID/cgroup, and groups: real ones where they can be made, and files that imitate v2. */

#include "base/process/memory-cgroup.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/testing/unit.h"

#define LIMIT_TEXT "67108864"

static const char *path_of(const char *text, bool *ret_is_v1)
{
	static char copy[512];

	(void)snprintf(copy, sizeof(copy), "%s", text);
	return memory_cgroup_path(copy, ret_is_v1);
}

UNIT(the_path_is_that_of_the_memory_controller)
{
	bool is_v1;

	assert(strcmp(path_of("0::/a/b\n", &is_v1), "/a/b") == 0 && !is_v1);
	assert(strcmp(path_of("9:cpu:/x\n5:memory:/m\n0::/u\n", &is_v1), "/m") == 0 && is_v1);
	assert(strcmp(path_of("7:pids,memory,cpu:/c\n", &is_v1), "/c") == 0 && is_v1);
	assert(strcmp(path_of("5:memory_x:/m\n0::/u\n", &is_v1), "/u") == 0 && !is_v1);
	/* Lines that are cut or no lines at all do not hide those after them. */
	assert(strcmp(path_of("x\n9:cpu\n5:memory:/m\n", &is_v1), "/m") == 0 && is_v1);
	assert(strcmp(path_of("9:cpu\n0::/u\n", &is_v1), "/u") == 0 && !is_v1);
	assert(strcmp(path_of("0::/u\n9:cpu:/x", &is_v1), "/u") == 0 && !is_v1);
	assert(!path_of("", &is_v1) && !path_of("5:cpu:/x\n", &is_v1) && !path_of("0:", &is_v1));
}

static bool put(const char *folder, const char *name, const char *text)
{
	char path[256];
	ssize_t n;
	int fd;

	(void)snprintf(path, sizeof(path), "%s/%s", folder, name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = write(fd, text, strlen(text));
	(void)close(fd);
	return n == (ssize_t)strlen(text);
}

static void make(const char *folder, const char *name, const char *text)
{
	char path[256];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/%s", folder, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	(void)close(fd);
}

UNIT(the_nearest_group_with_a_limit_counts)
{
	struct memory_cgroup outer, inner, found;
	char folder[128], below[160], path[64], deep[96];
	bool is_v1 = true;
	struct stat st;

	(void)snprintf(path, sizeof(path), "/ttmem-nearest-%d", (int)getpid());
	(void)snprintf(deep, sizeof(deep), "%s/a", path);
	(void)snprintf(folder, sizeof(folder), "/sys/fs/cgroup/memory%s", path);
	if (mkdir(folder, 0700) < 0 || !put(folder, "memory.limit_in_bytes", LIMIT_TEXT)) {
		(void)rmdir(folder);
		is_v1 = false;
		(void)snprintf(folder, sizeof(folder), "/sys/fs/cgroup%s", path);
		if (mkdir(folder, 0700) < 0 || !put(folder, "memory.max", LIMIT_TEXT)) {
			(void)rmdir(folder);
			unit_skip("no memory control group can be made here");
		}
	}
	(void)snprintf(below, sizeof(below), "%s/a", folder);
	assert(mkdir(below, 0700) == 0 && stat(folder, &st) == 0);
	assert(memory_cgroup_limited(path, is_v1, &outer) && outer.inode == st.st_ino);
	assert(outer.limit == strtoull(LIMIT_TEXT, NULL, 10) && outer.device == st.st_dev);
	/* One without a limit, and one that is gone, are in it. */
	assert(memory_cgroup_limited(deep, is_v1, &found) && found.inode == outer.inode);
	if (is_v1) {
		assert(put(below, "memory.limit_in_bytes", "33554432"));
		assert(memory_cgroup_limited(deep, is_v1, &inner) && inner.inode != outer.inode);
		assert(inner.limit == 33554432);
	}
	assert(rmdir(below) == 0);
	assert(memory_cgroup_limited(deep, is_v1, &found) && found.inode == outer.inode);
	assert(rmdir(folder) == 0);
	assert(!memory_cgroup_limited("/../somebody", is_v1, &found));
}

/* What a machine of v2 looks like, where this one may have v1: only files are read. */
UNIT(groups_of_v2_are_read_likewise)
{
	const char *const folders[] = {"/sys/fs/cgroup/pod", "/sys/fs/cgroup/pod/box",
				       "/sys/fs/cgroup/pod/box/deep"};
	struct memory_cgroup found;
	struct stat st;

	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("none", "/sys/fs/cgroup", "tmpfs", 0, NULL) < 0)
		unit_skip("no file system can be mounted here");
	for (size_t i = 0; i < 3; i++) {
		assert(mkdir(folders[i], 0700) == 0);
		make(folders[i], "memory.max", "max\n");
	}
	assert(!memory_cgroup_limited("/pod/box/deep", false, &found));
	make(folders[0], "memory.max", "1073741824\n");
	assert(memory_cgroup_limited("/pod/box/deep", false, &found) && found.limit == 1u << 30);
	make(folders[1], "memory.max", "2147483648\n");
	assert(memory_cgroup_limited("/pod/box/deep", false, &found));
	assert(stat(folders[1], &st) == 0 && found.inode == st.st_ino &&
	       found.limit == UINT64_C(2) << 30);
	/* In a container the mount is the container's own group. */
	make("/sys/fs/cgroup", "memory.max", "4096\n");
	assert(memory_cgroup_limited("/", false, &found) && found.limit == 4096);
	assert(memory_cgroup_limited("/pod/box", false, &found) && found.inode == st.st_ino);
}

UNIT(what_is_no_number_or_has_no_end_is_no_limit)
{
	static const char *const texts[] = {"max\n", "",     "-1\n",
					    "/1\n",  ":1\n", "4611686018427387904\n"}; /* 1 << 62 */
	char path[MEMORY_CGROUP_PATH + 8] = "/a";
	struct memory_cgroup found;

	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("none", "/sys/fs/cgroup", "tmpfs", 0, NULL) < 0)
		unit_skip("no file system can be mounted here");
	assert(mkdir("/sys/fs/cgroup/a", 0700) == 0);
	assert(mkdir("/sys/fs/cgroup/memory", 0700) == 0);
	assert(!memory_cgroup_limited("/a", false, &found));
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		make("/sys/fs/cgroup/a", "memory.max", texts[i]);
		assert(!memory_cgroup_limited("/a", false, &found));
	}
	make("/sys/fs/cgroup/a", "memory.max", "4611686018427387903\n");
	assert(memory_cgroup_limited("/a", false, &found) &&
	       found.limit == (UINT64_C(1) << 62) - 1);
	make("/sys/fs/cgroup/a", "memory.max", "0\n");
	assert(memory_cgroup_limited("/a", false, &found) && found.limit == 0);
	make("/sys/fs/cgroup/a", "memory.max", "9\n");
	assert(memory_cgroup_limited("/a", false, &found) && found.limit == 9);
	/* The files of one version are not those of the other. */
	assert(!memory_cgroup_limited("/a", true, &found));
	make("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "8192\n");
	assert(memory_cgroup_limited("/a", true, &found) && found.limit == 8192);
	assert(!memory_cgroup_limited("/b/..", false, &found));
	/* A path that is too long has no group above it either. */
	make("/sys/fs/cgroup", "memory.max", "4096\n");
	assert(memory_cgroup_limited("/b", false, &found) && found.limit == 4096);
	memset(path, 'a', MEMORY_CGROUP_PATH - strlen("/sys/fs/cgroup"));
	path[0] = '/';
	assert(!memory_cgroup_limited(path, false, &found));
	path[strlen(path) - 1] = '\0';
	assert(memory_cgroup_limited(path, false, &found) && found.limit == 4096);
}
