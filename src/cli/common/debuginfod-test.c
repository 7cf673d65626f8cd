/* SPDX-License-Identifier: Apache-2.0 */

/* What is asked of a library that this program is itself. */

#include "cli/common/debuginfod.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/testing/unit.h"

typedef int progress_fn(void *client, long a, long b);

static bool has_library = true, has_begin = true, has_progress = true, has_find = true;
static bool has_end = true, makes_client = true;
static unsigned int loads, begins, ends, finds;
static progress_fn *progress;
static int answer;   /* of the next request */
static bool waits;   /* as long as it may */
static char client;  /* that was begun */
static char library; /* that was loaded */

static void *fake_begin(void)
{
	begins++;
	return makes_client ? &client : NULL;
}

static void fake_end(void *of)
{
	assert(of == &client);
	ends++;
}

static void fake_set_progress(void *of, progress_fn *fn)
{
	assert(of == &client);
	progress = fn;
}

static int fake_find(void *of, const unsigned char *build_id, int length, char **path)
{
	assert(of == &client && length == 2 && build_id[0] == 0xab && build_id[1] == 0xcd);
	assert(!path);
	finds++;
	if (!waits)
		assert(progress(of, 0, 0) == 0);
	while (waits && progress(of, 0, 0) == 0)
		;
	return answer;
}

/* In place of libc's. */
void *dlopen(const char *file, int mode)
{
	(void)mode;
	assert(strcmp(file, "libdebuginfod.so.1") == 0);
	loads++;
	return has_library ? &library : NULL;
}

void *dlsym(void *restrict handle, const char *restrict name)
{
	assert(handle == &library);
	if (strcmp(name, "debuginfod_begin") == 0 && has_begin)
		return (void *)(uintptr_t)fake_begin;
	if (strcmp(name, "debuginfod_end") == 0 && has_end)
		return (void *)(uintptr_t)fake_end;
	if (strcmp(name, "debuginfod_set_progressfn") == 0 && has_progress)
		return (void *)(uintptr_t)fake_set_progress;
	if (strcmp(name, "debuginfod_find_debuginfo") == 0 && has_find)
		return (void *)(uintptr_t)fake_find;
	return NULL;
}

static struct debuginfod debuginfod;
static int file;

static void begin(void)
{
	assert(setenv("DEBUGINFOD_URLS", "http://127.0.0.1:1/", 1) == 0);
	debuginfod = DEBUGINFOD_INIT;
	file = -7;
}

static int fetch(void)
{
	const struct symbolizer_module module = {.build_id = {0xab, 0xcd}, .build_id_length = 2};

	return debuginfod_fetch(&debuginfod, &module, &file);
}

UNIT(files_come_from_one_client)
{
	begin();
	answer = 42;
	assert(fetch() == 0 && file == 42);
	answer = 43;
	assert(fetch() == 0 && file == 43);
	answer = -ENOENT;
	assert(fetch() == -ENOENT && file == 43);
	assert(loads == 1 && begins == 1 && finds == 3 && ends == 0);
	debuginfod_deinit(&debuginfod);
	assert(ends == 1 && !debuginfod.client && debuginfod.left_ns == 10000000000);
	debuginfod_deinit(&debuginfod);
	assert(ends == 1);
}

UNIT(descriptor_zero_is_a_file)
{
	begin();
	assert(fetch() == 0 && file == 0);
}

UNIT(without_a_server_or_a_build_id_nothing_is_loaded)
{
	struct symbolizer_module module = {.build_id_length = 0};

	begin();
	assert(debuginfod_fetch(&debuginfod, &module, &file) == -ENOENT);
	assert(setenv("DEBUGINFOD_URLS", "", 1) == 0 && fetch() == -ENOENT);
	assert(unsetenv("DEBUGINFOD_URLS") == 0 && fetch() == -ENOENT);
	assert(loads == 0 && file == -7);
	debuginfod_deinit(&debuginfod);
	assert(ends == 0);
}

UNIT(a_missing_library_is_searched_for_once)
{
	begin();
	has_library = false;
	assert(fetch() == -ENOENT && fetch() == -ENOENT && loads == 1 && file == -7);
}

UNIT(a_library_without_the_functions_is_not_used)
{
	begin();
	has_begin = false;
	assert(fetch() == -ENOSYS && fetch() == -ENOSYS && begins == 0);
	begin();
	has_begin = true;
	has_progress = false;
	assert(fetch() == -ENOSYS && begins == 0);
	begin();
	has_progress = true;
	makes_client = false;
	assert(fetch() == -ENOSYS && begins == 1);
	begin();
	makes_client = true;
	has_find = false;
	assert(fetch() == -ENOSYS && begins == 2 && finds == 0 && file == -7);
	has_end = false;
	debuginfod_deinit(&debuginfod);
	assert(ends == 0 && !debuginfod.library);
}

UNIT(all_requests_share_the_time)
{
	begin();
	waits = true;
	answer = -ETIMEDOUT;
	debuginfod.left_ns = 1;
	assert(fetch() == -ETIMEDOUT && finds == 1 && debuginfod.left_ns == 0);
	assert(fetch() == -ENOENT && finds == 1);
}
