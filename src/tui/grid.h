/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A picture of the screen, cell by cell, in memory. Views draw into it and know nothing of a
 * terminal; the terminal (tui/terminal.h) or a test takes the finished picture. Drawing outside it
 * does nothing, so that views need not check for a small terminal.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define GRID_SIDE_MAX 1000u /* rows and columns; the rest of a larger terminal stays empty */

/* The meaning of a cell; the terminal decides what it looks like. */
enum grid_style {
	GRID_PLAIN = 0,
	GRID_STRONG,
	GRID_FAINT,
	GRID_BAR,    /* the top and bottom lines */
	GRID_TAB,    /* the current view, in the top line */
	GRID_HEAD,   /* column titles */
	GRID_CHOSEN, /* the selected row */
	GRID_GOOD,
	GRID_WARNING,
	GRID_BAD,
	GRID_NOTICE,
	GRID_STYLES,
};

struct grid_cell {
	uint32_t character;
	uint8_t style;   /* enum grid_style */
	uint8_t columns; /* 1, 2, or 0 for the right half of a wide character */
};

/* A rectangle of the grid. */
struct grid_area {
	unsigned int row, column;
	unsigned int rows, columns;
};

struct grid {
	unsigned int rows, columns;
	bool ascii; /* use no other characters for drawing */
	struct grid_cell *cells;
};

#define GRID_NULL     \
	(struct grid) \
	{             \
		0     \
	}

/* Clears it and sets its size. 0 or -ENOMEM. */
int grid_begin(struct grid *grid, unsigned int rows, unsigned int columns);
void grid_deinit(struct grid *grid);

void grid_put(struct grid *grid, unsigned int row, unsigned int column, enum grid_style style,
	      uint32_t character);

/* Untrusted text, escaped, in at most @width columns. Return: the columns it takes. */
unsigned int grid_text(struct grid *grid, unsigned int row, unsigned int column, unsigned int width,
		       enum grid_style style, const char *text);

/* The same, aligned to the right of the @width columns. */
void grid_right(struct grid *grid, unsigned int row, unsigned int column, unsigned int width,
		enum grid_style style, const char *text);

/* Changes the style of cells that are already drawn. */
void grid_restyle(struct grid *grid, unsigned int row, unsigned int column, unsigned int width,
		  enum grid_style style);
