/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A named moment of a process: ttmem_mark(). */

#include <stddef.h>
#include <stdint.h>

struct mark {
	uint64_t stamp;    /* by its book's own clock, as snapshot_buffer.birth */
	uint64_t time_ns;  /* CLOCK_REALTIME */
	const char *name;  /* valid UTF-8; NULL = none */
	const char *phase; /* of the thread that made it; NULL = none */
};

struct mark_list {
	struct mark *list; /* owned */
	size_t count, capacity;
};

#define MARK_LIST_NULL ((struct mark_list){0})
