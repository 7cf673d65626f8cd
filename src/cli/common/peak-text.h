/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A peak for people: a line about it, and what was live then, largest first. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "model/sites/group.h"

struct snapshot;

struct peak_text {
	FILE *out;
	const char *indent;
	enum group_kind kind;
	size_t rows;    /* of a peak, the most that are shown; 0 = all */
	bool is_spaced; /* an empty line between peaks */
	bool is_over;   /* all processes have ended, and everybody knows */
};

/*
 * For each peak "device 0 DRAM peak 1.2 GiB at 16:03:12 (pid 123 python), exact" and a row for each group.
 * Devices of a mesh on which the same was live are told once. @snapshot's peaks are sorted. 0 or -ENOMEM.
 */
int peak_text_put(const struct peak_text *text, const struct snapshot *snapshot);
