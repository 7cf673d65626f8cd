/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How large a book may be here. The limits on file size and address space must be checked before
 * anything is created, because exceeding the first one kills the process. A memory cgroup kills
 * too, when the book fills up: so the book may reserve at most an eighth of the smallest limit
 * above the process.
 */

#include <stdint.h>

#include "book/format/layout.h"

/* Less would not hold some names and the records of one device. */
#define LIMITS_SIZE_MIN (BOOK_POOL_OFFSET + 64u * BOOK_UNIT)

struct limits {
	uint64_t size;        /* of the file and its mapping; multiple of BOOK_UNIT */
	uint64_t room;        /* that may be reserved in total */
	uint32_t ring_events; /* history per device; a power of two */
	uint32_t reserved;
};

/* 0, or -ENOSPC if not even the smallest book fits. Reads TTMEM_ROOM and TTMEM_HISTORY. */
int limits_read(struct limits *ret_limits);

/* The smallest memory limit of the cgroups above this process, UINT64_MAX if there is none. */
uint64_t limits_cgroup(void);

/* "64M", "2G", "100000": 0 if it is not such a number. */
uint64_t limits_parse(const char *text);
