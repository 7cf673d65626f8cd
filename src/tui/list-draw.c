/* SPDX-License-Identifier: Apache-2.0 */

/* Tables on the screen: drawing. */

#include <string.h>

#include "base/bits.h"
#include "tui/list.h"

/* Which columns are shown, with their widths and positions. */
static void list_place_columns(struct list *list, const struct list_rows *rows,
			       const struct grid_area *area)
{
	unsigned int needed = 0, grows = 0, at = area->column + 1, left;

	for (size_t i = 0; i < rows->column_count; i++) {
		const struct list_column *column = &rows->columns[i];

		list->widths[i] = 0;
		if (area->columns < column->least)
			continue;
		list->widths[i] =
			column->wide && area->columns >= LIST_PLENTY ? column->wide : column->width;
		needed += list->widths[i] + 1;
		grows += column->grows;
	}
	left = area->columns > needed + 1 ? area->columns - needed - 1 : 0;
	for (size_t i = 0; i < rows->column_count; i++) {
		list->offsets[i] = at;
		if (list->widths[i] > 0 && rows->columns[i].grows) {
			unsigned int share = left / grows;

			list->widths[i] += share;
			left -= share;
			grows--;
		}
		at += list->widths[i] ? list->widths[i] + 1 : 0;
	}
}

static void list_draw_titles(const struct list *list, const struct list_rows *rows,
			     struct grid *grid)
{
	const struct grid_area *area = &list->area;

	grid_restyle(grid, area->row, area->column, area->columns, GRID_HEAD);
	for (size_t i = 0; i < rows->column_count; i++) {
		struct table_column column = list_title(rows, i);
		bool is_sorted = list->sort == i && !rows->columns[i].paint;
		char title[LIST_CELL_SIZE];

		if (list->widths[i] == 0)
			continue;
		snprintf(title, sizeof(title), "%s%s", column.title,
			 !is_sorted      ? ""
			 : grid->ascii   ? (list->falling ? "v" : "^")
			 : list->falling ? "\u25be"
					 : "\u25b4");
		if (column.right)
			grid_right(grid, area->row, list->offsets[i], list->widths[i], GRID_HEAD,
				   title);
		else
			grid_text(grid, area->row, list->offsets[i], list->widths[i], GRID_HEAD,
				  title);
	}
}

static void list_draw_row(const struct list *list, const struct list_rows *rows,
			  const void *context, struct grid *grid, unsigned int row, size_t place)
{
	char room[FIELDS_TEXT];
	struct list_cell cell = {.context = context, .item = list->order[place], .text = room};

	for (size_t i = 0; i < rows->column_count; i++) {
		const char *text;

		if (list->widths[i] == 0)
			continue;
		text = list_cell_text(rows, i, &cell);
		if (list_title(rows, i).right)
			grid_right(grid, row, list->offsets[i], list->widths[i], cell.style, text);
		else
			grid_text(grid, row, list->offsets[i], list->widths[i], cell.style, text);
	}
	if (place == list->place) {
		grid_restyle(grid, row, list->area.column, list->area.columns, GRID_CHOSEN);
		grid_put(grid, row, list->area.column, GRID_CHOSEN, '>');
	}
	/* Last: bars keep their style in a selected row. */
	for (size_t i = 0; i < rows->column_count; i++) {
		const struct list_column *column = &rows->columns[i];
		struct grid_area area = {row, list->offsets[i], 1, list->widths[i]};

		cell.of = column->of;
		if (column->paint && list->widths[i] > 0)
			column->paint(&cell, grid, &area);
	}
}

/* Scrolls so that the selected row is visible, with as many of its unfolded lines as fit. */
static void list_scroll(struct list *list, size_t height)
{
	size_t total = list->count + list->open_lines;
	size_t line = list->place, last;

	if (list->open_place != SIZE_MAX && list->place > list->open_place)
		line += list->open_lines;
	last = list->place == list->open_place ? line + list->open_lines : line;
	if (list->top + height <= last)
		list->top = last + 1 - height;
	if (list->top > line)
		list->top = line;
	if (list->top + height > total)
		list->top = total > height ? total - height : 0;
}

/* One line below the titles. */
static void list_draw_line(const struct list *list, const struct list_rows *rows,
			   const void *context, struct grid *grid, unsigned int row, size_t line)
{
	size_t open = list->open_place;

	if (open != SIZE_MAX && line > open && line <= open + list->open_lines) {
		unsigned int indent = list->area.columns >= 60 ? 6 : 2;
		char text[LIST_CELL_SIZE] = "";

		rows->line(context, list->order[open], line - open - 1, text);
		grid_text(grid, row, list->area.column + indent, list->area.columns - indent,
			  GRID_FAINT, text);
		return;
	}
	if (open != SIZE_MAX && line > open)
		line -= list->open_lines;
	list_draw_row(list, rows, context, grid, row, line);
}

void list_draw(struct list *list, const struct list_rows *rows, const void *context,
	       struct grid *grid, const struct grid_area *area)
{
	size_t height = area->rows > 1 ? area->rows - 1 : 0, total;

	list->area = *area;
	if (area->rows == 0 || area->columns < 8)
		return;
	list_place_columns(list, rows, area);
	list_draw_titles(list, rows, grid);
	list_scroll(list, height);
	total = list->count + list->open_lines;
	for (size_t i = 0; i < height && list->top + i < total; i++)
		list_draw_line(list, rows, context, grid, area->row + 1 + (unsigned int)i,
			       list->top + i);
	if (list->count == 0 && height > 1)
		grid_text(grid, area->row + 2, area->column + 2, area->columns - 2, GRID_FAINT,
			  *list->filter ? "nothing matches the filter" : rows->none);
}
