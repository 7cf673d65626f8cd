/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Debug information from a server, for files that have none on this machine. Only if DEBUGINFOD_URLS names
 * one, and by the library that debuggers use for it, which is loaded only then: so settings and cache are
 * those of the user's debugger. This is done in the command's own process; those who look into files
 * have no network.
 */

#include <stdint.h>

#include "core/namer.h"

#define NAMING_FETCH_MS 10000u /* for all files of a command together */

struct naming_fetch {
	void *library; /* NULL = not loaded */
	void *client;
	uint64_t left_ns; /* of the time */
	int result;       /* of loading it; 0 = not tried, or it is there */
};

#define NAMING_FETCH_INIT                                      \
	(struct naming_fetch)                                  \
	{                                                      \
		.left_ns = NAMING_FETCH_MS * UINT64_C(1000000) \
	}

void naming_fetch_deinit(struct naming_fetch *fetch);

/* 0 and a file with the debug information of @place's file, or a negative errno. */
int naming_fetch_debug(struct naming_fetch *fetch, const struct namer_place *place, int *ret_fd);
