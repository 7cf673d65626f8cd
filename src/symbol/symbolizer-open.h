/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Opening the files that a book names, for somebody else. The name comes from a process that may lie, and
 * we may read more than it could: so only regular files are opened, only those that the owner of the book
 * may read by their mode (unless it is enough that we may), and no name leads by way of /proc's links into other processes. What is no regular
 * file is not even opened: opening a device may do something.
 */

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "symbol/resolve.h"

struct symbolizer_config;
struct symbolizer_module;

/* What tells one state of a file from another; no holes. */
struct symbolizer_identity {
	uint64_t device;
	uint64_t inode;
	uint64_t size;
	uint64_t changed_s; /* the time of its last change, of whatever kind */
	uint64_t changed_ns;
};

_Static_assert(sizeof(struct symbolizer_identity) == 40, "identity without holes");

/* 0; -EACCES if the user may not; -EINVAL for what is no regular file; -EFBIG; or another negative errno. */
int symbolizer_open_module(const struct symbolizer_config *config,
			   const struct symbolizer_module *module, int *ret_fd,
			   struct symbolizer_identity *ret_identity);

/*
 * The same for the file that the process has loaded, which its name may not lead to any more: it was deleted,
 * or there is another in its place. Its build id must be compared.
 */
int symbolizer_open_loaded(const struct symbolizer_config *config,
			   const struct symbolizer_module *module, int *ret_fd,
			   struct symbolizer_identity *ret_identity);

/* What a module says of its debug information. */
struct symbolizer_hint {
	const uint8_t *build_id;
	size_t build_id_length;
	const char *link; /* as whoever wrote the module wants it */
};

/*
 * The file with the debug information: by its build id, below the root of the process and below ours, else by
 * the name of the link.
 */
int symbolizer_open_debug(const struct symbolizer_config *config,
			  const struct symbolizer_module *module,
			  const struct symbolizer_hint *hint, int *ret_fd);
