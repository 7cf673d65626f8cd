/* SPDX-License-Identifier: Apache-2.0 */

/* Tables for people. */

#include "base/table.h"

#include <assert.h>
#include <stdarg.h>
#include <string.h>

#include "base/bits.h"
#include "base/text.h"

#define TABLE_CELL 1024 /* the longest cell shown */
#define TABLE_GAP 2     /* columns between two cells */

static void table_pad(FILE *out, int width)
{
	if (width > 0)
		fprintf(out, "%*s", width, "");
}

static bool table_shows(const struct table *table, size_t at)
{
	return !table->width || table->columns[at].least <= table->width;
}

/* What the columns leave of the terminal's width. */
static int table_room(const struct table *table)
{
	int room = (int)table->width + TABLE_GAP;

	for (size_t i = 0; i < table->count; i++) {
		if (table_shows(table, i))
			room -= table->widths[i] + TABLE_GAP;
	}
	return room;
}

static bool table_grows(const struct table *table, size_t at)
{
	return table_shows(table, at) && table->widths[at] < table->columns[at].most;
}

/* Shares what is left among the columns that can use it. */
static void table_grow(struct table *table)
{
	int room = table_room(table);

	for (bool grown = true; room > 0 && grown;) {
		grown = false;
		for (size_t i = 0; i < table->count && room > 0; i++) {
			if (!table_grows(table, i))
				continue;
			table->widths[i]++;
			room--;
			grown = true;
		}
	}
}

/* @cell is already escaped. */
static void table_cell(struct table *table, const char *cell)
{
	const struct table_column *column = &table->columns[table->at];
	bool last = table->at == table->last;
	int pad = table->widths[table->at] - (int)text_width(cell);

	if (column->right)
		table_pad(table->out, pad);
	fputs(cell, table->out);
	if (!last)
		table_pad(table->out, (column->right ? 0 : (pad > 0 ? pad : 0)) + TABLE_GAP);
	else
		fputc('\n', table->out);
}

static void table_go_on(struct table *table)
{
	table->at = table->at + 1 == table->count ? 0 : table->at + 1;
}

void table_begin_within(struct table *table, FILE *out, const struct table_column *columns,
			size_t count, unsigned int width)
{
	assert(count <= TABLE_COLUMNS_MAX);
	*table = (struct table){.out = out, .columns = columns, .count = count, .width = width};
	for (size_t i = 0; i < count; i++) {
		table->widths[i] = columns[i].width;
		if (table_shows(table, i))
			table->last = i;
	}
	if (width)
		table_grow(table);
	for (size_t i = 0; i < count; i++)
		table_text(table, columns[i].title);
}

void table_begin(struct table *table, FILE *out, const struct table_column *columns, size_t count)
{
	table_begin_within(table, out, columns, count, 0);
}

void table_text(struct table *table, const char *text)
{
	const struct table_column *column = &table->columns[table->at];
	char cell[TABLE_CELL];

	if (table_shows(table, table->at)) {
		if (column->cut && table->width)
			text_fit(text, (size_t)table->widths[table->at], cell, sizeof(cell));
		else
			text_escape(text, cell, sizeof(cell));
		table_cell(table, cell);
	}
	table_go_on(table);
}

void table_format(struct table *table, const char *format, ...)
{
	char text[TABLE_CELL];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	table_text(table, text);
}
