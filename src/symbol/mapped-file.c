/* SPDX-License-Identifier: Apache-2.0 */

/* Follows links in /proc to files that may no longer have a name. */

#include "symbol/mapped-file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/files/small-file.h"
#include "base/process/time-offsets.h"

#define MAPPED_FILE_GONE " (deleted)" /* the kernel appends this to the name of a deleted file */

/* A process whose files are opened. */
struct mapped_process {
	int folder; /* in /proc: of this process only, whoever gets its number later */
	int root;
	bool is_elsewhere; /* it has other mounts than we */
	mapped_file_fn *fn;
	void *context;
};

static void mapped_process_close(struct mapped_process *process)
{
	if (process->folder >= 0)
		(void)close(process->folder); /* nothing is written to either */
	if (process->root >= 0)
		(void)close(process->root);
}

/* The 22nd field of /proc/PID/stat; the name before it may contain anything. */
static uint64_t mapped_process_start(const struct mapped_process *process)
{
	char text[1024];
	const char *at = small_file_read(process->folder, "stat", text, sizeof(text)) > 0
				 ? strrchr(text, ')')
				 : NULL;
	struct time_offsets offsets;
	uint64_t start = 0;

	for (int i = 0; at && i < 20; i++)
		at = strchr(at + 1, ' ');
	if (!at || sscanf(at, " %" SCNu64, &start) != 1)
		return 0;
	time_offsets_own(&offsets);
	return time_offsets_ticks(start, offsets.boottime_ns);
}

static int mapped_process_open(struct mapped_process *process, struct process_id id)
{
	struct stat ours, theirs;
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%" PRIu32, id.pid); /* fits */
	process->folder = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (process->folder < 0)
		return -errno;
	if (id.start_ticks && mapped_process_start(process) != id.start_ticks)
		return -ESRCH;
	process->root = openat(process->folder, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
	process->is_elsewhere = fstatat(process->folder, "ns/mnt", &theirs, 0) < 0 ||
				stat("/proc/self/ns/mnt", &ours) < 0 ||
				ours.st_ino != theirs.st_ino;
	return 0;
}

static int mapped_file_open(const struct mapped_process *process, const char *link, int *ret_fd)
{
	int fd = openat(process->folder, link, O_PATH | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	*ret_fd = fd;
	return 0;
}

/* Whether the process runs the program of that name, even if the file has since been deleted. */
static bool mapped_file_is_program(const struct mapped_process *process, const char *path)
{
	char name[PATH_MAX + sizeof(MAPPED_FILE_GONE)];
	ssize_t n = readlinkat(process->folder, "exe", name, sizeof(name) - 1);
	size_t length = strlen(path);

	if (n <= 0)
		return false;
	name[n] = '\0';
	return strncmp(name, path, length) == 0 &&
	       (!name[length] || strcmp(name + length, MAPPED_FILE_GONE) == 0);
}

/* Calls @fn with each line of the list of mappings until it returns true. 0, or -ENOENT: never. */
static int mapped_file_search(const struct mapped_process *process,
			      bool (*fn)(void *context, const char *line), void *context)
{
	CLEANUP_FCLOSE FILE *maps = small_file_stream(process->folder, "maps");
	CLEANUP_FREE char *line = NULL;
	size_t size = 0;

	if (!maps)
		return -errno;
	for (uint32_t i = 0; i < MAPPED_FILE_MAPS_MAX && getline(&line, &size, maps) > 0; i++) {
		if (fn(context, line))
			return 0;
	}
	return -ENOENT;
}

struct mapped_range {
	uint64_t base, start, end;
};

/* Whether it is the file mapping that contains @base. */
static bool mapped_file_contains(void *context, const char *line)
{
	struct mapped_range *range = context;
	uint64_t inode;

	return sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %*s %*s %" SCNu64, &range->start,
		      &range->end, &inode) == 3 &&
	       range->base >= range->start && range->base < range->end && inode != 0;
}

int mapped_file_look(struct process_id owner, const char *path, uint64_t base, int *ret_fd)
{
	CLEANUP(mapped_process_close) struct mapped_process process = {.folder = -1, .root = -1};
	struct mapped_range range = {.base = base};
	char link[96];
	int r = mapped_process_open(&process, owner);

	if (r < 0)
		return r;
	if (mapped_file_is_program(&process, path))
		return mapped_file_open(&process, "exe", ret_fd);
	r = base ? mapped_file_search(&process, mapped_file_contains, &range) : -ENOENT;
	if (r < 0)
		return r;
	(void)snprintf(link, sizeof(link), "map_files/%" PRIx64 "-%" PRIx64, range.start,
		       range.end); /* fits */
	return mapped_file_open(&process, link, ret_fd);
}

static bool mapped_file_is(const struct stat *file, const char *line)
{
	unsigned int dev_major, dev_minor;
	uint64_t inode;

	return sscanf(line, "%*s %*s %*s %x:%x %" SCNu64, &dev_major, &dev_minor, &inode) == 3 &&
	       inode != 0 && inode == file->st_ino && makedev(dev_major, dev_minor) == file->st_dev;
}

static bool mapped_file_is_it(void *context, const char *line)
{
	return mapped_file_is(context, line);
}

bool mapped_file_has(struct process_id owner, uint32_t user, const struct stat *file)
{
	CLEANUP(mapped_process_close) struct mapped_process process = {.folder = -1, .root = -1};
	struct stat wanted = *file, folder;

	if (!owner.start_ticks || mapped_process_open(&process, owner) < 0)
		return false;
	/* A program with more rights than its user has may map what the user cannot read. */
	if (fstat(process.folder, &folder) < 0 || folder.st_uid != user)
		return false;
	return mapped_file_search(&process, mapped_file_is_it, &wanted) == 0;
}

/* Cuts off what the kernel appends. Return: whether the file was deleted. */
static bool mapped_process_cut(char *path)
{
	size_t length = strlen(path), gone = strlen(MAPPED_FILE_GONE);

	if (length <= gone || strcmp(path + length - gone, MAPPED_FILE_GONE) != 0)
		return false;
	path[length - gone] = '\0';
	return true;
}

char *mapped_file_name(int fd)
{
	char link[64], name[PATH_MAX + sizeof(MAPPED_FILE_GONE)];
	ssize_t n;

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd); /* fits */
	n = readlink(link, name, sizeof(name) - 1);
	if (n <= 0 || name[0] != '/')
		return NULL;
	name[n] = '\0';
	(void)mapped_process_cut(name);
	return strdup(name);
}

/* Return: whether more files are wanted. */
static bool mapped_process_program(const struct mapped_process *process, char *ret_path)
{
	int fd = openat(process->folder, "exe", O_PATH | O_CLOEXEC);
	ssize_t n = readlinkat(process->folder, "exe", ret_path, PATH_MAX);

	ret_path[n > 0 ? n : 0] = '\0';
	if (fd < 0)
		return true;
	if (n <= 0) {
		(void)close(fd); /* nothing was written to it */
		return true;
	}
	(void)mapped_process_cut(ret_path);
	return process->fn(process->context, ret_path, fd);
}

/* The mapped file itself if we may, else what has its name, if that is it. */
static int mapped_process_library(const struct mapped_process *process, const char *line,
				  const char *range, const char *path)
{
	struct open_how how = {.flags = O_PATH | O_CLOEXEC,
			       .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
	CLEANUP_CLOSE int named = -1;
	char link[64];
	struct stat file;
	int fd;

	(void)snprintf(link, sizeof(link), "map_files/%s", range);
	fd = openat(process->folder, link, O_PATH | O_CLOEXEC);
	if (fd >= 0 || !path || process->root < 0)
		return fd;
	/* The name may lead anywhere by now. */
	named = (int)syscall(SYS_openat2, process->root, path, &how, sizeof(how));
	if (named < 0 || fstat(named, &file) < 0 || !mapped_file_is(&file, line))
		return -1;
	return cleanup_steal_fd(&named);
}

static bool mapped_process_is_packaged(const struct mapped_process *process, const char *path)
{
	return !process->is_elsewhere &&
	       (strncmp(path, "/usr/", 5) == 0 || strncmp(path, "/lib", 4) == 0);
}

/* Return: whether more files are wanted. */
static bool mapped_process_line(const struct mapped_process *process, char *line, char *last)
{
	uint64_t start, end, inode;
	char permissions[8], range[40];
	int at = 0, fd;
	char *path;
	bool is_gone;

	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %*s %*s %" SCNu64 " %n", &start, &end,
		   permissions, &inode, &at) != 4 ||
	    inode == 0 || !strchr(permissions, 'x') || line[at] != '/')
		return true;
	path = line + at;
	path[strcspn(path, "\n")] = '\0';
	is_gone = mapped_process_cut(path);
	/* The program, and a library with several parts, come more than once. */
	if (strcmp(path, last) == 0 || strlen(path) >= PATH_MAX ||
	    mapped_process_is_packaged(process, path))
		return true;
	(void)snprintf(range, sizeof(range), "%" PRIx64 "-%" PRIx64, start, end); /* fits */
	fd = mapped_process_library(process, line, range, is_gone ? NULL : path);
	if (fd < 0)
		return true;
	memcpy(last, path, strlen(path) + 1);
	return process->fn(process->context, path, fd);
}

int mapped_file_all(struct process_id id, mapped_file_fn *fn, void *context)
{
	CLEANUP(mapped_process_close)
	struct mapped_process process = {.folder = -1, .root = -1, .fn = fn, .context = context};
	CLEANUP_FCLOSE FILE *maps = NULL;
	CLEANUP_FREE char *line = NULL;
	char last[PATH_MAX + 1];
	size_t size = 0;
	bool more;
	int r = mapped_process_open(&process, id);

	if (r < 0)
		return r;
	more = mapped_process_program(&process, last);
	maps = more ? small_file_stream(process.folder, "maps") : NULL;
	for (uint32_t i = 0;
	     maps && more && i < MAPPED_FILE_MAPS_MAX && getline(&line, &size, maps) > 0; i++)
		more = mapped_process_line(&process, line, last);
	return 0;
}
