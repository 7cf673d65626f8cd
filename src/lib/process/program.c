/* SPDX-License-Identifier: Apache-2.0 */

/* Gets the program's path from the kernel. */

#include "lib/process/program.h"

#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/process/linked.h"

#define PROGRAM_LINE (PROGRAM_PATH_SIZE + 128u) /* of the list of mappings: numbers and a path */
#define PROGRAM_LIST \
	(16u << 20) /* how much of it is read: more than the largest number of mappings takes */

/* The loader's, for debuggers. Weak: a static program must not link it in because of us. */
#pragma weak _r_debug

/* The loader that the kernel mapped with the program; 0 = none. */
static uintptr_t program_interpreter(void)
{
	int saved_errno = errno; /* getauxval() sets ENOENT for missing entries */
	uintptr_t address = getauxval(AT_BASE);

	errno = saved_errno;
	return address;
}

uintptr_t program_loader(void)
{
	uintptr_t address = program_interpreter();

	if (address || linked_is_static() || !&_r_debug)
		return address;
	return _r_debug.r_ldbase;
}

/* "low-high access offset device inode path". Return: the path, if page @start is of that file. */
static const char *program_match(const char *line, uintptr_t start)
{
	char *end;
	uintptr_t low = strtoul(line, &end, 16);
	uintptr_t high = *end == '-' ? strtoul(end + 1, &end, 16) : 0;

	return start >= low && start < high ? strchr(end, '/') : NULL;
}

/* Searches all complete lines. Return: their length in bytes. */
static size_t program_look(char *lines, uintptr_t start, const char **ret_path)
{
	char *line = lines, *end;

	while (!*ret_path && (end = strchr(line, '\n'))) {
		*end = '\0';
		*ret_path = program_match(line, start);
		line = end + 1;
	}
	return (size_t)(line - lines);
}

/* Return: the path, in memory that the next call reuses; NULL = not in the list. */
static const char *program_find(int fd, uintptr_t start)
{
	static char lines[2 * PROGRAM_LINE]; /* too large for the stack */
	const char *path = NULL;
	size_t held = 0, seen = 0;

	for (size_t all = 0; !path && all < PROGRAM_LIST;) {
		long n = syscall(SYS_read, fd, lines + held, sizeof(lines) - 1 - held);

		if (n <= 0)
			break;
		all += (size_t)n;
		held += (size_t)n;
		lines[held] = '\0';
		seen = program_look(lines, start, &path);
		held -= seen;
		if (!path)
			memmove(lines, lines + seen, held);
		if (held == sizeof(lines) - 1)
			held = 0; /* no line is that long */
	}
	return path;
}

static bool program_mapped(uintptr_t start, char *ret_path)
{
	const char *path;
	long fd = syscall(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return false;
	path = program_find((int)fd, start);
	(void)syscall(SYS_close, fd); /* only read from */
	if (!path || strlen(path) >= PROGRAM_PATH_SIZE)
		return false;
	memcpy(ret_path, path, strlen(path) + 1);
	return true;
}

bool program_path(uintptr_t start, char *ret_path)
{
	static char mapped[PROGRAM_PATH_SIZE]; /* the list may be long: read it only once */
	long n;

	if (!program_interpreter() && !linked_is_static()) {
		if (!*mapped && !program_mapped(start, mapped))
			return false;
		memcpy(ret_path, mapped, strlen(mapped) + 1);
		return true;
	}
	n = syscall(SYS_readlinkat, AT_FDCWD, "/proc/self/exe", ret_path, PROGRAM_PATH_SIZE - 1);
	if (n <= 0)
		return false;
	ret_path[n] = '\0';
	return true;
}
