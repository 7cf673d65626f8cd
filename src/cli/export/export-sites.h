/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The buffers of a moment, added up by process, device, type and stack; without a stack by their names. */

#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "base/pool.h"

struct export_target;

struct export_site {
	uint32_t process; /* index into the snapshot */
	uint32_t device;
	uint32_t type;
	const struct stack *stack; /* NULL = none; then: */
	const char *name;          /* the stem of their names; NULL = they have none */
	uint64_t buffers, bytes;
	uint64_t allocs, alloc_bytes; /* only if the target has counts */
};

struct export_sites {
	struct export_site *list; /* in the order of processes and devices */
	size_t count, capacity;
	struct pool stems;
	struct map index;
};

#define EXPORT_SITES_NULL ((struct export_sites){.list = NULL})

/* Of the target's snapshot, which must outlive the result. */
struct export_sites export_sites_find(const struct export_target *target);
void export_sites_deinit(struct export_sites *sites);
