/* SPDX-License-Identifier: Apache-2.0 */

/* Tables for people. */

#include "base/table.h"

#include <stdarg.h>
#include <string.h>

#include "base/text.h"

#define TABLE_CELL 1024 /* the longest cell shown */

static void table_pad(FILE *out, int width)
{
	if (width > 0)
		fprintf(out, "%*s", width, "");
}

/* @cell is already escaped. */
static void table_cell(struct table *table, const char *cell)
{
	const struct table_column *column = &table->columns[table->at];
	bool last = table->at + 1 == table->count;
	int pad = column->width - (int)text_width(cell);

	if (table->at > 0)
		fputs("  ", table->out);
	if (column->right)
		table_pad(table->out, pad);
	fputs(cell, table->out);
	if (!column->right && !last)
		table_pad(table->out, pad);
	if (last)
		fputc('\n', table->out);
	table->at = last ? 0 : table->at + 1;
}

void table_begin(struct table *table, FILE *out, const struct table_column *columns, size_t count)
{
	*table = (struct table){.out = out, .columns = columns, .count = count};
	for (size_t i = 0; i < count; i++)
		table_cell(table, columns[i].title);
}

void table_text(struct table *table, const char *text)
{
	const struct table_column *column = &table->columns[table->at];
	char cell[TABLE_CELL];

	if (column->cut)
		text_fit(text, (size_t)column->width, cell, sizeof(cell));
	else
		text_escape(text, cell, sizeof(cell));
	table_cell(table, cell);
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
