/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The memories that "ttmem map", "ttmem fit" and the daemon's HTTP interface show: one for each
 * requested process, device and type. Devices are selected as they are displayed, by their row
 * numbers.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/filter.h"
#include "model/memory/free-blocks.h"

struct emit;
struct query;
struct snapshot;
struct snapshot_device;
struct snapshot_process;

/* A process that holds some of a memory. */
struct memory_holder {
	const struct snapshot_process *process;
	uint64_t bytes; /* in all banks together; where that is not known, the sum of sizes */
	bool is_placed; /* its blocks are known */
	struct free_blocks free_blocks; /* if they are */
};

/*
 * One memory of a device, for all living processes: their allocators do not know of each other, but the
 * device has its bytes only once.
 */
struct memory_shared {
	const struct snapshot_device *device;
	uint32_t type;
	struct free_blocks all;        /* of those that are placed */
	uint64_t unplaced;             /* bytes in each bank of the others */
	struct memory_holder *holders; /* owned */
	size_t count, capacity;
};

struct space {
	const struct snapshot_process *process;
	const struct snapshot_device *device;
	uint32_t type;
	struct free_blocks free_blocks;
	const struct memory_shared *shared; /* NULL: no other process holds any of it */
};

struct memory_map {
	struct space *list; /* owned */
	size_t count, capacity;
	struct memory_shared *shared; /* owned */
	size_t shared_count;
};

#define MEMORY_MAP_NULL     \
	(struct memory_map) \
	{                   \
		0           \
	}

/*
 * Collects all of them; @filter selects devices, a type and a process. Without a type only memories
 * in use are included. What is not known becomes a note. The snapshot must have the requested
 * buffers, is sorted here by place, and must outlive the result. 0 or a negative errno.
 */
int memory_map_find(struct snapshot *snapshot, const struct filter *filter,
		    struct memory_map *ret_map);
void memory_map_deinit(struct memory_map *memory_map);

/*
 * Whether @query's size fits, one answer for each memory in @ret_fits: for the process's own allocator, and on the
 * device beside what other processes hold. Only sharded buffers go to L1_SMALL, so there it depends on
 * their cores.
 * Return: how many memories it does not fit into; @ret_unknown: for how many it is not known.
 */
size_t memory_map_fit(const struct memory_map *memory_map, const struct query *query,
		      struct free_blocks_fit *ret_fits, size_t *ret_unknown);

/* The JSON documents. @fits: one for each memory. */
void memory_map_document_map(struct emit *json, const struct memory_map *memory_map,
			     const struct snapshot *snapshot);
/* Members that identify a memory, and its totals: what both documents have of each. */
void memory_map_put_space(struct emit *json, const char *key, const void *space);
void memory_map_document_fit(struct emit *json, const struct memory_map *memory_map,
			     const struct snapshot *snapshot, const struct free_blocks_fit *fits,
			     uint64_t size);
