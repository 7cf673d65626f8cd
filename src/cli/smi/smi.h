/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The tables of "ttmem smi", between smi.c (what is asked) and smi-table.c (how it looks). */

#include <stdbool.h>
#include <stdio.h>

struct filter;
struct snapshot;

#define SMI_WIDTH_MIN 80u
#define SMI_WIDTH_MAX 160u /* beyond it lines are hard to follow */

struct smi_style {
	bool all;     /* closed devices and ended processes too */
	bool details; /* every type */
	bool colours;
	bool utf8;
	bool cuts;          /* notes too are cut to the width: a line must stay one */
	unsigned int width; /* columns that there are */
};

/* Writes the tables, as wide as there is room but at least 80 columns. */
void smi_table(FILE *out, const struct snapshot *snapshot, const struct filter *filter,
	       const struct smi_style *style);

/* One row for each device and type. */
void smi_csv(FILE *out, const struct snapshot *snapshot, const struct filter *filter);
