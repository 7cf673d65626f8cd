/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Call sites whose bytes keep growing. Several snapshots are compared, each exact: a site grows if its
 * bytes never fell from one to the next and rose at least twice (once, if there are only two or three
 * snapshots). One large allocation is no growth, a pool that breathes is none either.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/pool.h"

struct snapshot;

struct growth_site {
	uint32_t pid;
	uint64_t start_ticks;
	const char *comm;
	uint32_t type;
	const char *name;  /* NULL = none */
	const char *phase; /* of sites without a name */
	uint64_t first_bytes, last_bytes;
	uint64_t first_buffers, last_buffers;
	uint32_t rises;
	bool fell;
};

struct growth {
	struct growth_site *sites;
	size_t count;
	uint32_t samples;
	uint64_t first_ns, last_ns;
	struct pool texts;
};

#define GROWTH_NULL     \
	(struct growth) \
	{               \
		0       \
	}

/* Adds a snapshot with buffers; nothing of it is kept. 0 or -ENOMEM. */
int growth_add(struct growth *growth, const struct snapshot *snapshot);

/* Drops what does not grow and sorts the rest, fastest first. */
void growth_finish(struct growth *growth);

void growth_deinit(struct growth *growth);
