/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Names for the native frames of stacks. A book has only addresses in files; looking into those is work
 * that not everybody who reads a book can or should do, so whoever can brings a namer along.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NAMER_NAMES_MAX 16u /* of one address: functions may be inlined */

struct namer_place {
	const char *path; /* of the file, as its process saw it */
	const uint8_t *build_id;
	uint32_t build_id_length; /* 0 = not known */
	uint32_t pid;             /* whose root the path begins at, if it lives; 0 = ours */
	uint32_t user;            /* who made the book */
	uint64_t book;            /* tells books apart: what was found out for one is its own */
	uint64_t address;         /* as the file counts; inside the call */
	uint64_t base;            /* where the file is loaded; 0 = not known */
	bool is_lost; /* nothing tells its file from another: only what is known counts */
};

struct namer_name {
	const char *function; /* NULL = not known; likewise the next */
	const char *file;
	uint32_t line;
};

struct namer {
	/* Innermost first; any bytes, until the next call. Return: how many; 0 = not known. */
	size_t (*find)(struct namer *namer, const struct namer_place *place,
		       struct namer_name *ret_names, size_t max);
};
