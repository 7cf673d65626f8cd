/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The table of devices of several machines, from any source. On a terminal names are cut to fit. All of its
 * content comes from other machines and cannot be trusted.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/table.h"

struct emit;

/* Of one device: DRAM and L1 only. */
struct smi_fleet_sums {
	uint64_t dram, dram_capacity, l1, l1_capacity, buffers;
};

struct smi_fleet {
	struct table table;
	struct smi_fleet_sums all;
};

/* @kind: title of the third column. */
void smi_fleet_begin(struct smi_fleet *fleet, const char *kind);
void smi_fleet_row(struct smi_fleet *fleet, const char *host, const char *device, const char *kind,
		   const struct smi_fleet_sums *sums);

/* A host without a device, and why. */
void smi_fleet_lack(struct smi_fleet *fleet, const char *host, const char *why);

/*
 * Ends the table. Return: @is_known; then the sums of all rows were printed, and the caller completes the line,
 * or else no machine has answered.
 */
bool smi_fleet_end(struct smi_fleet *fleet, bool is_known);

/* Ends the list of a document of several machines, and the document. */
void smi_fleet_end_json(struct emit *json);

/*
 * Adds one type of memory of a device: traces are in DRAM; small L1, circular buffers and kernels
 * in L1.
 */
void smi_fleet_add(struct smi_fleet_sums *sums, uint32_t type, uint64_t used, uint64_t capacity);
