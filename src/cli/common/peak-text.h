/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Peaks for people: a line about each, and what was live then, largest first, whoever made them: this command, or
 * the daemon.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct peak_list;

struct peak_text {
	FILE *out;
	const char *indent;
	size_t rows;    /* of a peak, the most that are shown; 0 = all */
	bool is_spaced; /* an empty line between peaks */
	bool is_over;   /* all processes have ended, and everybody knows */
};

/*
 * For each peak "device 0 DRAM peak 1.2 GiB at 16:03:12 (pid 123 python), exact" and a row for each group.
 * Devices of a mesh on which the same was live are told once, if their peaks are next to each other.
 */
void peak_text_put(const struct peak_text *text, const struct peak_list *peaks);

/* The largest first; those of a mesh, which are alike, together. */
void peak_text_sort(struct peak_list *peaks);
