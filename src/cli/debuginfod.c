/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The library's calls, which are the same in all its versions, are found by name: its header need not be
 * there when we are built, nor the library when we run.
 */

#include "cli/debuginfod.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/bits.h"
#include "book/clock.h"

#define FETCH_LIBRARY "libdebuginfod.so.1"

typedef void *fetch_begin_fn(void);
typedef void fetch_end_fn(void *client);
typedef int fetch_find_fn(void *client, const unsigned char *build_id, int length, char **path);
typedef int fetch_progress_fn(void *client, long a, long b);
typedef void fetch_set_progress_fn(void *client, fetch_progress_fn *progress);

/* dlsym() gives an object's pointer for a function's. */
#define FETCH_CALL(library, type, name) ((type *)(uintptr_t)dlsym((library), (name)))

void debuginfod_deinit(struct debuginfod *fetch)
{
	fetch_end_fn *end;

	if (fetch->client) {
		end = FETCH_CALL(fetch->library, fetch_end_fn, "debuginfod_end");
		if (end)
			end(fetch->client);
	}
	*fetch = DEBUGINFOD_INIT;
}

/* CLOCK_MONOTONIC when the present one is to end: the library knows of no context in all versions. */
static uint64_t fetch_until_ns;

/* Called again and again while something is on its way. Not 0: enough. */
static int fetch_progress(void *client, long a, long b)
{
	(void)client;
	(void)a;
	(void)b;
	return clock_ns(CLOCK_MONOTONIC) > fetch_until_ns;
}

static int fetch_load(struct debuginfod *fetch)
{
	fetch_begin_fn *begin;
	fetch_set_progress_fn *set_progress;

	/* It has threads and exit handlers of its own: it stays until the end. */
	fetch->library = dlopen(FETCH_LIBRARY, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	if (!fetch->library) {
		fprintf(stderr, "note: DEBUGINFOD_URLS is set, but there is no %s\n",
			FETCH_LIBRARY);
		return -ENOENT;
	}
	begin = FETCH_CALL(fetch->library, fetch_begin_fn, "debuginfod_begin");
	set_progress =
		FETCH_CALL(fetch->library, fetch_set_progress_fn, "debuginfod_set_progressfn");
	fetch->client = begin && set_progress ? begin() : NULL;
	if (!fetch->client)
		return -ENOSYS;
	set_progress(fetch->client, fetch_progress);
	return 0;
}

int debuginfod_fetch(struct debuginfod *fetch, const struct symbolizer_module *module, int *ret_fd)
{
	const char *servers = secure_getenv("DEBUGINFOD_URLS");
	uint64_t start = clock_ns(CLOCK_MONOTONIC), took;
	fetch_find_fn *find;
	int fd;

	if (!servers || !*servers || module->build_id_length == 0 || fetch->left_ns == 0)
		return -ENOENT;
	if (!fetch->library && fetch->result == 0)
		fetch->result = fetch_load(fetch);
	if (fetch->result < 0)
		return fetch->result;
	find = FETCH_CALL(fetch->library, fetch_find_fn, "debuginfod_find_debuginfo");
	if (!find)
		return -ENOSYS;
	fetch_until_ns = start + fetch->left_ns;
	fd = find(fetch->client, module->build_id, (int)module->build_id_length, NULL);
	took = clock_ns(CLOCK_MONOTONIC) - start;
	fetch->left_ns -= bits_min(took, fetch->left_ns);
	if (fd < 0)
		return fd;
	*ret_fd = fd;
	return 0;
}
