/* SPDX-License-Identifier: Apache-2.0 */

/* Programs to resolve. Assembler labels mark the places that a test looks up. */

#undef NDEBUG

#include "symbol/testing/symbol-testing.h"

#include <assert.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/testing/unit.h"

/* The line numbers are in the header. */
static const char testing_c[] = "/* a program */\n"
				"#define NOTE(name) __asm__ volatile(#name \": nop\")\n"
				"#define INLINE static inline __attribute__((always_inline))\n"
				"#define WHOLE __attribute__((noinline, noclone, used))\n"
				"volatile int sink;\n"
				"\n"
				"WHOLE void plain(void)\n"
				"{\n"
				"	NOTE(at_plain);\n" /* 9 */
				"	sink++;\n"
				"}\n"
				"\n"
				"WHOLE static void hidden(void)\n"
				"{\n"
				"	NOTE(at_hidden);\n" /* 15 */
				"	sink++;\n"
				"}\n"
				"\n"
				"INLINE void inner(void)\n"
				"{	NOTE(at_inner);\n" /* 20 */
				"	sink++;\n"
				"}\n"
				"\n"
				"INLINE void middle(void)\n"
				"{\n"
				"	sink++;\n"
				"	inner();\n" /* 27 */
				"}\n"
				"\n"
				"WHOLE void outer(void)\n"
				"{\n"
				"	sink++;\n"
				"	middle();\n" /* 33 */
				"	sink++;\n"
				"}\n"
				"\n"
				"int main(void)\n"
				"{\n"
				"	plain();\n"
				"	hidden();\n"
				"	outer();\n"
				"	return 0;\n"
				"}\n";

static const char testing_cc[] =
	"#include <vector>\n"
	"namespace shop {\n"
	"template <typename T> struct shelf {\n"
	"	__attribute__((noinline)) int count(const std::vector<T> &things) const\n"
	"	{	__asm__ volatile(\"at_count: nop\");\n" /* 5 */
	"		return (int)things.size();\n"
	"	}\n"
	"};\n"
	"}\n"
	"int main()\n"
	"{\n"
	"	return shop::shelf<long>().count({});\n"
	"}\n";

void testing_run(const char *format, ...)
{
	char command[4096];
	va_list arguments;
	int used = snprintf(command, sizeof(command), "cd '%s' && ", unit_dir());

	if (system("command -v gcc g++ objcopy nm >/dev/null") != 0)
		unit_skip("no compiler to make programs with");
	assert(used > 0 && (size_t)used < sizeof(command));
	va_start(arguments, format);
	assert(vsnprintf(command + used, sizeof(command) - (size_t)used, format, arguments) <
	       (int)(sizeof(command) - (size_t)used));
	va_end(arguments);
	assert(system(command) == 0);
}

const char *testing_path(const char *name)
{
	static char paths[4][4096];
	static unsigned int next;
	char *path = paths[next++ % 4];

	(void)snprintf(path, sizeof(paths[0]), "%s/%s", unit_dir(), name);
	return path;
}

int testing_open(const char *name)
{
	int fd = open(testing_path(name), O_RDONLY | O_CLOEXEC);

	assert(fd >= 0);
	return fd;
}

void testing_write(const char *name, const void *bytes, size_t size)
{
	CLEANUP_CLOSE int fd =
		open(testing_path(name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	assert(fd >= 0 && write(fd, bytes, size) == (ssize_t)size);
}

uint8_t *testing_read(const char *name, size_t *ret_size)
{
	CLEANUP_CLOSE int fd = testing_open(name);
	struct stat file;
	uint8_t *bytes;

	assert(fstat(fd, &file) == 0);
	bytes = malloc((size_t)file.st_size);
	assert(bytes && read(fd, bytes, (size_t)file.st_size) == file.st_size);
	*ret_size = (size_t)file.st_size;
	return bytes;
}

void testing_let_in(void)
{
	char path[4096];
	struct stat folder;

	assert(chmod(unit_dir(), 0755) == 0);
	snprintf(path, sizeof(path), "%s", unit_dir());
	for (char *end = strrchr(path, '/'); end; end = strrchr(path, '/')) {
		*end = '\0';
		assert(stat(*path ? path : "/", &folder) == 0);
		if ((folder.st_mode & (S_IXGRP | S_IXOTH)) != (S_IXGRP | S_IXOTH))
			unit_skip("other users cannot enter the folder of temporary files");
	}
}

void testing_sources(void)
{
	testing_write("program.c", testing_c, sizeof(testing_c) - 1);
	testing_write("program.cc", testing_cc, sizeof(testing_cc) - 1);
}

uint64_t testing_address(const char *name, const char *symbol)
{
	char command[4096], found[256];
	uint64_t address = 0;
	FILE *list;

	(void)snprintf(command, sizeof(command), "nm '%s'", testing_path(name));
	list = popen(command, "re");
	assert(list);
	while (fscanf(list, "%" SCNx64 " %*c %255s", &address, found) >= 0) {
		if (strcmp(found, symbol) == 0)
			break;
		while (fgetc(list) >= ' ') /* a symbol without an address: skip the line */
			;
		address = 0;
		found[0] = 0;
	}
	assert(strcmp(found, symbol) == 0);
	(void)pclose(list); /* we may not have read all of its output */
	return address;
}
