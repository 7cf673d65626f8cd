/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Tables for people, written row by row: widths are given, nothing is stored. A cell that is too
 * long is cut if its column says so, otherwise it pushes the rest of its row to the right; the last
 * column has no limit. Cells are escaped for the terminal.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct table_column {
	const char *title;
	int width;
	bool right; /* numbers */
	bool cut;
};

struct table {
	FILE *out;
	const struct table_column *columns;
	size_t count;
	size_t at; /* column of the next cell */
};

/* Writes the titles. */
void table_begin(struct table *table, FILE *out, const struct table_column *columns, size_t count);

/* The next cell; the last one of a row ends the line. */
void table_text(struct table *table, const char *text);
void table_format(struct table *table, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
