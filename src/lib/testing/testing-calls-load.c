/* SPDX-License-Identifier: Apache-2.0 */

/* Loads libraries for tests. Separate, because a static program must not reference dlopen(). */

#undef NDEBUG
#include <assert.h>
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/testing/unit.h"
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

void calls_need_tables(void)
{
	if (dlsym(RTLD_DEFAULT, "_dl_find_object"))
		return;
	unit_skip("unwind tables cannot be found here");
}

void calls_start_tables(const char *how)
{
	calls_need_tables();
	calls_start(how);
}
