/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * ttmem.host/1: a machine in one row, for those who look at many. It has no names of processes and users, and
 * its size does not depend on what runs there.
 */

#include <stdbool.h>
#include <stdint.h>

#include "answers/fields.h"

struct document;
struct emit;
struct health;
struct snapshot;

struct host_amount {
	uint64_t used, capacity; /* capacity 0 = not known */
};

struct host_row {
	bool is_exact;
	const char *status; /* "ok" or "degraded"; of another machine anything, or NULL */
	uint64_t start_ns, devices, processes, bytes, buffers;
	struct {
		struct host_amount dram, l1;
	} memory;
	bool has_fullest; /* the capacity of some device is known; then: */
	struct {
		uint64_t device;
		uint32_t type;
		struct host_amount amount;
	} fullest;
	struct {
		uint64_t over_ns; /* since when growth is known; 0 = not known */
		int64_t bytes;    /* growth */
		uint64_t incidents;
	} hour;
};

/* All that does not depend on whose word it is: every member but the status. */
extern const struct field host_facts[];
extern const struct field host_fields[];
extern const struct document host_document; /* its row: a host_row */

void host_put(struct emit *json, const struct snapshot *snapshot, const struct health *health,
	      bool is_well);
