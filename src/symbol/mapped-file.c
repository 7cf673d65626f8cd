/* SPDX-License-Identifier: Apache-2.0 */

/* Follows links in /proc to files that may no longer have a name. */

#include "symbol/mapped-file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

#define MAPPED_FILE_GONE " (deleted)" /* the kernel appends this to the name of a deleted file */

static int mapped_file_open(const char *link, int *ret_fd)
{
	int fd = open(link, O_PATH | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	*ret_fd = fd;
	return 0;
}

/* Whether the process runs the program of that name, even if the file has since been deleted. */
static bool mapped_file_is_program(const char *link, const char *path)
{
	char name[PATH_MAX + sizeof(MAPPED_FILE_GONE)];
	ssize_t n = readlink(link, name, sizeof(name) - 1);
	size_t length = strlen(path);

	if (n <= 0)
		return false;
	name[n] = '\0';
	return strncmp(name, path, length) == 0 &&
	       (!name[length] || strcmp(name + length, MAPPED_FILE_GONE) == 0);
}

/* The file mapping that contains @base. */
static int mapped_file_mapping(uint32_t pid, uint64_t base, uint64_t *ret_start, uint64_t *ret_end)
{
	CLEANUP_FCLOSE FILE *maps = NULL;
	CLEANUP_FREE char *line = NULL;
	size_t size = 0;
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%" PRIu32 "/maps", pid); /* fits */
	maps = fopen(path, "re");
	if (!maps)
		return -errno;
	for (uint32_t i = 0; i < MAPPED_FILE_MAPS_MAX && getline(&line, &size, maps) > 0; i++) {
		uint64_t start, end, inode;

		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %*s %*s %" SCNu64, &start, &end,
			   &inode) != 3 ||
		    base < start || base >= end || inode == 0)
			continue;
		*ret_start = start;
		*ret_end = end;
		return 0;
	}
	return -ENOENT;
}

int mapped_file_look(uint32_t pid, const char *path, uint64_t base, int *ret_fd)
{
	uint64_t start = 0, end = 0;
	char link[96];
	int r;

	(void)snprintf(link, sizeof(link), "/proc/%" PRIu32 "/exe", pid); /* fits */
	if (mapped_file_is_program(link, path))
		return mapped_file_open(link, ret_fd);
	r = base ? mapped_file_mapping(pid, base, &start, &end) : -ENOENT;
	if (r < 0)
		return r;
	(void)snprintf(link, sizeof(link), "/proc/%" PRIu32 "/map_files/%" PRIx64 "-%" PRIx64, pid,
		       start, end); /* fits */
	return mapped_file_open(link, ret_fd);
}
