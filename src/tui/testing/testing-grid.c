/* SPDX-License-Identifier: Apache-2.0 */

/* Prints a grid into memory. */

#include "tui/testing/testing-grid.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"

static void testing_cell(const struct grid_cell *cell, FILE *out)
{
	uint32_t c = cell->character;

	if (c < 0x80) {
		fputc((int)c, out);
	} else if (c < 0x800) {
		fputc((int)(0xc0 | c >> 6), out);
		fputc((int)(0x80 | (c & 0x3f)), out);
	} else if (c < 0x10000) {
		fputc((int)(0xe0 | c >> 12), out);
		fputc((int)(0x80 | (c >> 6 & 0x3f)), out);
		fputc((int)(0x80 | (c & 0x3f)), out);
	} else {
		fputc((int)(0xf0 | c >> 18), out);
		fputc((int)(0x80 | (c >> 12 & 0x3f)), out);
		fputc((int)(0x80 | (c >> 6 & 0x3f)), out);
		fputc((int)(0x80 | (c & 0x3f)), out);
	}
}

static void testing_print(const struct grid *grid, FILE *out)
{
	for (unsigned int row = 0; row < grid->rows; row++) {
		const struct grid_cell *line = &grid->cells[(size_t)row * grid->columns];
		unsigned int end = grid->columns;

		while (end > 0 && line[end - 1].character == ' ')
			end--;
		for (unsigned int column = 0; column < end; column++) {
			if (line[column].columns > 0)
				testing_cell(&line[column], out);
		}
		fputc('\n', out);
	}
}

void testing_grid_is(struct grid *grid, const char *expected)
{
	CLEANUP_FREE char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert(out);
	testing_print(grid, out);
	assert(fclose(out) == 0);
	grid_deinit(grid);
	if (expected && strcmp(text, expected) != 0)
		fprintf(stderr, "drawn:\n%sexpected:\n%s", text, expected);
	assert(!expected || strcmp(text, expected) == 0);
}
