/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Tables for people, written row by row: widths are given, nothing is stored. On a terminal a table
 * is fitted into its width: columns that need more are left out, others grow, and a cell that is
 * too long is cut if its column says so. Anywhere else nothing is cut or left out. A cell that is
 * not cut pushes the rest of its row to the right. Cells are escaped for the terminal.
 */

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define TABLE_COLUMNS_MAX 16u
#define TABLE_ANY INT_MAX /* as wide as the terminal allows */

struct table_column {
	const char *title;
	int width;
	bool right;         /* numbers */
	bool cut;           /* on a terminal */
	unsigned int least; /* width of the terminal from which it is shown; 0 = always */
	int most;           /* on a wide terminal it grows up to that; 0 = it does not */
};

struct table {
	FILE *out;
	const struct table_column *columns;
	size_t count;
	size_t at;          /* column of the next cell */
	size_t last;        /* the last one that is shown */
	unsigned int width; /* of the terminal; 0 = there is none */
	int widths[TABLE_COLUMNS_MAX];
};

/* Writes the titles. @count: at most TABLE_COLUMNS_MAX. */
void table_begin(struct table *table, FILE *out, const struct table_column *columns, size_t count);

/* The same for a terminal of that width; 0 = there is none. */
void table_begin_within(struct table *table, FILE *out, const struct table_column *columns,
			size_t count, unsigned int width);

/* The next cell; the last one of a row ends the line. */
void table_text(struct table *table, const char *text);
void table_format(struct table *table, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
