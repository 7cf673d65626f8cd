/* SPDX-License-Identifier: Apache-2.0 */

/* Columns line up, whatever is in them. */

#include "base/table.h"

#include <stdlib.h>
#include <string.h>

#include "base/unit.h"

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

	table_begin(&table, out, columns, 3);
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
