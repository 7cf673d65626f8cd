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
struct snapshot;
struct snapshot_device;
struct snapshot_process;

struct space {
	const struct snapshot_process *process;
	const struct snapshot_device *device;
	uint32_t type;
	struct free_blocks free_blocks;
};

struct memory_map {
	struct space *list; /* owned */
	size_t count, capacity;
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
 * Whether @size bytes in pages of @page_size (0: the smallest possible) fit, one answer for each
 * memory in @ret_fits.
 * Return: how many memories they do not fit into.
 */
size_t memory_map_fit(const struct memory_map *memory_map, uint64_t size, uint64_t page_size,
		      struct free_blocks_fit *ret_fits);

/* The JSON documents. @fits: one for each memory. */
void memory_map_document_map(struct emit *json, const struct memory_map *memory_map,
			     const struct snapshot *snapshot);
/* Members that identify a memory, and its totals: what both documents have of each. */
void memory_map_document_space(struct emit *json, const struct space *space);
void memory_map_document_fit(struct emit *json, const struct memory_map *memory_map,
			     const struct snapshot *snapshot, const struct free_blocks_fit *fits,
			     uint64_t size);
