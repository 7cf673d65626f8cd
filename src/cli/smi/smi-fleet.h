/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The table of devices of several machines, from any source. On a terminal names are cut to fit. All of its
 * content comes from other machines and cannot be trusted.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/table.h"

struct snapshot_device;

struct smi_fleet {
	struct table table;
	uint64_t dram, l1, buffers; /* of all rows */
};

/* @kind: title of the third column. */
void smi_fleet_begin(struct smi_fleet *fleet, const char *kind);

/* @kind: NULL = not known. Of @device its memory counts. */
void smi_fleet_row(struct smi_fleet *fleet, const char *host, const char *number, const char *kind,
		   const struct snapshot_device *device);

/* A host without a device, and why. */
void smi_fleet_lack(struct smi_fleet *fleet, const char *host, const char *why);

/*
 * Ends the table. Return: @is_known; then the sums of all rows were printed, and the caller completes the line,
 * or else no machine has answered.
 */
bool smi_fleet_end(struct smi_fleet *fleet, bool is_known);
