/* SPDX-License-Identifier: Apache-2.0 */

/* Columns line up, whatever is in them. */

#include "base/table.h"

#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/testing/unit.h"

static char *begin(struct table *table, const struct table_column *columns, size_t count,
		   unsigned int width)
{
	static char text[4096];
	FILE *out = fmemopen(text, sizeof(text), "w");

	assert(out);
	table_begin_within(table, out, columns, count, width);
	return text;
}

UNIT(a_table_is_fitted_into_its_terminal)
{
	static const struct table_column columns[] = {
		{"N", 3, true, false},
		{"NAME", 5, false, true, .most = TABLE_ANY},
		{"USER", 4, false, true, .least = 20, .most = 6},
		{"REST", 4, false, true, .most = TABLE_ANY},
	};
	static const struct {
		unsigned int width;
		const char *text;
	} expected[] = {
		{0, "  N  NAME   USER  REST\n  7  abcdefghij  theresa  klmnopq\n"},
		{16, "  N  NAME   REST\n  7  abcd~  klm~\n"},
		{19, "  N  NAME     REST\n  7  abcdef~  klmn~\n"},
		{22, "  N  NAME   USER  REST\n  7  abcd~  the~  klm~\n"},
		{34, "  N  NAME        USER    REST\n  7  abcdefghij  there~  klmnopq\n"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(expected); i++) {
		struct table table;
		char *text = begin(&table, columns, ARRAY_SIZE(columns), expected[i].width);

		table_format(&table, "%d", 7);
		table_text(&table, "abcdefghij");
		table_text(&table, "theresa");
		table_text(&table, "klmnopq");
		assert(fclose(table.out) == 0);
		if (strcmp(text, expected[i].text) != 0)
			fprintf(stderr, "%u:\n%s", expected[i].width, text);
		assert(strcmp(text, expected[i].text) == 0);
	}
}

UNIT(columns_line_up)
{
	static const struct table_column columns[] = {
		{"N", 3, true, false},
		{"NAME", 5, false, true},
		{"REST", 0, false, false},
	};
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	struct table table;

	table_begin_within(&table, out, columns, 3, 16);
	table_format(&table, "%d", 7);
	table_text(&table, "abcdefgh");
	table_text(&table, "as long as it likes");
	table_format(&table, "%d", 12345);
	table_text(&table, "\xc3\xa4");
	table_text(&table, "\033");
	assert(fclose(out) == 0);
	assert(strcmp(text, "  N  NAME   REST\n"
			    "  7  abcd~  as long as it likes\n"
			    "12345  \xc3\xa4      \\x1b\n") == 0);
	free(text);
}
