/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Debug information from a server, for files that have none on this machine. Only if DEBUGINFOD_URLS names
 * one, and by the library that debuggers use for it, which is loaded only then: so settings and cache are
 * those of the user's debugger. This is done in the command's own process; those who look into files
 * have no network.
 */

#include <stdint.h>

#include "symbol/symbolizer.h"

#define DEBUGINFOD_MS 10000u /* for all files of a command together */

struct debuginfod {
	void *library; /* NULL = not loaded */
	void *client;
	uint64_t left_ns; /* of the time */
	int result;       /* of loading it; 0 = not tried, or it is there */
};

#define DEBUGINFOD_INIT                                      \
	(struct debuginfod)                                  \
	{                                                    \
		.left_ns = DEBUGINFOD_MS * UINT64_C(1000000) \
	}

void debuginfod_deinit(struct debuginfod *debuginfod);

/* 0 and a file with the debug information of @module, or a negative errno. */
int debuginfod_fetch(struct debuginfod *debuginfod, const struct symbolizer_module *module,
		     int *ret_fd);
