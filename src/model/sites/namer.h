/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Names for the native frames of stacks. A book has only addresses in files; not every reader can
 * or should look into those files, so a caller that can passes a namer.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/process-id.h"

#define NAMER_NAMES_MAX 16u /* for one address: functions may be inlined */

struct namer_place {
	const char *path; /* of the file, as its process saw it */
	const uint8_t *build_id;
	uint32_t build_id_length;  /* 0 = not known */
	struct process_id process; /* whose root the path is relative to, if it lives; 0 = ours */
	uint32_t user;             /* who made the book */
	uint64_t book;             /* identifies the book: results are not shared between books */
	uint64_t address;          /* as in the file; inside the call instruction */
	uint64_t base;             /* where the file is loaded; 0 = not known */
	bool is_lost;              /* its path may lead to another file: that must not be used */
};

struct namer_name {
	const char *function; /* NULL = not known; likewise the next */
	const char *file;
	uint32_t line;
};

struct namer {
	/* Innermost first; any bytes, valid until the next call. Return: how many; 0 = unknown. */
	size_t (*find)(struct namer *namer, const struct namer_place *place,
		       struct namer_name *ret_names, size_t max);
};
