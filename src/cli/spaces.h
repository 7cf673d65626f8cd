/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The memories that "ttmem map" and "ttmem fit" tell of: one for each process, device and type that is wanted. */

#include <stdbool.h>
#include <stdint.h>

#include "core/filter.h"
#include "core/holes.h"

struct look;
struct snapshot;
struct snapshot_device;
struct snapshot_process;

struct space {
	const struct snapshot_process *process;
	const struct snapshot_device *device;
	uint32_t type;
	struct holes holes;
};

struct spaces {
	struct space *list; /* ours */
	size_t count, capacity;
};

#define SPACES_NULL     \
	(struct spaces) \
	{               \
		0       \
	}

/*
 * All of them; @filter chooses devices, a type and a process, and without a type only memories in use are there. What
 * cannot be told becomes a note. The snapshot is the caller's and must outlive the spaces. 0 or a
 * negative errno.
 */
int spaces_take(struct look *look, const struct filter *filter, struct snapshot **ret_snapshot,
		struct spaces *ret_spaces);
void spaces_deinit(struct spaces *spaces);

/* "pid 42 (python3), device 1, DRAM", a line. */
void spaces_print_title(const struct space *space);

/* The JSON documents, to stdout. @fits: one for each space. */
void spaces_document_map(const struct spaces *spaces, const struct snapshot *snapshot);
void spaces_document_fit(const struct spaces *spaces, const struct snapshot *snapshot,
			 const struct holes_fit *fits, uint64_t size);
