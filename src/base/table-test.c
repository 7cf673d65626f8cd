/* SPDX-License-Identifier: Apache-2.0 */

/* Columns line up, whatever is in them, and fit into the terminal. */

#include "base/table.h"

#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/testing/unit.h"

static char *text;
static size_t length;

static void begin(struct table *table, const struct table_column *columns, size_t count,
		  unsigned int width)
{
	FILE *out = open_memstream(&text, &length);

	assert(out);
	table_begin(table, out, columns, count, width);
}

/* Ends the table and judges what was written. */
static void end(struct table *table, const char *expected)
{
	table_end(table);
	assert(fclose(table->out) == 0);
	if (strcmp(text, expected) != 0)
		fprintf(stderr, "%u columns:\n%s", table->width, text);
	assert(strcmp(text, expected) == 0);
	free(text);
}

UNIT(columns_are_as_wide_as_what_is_in_them)
{
	static const struct table_column columns[] = {{"N", true}, {"NAME"}, {"REST"}};
	struct table table;

	begin(&table, columns, ARRAY_SIZE(columns), 0);
	table_format(&table, "%d", 7);
	table_text(&table, "abcdef");
	table_text(&table, "the last one ends its line");
	table_format(&table, "%d", 12345);
	table_text(&table, "");
	table_text(&table, "");
	end(&table, "    N  NAME    REST\n"
		    "    7  abcdef  the last one ends its line\n"
		    "12345\n");
}

UNIT(a_table_without_rows_has_titles)
{
	static const struct table_column columns[] = {{"N", true}, {"NAME"}};
	struct table table;

	begin(&table, columns, ARRAY_SIZE(columns), 0);
	end(&table, "N  NAME\n");
}

UNIT(cells_are_escaped_and_count_as_they_are_shown)
{
	static const struct table_column columns[] = {{"A"}, {"B", .cut = true}};
	struct table table;

	begin(&table, columns, ARRAY_SIZE(columns), 0);
	table_text(&table, "\xe4\xb8\xad\xe6\x96\x87"); /* two characters of two columns */
	table_text(&table, "x");
	table_text(&table, "\xc3\xa4");
	table_text(&table, "x");
	table_text(&table, "\033[");
	table_text(&table, "\033");
	end(&table, "A      B\n"
		    "\xe4\xb8\xad\xe6\x96\x87   x\n"
		    "\xc3\xa4      x\n"
		    "\\x1b[  \\x1b\n");
}

UNIT(columns_leave_in_their_order_and_those_that_are_cut_share_the_rest)
{
	static const struct table_column columns[] = {
		{"N", true},
		{"ADDRESS", .order = 1},
		{"NAME", .cut = true, .order = 3, .least = 6},
		{"USER", .cut = true, .order = 2},
		{"LAST", .cut = true, .least = 5},
	};
	static const struct {
		unsigned int width;
		const char *text;
	} expected[] = {
		{0, "N  ADDRESS  NAME        USER     LAST\n7  0x10     abcdefghij  theresa  "
		    "klmnop\n"},
		{39, "N  ADDRESS  NAME        USER     LAST\n7  0x10     abcdefghij  theresa  "
		     "klmnop\n"},
		{38,
		 "N  ADDRESS  NAME       USER     LAST\n7  0x10     abcdefgh~  theresa  klmnop\n"},
		{34, "N  ADDRESS  NAME     USER   LAST\n7  0x10     abcdef~  ther~  klmnop\n"},
		{31, "N  ADDRESS  NAME    USER  LAST\n7  0x10     abcde~  the~  klmn~\n"},
		/* The room of one that has left is for the others. */
		{29, "N  NAME       USER     LAST\n7  abcdefgh~  theresa  klmnop\n"},
		{20, "N  NAME       LAST\n7  abcdefgh~  klmnop\n"},
		{16, "N  NAME    LAST\n7  abcde~  klmn~\n"},
		{15, "N  LAST\n7  klmnop\n"},
		/* What stays is cut further where it must, but not its title. */
		{7, "N  LAST\n7  klm~\n"},
		{3, "N  LAST\n7  klm~\n"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(expected); i++) {
		struct table table;

		begin(&table, columns, ARRAY_SIZE(columns), expected[i].width);
		table_text(&table, "7");
		table_text(&table, "0x10");
		table_text(&table, "abcdefghij");
		table_text(&table, "theresa");
		table_text(&table, "klmnop");
		end(&table, expected[i].text);
	}
}

UNIT(a_column_may_move_to_a_second_line_instead)
{
	static const struct table_column columns[] = {
		{"N", true},
		{"NAME", .order = 2},
		{"SITE", .cut = true, .below = true, .order = 1, .least = 10},
		{"MORE"},
	};
	static const struct {
		unsigned int width;
		const char *text;
	} expected[] = {
		{0, "N  NAME  SITE                       MORE\n"
		    "7  kv    at load_weights (model.c)  a\n"
		    " between\n"
		    "8  kv    -                          b\n"},
		{32, "N  NAME  SITE               MORE\n"
		     "7  kv    at load_weights ~  a\n"
		     " between\n"
		     "8  kv    -                  b\n"},
		{24, "N  NAME\n"
		     "    SITE            MORE\n"
		     "7  kv\n"
		     "    at load_weigh~  a\n"
		     " between\n"
		     "8  kv\n"
		     "    -               b\n"},
		{6, "N\n"
		    "    SITE        MORE\n"
		    "7\n"
		    "    at load_w~  a\n"
		    " between\n"
		    "8\n"
		    "    -           b\n"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(expected); i++) {
		struct table table;

		begin(&table, columns, ARRAY_SIZE(columns), expected[i].width);
		table_text(&table, "7");
		table_text(&table, "kv");
		table_text(&table, "at load_weights (model.c)");
		table_text(&table, "a");
		fputs(" between\n", table_lines(&table));
		table_text(&table, "8");
		table_text(&table, "kv");
		table_text(&table, "-");
		table_text(&table, "b");
		end(&table, expected[i].text);
	}
}

/* Rows from the first that is not held have the widths of those that are. */
UNIT(rows_that_are_not_held_are_written_as_they_come)
{
	static const struct table_column columns[] = {{"NAME"}, {"REST"}};
	struct table table;
	size_t written;

	begin(&table, columns, ARRAY_SIZE(columns), 0);
	for (unsigned int i = 0; i < TABLE_HELD; i++) {
		fflush(table.out);
		assert(length == 0);
		table_text(&table, "abcdef");
		table_rest(&table, "-");
	}
	fflush(table.out);
	written = length;
	assert(written == strlen("NAME    REST\n") + TABLE_HELD * strlen("abcdef  -\n"));
	table_text(&table, "a");
	table_text(&table, "b");
	fputs(" below\n", table_lines(&table));
	table_text(&table, "longer than these");
	table_text(&table, "c");
	table_end(&table);
	assert(fclose(table.out) == 0);
	assert(strcmp(text + written, "a       b\n below\nlonger than these  c\n") == 0);
	free(text);
}

/* Into a pipe a cell goes as a whole, even one that is longer than any line. */
UNIT(a_pipe_gets_all_of_a_cell)
{
	static const struct table_column columns[] = {{"NAME", .cut = true, .order = 1}, {"REST"}};
	char cell[5001];
	struct table table;

	memset(cell, 'x', sizeof(cell) - 1);
	cell[sizeof(cell) - 1] = '\0';
	begin(&table, columns, ARRAY_SIZE(columns), 0);
	table_text(&table, cell);
	table_text(&table, "end");
	table_end(&table);
	assert(fclose(table.out) == 0);
	assert(strstr(text, cell) && strcmp(strstr(text, cell) + strlen(cell), "  end\n") == 0);
	free(text);
}

#define LINES_BEGIN \
	10u /* bytes that are held before the lines below the first row, and with them */
#define LINES_END 17u

/* Wherever memory ends, rows are written, first those that are held. Only lines between them may be lost. */
UNIT(without_memory_rows_are_written_as_they_come)
{
	static const struct table_column columns[] = {{"NAME"}, {"REST"}};
	struct table table;

	for (size_t size = 2; size < 60; size++) {
		if (size >= LINES_BEGIN && size <= LINES_END)
			continue;
		begin(&table, columns, ARRAY_SIZE(columns), 0);
		assert(fclose(table.held) == 0);
		free(table.text);
		table.text = calloc(1, size);
		table.size = size;
		table.held = fmemopen(table.text, size, "w");
		assert(table.text && table.held && setvbuf(table.held, NULL, _IONBF, 0) == 0);
		table_text(&table, "abcd");
		table_text(&table, "b");
		fputs(" below\n", table_lines(&table));
		table_text(&table, "c");
		table_text(&table, "as long as it likes");
		table_text(&table, "d");
		table_text(&table, "e");
		end(&table, "NAME  REST\n"
			    "abcd  b\n"
			    " below\n"
			    "c     as long as it likes\n"
			    "d     e\n");
	}
}

UNIT(a_cell_may_span_columns)
{
	static const struct table_column columns[] = {{"N"}, {"A", true}, {"B", true}, {"REST"}};
	struct table table;

	begin(&table, columns, ARRAY_SIZE(columns), 0);
	table_text(&table, "1");
	table_span(&table, 2, "x");
	table_text(&table, "end");
	table_text(&table, "2");
	table_span(&table, 3, "wider than its columns");
	table_text(&table, "3");
	table_rest(&table, "-");
	end(&table, "N  A  B  REST\n"
		    "1     x  end\n"
		    "2  wider than its columns\n"
		    "3  -  -  -\n");
}

UNIT(a_frame_has_its_width_and_room_goes_to_names)
{
	static const struct table_column columns[] = {
		{"N", true, .least = 3},
		{"Name", .cut = true, .least = 6},
		{"Age", .cut = true, .order = 1},
	};
	struct table table;

	begin(&table, columns, ARRAY_SIZE(columns), 26);
	table_frame(&table);
	table_text(&table, "7");
	table_text(&table, "abcdefghij");
	table_text(&table, "years");
	table_text(&table, "8");
	table_text(&table, "");
	table_text(&table, "");
	end(&table, "|   N Name         Age   |\n"
		    "+------------------------+\n"
		    "|   7 abcdefghij   years |\n"
		    "|   8                    |\n"
		    "+------------------------+\n");
}

UNIT(a_frame_is_widened_for_the_columns_that_stay)
{
	static const struct table_column columns[] = {
		{"Name", .cut = true, .least = 6},
		{"Age", .cut = true, .order = 1},
	};
	static const struct {
		unsigned int most;
		const char *text;
	} expected[] = {
		{20, "| Name       |\n+------------+\n| abcdefghij |\n+------------+\n"},
		{12, "| Name     |\n+----------+\n| abcdefg~ |\n+----------+\n"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(expected); i++) {
		struct table table;

		begin(&table, columns, ARRAY_SIZE(columns), 10);
		table_frame(&table);
		table_text(&table, "abcdefghij");
		table_text(&table, "years");
		table_widen(&table, expected[i].most);
		end(&table, expected[i].text);
	}
}

UNIT(a_colour_is_of_one_cell_and_takes_no_room)
{
	static const struct table_column columns[] = {{"N", true}, {"A", .cut = true}};
	struct table table;

	begin(&table, columns, ARRAY_SIZE(columns), 10);
	table.colour = 1;
	table_text(&table, "-7");
	table_text(&table, "x");
	table_text(&table, "+123");
	table.colour = 2;
	table_text(&table, "abcdef");
	end(&table, "   N  A\n"
		    "  \033[31m-7\033[0m  x\n"
		    "+123  \033[32mabc~\033[0m\n");
}
