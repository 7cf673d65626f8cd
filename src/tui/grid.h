/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A picture of the terminal, cell by cell, in memory. Views draw into it and know nothing of a terminal;
 * whoever has one (tui/terminal.h), or a test, takes the finished picture. Drawing outside of it does
 * nothing, so that a view need not fear a small terminal.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define GRID_SIDE_MAX 1000u /* rows and columns; more of a terminal stays empty */

/* What a cell means; how that looks is for the terminal to say. */
enum grid_style {
	GRID_PLAIN = 0,
	GRID_STRONG,
	GRID_FAINT,
	GRID_BAR,    /* the lines on top and at the bottom */
	GRID_TAB,    /* the view that is shown, in the line on top */
	GRID_HEAD,   /* titles of columns */
	GRID_CHOSEN, /* the row that is chosen */
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

/* A rectangle of it. */
struct grid_area {
	unsigned int row, column;
	unsigned int rows, columns;
};

struct grid {
	unsigned int rows, columns;
	bool ascii; /* nothing else is to be drawn by ourselves */
	struct grid_cell *cells;
};

#define GRID_NULL     \
	(struct grid) \
	{             \
		0     \
	}

/* Makes it empty and that large. 0 or -ENOMEM. */
int grid_begin(struct grid *grid, unsigned int rows, unsigned int columns);
void grid_deinit(struct grid *grid);

void grid_put(struct grid *grid, unsigned int row, unsigned int column, enum grid_style style,
	      uint32_t character);

/* Text of anybody, made harmless, in at most @width columns. Return: the columns it takes. */
unsigned int grid_text(struct grid *grid, unsigned int row, unsigned int column, unsigned int width,
		       enum grid_style style, const char *text);

/* The same at the right end of the @width columns. */
void grid_right(struct grid *grid, unsigned int row, unsigned int column, unsigned int width,
		enum grid_style style, const char *text);

/* Gives cells that are drawn another meaning. */
void grid_restyle(struct grid *grid, unsigned int row, unsigned int column, unsigned int width,
		  enum grid_style style);

/* The picture as lines of text, without blanks at their ends. */
void grid_print(const struct grid *grid, FILE *out);
