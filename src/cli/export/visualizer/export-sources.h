/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The source files that stacks name, for reports that carry their contents. The names come from a process
 * that may lie, and a report is made to be given to others: a file is read only if the owner of the
 * process may read it as well as the caller, so that a process cannot put a file into a report of root's
 * that it could not have read itself.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/process-id.h"

struct snapshot_process;

#define EXPORT_SOURCE_MAX (UINT32_C(1) << 20)   /* bytes of one file */
#define EXPORT_SOURCES_MAX (UINT32_C(32) << 20) /* of all files */

struct export_sources {
	struct process_id process; /* pid 0 = nothing may be read */
	uint32_t user;
	uint64_t left; /* bytes that may still be read */
};

void export_sources_init(struct export_sources *sources, const struct snapshot_process *process);

/*
 * The contents of the file that the process calls @path, as valid UTF-8, owned by the caller. 0; -EACCES;
 * -EINVAL for a path that is not absolute and for other kinds of file; -EFBIG; or another negative errno.
 */
int export_sources_read(struct export_sources *sources, const char *path, char **ret_text);
