/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The tables of "ttmem smi", between smi.c (what is asked) and smi-table.c (how it looks). */

#include <stdbool.h>
#include <stdio.h>

struct filter;
struct snapshot;

struct smi_style {
	bool all;     /* closed devices and ended processes too */
	bool details; /* every type */
	bool colours;
	bool utf8;
};

/* Writes the tables, 80 columns wide. */
void smi_table(FILE *out, const struct snapshot *snapshot, const struct filter *filter,
	       const struct smi_style *style);

/* One row for each device and type. */
void smi_csv(FILE *out, const struct snapshot *snapshot, const struct filter *filter);
