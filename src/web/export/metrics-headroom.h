/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The headroom of L1 in /metrics: how far a process's circular buffers are from its lowest buffer. It is
 * the only metric that needs rows, so they are read for processes with circular buffers alone, and only
 * as many as are read in a few milliseconds. Part of metrics.h.
 */

#include <stdbool.h>
#include <stdint.h>

struct snapshot;
struct snapshot_process;
struct web_provider;

/* Buffers that are read for one scrape; users share them (base/quota.h). */
#define METRICS_HEADROOM_BUFFERS_MAX 65536u

/* How many buffers have to be read for a process; 0 = it has no circular buffers. */
uint64_t metrics_headroom_cost(const struct snapshot_process *process);

/* Its buffers, to be freed by the caller. NULL: they cannot be read, or have become too many. */
struct snapshot *metrics_headroom_read(const struct web_provider *provider,
				       const struct snapshot_process *process);

/* The headroom on a device, by the number that the process has for it. False: not known. */
bool metrics_headroom_of(const struct snapshot *rows, const struct snapshot_process *process,
			 uint32_t device, uint64_t *ret_bytes);
