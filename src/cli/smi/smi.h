/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The tables of "ttmem smi", shared by smi.c (what is queried) and smi-table.c (how it looks). */

#include <stdbool.h>
#include <stdio.h>

struct by_user;
struct filter;
struct snapshot;

#define SMI_WIDTH_MIN 80u
#define SMI_WIDTH_MAX 160u /* longer lines are hard to read */

struct smi_style {
	bool all;                    /* also closed devices and ended processes */
	bool details;                /* every type */
	const struct by_user *users; /* instead of processes; NULL = processes */
	bool colours;
	bool utf8;
	bool cuts;          /* also cut notes to the width, so that each stays one line */
	bool widens;        /* no terminal: rather wider than a cut name */
	unsigned int width; /* columns available */
};

/* Writes the tables, as wide as there is room for but at least 80 columns. */
void smi_table(FILE *out, const struct snapshot *snapshot, const struct filter *filter,
	       const struct smi_style *style);

/* One row per device and type. */
void smi_csv(FILE *out, const struct snapshot *snapshot, const struct filter *filter);

/* One row per user, device and type. */
void smi_users_csv(FILE *out, const struct snapshot *snapshot, const struct by_user *list);
