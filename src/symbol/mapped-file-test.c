/* SPDX-License-Identifier: Apache-2.0 */

/* This program itself, and a file that is mapped and then deleted. */

#include "symbol/mapped-file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/testing/unit.h"

static int look(const char *path, const void *base, struct stat *ret_file)
{
	int fd, r = mapped_file_look((struct process_id){.pid = (uint32_t)getpid()}, path,
				     (uintptr_t)base, &fd);

	if (r < 0)
		return r;
	assert(fstat(fd, ret_file) == 0);
	assert(close(fd) == 0);
	return 0;
}

UNIT(the_running_program_is_found)
{
	char path[4096], longer[4100];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
	struct stat file, want;

	assert(n > 1 && stat("/proc/self/exe", &want) == 0);
	path[n] = '\0';
	assert(look(path, NULL, &file) == 0);
	assert(file.st_ino == want.st_ino && file.st_dev == want.st_dev);
	/* Neither a prefix of its name nor a longer name matches. */
	(void)snprintf(longer, sizeof(longer), "%sx", path);
	assert(look(longer, NULL, &file) == -ENOENT);
	path[n - 1] = '\0';
	assert(look(path, NULL, &file) == -ENOENT);
	assert(look("", NULL, &file) == -ENOENT);
}

UNIT(a_file_that_was_deleted)
{
	char name[] = "loaded-XXXXXX";
	int fd = mkostemp(name, O_CLOEXEC), r;
	struct stat file, want;
	char *memory;

	assert(fd >= 0 && ftruncate(fd, 8192) == 0 && fstat(fd, &want) == 0);
	memory = mmap(NULL, 8192, PROT_READ, MAP_PRIVATE, fd, 0);
	assert(memory != MAP_FAILED && unlink(name) == 0 && close(fd) == 0);
	r = look("/no/such/library", memory + 4096, &file);
	if (r == -EPERM)
		unit_skip("needs CAP_CHECKPOINT_RESTORE");
	assert(r == 0 && file.st_ino == want.st_ino && file.st_dev == want.st_dev);
	/* A mapping without a file. */
	assert(munmap(memory, 8192) == 0);
	memory = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert(memory != MAP_FAILED && look("/no/such/library", memory, &file) == -ENOENT);
	assert(munmap(memory, 4096) == 0);
}

UNIT(a_mapped_file_of_a_missing_process_is_not_found)
{
	int fd;

	assert(mapped_file_look((struct process_id){.pid = INT32_MAX}, "/bin/true", 4096, &fd) ==
	       -ENOENT);
}

static uint64_t start_of_this(void)
{
	char text[1024];
	const char *at;
	FILE *file = fopen("/proc/self/stat", "re");

	assert(file && fgets(text, sizeof(text), file) && fclose(file) == 0);
	at = strrchr(text, ')');
	for (int i = 0; i < 20; i++)
		at = strchr(at + 1, ' ');
	return strtoull(at, NULL, 10);
}

UNIT(only_what_a_process_of_the_user_has_mapped_is_its_file)
{
	const uint64_t start = start_of_this();
	const struct process_id owner = {(uint32_t)getpid(), start};
	const struct process_id earlier = {(uint32_t)getpid(), start - 1};
	const struct process_id unknown = {(uint32_t)getpid(), 0};
	struct stat program, other;

	assert(stat("/proc/self/exe", &program) == 0 && stat("/bin/true", &other) == 0);
	assert(mapped_file_has(owner, getuid(), &program));
	assert(!mapped_file_has(owner, getuid(), &other));
	assert(!mapped_file_has(owner, getuid() + 1, &program));
	assert(!mapped_file_has(earlier, getuid(), &program));
	assert(!mapped_file_has(unknown, getuid(), &program));
	other = program;
	other.st_dev++;
	assert(!mapped_file_has(owner, getuid(), &other));
}
