/* SPDX-License-Identifier: Apache-2.0 */

/* A picture of the screen in memory. */

#include "tui/grid.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/text.h"

#define GRID_LINE_SIZE (GRID_SIDE_MAX * 4 + 1)

int grid_begin(struct grid *grid, unsigned int rows, unsigned int columns)
{
	size_t count;

	rows = (unsigned int)bits_min(rows, GRID_SIDE_MAX);
	columns = (unsigned int)bits_min(columns, GRID_SIDE_MAX);
	count = (size_t)rows * columns;
	if (!grid->cells || rows != grid->rows || columns != grid->columns) {
		struct grid_cell *cells = calloc(count + 1, sizeof(*cells));

		if (!cells)
			return -ENOMEM;
		free(grid->cells);
		grid->cells = cells;
		grid->rows = rows;
		grid->columns = columns;
	}
	for (size_t i = 0; i < count; i++)
		grid->cells[i] = (struct grid_cell){.character = ' ', .columns = 1};
	return 0;
}

void grid_deinit(struct grid *grid)
{
	free(grid->cells);
	*grid = GRID_NULL;
}

static struct grid_cell *grid_at(struct grid *grid, unsigned int row, unsigned int column)
{
	if (row >= grid->rows || column >= grid->columns)
		return NULL;
	return &grid->cells[(size_t)row * grid->columns + column];
}

/* When one half of a wide character is overwritten, the other half must not stay. */
static void grid_free_cell(struct grid *grid, unsigned int row, unsigned int column)
{
	struct grid_cell *cell = grid_at(grid, row, column);
	struct grid_cell *other = NULL;

	if (!cell)
		return;
	if (cell->columns == 0 && column > 0)
		other = grid_at(grid, row, column - 1);
	else if (cell->columns == 2)
		other = grid_at(grid, row, column + 1);
	if (other) {
		other->character = ' ';
		other->columns = 1;
	}
}

void grid_put(struct grid *grid, unsigned int row, unsigned int column, enum grid_style style,
	      uint32_t character)
{
	struct grid_cell *cell = grid_at(grid, row, column);
	size_t columns = text_columns(character);

	/* A character without a width would combine with the cell before it. */
	if (!cell || columns == 0 || column + columns > grid->columns)
		return;
	grid_free_cell(grid, row, column);
	if (columns == 2) {
		grid_free_cell(grid, row, column + 1);
		cell[1] = (struct grid_cell){.character = ' ', .style = (uint8_t)style};
	}
	*cell = (struct grid_cell){
		.character = character,
		.style = (uint8_t)style,
		.columns = (uint8_t)columns,
	};
}

unsigned int grid_text(struct grid *grid, unsigned int row, unsigned int column, unsigned int width,
		       enum grid_style style, const char *text)
{
	char shown[GRID_LINE_SIZE];
	size_t length, at = 0;
	unsigned int begin = column;

	text_fit(text, bits_min(width, GRID_SIDE_MAX), shown, sizeof(shown));
	length = strlen(shown);
	while (at < length) {
		uint32_t character;

		at += text_decode(shown + at, length - at, &character);
		grid_put(grid, row, column, style, character);
		column += (unsigned int)text_columns(character);
	}
	return column - begin;
}

void grid_right(struct grid *grid, unsigned int row, unsigned int column, unsigned int width,
		enum grid_style style, const char *text)
{
	char shown[GRID_LINE_SIZE];
	size_t taken;

	/* Only for its width: drawing this would escape the text twice. */
	text_fit(text, bits_min(width, GRID_SIDE_MAX), shown, sizeof(shown));
	taken = text_width(shown);
	if (taken < width)
		column += width - (unsigned int)taken;
	grid_text(grid, row, column, width, style, text);
}

void grid_restyle(struct grid *grid, unsigned int row, unsigned int column, unsigned int width,
		  enum grid_style style)
{
	for (unsigned int i = 0; i < width; i++) {
		struct grid_cell *cell = grid_at(grid, row, column + i);

		if (!cell)
			return;
		cell->style = (uint8_t)style;
	}
}
