/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Shared by the collector of events for Firefox Profiler and the writer of its file. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "cli/export/visualizer/export-stacks.h"

struct export_target;

struct firefox_row {
	uint64_t time_ns;
	uint64_t bytes;
	uint32_t buffer; /* the same for the allocation and the free of a buffer */
	uint32_t node;
	uint32_t thread;
	bool is_free;
};

/* A type of memory of a process. */
struct firefox_thread {
	uint32_t process;
	uint32_t type;
	struct export_stacks stacks;
	struct firefox_row *rows;
	size_t count, capacity;
};

struct firefox {
	struct export_target *target;
	struct map index; /* of the threads */
	struct firefox_thread *threads;
	size_t capacity;
	struct map addresses;
	uint64_t rows;
};

/* Writes all that was collected. */
void firefox_finish(void *state);
