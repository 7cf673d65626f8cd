/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Tables for people: columns are as wide as what is in them. Rows are held until the end of the table, or
 * until there are TABLE_HELD of them; what follows has the widths of those and is written as it comes.
 *
 * On a terminal the table is fitted into its width: columns go in their order, then those that may be cut
 * share what the others leave. Anywhere else nothing is cut, left out or moved. Cells are escaped for the
 * terminal.
 *
 * A frame has its width wherever it is shown, and so do its columns unless they need more; its table is held
 * until the end.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define TABLE_COLUMNS_MAX 16u
#define TABLE_HELD 1000u

struct table_column {
	const char *title;
	bool right; /* numbers */
	bool cut;   /* on a terminal, down to its title */
	bool below; /* instead of leaving it moves to a second line, with all columns behind it */
	uint8_t order;  /* where there is no room, 1 leaves first; 0 stays */
	uint16_t least; /* others leave before it is cut further; in a frame it is not narrower */
};

struct table {
	FILE *out;
	const struct table_column *columns;
	size_t count;
	size_t at;       /* column of the next cell */
	size_t below;    /* the first column of the second line */
	uint32_t hidden; /* a bit for each column that has left */
	bool framed;
	unsigned char colour; /* of the next cell, to be set before it: 1 red, 2 green; 0 = none */
	unsigned int width;   /* of the terminal or the frame; 0 = there is none */
	unsigned int blanks;  /* before the next cell */
	unsigned int widths[TABLE_COLUMNS_MAX];

	/* Until widths are known: before each row the lines below the one before it, then its cells with their kind. */
	FILE *held;
	char *text;
	size_t size;
	size_t rows;
};

/* @count: at most TABLE_COLUMNS_MAX; @width: of the terminal, 0 = there is none. The table must not move. */
void table_begin(struct table *table, FILE *out, const struct table_column *columns, size_t count,
		 unsigned int width);

/* The next cell; the last one of a row ends the line. */
void table_text(struct table *table, const char *text);
void table_format(struct table *table, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* The same text in all that are left of a row; and one for several columns, which does not count for their widths. */
void table_rest(struct table *table, const char *text);
void table_span(struct table *table, size_t columns, const char *text);

/* Where lines below the last row are written, until the next cell; without memory for them they may be lost. */
FILE *table_lines(struct table *table);

/* Draws a frame of the width; to be called before the first row. */
void table_frame(struct table *table);

/* Makes the table wider, but not wider than @most, so that those are not cut that stay; others leave before. */
void table_widen(struct table *table, unsigned int most);

/* A line of a frame. */
void table_rule(FILE *out, unsigned int width);

/* Writes what is held, and at least the titles. */
void table_end(struct table *table);
