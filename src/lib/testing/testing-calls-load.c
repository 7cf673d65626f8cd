/* SPDX-License-Identifier: Apache-2.0 */

/* Loads libraries for tests. Separate, because a static program must not reference dlopen(). */

#undef NDEBUG
#include <assert.h>
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/unit.h"
#include "lib/testing/testing-calls.h"

void *calls_load(const char *name)
{
	char path[PATH_MAX + 64];
	ssize_t n = readlink("/proc/self/exe", path, PATH_MAX);

	assert(n > 0);
	path[n] = '\0';
	*strrchr(path, '/') = '\0';
	snprintf(path + strlen(path), 64, "/lib/%s", name);
	return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

/* Looks for libunwind as the library does, but leaves nothing loaded. */
void calls_need_tables(void)
{
	void *library = dlopen("libunwind-x86_64.so.8", RTLD_NOW | RTLD_LOCAL);

	if (!library)
		unit_skip("no libunwind here");
	assert(dlclose(library) == 0);
}

void calls_start_tables(const char *how)
{
	calls_need_tables();
	calls_start(how);
	/* The book, and a pipe that libunwind creates and we do not use. */
	if (strcmp(how, "fp") != 0)
		unit_expect_fds(3);
}
