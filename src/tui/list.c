/* SPDX-License-Identifier: Apache-2.0 */

/* Tables on the screen: order, selection and keys. Drawing is in list-draw.c. */

#include "tui/list.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/bits.h"

void list_deinit(struct list *list)
{
	free(list->order);
	free(list->values);
	*list = (struct list){.order = NULL};
}

bool list_has(const char *text, const char *part)
{
	return !*part || (text && strcasestr(text, part));
}

/* The selected row is found by its key; if it is gone, the row in its place is selected. */
static void list_find_chosen(struct list *list, const struct list_rows *rows, const void *context)
{
	list->open_place = SIZE_MAX;
	list->open_lines = 0;
	for (size_t i = 0; list->open && rows->line_count && i < list->count; i++) {
		if (rows->key(context, list->order[i]) != list->open)
			continue;
		list->open_place = i;
		list->open_lines = rows->line_count(context, list->order[i]);
		break;
	}
	for (size_t i = 0; list->chosen && i < list->count; i++) {
		if (rows->key(context, list->order[i]) == list->chosen) {
			list->place = i;
			return;
		}
	}
	list->place = list->count ? bits_min(list->place, list->count - 1) : 0;
	if (list->chosen && list->count)
		list->chosen = rows->key(context, list->order[list->place]);
}

int list_update(struct list *list, const struct list_rows *rows, const void *context, size_t items)
{
	int r = list_arrange(list, rows, context, items);

	if (r == 0)
		list_find_chosen(list, rows, context);
	return r;
}

bool list_chosen(const struct list *list, size_t *ret_item)
{
	if (list->place >= list->count)
		return false;
	*ret_item = list->order[list->place];
	return true;
}

bool list_fold(struct list *list)
{
	bool was_open = list->open != 0;

	list->open = 0;
	list->open_place = SIZE_MAX;
	list->open_lines = 0;
	return was_open;
}

void list_toggle(struct list *list, const struct list_rows *rows, const void *context)
{
	uint64_t key;

	if (list->place >= list->count || !rows->line_count)
		return;
	key = rows->key(context, list->order[list->place]);
	list->chosen = key;
	if (list->open == key) {
		(void)list_fold(list); /* it was open */
		return;
	}
	list->open = key;
	list_find_chosen(list, rows, context);
}

/* Until the user moves, the first row is selected, whichever that is. */
static int list_go(struct list *list, const struct list_rows *rows, const void *context,
		   size_t place)
{
	list->place = list->count ? bits_min(place, list->count - 1) : 0;
	if (list->count)
		list->chosen = rows->key(context, list->order[list->place]);
	return LIST_MOVED;
}

static size_t list_back(size_t place, size_t by)
{
	return place > by ? place - by : 0;
}

static int list_sort_by(struct list *list, const struct list_rows *rows, size_t column)
{
	if (rows->columns[column].paint)
		return LIST_MOVED;
	list->falling = list->sort == column ? !list->falling : list_title(rows, column).right;
	list->sort = column;
	list->sorts = true;
	return LIST_SORTED;
}

/* The next visible column to sort by. */
static int list_sort_next(struct list *list, const struct list_rows *rows, size_t step)
{
	size_t column = list->sort;

	for (size_t i = 0; i < rows->column_count; i++) {
		column = (column + step) % rows->column_count;
		if (list->widths[column] > 0 && !rows->columns[column].paint &&
		    column != list->sort)
			return list_sort_by(list, rows, column);
	}
	return LIST_MOVED;
}

/* The row that is drawn at @line below the titles; false: none, or an unfolded line. */
static bool list_row_at(const struct list *list, size_t line, size_t *ret_place)
{
	line += list->top;
	if (list->open_place != SIZE_MAX && line > list->open_place) {
		if (line <= list->open_place + list->open_lines)
			return false;
		line -= list->open_lines;
	}
	*ret_place = line;
	return line < list->count;
}

static int list_click(struct list *list, const struct list_rows *rows, const void *context,
		      const struct keys_event *event)
{
	const struct grid_area *area = &list->area;
	size_t place;

	if (event->row < area->row || event->row >= area->row + area->rows ||
	    event->column < area->column || event->column >= area->column + area->columns)
		return LIST_NOT_MINE;
	if (event->row == area->row) {
		for (size_t i = 0; i < rows->column_count; i++) {
			if (list->widths[i] > 0 && event->column >= list->offsets[i] &&
			    event->column <= list->offsets[i] + list->widths[i])
				return list_sort_by(list, rows, i);
		}
		return LIST_MOVED;
	}
	if (!list_row_at(list, event->row - area->row - 1, &place))
		return LIST_MOVED;
	if (place == list->place && list->chosen)
		return LIST_ENTERED;
	return list_go(list, rows, context, place);
}

int list_key(struct list *list, const struct list_rows *rows, const void *context,
	     const struct keys_event *event)
{
	size_t page = list->area.rows > 2 ? list->area.rows - 2 : 1;

	switch (event->key) {
	case KEYS_UP:
	case 'k':
		return list_go(list, rows, context, list_back(list->place, 1));
	case KEYS_DOWN:
	case 'j':
		return list_go(list, rows, context, list->place + 1);
	case KEYS_WHEEL_UP:
		return list_go(list, rows, context, list_back(list->place, LIST_WHEEL));
	case KEYS_WHEEL_DOWN:
		return list_go(list, rows, context, list->place + LIST_WHEEL);
	case KEYS_PAGE_UP:
		return list_go(list, rows, context, list_back(list->place, page));
	case KEYS_PAGE_DOWN:
		return list_go(list, rows, context, list->place + page);
	case KEYS_HOME:
		return list_go(list, rows, context, 0);
	case KEYS_END:
		return list_go(list, rows, context, SIZE_MAX);
	case '>':
		return list_sort_next(list, rows, 1);
	case '<':
		return list_sort_next(list, rows, rows->column_count - 1);
	case 'r':
		return list_sort_by(list, rows, list->sort);
	case KEYS_CLICK:
		return list_click(list, rows, context, event);
	default:
		return LIST_NOT_MINE;
	}
}
