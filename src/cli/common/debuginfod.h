/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Debug information from a server, for files that have none on this machine. Used only if
 * DEBUGINFOD_URLS names a server, and through the library that debuggers use, which is loaded only
 * then: settings and cache are those of the user's debugger. This runs in the command's own
 * process, because the processes that parse files have no network.
 */

#include <stdint.h>

#include "symbol/symbolizer.h"

#define DEBUGINFOD_MS 10000u /* for all files of a command together */

struct debuginfod {
	void *library; /* NULL = not loaded */
	void *client;
	uint64_t left_ns; /* time left */
	int result;       /* of loading it; 0 = not tried, or loaded */
};

#define DEBUGINFOD_INIT                                      \
	(struct debuginfod)                                  \
	{                                                    \
		.left_ns = DEBUGINFOD_MS * UINT64_C(1000000) \
	}

void debuginfod_deinit(struct debuginfod *debuginfod);

/* 0 and a descriptor of the debug information of @module, or a negative errno. */
int debuginfod_fetch(struct debuginfod *debuginfod, const struct symbolizer_module *module,
		     int *ret_fd);
