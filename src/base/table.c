/* SPDX-License-Identifier: Apache-2.0 */

/* Tables for people. */

#include "base/table.h"

#include <assert.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/text.h"

#define TABLE_CELL 1024 /* bytes of a cell that count for its width, and most of table_format() */
#define TABLE_INDENT 4u /* of a second line */
#define TABLE_COLOUR 32 /* more than there are columns */

static bool table_shows(const struct table *table, size_t at)
{
	return !(table->hidden >> at & 1);
}

/* Columns between two cells. */
static unsigned int table_gap(const struct table *table)
{
	return table->framed ? 1 : 2;
}

/* What a line of a row leaves of the terminal's width: the first one, or that below it. */
static int table_room(const struct table *table, bool is_below)
{
	int room = (int)(table->width + table_gap(table)) -
		   (is_below || table->framed ? (int)TABLE_INDENT : 0);

	for (size_t i = 0; i < table->count; i++) {
		if (table_shows(table, i) && (i >= table->below) == is_below)
			room -= (int)(table->widths[i] + table_gap(table));
	}
	return room;
}

/* The next column leaves the first line. Return: whether there was one. */
static bool table_leave(struct table *table)
{
	uint8_t least = UINT8_MAX;
	size_t first = 0;

	for (size_t i = 0; i < table->below; i++) {
		uint8_t order = table->columns[i].order;

		if (order && order < least && table_shows(table, i)) {
			least = order;
			first = i;
		}
	}
	if (least == UINT8_MAX)
		return false;
	if (table->columns[first].below)
		table->below = first;
	else
		table->hidden |= UINT32_C(1) << first;
	return true;
}

/* Cuts columns as far as may be. */
static void table_cut(struct table *table, bool is_last_resort)
{
	for (size_t i = 0; i < table->count; i++) {
		const struct table_column *column = &table->columns[i];
		size_t least =
			bits_max(text_width(column->title), is_last_resort ? 0 : column->least);

		if (column->cut)
			table->widths[i] = (unsigned int)bits_min(table->widths[i], least);
	}
}

/* Fits the columns into the terminal: some leave, then those that are cut share the room. */
static void table_fit(struct table *table)
{
	unsigned int wanted[TABLE_COLUMNS_MAX];

	memcpy(wanted, table->widths, sizeof(wanted));
	table_cut(table, false);
	while (table_room(table, false) < 0 && table_leave(table))
		;
	if (table_room(table, false) < 0)
		table_cut(table, true);
	for (bool grown = true; grown;) {
		grown = false;
		for (size_t i = 0; i < table->count; i++) {
			if (!table_shows(table, i) || table->widths[i] == wanted[i] ||
			    table_room(table, i >= table->below) <= 0)
				continue;
			table->widths[i]++;
			grown = true;
		}
	}
}

/* Writes a cell. Blanks wait for the next one, so that no line ends in them. */
static void table_put(struct table *table, unsigned int colour, const char *text,
		      unsigned int width)
{
	const struct table_column *column = &table->columns[table->at];
	bool is_cut = column->cut && table->width;
	char cell[TABLE_CELL];
	unsigned int pad;

	if (!*text) {
		table->blanks += width + table_gap(table);
		return;
	}
	text_fit(text, is_cut ? width : SIZE_MAX, cell, sizeof(cell));
	pad = width - (unsigned int)bits_min(width, text_width(cell));
	fprintf(table->out, "%*s", (int)(table->blanks + (column->right ? pad : 0)), "");
	if (colour)
		fprintf(table->out, "\033[3%um", colour);
	if (is_cut || TEXT_ESCAPE_SIZE(strlen(text)) <= sizeof(cell))
		fputs(cell, table->out);
	else
		text_put(table->out, text);
	if (colour)
		fputs("\033[0m", table->out);
	table->blanks = table_gap(table) + (column->right ? 0 : pad);
}

/* The next cell of a row whose widths are known. @kind: how many columns it takes, and its colour. */
static void table_write(struct table *table, unsigned char kind, const char *text)
{
	size_t columns = kind % TABLE_COLOUR;
	unsigned int width = 0;

	if (table->at == 0 && table->framed)
		fputs("| ", table->out);
	if (table->at == table->below) {
		fputc('\n', table->out);
		table->blanks = TABLE_INDENT;
	}
	for (size_t i = table->at; i < table->at + columns; i++)
		width += table_shows(table, i) ? table->widths[i] + table_gap(table) : 0;
	if (width)
		table_put(table, kind / TABLE_COLOUR, text, width - table_gap(table));
	table->at += columns;
	if (table->at < table->count)
		return;
	if (table->framed)
		fprintf(table->out, "%*s|", (int)table->blanks, "");
	fputc('\n', table->out);
	table->at = table->blanks = 0;
}

void table_rule(FILE *out, unsigned int width)
{
	fputc('+', out);
	for (unsigned int i = 2; i < width; i++)
		fputc('-', out);
	fputs("+\n", out);
}

/* The last column that is cut and stays gets what the others leave of a frame. */
static void table_fill(struct table *table)
{
	for (size_t i = table->count; i-- > 0;) {
		if (table->columns[i].cut && !table->columns[i].order) {
			table->widths[i] += (unsigned int)table_room(table, false);
			return;
		}
	}
}

/* Decides on the widths, and writes what is held: also part of a row, when there is no memory for the rest. */
static void table_settle(struct table *table)
{
	size_t cells = table->rows * table->count + table->at;
	FILE *held = table->held;
	unsigned char kind;
	const char *text;

	if (table->width)
		table_fit(table);
	if (table->framed && table_room(table, false) > 0)
		table_fill(table);
	table->held = NULL;
	table->at = 0;
	for (size_t i = 0; i < table->count; i++)
		table_write(table, 1, table->columns[i].title);
	if (table->framed)
		table_rule(table->out, table->width);
	if (!held)
		return;
	fflush(held);
	text = table->text;
	for (size_t i = 0; i < cells; i += kind % TABLE_COLOUR) {
		if (table->at == 0) {
			fputs(text, table->out);
			text += strlen(text) + 1;
		}
		kind = (unsigned char)*text;
		table_write(table, kind, text + 1);
		text += strlen(text) + 1;
	}
	if (table->at == 0) /* Where memory ended, no NUL may be behind these lines. */
		fwrite(text, 1, strnlen(text, (size_t)(table->text + table->size - text)),
		       table->out);
	fclose(held);
	free(table->text);
}

void table_begin(struct table *table, FILE *out, const struct table_column *columns, size_t count,
		 unsigned int width)
{
	assert(count <= TABLE_COLUMNS_MAX);
	*table = (struct table){
		.out = out, .columns = columns, .count = count, .below = count, .width = width};
	for (size_t i = 0; i < count; i++)
		table->widths[i] = (unsigned int)text_width(columns[i].title);
	table->held = open_memstream(&table->text, &table->size);
	if (!table->held)
		table_settle(table);
}

/* Return: whether there was memory for the cell. */
static bool table_hold(struct table *table, unsigned char kind, const char *text)
{
	unsigned int *width = &table->widths[table->at];
	char cell[TABLE_CELL];

	if ((table->at == 0 && fputc('\0', table->held) == EOF) ||
	    fprintf(table->held, "%c%s%c", kind, text, '\0') < 0)
		return false;
	text_escape(text, cell, sizeof(cell));
	if (kind % TABLE_COLOUR == 1)
		*width = (unsigned int)bits_max(*width, text_width(cell));
	return true;
}

void table_span(struct table *table, size_t columns, const char *text)
{
	unsigned char kind = (unsigned char)(columns + table->colour * TABLE_COLOUR);

	table->colour = 0;
	if (table->held && !table_hold(table, kind, text))
		table_settle(table);
	if (!table->held) {
		table_write(table, kind, text);
		return;
	}
	table->at += columns;
	if (table->at < table->count)
		return;
	table->at = 0;
	if (++table->rows == TABLE_HELD && !table->framed)
		table_settle(table);
}

void table_text(struct table *table, const char *text)
{
	table_span(table, 1, text);
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

void table_rest(struct table *table, const char *text)
{
	while (table->at)
		table_text(table, text);
}

FILE *table_lines(struct table *table)
{
	return table->held ? table->held : table->out;
}

void table_frame(struct table *table)
{
	table->framed = true;
	for (size_t i = 0; i < table->count; i++)
		table->widths[i] =
			(unsigned int)bits_max(table->widths[i], table->columns[i].least);
}

void table_widen(struct table *table, unsigned int most)
{
	unsigned int wanted[TABLE_COLUMNS_MAX], lack = 0;

	memcpy(wanted, table->widths, sizeof(wanted));
	table_fit(table);
	for (size_t i = 0; i < table->count; i++)
		lack += table->columns[i].order ? 0 : wanted[i] - table->widths[i];
	memcpy(table->widths, wanted, sizeof(wanted));
	table->width = (unsigned int)bits_min(table->width + lack, most);
}

void table_end(struct table *table)
{
	if (table->held)
		table_settle(table);
	if (table->framed)
		table_rule(table->out, table->width);
}
