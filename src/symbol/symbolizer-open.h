/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Opens the files that a book names, on behalf of its owner. The path comes from a process that may
 * lie, and we may read more than that process could. So only regular files are opened, only those
 * that the owner of the book may read (unless our own permission is enough) and may reach by that
 * path or has mapped, and no path may pass through /proc's magic links into other processes. Other kinds of file are not
 * opened at all: opening a device can have side effects.
 */

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "symbol/resolve.h"

struct symbolizer_config;
struct symbolizer_module;

/* Identifies one version of a file; no padding. */
struct symbolizer_identity {
	uint64_t device;
	uint64_t inode;
	uint64_t size;
	uint64_t changed_s; /* ctime */
	uint64_t changed_ns;
};

_Static_assert(sizeof(struct symbolizer_identity) == 40, "identity without holes");

/*
 * 0; -EACCES if the user may not read it; -EINVAL if it is not a regular file; -EFBIG; or another
 * negative errno.
 */
int symbolizer_open_module(const struct symbolizer_config *config,
			   const struct symbolizer_module *module, int *ret_fd,
			   struct symbolizer_identity *ret_identity);

/*
 * The same for the file that the process has loaded, which may have been deleted or replaced since.
 * The caller must compare its build id.
 */
int symbolizer_open_loaded(const struct symbolizer_config *config,
			   const struct symbolizer_module *module, int *ret_fd,
			   struct symbolizer_identity *ret_identity);

/* The same for a file that was opened with O_PATH while the process had it loaded. */
int symbolizer_open_held(const struct symbolizer_config *config,
			 const struct symbolizer_module *module, int seen, int *ret_fd,
			 struct symbolizer_identity *ret_identity);

/* What a module says about its debug information. */
struct symbolizer_hint {
	const uint8_t *build_id;
	size_t build_id_length;
	const char *link; /* untrusted: written by whoever made the module */
};

/*
 * Opens the file with the debug information: by build id, below the root of the process and below
 * ours, else by the name of the link.
 */
int symbolizer_open_debug(const struct symbolizer_config *config,
			  const struct symbolizer_module *module,
			  const struct symbolizer_hint *hint, int *ret_fd);
