/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Modules that were opened a moment ago. Naming the stacks of a process asks for hundreds of
 * addresses in the same few files; finding, checking and opening one takes nine system calls. What
 * is kept is used for a moment only, because a file may be replaced, or closed to its user, at any
 * time; and not at all unless the configuration says so.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/process-id.h"
#include "symbol/symbolizer-open.h"

struct symbolizer_config;
struct symbolizer_module;

#define SYMBOLIZER_OPENED 16u /* files, also those that could not be opened */
#define SYMBOLIZER_OPENED_NS UINT64_C(100000000)

/* Which file of a module. */
enum symbolizer_opened_kind {
	SYMBOLIZER_OPENED_NAMED = 1, /* symbolizer_open_module() */
	SYMBOLIZER_OPENED_LOADED,    /* symbolizer_open_loaded() */
};

struct symbolizer_opened_file {
	enum symbolizer_opened_kind kind; /* 0 = this slot is free */
	char *path;                       /* owned; the rest as in a symbolizer_module */
	struct process_id process;
	uint32_t user;
	uint64_t base;
	uint64_t until_ns; /* CLOCK_MONOTONIC */
	int result;
	int fd; /* -1 = none */
	struct symbolizer_identity identity;
};

struct symbolizer_opened {
	struct symbolizer_opened_file files[SYMBOLIZER_OPENED];
	size_t next;
};

/*
 * As the function of that kind, but @ret_fd is borrowed, until the next call; -1 on failure. Only
 * for one thread.
 */
int symbolizer_opened_find(struct symbolizer_opened *opened, const struct symbolizer_config *config,
			   enum symbolizer_opened_kind kind, const struct symbolizer_module *module,
			   int *ret_fd, struct symbolizer_identity *ret_identity);

/* Closes them all. */
void symbolizer_opened_close(struct symbolizer_opened *opened);
