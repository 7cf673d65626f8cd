/* SPDX-License-Identifier: Apache-2.0 */

/*
 * libdebuginfod's functions, which are the same in all its versions, are looked up by name: we need
 * neither its header at build time nor the library at run time.
 */

#include "cli/common/debuginfod.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/bits.h"
#include "base/clock.h"
#include "base/process/late-library.h"

#define DEBUGINFOD_LIBRARY "libdebuginfod.so.1"

typedef void *debuginfod_begin_fn(void);
typedef void debuginfod_end_fn(void *client);
typedef int debuginfod_find_fn(void *client, const unsigned char *build_id, int length,
			       char **path);
typedef int debuginfod_progress_fn(void *client, long a, long b);
typedef void debuginfod_set_progress_fn(void *client, debuginfod_progress_fn *progress);

/* dlsym() returns an object pointer even for a function. */
#define DEBUGINFOD_CALL(library, type, name) ((type *)(uintptr_t)dlsym((library), (name)))

void debuginfod_deinit(struct debuginfod *debuginfod)
{
	debuginfod_end_fn *end;

	if (debuginfod->client) {
		end = DEBUGINFOD_CALL(debuginfod->library, debuginfod_end_fn, "debuginfod_end");
		if (end)
			end(debuginfod->client);
	}
	*debuginfod = DEBUGINFOD_INIT;
}

/*
 * CLOCK_MONOTONIC deadline of the current request. Global, because not all versions of the library
 * can pass a context to the callback.
 */
static uint64_t debuginfod_until_ns;

/* Called repeatedly during a download. Non-zero cancels it. */
static int debuginfod_progress(void *client, long a, long b)
{
	(void)client;
	(void)a;
	(void)b;
	return clock_ns(CLOCK_MONOTONIC) > debuginfod_until_ns;
}

static int debuginfod_load(struct debuginfod *debuginfod)
{
	static const char *const names[] = {DEBUGINFOD_LIBRARY};
	debuginfod_begin_fn *begin;
	debuginfod_set_progress_fn *set_progress;

	debuginfod->library = late_library_open(names, ARRAY_SIZE(names));
	if (!debuginfod->library) {
		fprintf(stderr, "note: DEBUGINFOD_URLS is set, but there is no %s\n",
			DEBUGINFOD_LIBRARY);
		return -ENOENT;
	}
	begin = DEBUGINFOD_CALL(debuginfod->library, debuginfod_begin_fn, "debuginfod_begin");
	set_progress = DEBUGINFOD_CALL(debuginfod->library, debuginfod_set_progress_fn,
				       "debuginfod_set_progressfn");
	debuginfod->client = begin && set_progress ? begin() : NULL;
	if (!debuginfod->client)
		return -ENOSYS;
	set_progress(debuginfod->client, debuginfod_progress);
	return 0;
}

int debuginfod_fetch(struct debuginfod *debuginfod, const struct symbolizer_module *module,
		     int *ret_fd)
{
	const char *servers = secure_getenv("DEBUGINFOD_URLS");
	uint64_t start = clock_ns(CLOCK_MONOTONIC), took;
	debuginfod_find_fn *find;
	int fd;

	if (!servers || !*servers || module->build_id_length == 0 || debuginfod->left_ns == 0)
		return -ENOENT;
	if (!debuginfod->library && debuginfod->result == 0)
		debuginfod->result = debuginfod_load(debuginfod);
	if (debuginfod->result < 0)
		return debuginfod->result;
	find = DEBUGINFOD_CALL(debuginfod->library, debuginfod_find_fn,
			       "debuginfod_find_debuginfo");
	if (!find)
		return -ENOSYS;
	debuginfod_until_ns = start + debuginfod->left_ns;
	fd = find(debuginfod->client, module->build_id, (int)module->build_id_length, NULL);
	took = clock_ns(CLOCK_MONOTONIC) - start;
	debuginfod->left_ns -= bits_min(took, debuginfod->left_ns);
	if (fd < 0)
		return fd;
	*ret_fd = fd;
	return 0;
}
