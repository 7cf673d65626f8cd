/* SPDX-License-Identifier: Apache-2.0 */

/* Tables on the screen: what columns show, and how rows are ordered and found, from the fields of the rows. */

#include <errno.h>
#include <inttypes.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/bits.h"
#include "base/text.h"
#include "tui/list.h"

static const struct field *list_field(const struct list_rows *rows, size_t column)
{
	return fields_named(rows->fields, rows->columns[column].key);
}

struct table_column list_title(const struct list_rows *rows, size_t at)
{
	const struct list_column *column = &rows->columns[at];

	return column->title ? (struct table_column){.title = column->title, .right = column->right}
			     : list_field(rows, at)->column;
}

static const char *list_field_text(const struct list_rows *rows, const struct field *field,
				   struct list_cell *cell)
{
	struct fields_room room;
	const void *row = rows->row(cell->context, cell->item, &room);
	uint64_t then, now;

	if (field->kind != FIELD_TIME)
		return fields_cell(field, row, cell->text);
	then = fields_value(field, row).number;
	now = bits_max(rows->now(cell->context), then);
	return then ? text_duration(now - then, cell->text) : NULL;
}

const char *list_cell_text(const struct list_rows *rows, size_t at, struct list_cell *cell)
{
	const struct list_column *column = &rows->columns[at];
	const char *text = "";

	cell->style = GRID_PLAIN;
	cell->of = column->of;
	if (column->cell) {
		text = column->cell(cell);
	} else if (column->value) {
		snprintf(cell->text, FIELDS_TEXT, "%" PRIu64, column->value(cell));
		text = cell->text;
	} else if (column->key) {
		text = list_field_text(rows, list_field(rows, at), cell);
	}
	if (!text && column->none)
		cell->style = GRID_FAINT;
	return text ? text : column->none ? column->none : "-";
}

static bool list_shows(const struct list_rows *rows, const void *context, size_t item,
		       const char *filter, const struct fields_view *sought)
{
	struct fields_room room;
	char text[FIELDS_TEXT];
	const void *row;

	if (rows->wants && !rows->wants(context, item))
		return false;
	if (!*filter || (rows->finds && rows->finds(context, item, filter)))
		return true;
	row = sought->count ? rows->row(context, item, &room) : NULL;
	for (size_t i = 0; i < sought->count; i++) {
		if (list_has(fields_cell(sought->fields[i], row, text), filter))
			return true;
	}
	return false;
}

struct list_sorting {
	const struct list *list;
	const struct list_rows *rows;
	const void *context;
	const struct list_column *column;
	const struct field *field; /* that has the values; NULL = the column's functions have */
};

static int list_compare_values(const struct list_sorting *by, size_t a, size_t b)
{
	const union field_value *values = by->list->values;
	char left[FIELDS_TEXT], right[FIELDS_TEXT];
	struct list_cell x = {.context = by->context, .item = a, .text = left};
	struct list_cell y = {.context = by->context, .item = b, .text = right};

	if (by->field && by->field->kind == FIELD_TEXT)
		return strcmp(values[a].text, values[b].text);
	if (by->field || by->column->value)
		return bits_compare(values[a].number, values[b].number);
	return strcmp(list_cell_text(by->rows, by->list->sort, &x),
		      list_cell_text(by->rows, by->list->sort, &y));
}

static int list_compare(const void *left, const void *right, void *sorting)
{
	const struct list_sorting *by = sorting;
	size_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
	int r = by->rows->siblings ? by->rows->siblings(by->context, &a, &b) : 0;

	if (r)
		return r;
	r = list_compare_values(by, a, b);
	if (r == 0 && by->rows->compare)
		r = by->rows->compare(by->context, a, b);
	if (by->list->falling)
		r = -r;
	/* Equal rows must not change places from one update to the next. */
	return r ? r : bits_compare(a, b);
}

static bool list_grow(struct list *list, size_t items)
{
	uint32_t *order = array_grow(list->order, &list->capacity, items, sizeof(*order));
	union field_value *values =
		array_grow(list->values, &list->value_capacity, items, sizeof(*values));

	list->order = order ? order : list->order;
	list->values = values ? values : list->values;
	return order && values;
}

/* Read once, not for each comparison. */
static union field_value list_value(const struct list_sorting *by, size_t item)
{
	const struct list_cell cell = {.context = by->context, .item = item, .of = by->column->of};
	struct fields_room room;
	union field_value value = {.number = 0};

	if (by->column->value) {
		value.number = by->column->value(&cell);
	} else if (by->field) {
		value = fields_value(by->field, by->rows->row(by->context, item, &room));
		if (by->field->kind == FIELD_TIME) /* the order of ages */
			value.number = UINT64_MAX - value.number;
	}
	return value;
}

int list_arrange(struct list *list, const struct list_rows *rows, const void *context, size_t items)
{
	const struct list_column *column = &rows->columns[list->sort];
	struct fields_view sought = {.count = 0};
	struct list_sorting by = {list, rows, context, column, NULL};

	if (!list_grow(list, bits_max(items, 1)))
		return -ENOMEM;
	if (column->key && !column->value)
		by.field = list_field(rows, list->sort);
	if (rows->sought)
		fields_choose(&sought, rows->fields, rows->sought);
	list->count = 0;
	for (size_t i = 0; i < items; i++) {
		bool is_shown = list_shows(rows, context, i, list->filter, &sought);

		if (is_shown)
			list->order[list->count++] = (uint32_t)i;
		if (is_shown || rows->siblings)
			list->values[i] = list_value(&by, i);
	}
	qsort_r(list->order, list->count, sizeof(*list->order), list_compare, &by);
	return 0;
}
